package bundle

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/tailscale/hujson"

	"github.com/talaria-go/mcp/schema"
)

// ManifestName is what the manifest is called within a bundle.
const ManifestName = "manifest.json"

// MaxManifest bounds the bytes of a manifest.
const MaxManifest = 1 << 20

// Manifest is the description of a bundle, as the specification of MCPB has it.
// Members that it does not have are errors, as they are for mcpb.
type Manifest struct {
	Schema          string         `json:"$schema,omitempty"`
	ManifestVersion string         `json:"manifest_version" validate:"oneof=0.2 0.3 0.4"`
	Name            string         `json:"name" validate:"bundlename"`
	DisplayName     string         `json:"display_name,omitempty"`
	Version         string         `json:"version" validate:"semver"`
	Description     string         `json:"description" validate:"required"`
	LongDescription string         `json:"long_description,omitempty"`
	Author          Author         `json:"author"`
	Repository      *Repository    `json:"repository,omitempty"`
	Homepage        string         `json:"homepage,omitempty" validate:"omitempty,url"`
	Documentation   string         `json:"documentation,omitempty" validate:"omitempty,url"`
	Support         string         `json:"support,omitempty" validate:"omitempty,url"`
	Icon            string         `json:"icon,omitempty"`
	Icons           []Icon         `json:"icons,omitempty" validate:"excluded_if=ManifestVersion 0.2"`
	Screenshots     []string       `json:"screenshots,omitempty"`
	Localization    *Localization  `json:"localization,omitempty" validate:"excluded_if=ManifestVersion 0.2"`
	Server          Server         `json:"server"`
	Tools           []Tool         `json:"tools,omitempty"`
	ToolsGenerated  bool           `json:"tools_generated,omitempty"`
	Prompts         []Prompt       `json:"prompts,omitempty"`
	PromptsLater    bool           `json:"prompts_generated,omitempty"`
	Keywords        []string       `json:"keywords,omitempty"`
	License         string         `json:"license,omitempty"`
	PrivacyPolicies []string       `json:"privacy_policies,omitempty" validate:"omitempty,dive,url"`
	Compatibility   *Compatibility `json:"compatibility,omitempty"`
	// UserConfig are the settings that a host asks its user for.
	UserConfig map[string]Setting        `json:"user_config,omitempty"`
	Meta       map[string]map[string]any `json:"_meta,omitempty" validate:"excluded_if=ManifestVersion 0.2"`
}

// Author is who made a bundle.
type Author struct {
	Name  string `json:"name" validate:"required"`
	Email string `json:"email,omitempty" validate:"omitempty,email"`
	URL   string `json:"url,omitempty" validate:"omitempty,url"`
}

// Repository is where the source is.
type Repository struct {
	Type string `json:"type"`
	URL  string `json:"url" validate:"url"`
}

// Icon is a picture of the bundle in one size.
type Icon struct {
	Src   string `json:"src"`
	Size  string `json:"size" validate:"iconsize"`
	Theme string `json:"theme,omitempty" validate:"omitempty,min=1"`
}

// Localization says where texts in other languages are.
type Localization struct {
	Resources     string `json:"resources" validate:"contains=${locale}"`
	DefaultLocale string `json:"default_locale"`
}

// Server is the program of a bundle.
type Server struct {
	Type       string `json:"type" validate:"oneof=binary"`
	EntryPoint string `json:"entry_point"`
	Config     Config `json:"mcp_config"`
}

// Config is how a host starts the program.
type Config struct {
	Command           string            `json:"command"`
	Args              []string          `json:"args,omitempty"`
	Env               map[string]string `json:"env,omitempty"`
	PlatformOverrides map[string]any    `json:"platform_overrides,omitempty"`
}

// Tool is one that the manifest announces.
type Tool struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// Prompt is one that the manifest announces.
type Prompt struct {
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	Arguments   []string `json:"arguments,omitempty"`
	Text        string   `json:"text"`
}

// Compatibility is what a bundle needs.
type Compatibility struct {
	ClaudeDesktop string         `json:"claude_desktop,omitempty"`
	Platforms     []string       `json:"platforms,omitempty" validate:"omitempty,dive,oneof=darwin win32 linux"`
	Runtimes      map[string]any `json:"runtimes,omitempty"`
}

// Setting is one that a host asks its user for.
type Setting struct {
	Type        string          `json:"type" validate:"oneof=string number boolean directory file"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Required    bool            `json:"required,omitempty"`
	Default     json.RawMessage `json:"default,omitempty"`
	Multiple    bool            `json:"multiple,omitempty"`
	Sensitive   bool            `json:"sensitive,omitempty"`
	Min         float64         `json:"min,omitempty"`
	Max         float64         `json:"max,omitempty"`
}

// Read reads a manifest and says everything that is wrong with it, each with its
// place and what to write instead.
func Read(text []byte) (*Manifest, error) {
	if len(text) > MaxManifest {
		return nil, fmt.Errorf("it has %d bytes, at most %d may be in a manifest", len(text), MaxManifest)
	}
	plan, err := schema.Compile(reflect.TypeFor[Manifest](), &schema.Options{Strict: true, Rules: rules})
	if err != nil {
		return nil, err
	}
	m := &Manifest{}
	if err := plan.Decode(context.Background(), text, m); err != nil {
		return nil, err
	}
	if err := m.check(); err != nil {
		return nil, err
	}
	return m, nil
}

// fitted returns the text of a manifest as it goes into the bundle for a target:
// with the platform and the program's name of that, and without a promise that
// all tools and prompts are listed.
func (m *Manifest) fitted(text []byte, t Target) ([]byte, error) {
	v, err := hujson.Parse(text)
	if err != nil {
		return nil, err
	}
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	set := func(path string, value any) operation { return operation{"add", path, value} }
	patch := []operation{
		set("/server/entry_point", m.program(t)),
		set("/server/mcp_config/command", here+"/"+m.program(t)),
		set("/tools_generated", true),
		set("/prompts_generated", true),
	}
	if m.Compatibility == nil {
		patch = append(patch, set("/compatibility", map[string]any{}))
	}
	encoded, err := json.Marshal(append(patch, set("/compatibility/platforms", []string{t.platform()})))
	if err != nil {
		return nil, err
	}
	if err := v.Patch(encoded); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, v.Pack(), "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}
