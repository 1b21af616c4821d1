package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"path"
	"runtime/debug"
	"strings"
)

// bom is a document of CycloneDX 1.6. It has no serial number and no time, so that the
// same binary has the same one.
type bom struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
	Depends    []depends   `json:"dependencies"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Ref        string     `json:"bom-ref"`
	Type       string     `json:"type"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	PURL       string     `json:"purl"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type depends struct {
	Ref string   `json:"ref"`
	On  []string `json:"dependsOn"`
}

// describe returns the SBOM of a binary, which is what Go has noted in it: its modules
// and their checksums. Modules of this checkout have the version of the release.
func describe(file, version, sum string) ([]byte, error) {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return nil, err
	}
	main := module(debug.Module{Path: info.Path, Version: version})
	main.Type, main.Hashes = "application", []hash{{"SHA-256", sum}}
	for _, s := range info.Settings {
		if s.Key == "GOOS" || s.Key == "GOARCH" {
			main.Properties = append(main.Properties, property{"go:" + s.Key, s.Value})
		}
	}
	b := bom{Format: "CycloneDX", Spec: "1.6", Version: 1, Metadata: metadata{main}}
	b.Components = append(b.Components, module(debug.Module{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")}))
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		if m.Version == "" || m.Version == "(devel)" {
			m.Version = version
		}
		b.Components = append(b.Components, module(*m))
	}
	all := depends{Ref: main.Ref}
	for _, c := range b.Components {
		all.On = append(all.On, c.Ref)
	}
	b.Depends = []depends{all}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err = e.Encode(b)
	return text.Bytes(), err
}

// module returns the component of a module. Its hash is that of go.sum.
func module(m debug.Module) component {
	parts := strings.Split(strings.ToLower(m.Path), "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	purl := "pkg:golang/" + path.Join(parts...) + "@" + strings.ReplaceAll(m.Version, "+", "%2B")
	c := component{Ref: purl, Type: "library", Name: m.Path, Version: m.Version, PURL: purl}
	if sum, ok := strings.CutPrefix(m.Sum, "h1:"); ok {
		if raw, err := base64.StdEncoding.DecodeString(sum); err == nil {
			c.Hashes = []hash{{"SHA-256", hex.EncodeToString(raw)}}
		}
	}
	return c
}
