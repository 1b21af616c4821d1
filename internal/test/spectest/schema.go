package spectest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/talaria-go/mcp/uritemplate"
)

// official finds the folder of the official schemas, which has one folder for
// each revision. It lies next to the module, if it is there at all.
var official = sync.OnceValues(func() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fmt.Errorf("no go.mod in or above the directory of the test")
		}
		dir = up
	}
	spec := filepath.Join(dir, "..", "shared", "spec")
	_, err = os.Stat(spec)
	return spec, err
})

var notice sync.Once

// present reports whether there are official schemas, and once if there are not.
func present(t testing.TB) bool {
	t.Helper()
	_, err := official()
	if err != nil {
		notice.Do(func() { t.Logf("messages are not checked against the official schemas: %v", err) })
	}
	return err == nil
}

// compiled is a schema, or why there is none.
type compiled struct {
	schema *jsonschema.Schema
	err    error
}

var schemas sync.Map // of compiled, by folder and name

// validate checks text against the schema of that name.
func validate(t testing.TB, folder, name string, text []byte) {
	t.Helper()
	key := folder + " " + name
	cached, ok := schemas.Load(key)
	if !ok {
		schema, err := compile(folder, name)
		cached, _ = schemas.LoadOrStore(key, compiled{schema, err})
	}
	c := cached.(compiled)
	if c.err != nil {
		t.Errorf("%s has no %s, of which this is one: %s\n%v", folder, name, text, c.err)
		return
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err == nil {
		err = c.schema.Validate(value)
	}
	if err != nil {
		t.Errorf("%s %s: %.2000s does not fit\n%v", folder, name, text, err)
	}
}

// folder has the schemas of one folder.
type folder struct {
	mu       sync.Mutex // the compiler is for one at a time
	compiler *jsonschema.Compiler
	section  string // where the document has its schemas
}

var folders sync.Map // of function() (*folder, error), by name

func compile(name, schema string) (*jsonschema.Schema, error) {
	read, _ := folders.LoadOrStore(name, sync.OnceValues(func() (*folder, error) { return readFolder(name) }))
	f, err := read.(func() (*folder, error))()
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.compiler.Compile("spec.json#/" + f.section + "/" + schema)
}

func readFolder(name string) (*folder, error) {
	dir, err := official()
	if err != nil {
		return nil, err
	}
	file, err := os.Open(filepath.Join(dir, name, "schema.json"))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	doc, err := jsonschema.UnmarshalJSON(file)
	if err != nil {
		return nil, err
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	// The library's own check of this format refuses braces in the host.
	c.RegisterFormat(&jsonschema.Format{Name: "uri-template", Validate: func(v any) error {
		if text, ok := v.(string); ok {
			_, err := uritemplate.Parse(text)
			return err
		}
		return nil
	}})
	section := "definitions"
	if _, ok := doc.(map[string]any)["$defs"]; ok {
		section = "$defs"
	}
	return &folder{compiler: c, section: section}, c.AddResource("spec.json", doc)
}
