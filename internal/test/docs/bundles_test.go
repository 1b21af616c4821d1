package docs_test

import (
	"archive/zip"
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// The manifest of the page is that of the example.
func TestBundleManifest(t *testing.T) {
	got := blocks(page(t, "bundles.md"), "json")
	if want := page(t, "../examples/bundle/manifest.json"); len(got) != 1 || got[0] != want {
		t.Errorf("the page has %q, and the example %q", got, want)
	}
}

// packed checks what the commands of the page have written.
func packed(t *testing.T, bundle, project string) {
	t.Helper()
	r, err := zip.OpenReader(bundle)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var names []string
	for _, f := range r.File {
		names = append(names, f.Name)
	}
	if got, want := strings.Join(names, " "), "manifest.json server/glossary terms.json"; got != want {
		t.Errorf("%s has %q, want %q", bundle, got, want)
	}
	text, err := os.ReadFile(project)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Servers map[string]struct{ Env map[string]string } `json:"mcpServers"`
	}
	if err := json.Unmarshal(text, &file); err != nil || file.Servers["weather"].Env["WEATHER_KEY"] != "${WEATHER_KEY}" {
		t.Errorf("%s: %v", text, err)
	}
}
