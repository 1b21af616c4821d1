package bench

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/schema/raw"
)

// TestOfficialSuite runs the official JSON Schema test suite, as the module
// google/jsonschema-go carries it, against raw.Compile. Left out are the
// schemas that refer to documents on a server, which are refused on purpose.
func TestOfficialSuite(t *testing.T) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/google/jsonschema-go").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for dir, draft := range map[string]string{
		"draft7":       "http://json-schema.org/draft-07/schema#",
		"draft2020-12": "https://json-schema.org/draft/2020-12/schema",
	} {
		files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "jsonschema", "testdata", dir, "*.json"))
		if err != nil || len(files) < 30 {
			t.Fatalf("found %d files of %s: %v", len(files), dir, err)
		}
		ran, remote := 0, 0
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var groups []struct {
				Description string
				Schema      json.RawMessage
				Tests       []struct {
					Description string
					Data        json.RawMessage
					Valid       bool
				}
			}
			if err := json.Unmarshal(text, &groups); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			for _, g := range groups {
				s, err := raw.Compile(withDraft(t, g.Schema, draft))
				if err != nil && strings.Contains(err.Error(), "schemas are not loaded from elsewhere") {
					remote += len(g.Tests)
					continue
				}
				if err != nil {
					t.Errorf("%s: %s: %v", filepath.Base(file), g.Description, err)
					continue
				}
				for _, c := range g.Tests {
					if ran++; (s.Check(c.Data) == nil) != c.Valid {
						t.Errorf("%s: %s: %s: want valid %v, got %v", filepath.Base(file), g.Description, c.Description, c.Valid, s.Check(c.Data))
					}
				}
			}
		}
		t.Logf("%s: %d ran, %d refer to documents elsewhere", dir, ran, remote)
		if ran < 800 || remote > 100 {
			t.Errorf("%s: %d ran, %d were left out", dir, ran, remote)
		}
	}
}

// withDraft names the draft of a schema that names none.
func withDraft(t *testing.T, text json.RawMessage, draft string) json.RawMessage {
	t.Helper()
	var object map[string]json.RawMessage
	if json.Unmarshal(text, &object) != nil || object["$schema"] != nil {
		return text
	}
	name, err := json.Marshal(draft)
	if err != nil {
		t.Fatal(err)
	}
	object["$schema"] = name
	text, err = json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
