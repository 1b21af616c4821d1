package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing/fstest"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/transport"
)

type divideIn struct {
	A float64 `json:"a" jsonschema_description:"what is divided"`
	B float64 `json:"b" validate:"ne=0" jsonschema_description:"what it is divided by"`
}

func divide(_ *mcp.Frame, in divideIn) (float64, error) { return in.A / in.B, nil }

// A server mounted into a router, and a request of revision 2026-07-28.
func ExampleServer_Handler() {
	s := mcp.NewServer(mcp.Info{Name: "calculator", Version: "1.0.0"}, nil)
	s.MustAdd(mcp.Tool("divide", divide, mcp.Doc("Divides two numbers"), mcp.ReadOnly()))
	r := chi.NewRouter()
	r.Mount("/mcp", s.Handler())
	server := httptest.NewServer(r)
	defer server.Close()

	req, err := http.NewRequest(http.MethodPost, server.URL+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{
		"name":"divide","arguments":{"a":1,"b":0},
		"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("MCP-Protocol-Version", "2026-07-28")
	req.Header.Set("Mcp-Method", "tools/call")
	req.Header.Set("Mcp-Name", "divide")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close()
	answer, _ := io.ReadAll(res.Body)
	fmt.Println(res.Status, strings.Contains(string(answer), "Invalid arguments for tool"))
	// Output: 200 OK true
}

// Faults of tools are found when they are added, all at once.
func ExampleServer_Add() {
	s := mcp.NewServer(mcp.Info{Name: "example", Version: "1.0.0"}, nil)
	type in struct {
		Limit int `json:"limit" validate:"min=1.5"`
	}
	err := s.Add(mcp.Tool("my tool", func(*mcp.Frame, in) (string, error) { return "", nil }))
	fmt.Println(strings.Contains(err.Error(), `mcp: tool "my tool"`), strings.Contains(err.Error(), "min=1.5"))
	// Output: true true
}

// The same server over a pair of streams, as over standard input and output.
func ExampleServer_ServeConn() {
	s := mcp.NewServer(mcp.Info{Name: "example", Version: "1.0.0"}, nil)
	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n")
	var out strings.Builder
	if err := s.ServeConn(context.Background(), transport.NewStream(in, &out, nil)); err != nil {
		fmt.Println(err)
	}
	fmt.Print(out.String())
	// Output: {"jsonrpc":"2.0","id":1,"result":{}}
}

// A handler may take a context.Context; what it calls finds the Frame there.
func ExampleFromContext() {
	principal := func(ctx context.Context) string {
		if f, ok := mcp.FromContext(ctx); ok {
			return f.Principal()
		}
		return ""
	}
	greet := func(ctx context.Context, in struct {
		Name string `json:"name"`
	}) (string, error) {
		return "Hello, " + in.Name + principal(ctx) + "!", nil
	}
	s := mcp.NewServer(mcp.Info{Name: "example", Version: "1.0.0"}, nil)
	fmt.Println(s.Add(mcp.Tool("greet", greet)))
	// Output: <nil>
}

// Options that belong together are one option: a Bundle fits every kind of
// component, ToolOptions fit tools.
func ExampleBundle() {
	internal := func(doc string) mcp.Option {
		return mcp.Bundle{mcp.Doc(doc), mcp.Scopes("ops"), mcp.Timeout(time.Minute)}
	}
	lookup := mcp.ToolOptions{internal("Looks into the stock"), mcp.ReadOnly(), mcp.Idempotent()}
	stock := func(context.Context, struct{}) (int, error) { return 12, nil }
	motd := func(context.Context) (string, error) { return "Closed on Monday", nil }

	s := mcp.NewServer(mcp.Info{Name: "shop", Version: "1.0.0"}, nil)
	fmt.Println(s.Add(mcp.Tool("stock", stock, lookup), mcp.Resource("shop://motd", motd, internal("Message of the day"))))
	// Output: <nil>
}

// A question to the user, the same in every revision: the handler passes the
// error up, and runs again when the answer is there.
func ExampleElicit() {
	type confirm struct {
		Really bool `json:"really" jsonschema_description:"there is no way back"`
	}
	remove := func(f *mcp.Frame, in struct {
		File string `json:"file"`
	}) (string, error) {
		answer, err := mcp.Elicit[confirm](f, "confirm", "Delete "+in.File+"?")
		if err != nil {
			return "", err
		}
		if !answer.Accepted() || !answer.Value.Really {
			return "kept " + in.File, nil
		}
		return "deleted " + in.File, nil
	}
	s := mcp.NewServer(mcp.Info{Name: "example", Version: "1.0.0"}, nil)
	fmt.Println(s.Add(mcp.Tool("remove", remove, mcp.Destructive(true))))
	// Output: <nil>
}

// A result that a Go type cannot say is built by hand.
func ExampleResult() {
	chart := func(*mcp.Frame, struct{}) (*mcp.Result, error) {
		return mcp.NewResult().Text("Sales of the year").Image([]byte("PNG…"), "image/png"), nil
	}
	s := mcp.NewServer(mcp.Info{Name: "example", Version: "1.0.0"}, nil)
	fmt.Println(s.Add(mcp.Tool("chart", chart)))
	// Output: <nil>
}

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

// A method of the user's own stands beside those of the specification; its
// params are checked as the arguments of a tool are.
func ExampleMethod() {
	type stock struct {
		SKU string `json:"sku" validate:"required,len=4"`
	}
	type left struct {
		Left int `json:"left"`
	}
	s := mcp.NewServer(mcp.Info{Name: "shop", Version: "1.0.0"}, nil)
	s.MustAdd(mcp.Method("shop/stock", func(_ *mcp.Frame, in stock) (left, error) { return left{12}, nil }))

	send(s, "shop/stock", "", `"sku":"A100"`)
	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","left":12
}

// Without types, the params are there as they came.
func ExampleMethod_raw() {
	s := mcp.NewServer(mcp.Info{Name: "shop", Version: "1.0.0"}, nil)
	echo := func(_ context.Context, params json.RawMessage) (json.RawMessage, error) { return params, nil }
	fmt.Println(s.Add(mcp.Method("shop/echo", echo)), s.Add(mcp.Method("tools/echo", echo)))

	send(s, "shop/echo", "", `"echo":[1,2]`)
	// Output:
	// <nil> mcp: method "tools/echo": the specification owns names that begin with "tools/"; put a name of your own before it, as in "acme/tools/echo"
	// {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","echo":[1,2]
}

// One server offers what another one has, under a prefix.
func ExampleServer_Mount() {
	weather := mcp.NewServer(mcp.Info{Name: "weather", Version: "1.0.0"}, nil)
	weather.MustAdd(mcp.Tool("forecast", func(*mcp.Frame, struct{}) (string, error) { return "sunny", nil }))

	s := mcp.NewServer(mcp.Info{Name: "portal", Version: "1.0.0"}, nil)
	if err := s.Mount("weather", weather); err != nil {
		fmt.Println(err)
	}
	send(s, "tools/call", "weather_forecast", `"name":"weather_forecast"`)
	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"sunny"}]
}

// A tool that is hidden is in no list and answers as one that does not exist.
func ExampleVisibleTo() {
	s := mcp.NewServer(mcp.Info{Name: "shop", Version: "1.0.0"}, nil)
	s.MustAdd(mcp.Tool("refund", func(*mcp.Frame, struct{}) (string, error) { return "done", nil },
		mcp.VisibleTo(func(f *mcp.Frame) bool { return f.Principal() == "manager" })))

	send(s, "tools/list", "", `"acme":1`)
	send(s, "tools/call", "refund", `"name":"refund"`)
	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","tools":[],"ttlMs":0,"cacheScope":"private"
	// {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Unknown tool: refund"}}
}
