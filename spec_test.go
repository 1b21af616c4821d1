package mcp_test

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/uritemplate"
)

// specDir holds the official message schemas, one folder for each revision.
var specDir = filepath.Join("..", "shared", "spec")

// tasksSpec is the folder of the extension for tasks, whose schema stands alone.
const tasksSpec = "ext-tasks"

// resultTypes names the schema of each method's result. Results of tasks are in
// the schema of the extension.
var resultTypes = map[string]string{
	"initialize":      "InitializeResult",
	"ping":            "EmptyResult",
	"server/discover": "DiscoverResult",
	"tools/list":      "ListToolsResult",
	"tools/call":      "CallToolResult",

	"resources/list":           "ListResourcesResult",
	"resources/templates/list": "ListResourceTemplatesResult",
	"resources/read":           "ReadResourceResult",
	"resources/subscribe":      "EmptyResult",
	"resources/unsubscribe":    "EmptyResult",
	"prompts/list":             "ListPromptsResult",
	"prompts/get":              "GetPromptResult",
	"completion/complete":      "CompleteResult",
	"logging/setLevel":         "EmptyResult",
	"subscriptions/listen":     "SubscriptionsListenResult",

	"tasks/get":    "GetTaskResult",
	"tasks/update": "UpdateTaskResult",
	"tasks/cancel": "CancelTaskResult",
}

// sentTypes names the schema of each notification and request that the server
// sends.
var sentTypes = map[string]string{
	"notifications/progress":                   "ProgressNotification",
	"notifications/message":                    "LoggingMessageNotification",
	"notifications/cancelled":                  "CancelledNotification",
	"notifications/tools/list_changed":         "ToolListChangedNotification",
	"notifications/prompts/list_changed":       "PromptListChangedNotification",
	"notifications/resources/list_changed":     "ResourceListChangedNotification",
	"notifications/resources/updated":          "ResourceUpdatedNotification",
	"notifications/subscriptions/acknowledged": "SubscriptionsAcknowledgedNotification",
	"notifications/tasks":                      "TaskStatusNotification",

	"elicitation/create":     "ElicitRequest",
	"sampling/createMessage": "CreateMessageRequest",
	"roots/list":             "ListRootsRequest",
}

// TestSpecNamesEveryMethod holds the two tables up against the methods that the
// library has constants for.
func TestSpecNamesEveryMethod(t *testing.T) {
	fromClientsAlone := map[string]bool{"notifications/initialized": true, "notifications/roots/list_changed": true}
	var found int
	for _, dir := range []string{"protocol", "tasks"} {
		for name, method := range methodConstants(t, dir) {
			found++
			if resultTypes[method] == "" && sentTypes[method] == "" && !fromClientsAlone[method] {
				t.Errorf("%s.%s: no schema is named for %s", dir, name, method)
			}
		}
	}
	if found < 20 {
		t.Errorf("found %d methods", found)
	}
}

// methodConstants returns the string constants of a package whose names begin
// with Method.
func methodConstants(t *testing.T, dir string) map[string]string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	methods := map[string]string{}
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || !strings.HasPrefix(spec.Names[0].Name, "Method") || len(spec.Values) == 0 {
				return true
			}
			if text, ok := spec.Values[0].(*ast.BasicLit); ok && text.Kind == token.STRING {
				methods[spec.Names[0].Name] = strings.Trim(text.Value, `"`)
			}
			return true
		})
	}
	return methods
}

var specNotice sync.Once

// specWatch checks every message that a client hears. rev is what the client
// means to speak, until initialize has settled it.
type specWatch struct {
	t   testing.TB
	rev protocol.Revision
}

// heard checks what came back for asked, and returns it.
func (w *specWatch) heard(asked string, answers ...string) []string {
	w.t.Helper()
	for _, answer := range answers {
		var m struct {
			Result struct{ ProtocolVersion string }
		}
		if json.Unmarshal([]byte(answer), &m) == nil && strings.Contains(asked, `"initialize"`) {
			if rev, ok := protocol.ParseRevision(m.Result.ProtocolVersion); ok {
				w.rev = rev
			}
		}
		rev := w.rev
		if strings.Contains(asked, protocol.MetaVersion) && !protocol.IsBatch([]byte(asked)) {
			rev = protocol.Latest
		}
		if rev == 0 {
			rev = protocol.LatestLegacy
		}
		checkSpec(w.t, rev, asked, answer)
	}
	return answers
}

// checkSpec checks a message of the server, or a batch of them, against the
// official schema of its revision: the message as such, its result as that of
// the method asked, and what the server asks or tells as what it is.
func checkSpec(t testing.TB, rev protocol.Revision, asked, answer string) {
	t.Helper()
	if _, err := os.Stat(specDir); err != nil {
		specNotice.Do(func() { t.Logf("messages are not checked against the official schemas: %v", err) })
		return
	}
	var batch, requests []json.RawMessage
	if json.Unmarshal([]byte(answer), &batch) == nil {
		if !strings.Contains(answer, `"id":null`) { // as below
			validate(t, rev.String(), "JSONRPCMessage", []byte(answer))
		}
		_ = json.Unmarshal([]byte(asked), &requests)
		for _, one := range batch {
			checkSpec(t, rev, requestOf(requests, one), string(one))
		}
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
	validate(t, rev.String(), "JSONRPCMessage", []byte(answer))
	if m.Result != nil {
		checkResult(t, rev, asked, m.Result)
	}
	if name := sentTypes[m.Method]; name != "" {
		validate(t, folderOf(rev, m.Method), name, []byte(answer))
	}
}

// requestOf finds the request of a batch that a response answers.
func requestOf(requests []json.RawMessage, response json.RawMessage) string {
	id := func(text json.RawMessage) string {
		var m struct{ ID json.RawMessage }
		_ = json.Unmarshal(text, &m)
		return string(m.ID)
	}
	for _, request := range requests {
		if id(request) == id(response) {
			return string(request)
		}
	}
	return ""
}

// checkResult checks a result as that of the method asked.
func checkResult(t testing.TB, rev protocol.Revision, asked string, result json.RawMessage) {
	t.Helper()
	var request struct{ Method string }
	_ = json.Unmarshal([]byte(asked), &request)
	var kind struct{ ResultType string }
	_ = json.Unmarshal(result, &kind)
	switch name := resultTypes[request.Method]; {
	case kind.ResultType == "input_required":
		validate(t, rev.String(), "InputRequiredResult", result)
	case kind.ResultType == "task":
		validate(t, tasksSpec, "CreateTaskResult", result)
	case name != "":
		validate(t, folderOf(rev, request.Method), name, result)
	default: // a method of the test's own
		validate(t, rev.String(), "Result", result)
	}
}

// folderOf returns the folder of the schema that has a method's messages.
func folderOf(rev protocol.Revision, method string) string {
	if strings.HasPrefix(method, "tasks/") || method == "notifications/tasks" {
		return tasksSpec
	}
	return rev.String()
}

var specSchemas sync.Map // of *jsonschema.Schema, by folder and name

func validate(t testing.TB, folder, name string, text []byte) {
	t.Helper()
	key := folder + name
	cached, ok := specSchemas.Load(key)
	if !ok {
		cached = compileSpec(t, folder, name)
		specSchemas.Store(key, cached)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := cached.(*jsonschema.Schema).Validate(value); err != nil {
		t.Errorf("%s %s: %s does not fit\n%v", folder, name, text, err)
	}
}

func compileSpec(t testing.TB, folder, name string) *jsonschema.Schema {
	t.Helper()
	path := filepath.Join(specDir, folder, "schema.json")
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
