package mcp_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/uritemplate"
)

// specDir holds the official message schemas, one folder per revision.
var specDir = filepath.Join("..", "shared", "spec")

// resultTypes names the schema of each method's result.
var resultTypes = map[string]string{
	"initialize":      "InitializeResult",
	"ping":            "EmptyResult",
	"server/discover": "DiscoverResult",
	"tools/list":      "ListToolsResult",
	"tools/call":      "CallToolResult",

	"resources/list":           "ListResourcesResult",
	"resources/templates/list": "ListResourceTemplatesResult",
	"resources/read":           "ReadResourceResult",
	"prompts/list":             "ListPromptsResult",
	"prompts/get":              "GetPromptResult",
	"completion/complete":      "CompleteResult",
}

var specNotice sync.Once

// checkSpec checks a message of the server against the official schema of its
// revision: the message as such, and its result as that of the method asked.
func checkSpec(t testing.TB, rev protocol.Revision, asked, answer string) {
	t.Helper()
	if _, err := os.Stat(specDir); err != nil {
		specNotice.Do(func() { t.Logf("messages are not checked against the official schemas: %v", err) })
		return
	}
	var m struct {
		Method string
		Result json.RawMessage
		ID     json.RawMessage
	}
	if err := json.Unmarshal([]byte(answer), &m); err != nil {
		t.Errorf("the server sent %s: %v", answer, err)
		return
	}
	if string(m.ID) == "null" {
		return // JSON-RPC demands it where no id could be read; older schemas forbid it
	}
	validate(t, rev, "JSONRPCMessage", []byte(answer))
	var request struct{ Method string }
	_ = json.Unmarshal([]byte(asked), &request)
	if name := resultTypes[request.Method]; name != "" && m.Result != nil {
		validate(t, rev, name, m.Result)
	}
	switch m.Method {
	case protocol.MethodProgress:
		validate(t, rev, "ProgressNotification", []byte(answer))
	case protocol.MethodLog:
		validate(t, rev, "LoggingMessageNotification", []byte(answer))
	}
}

var specSchemas sync.Map // of *jsonschema.Schema, by revision and name

func validate(t testing.TB, rev protocol.Revision, name string, text []byte) {
	t.Helper()
	key := rev.String() + name
	cached, ok := specSchemas.Load(key)
	if !ok {
		cached = compileSpec(t, rev, name)
		specSchemas.Store(key, cached)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := cached.(*jsonschema.Schema).Validate(value); err != nil {
		t.Errorf("%s %s does not fit %s\n%v", rev, name, text, err)
	}
}

func compileSpec(t testing.TB, rev protocol.Revision, name string) *jsonschema.Schema {
	t.Helper()
	path := filepath.Join(specDir, rev.String(), "schema.json")
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	doc, err := jsonschema.UnmarshalJSON(file)
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	// The library's own check of this format refuses braces in the host.
	c.RegisterFormat(&jsonschema.Format{Name: "uri-template", Validate: func(v any) error {
		if text, ok := v.(string); ok {
			_, err := uritemplate.Parse(text)
			return err
		}
		return nil
	}})
	if err := c.AddResource("spec.json", doc); err != nil {
		t.Fatal(err)
	}
	section := "definitions"
	if _, ok := doc.(map[string]any)["$defs"]; ok {
		section = "$defs"
	}
	compiled, err := c.Compile("spec.json#/" + section + "/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}
