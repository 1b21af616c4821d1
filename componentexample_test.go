package mcp_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing/fstest"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/wire"
)

// send sends one modern request to a server over HTTP and prints the answer.
func send(s *mcp.Server, method, name, params string) {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s,"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, method, params)
	r := httptest.NewRequest("POST", "/mcp", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("MCP-Protocol-Version", "2026-07-28")
	r.Header.Set("Mcp-Method", method)
	if name != "" {
		r.Header.Set("Mcp-Name", wire.EncodeHeaderValue(name))
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	answer, _, _ := strings.Cut(w.Body.String(), `,"_meta"`)
	fmt.Println(answer)
}

// A template binds its variables to the fields of a struct, whose tags check
// them.
func ExampleResource() {
	type user struct {
		ID int `json:"id" validate:"min=1"`
	}
	type profile struct {
		Name string `json:"name"`
	}
	s := mcp.NewServer(mcp.Info{Name: "users", Version: "1.0.0"}, nil)
	s.MustAdd(mcp.Template("users://{id}/profile", func(_ *mcp.Frame, in user) (profile, error) {
		if in.ID != 7 {
			return profile{}, mcp.ErrNotFound
		}
		return profile{"Ada"}, nil
	}, mcp.Doc("Who a user is")))

	send(s, "resources/read", "users://7/profile", `"uri":"users://7/profile"`)
	send(s, "resources/read", "users://8/profile", `"uri":"users://8/profile"`)
	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","contents":[{"uri":"users://7/profile","mimeType":"application/json","text":"{\"name\":\"Ada\"}"}],"ttlMs":0,"cacheScope":"private"
	// {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Resource not found: users://8/profile","data":{"uri":"users://8/profile"}}}
}

// A directory is a template with completion of paths.
func ExampleDirectory() {
	files := fstest.MapFS{"guide/start.md": {Data: []byte("# Start")}, "logo.png": {Data: []byte("\x89PNG")}}
	s := mcp.NewServer(mcp.Info{Name: "docs", Version: "1.0.0"}, nil)
	s.MustAdd(mcp.Directory("file:///docs/", files))

	send(s, "resources/read", "file:///docs/guide/start.md", `"uri":"file:///docs/guide/start.md"`)
	send(s, "completion/complete", "",
		`"ref":{"type":"ref/resource","uri":"file:///docs/{+path}"},"argument":{"name":"path","value":"gui"}`)
	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","contents":[{"uri":"file:///docs/guide/start.md","mimeType":"text/markdown","text":"# Start"}],"ttlMs":0,"cacheScope":"private"
	// {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","completion":{"values":["guide/"],"total":1,"hasMore":false}
}

// Arguments come as strings and arrive typed; those with a list of values
// complete by themselves.
func ExamplePrompt() {
	type in struct {
		Code  string `json:"code" validate:"required" jsonschema_description:"what to review"`
		Focus string `json:"focus,omitempty" validate:"oneof=bugs style speed" jsonschema:"default=bugs"`
		Depth int    `json:"depth,omitempty" validate:"min=1,max=3" jsonschema:"default=1"`
	}
	s := mcp.NewServer(mcp.Info{Name: "reviews", Version: "1.0.0"}, nil)
	s.MustAdd(mcp.Prompt("review", func(_ *mcp.Frame, in in) (*mcp.Messages, error) {
		return mcp.NewMessages().
			Userf("Review this code for %s, depth %d: %s", in.Focus, in.Depth, in.Code).
			Assistant("I will list what I find, worst first."), nil
	}))

	send(s, "prompts/get", "review", `"name":"review","arguments":{"code":"x = 1","depth":"2"}`)
	send(s, "completion/complete", "",
		`"ref":{"type":"ref/prompt","name":"review"},"argument":{"name":"focus","value":"s"}`)
	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","messages":[{"role":"user","content":{"type":"text","text":"Review this code for bugs, depth 2: x = 1"}},{"role":"assistant","content":{"type":"text","text":"I will list what I find, worst first."}}]
	// {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","completion":{"values":["style","speed","bugs"],"total":3,"hasMore":false}
}

// What one argument can be may depend on another.
func ExampleComplete() {
	type in struct {
		Country string `json:"country" validate:"oneof=no fr"`
		City    string `json:"city"`
	}
	cities := map[string][]string{"no": {"Oslo", "Bergen"}, "fr": {"Paris", "Brest"}}
	s := mcp.NewServer(mcp.Info{Name: "trips", Version: "1.0.0"}, nil)
	s.MustAdd(mcp.Prompt("trip", func(_ *mcp.Frame, in in) (string, error) {
		return "Plan a trip to " + in.City, nil
	}, mcp.Complete("city", func(_ *mcp.Frame, q mcp.CompletionQuery) (mcp.Completion, error) {
		return mcp.Suggest(q.Value, cities[q.Arguments["country"]]...), nil
	})))

	send(s, "completion/complete", "", `"ref":{"type":"ref/prompt","name":"trip"},`+
		`"argument":{"name":"city","value":"b"},"context":{"arguments":{"country":"fr"}}`)
	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","completion":{"values":["Brest"],"total":1,"hasMore":false}
}
