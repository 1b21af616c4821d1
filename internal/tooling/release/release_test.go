package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

// A directory of binaries gets the same SBOMs and checksums each time.
func TestFinish(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	var texts [2]string
	for i := range texts {
		dir := t.TempDir()
		for _, name := range []string{"talaria-linux", "talaria-windows.exe"} {
			if err := os.WriteFile(filepath.Join(dir, name), program, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := finish("v1.2.3", dir); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"SHA256SUMS", "talaria-linux.cdx.json", "talaria-windows.cdx.json"} {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			texts[i] += string(text)
		}
	}
	if texts[0] != texts[1] {
		t.Error("the second time gives other bytes")
	}
	for _, want := range []string{digest(program) + "  talaria-linux\n", digest(program) + "  talaria-windows.exe\n"} {
		if !strings.Contains(texts[0], want) {
			t.Errorf("no %q", want)
		}
	}
}

func TestDescribe(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := describe(self, "v1.2.3", "abc")
	if err != nil {
		t.Fatal(err)
	}
	var b bom
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	if b.Format != "CycloneDX" || b.Metadata.Component.Version != "v1.2.3" || b.Metadata.Component.Hashes[0].Content != "abc" ||
		len(b.Components) == 0 || b.Components[0].Name != "std" || len(b.Depends[0].On) != len(b.Components) {
		t.Errorf("got %s", text)
	}
	got := module(debug.Module{Path: "example.com/Me/x", Version: "v2.0.0+incompatible", Sum: "h1:AAEC"})
	if s := fmt.Sprint(got.PURL, got.Hashes); s != "pkg:golang/example.com/me/x@v2.0.0%2Bincompatible[{SHA-256 000102}]" {
		t.Errorf("got %s", s)
	}
	if _, err := describe(filepath.Join(t.TempDir(), "none"), "v1.2.3", ""); err == nil {
		t.Error("a file that is not there has an SBOM")
	}
}
