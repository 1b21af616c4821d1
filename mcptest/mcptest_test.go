package mcptest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/test/spectest"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

type sumIn struct {
	A, B int
}

type sumOut struct {
	Sum int `json:"sum"`
}

type nameForm struct {
	Name string `json:"name" validate:"required"`
}

type trip struct {
	City string `json:"city" validate:"required" jsonschema_description:"where to"`
}

type booking struct {
	Room   string `json:"room,omitempty" mcp:"header=Room"`
	Nights int    `json:"nights" mcp:"header=Nights"`
	Where  struct {
		City string `json:"city" mcp:"header=City"`
	} `json:"where"`
}

func newServer(opts *mcp.Options) *mcp.Server {
	if opts == nil {
		opts = &mcp.Options{}
	}
	quiet := zerolog.Nop()
	opts.Logger = &quiet
	opts.PageSize = 2
	s := mcp.NewServer(mcp.Info{Name: "test", Version: "1"}, opts)
	s.MustAdd(
		mcp.Tool("sum", func(_ *mcp.Frame, in sumIn) (sumOut, error) { return sumOut{in.A + in.B}, nil }),
		mcp.Tool("work", func(f *mcp.Frame, _ struct{}) (string, error) {
			for i := 1; i <= 3; i++ {
				if err := f.Progress(float64(i), 3); err != nil {
					return "", err
				}
			}
			return "done", f.Log(protocol.LevelDebug, "worked", "worker")
		}),
		mcp.Tool("fail", func(*mcp.Frame, struct{}) (string, error) { return "", errors.New("disk full") }),
		mcp.Tool("refuse", func(*mcp.Frame, struct{}) (string, error) { return "", &mcp.Error{Code: 4711, Message: "no"} }),
		mcp.Tool("wait", func(f *mcp.Frame, _ struct{}) (string, error) {
			<-f.Done()
			return "", context.Cause(f)
		}),
		mcp.Tool("greet", func(f *mcp.Frame, _ struct{}) (string, error) {
			name, err := mcp.Elicit[nameForm](f, "name", "Who are you?")
			if err != nil {
				return "", err
			}
			if !name.Accepted() {
				return "Hello, stranger!", nil
			}
			return "Hello, " + name.Value.Name + "!", nil
		}),
		mcp.Tool("think", func(f *mcp.Frame, _ struct{}) (string, error) {
			roots, err := frame.Roots(f, "roots")
			if err != nil {
				return "", err
			}
			answer, err := frame.Sample(f, "thought", protocol.SampleParams{MaxTokens: 9, Messages: []protocol.SampleMessage{{
				Role: protocol.RoleUser, Content: []protocol.Content{protocol.TextContent{Text: roots[0].URI}},
			}}})
			if err != nil {
				return "", err
			}
			return answer.Text(), nil
		}),
		mcp.Tool("book", func(_ *mcp.Frame, in booking) (string, error) {
			return fmt.Sprintf("%s in %s for %d", in.Room, in.Where.City, in.Nights), nil
		}),
		mcp.Resource("test://a", func(*mcp.Frame) (string, error) { return "contents of a", nil }),
		mcp.Prompt("plan", func(_ *mcp.Frame, in trip) (string, error) { return "Plan a trip to " + in.City, nil }),
	)
	return s
}

// each runs a test in every revision and over every wire that has it.
func each(t *testing.T, test func(t *testing.T, options ...mcptest.Option)) {
	for _, rev := range testdep.Revisions() {
		t.Run(rev.String()+"/pipe", func(t *testing.T) { test(t, mcptest.Revision(rev), mcptest.Trace(spectest.New(t).Hear)) })
		t.Run(rev.String()+"/http", func(t *testing.T) {
			test(t, mcptest.Revision(rev), mcptest.OverHTTP(), mcptest.Trace(spectest.New(t).Hear))
		})
	}
}

func TestCall(t *testing.T) {
	each(t, func(t *testing.T, options ...mcptest.Option) {
		c := mcptest.New(t, newServer(nil), options...)
		var sum sumOut
		c.Call("sum", sumIn{2, 3}).Structured(&sum)
		if sum.Sum != 5 {
			t.Errorf("sum %d", sum.Sum)
		}
		r := c.Call("work", nil)
		if r.Text() != "done" || r.IsError {
			t.Errorf("result %s", r.Raw)
		}
		if len(r.Progress) != 3 || r.Progress[2].Progress != 3 || r.Progress[2].Total != 3 {
			t.Errorf("progress %v", r.Progress)
		}
		if logs := c.Logs(); len(logs) != 1 || logs[0].Text() != "worked" || logs[0].Logger != "worker" {
			t.Errorf("logs %v", logs)
		}
		if r := c.Call("fail", nil); !r.IsError || r.Text() != "disk full" {
			t.Errorf("fail: %s", r.Raw)
		}
		_, err := c.TryCall("refuse", nil)
		if fault, ok := errors.AsType[*protocol.Error](err); !ok || fault.Code != 4711 {
			t.Errorf("refuse: %v", err)
		}
	})
}

// What begins with Try returns the result, and the error of the server in place
// of the end of the test.
func TestTry(t *testing.T) {
	each(t, func(t *testing.T, options ...mcptest.Option) {
		s := newServer(nil)
		s.MustAdd(mcp.Prompt("paint", func(_ *mcp.Frame, in trip) (string, error) { return "Paint " + in.City, nil }, mcp.CompleteFrom("city", "Oslo", "Rome")))
		c := mcptest.New(t, s, options...)
		read, err := c.TryRead("test://a")
		if err != nil || len(read) != 1 || read[0].Text != "contents of a" {
			t.Errorf("read %v, %v", read, err)
		}
		prompt, err := c.TryGetPrompt("paint", map[string]string{"city": "Rome"})
		if err != nil || len(prompt.Messages) != 1 || prompt.Messages[0].Content.(protocol.TextContent).Text != "Paint Rome" {
			t.Errorf("prompt %v, %v", prompt, err)
		}
		cities, err := c.TryComplete("paint", "city", "r", nil)
		if err != nil || !slices.Equal(cities, []string{"Rome", "Oslo"}) && !slices.Equal(cities, []string{"Rome"}) {
			t.Errorf("completed %v, %v", cities, err)
		}
		_, noResource := c.TryRead("test://none")
		_, noPrompt := c.TryGetPrompt("none", nil)
		_, noArgument := c.TryComplete("paint", "none", "", nil)
		for what, err := range map[string]error{"test://none": noResource, "none": noPrompt, `"none"`: noArgument} {
			if fault, ok := errors.AsType[*protocol.Error](err); !ok || !strings.Contains(fault.Message, what) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

// Arguments that are mirrored into headers are, without the test's doing.
func TestMirrors(t *testing.T) {
	each(t, func(t *testing.T, options ...mcptest.Option) {
		c := mcptest.New(t, newServer(nil), options...)
		for _, tt := range []struct{ args, want string }{
			{`{"room":"7","nights":2,"where":{"city":"Łódź"}}`, "7 in Łódź for 2"},
			{`{"nights":12,"where":{"city":" x "}}`, " in  x  for 12"},
		} {
			if got := c.Call("book", json.RawMessage(tt.args)).Text(); got != tt.want {
				t.Errorf("book %s: %q, want %q", tt.args, got, tt.want)
			}
		}
	})
	wrong := mcptest.New(t, newServer(nil), mcptest.OverHTTP(), mcptest.Header("Mcp-Param-Nights", "3"), mcptest.Trace(spectest.New(t).Hear))
	_, err := wrong.TryCall("book", json.RawMessage(`{"nights":2,"where":{"city":"x"}}`))
	if fault, ok := errors.AsType[*protocol.Error](err); !ok || fault.Code != protocol.CodeHeaderMismatch {
		t.Errorf("a header of the test's own: %v, want a mismatch", err)
	}
}

func TestOffers(t *testing.T) {
	each(t, func(t *testing.T, options ...mcptest.Option) {
		c := mcptest.New(t, newServer(nil), options...)
		var names []string
		for _, tool := range c.Tools() { // of four pages
			names = append(names, tool.Name)
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != "book fail greet refuse sum think wait work" {
			t.Errorf("tools %s", got)
		}
		if list := c.Resources(); len(list) != 1 || list[0].URI != "test://a" {
			t.Errorf("resources %v", list)
		}
		if list := c.Templates(); len(list) != 0 {
			t.Errorf("templates %v", list)
		}
		if got := c.Read("test://a"); len(got) != 1 || got[0].Text != "contents of a" {
			t.Errorf("contents %v", got)
		}
		if list := c.Prompts(); len(list) != 1 || list[0].Arguments[0].Name != "city" {
			t.Errorf("prompts %v", list)
		}
		p := c.GetPrompt("plan", map[string]string{"city": "Oslo"})
		if len(p.Messages) != 1 || p.Messages[0].Content.(mcp.TextContent).Text != "Plan a trip to Oslo" || p.Messages[0].Role != protocol.RoleUser {
			t.Errorf("prompt %v", p)
		}
	})
}

// The same handler asks in every revision; the script answers.
func TestScripts(t *testing.T) {
	each(t, func(t *testing.T, options ...mcptest.Option) {
		var asked []*client.ElicitParams
		options = append(options, mcptest.OnElicit(func(_ context.Context, q *client.ElicitParams) (*client.ElicitResult, error) {
			if asked = append(asked, q); len(asked) > 1 {
				return client.Decline()
			}
			return client.Accept(nameForm{"Ada"})
		}), mcptest.OnSample(func(_ context.Context, q *client.SampleParams) (*client.SampleResult, error) {
			text := fmt.Sprint("about ", q.Messages[0].Content[0].(mcp.TextContent).Text, " in ", q.MaxTokens)
			return &client.SampleResult{Content: []client.Content{client.TextContent{Text: text}}}, nil
		}), mcptest.Roots(protocol.Root{URI: "file:///home"}))
		c := mcptest.New(t, newServer(nil), options...)
		if got := c.Call("think", nil).Text(); got != "about file:///home in 9" {
			t.Errorf("thought %q", got)
		}
		if c.Supports("elicitation") != c.Revision().Has(protocol.FeatureElicitation) || !c.Supports("roots") || c.Supports("roots", "listChanged") || c.Supports() {
			t.Errorf("can: elicitation %v, roots %v", c.Supports("elicitation"), c.Supports("roots"))
		}
		if !c.Supports("elicitation") {
			return
		}
		for _, want := range []string{"Hello, Ada!", "Hello, stranger!"} {
			if got := c.Call("greet", nil).Text(); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		if len(asked) != 2 || asked[0].Message != "Who are you?" || !strings.Contains(string(asked[0].RequestedSchema), `"name"`) {
			t.Errorf("asked %+v", asked)
		}
	})
}

// Each has every revision, Call a type, and Accepting the one answer.
func TestEach(t *testing.T) {
	var seen []protocol.Revision
	mcptest.Each(t, func() *mcp.Server { return newServer(nil) }, func(t *testing.T, c *mcptest.Client) {
		seen = append(seen, c.Revision())
		if sum := mcptest.Call[sumOut](c, "sum", sumIn{2, 3}); sum.Sum != 5 {
			t.Errorf("sum %v", sum)
		}
		if got := mcptest.Call[string](c, "work", nil); got != "done" {
			t.Errorf("work %q", got)
		}
		if c.Supports("elicitation") {
			if got := mcptest.Call[string](c, "greet", nil); got != "Hello, Ada!" {
				t.Errorf("greet %q", got)
			}
		}
	}, mcptest.Accepting(nameForm{"Ada"}), mcptest.Revision(protocol.V20241105))
	if !slices.Equal(seen, protocol.Revisions()) {
		t.Errorf("revisions %v", seen)
	}
}

// A client without a script declares nothing, so that nobody asks it.
func TestNoScript(t *testing.T) {
	each(t, func(t *testing.T, options ...mcptest.Option) {
		c := mcptest.New(t, newServer(nil), options...)
		r, err := c.TryCall("greet", nil)
		if fault, ok := errors.AsType[*protocol.Error](err); ok && fault.Code == protocol.CodeMissingCapability {
			return
		}
		if err != nil || !r.IsError || !strings.Contains(r.Text(), "elicitation") {
			t.Errorf("result %v, error %v; want one that names the capability", r, err)
		}
	})
}

func TestConnectFails(t *testing.T) {
	each(t, func(t *testing.T, options ...mcptest.Option) {
		s := newServer(&mcp.Options{
			OnSessionStart: func(*mcp.Frame) error { return &mcp.Error{Code: 4242, Message: "bad tenant"} },
			Revisions:      []protocol.Revision{protocol.V20241105, protocol.V20250326, protocol.V20250618, protocol.V20251125},
		})
		_, err := mcptest.Connect(t, s, options...)
		fault, ok := errors.AsType[*protocol.Error](err)
		if !ok || fault.Code != 4242 && fault.Code != protocol.CodeUnsupportedVersion {
			t.Errorf("Connect: %v", err)
		}
	})
}

func TestTimeout(t *testing.T) {
	each(t, func(t *testing.T, options ...mcptest.Option) {
		c := mcptest.New(t, newServer(nil), options...)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := c.RequestContext(ctx, protocol.MethodToolsCall, map[string]any{"name": "wait"}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	})
}

func TestTimeoutOption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := mcptest.New(t, newServer(nil), mcptest.Revision(protocol.V20251125), mcptest.Timeout(time.Hour), mcptest.Trace(spectest.New(t).Hear))
		begin := time.Now()
		if _, err := c.TryCall("wait", nil); err == nil || !strings.Contains(err.Error(), "no answer to tools/call within 1h0m0s") || time.Since(begin) != time.Hour {
			t.Errorf("error %v after %v", err, time.Since(begin))
		}
	})
}

func TestWaitFor(t *testing.T) {
	each(t, func(t *testing.T, options ...mcptest.Option) {
		s := newServer(nil)
		c := mcptest.New(t, s, options...)
		c.Listen(protocol.SubscriptionFilter{ToolsListChanged: true})
		s.Remove(mcp.KindTool, "fail")
		if params := c.WaitFor(protocol.MethodToolsChanged); !c.Revision().Modern() && params != nil && string(params) != "{}" {
			t.Errorf("params %s", params)
		}
	})
}

// fakeT is a testing.TB that notes how it failed.
type fakeT struct {
	testing.TB
	failed string
}

func (f *fakeT) Helper() {}
func (f *fakeT) Fatalf(format string, args ...any) {
	f.failed = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// What fails says what was called and what came back.
func TestFailures(t *testing.T) {
	for name, tt := range map[string]struct {
		do   func(c *mcptest.Client)
		want string
	}{
		"call":       {func(c *mcptest.Client) { c.Call("refuse", nil) }, "calling refuse: error 4711: no"},
		"request":    {func(c *mcptest.Client) { c.Request("no/such", nil) }, "no/such: Method not found"},
		"structured": {func(c *mcptest.Client) { c.Call("work", nil).Structured(new(sumOut)) }, "does not decode into *mcptest_test.sumOut"},
		"typed call": {func(c *mcptest.Client) { mcptest.Call[string](c, "fail", nil) }, "fail failed: disk full"},
		"params":     {func(c *mcptest.Client) { c.Request("ping", 5) }, "params must encode to an object"},
	} {
		f := &fakeT{TB: t}
		done := make(chan struct{})
		c := mcptest.New(f, newServer(nil))
		go func() {
			defer close(done)
			tt.do(c)
		}()
		<-done
		if !strings.Contains(f.failed, tt.want) {
			t.Errorf("%s: failed with %q, want %q", name, f.failed, tt.want)
		}
	}
}

// The end of a client leaves no goroutine behind.
func TestNothingIsLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	each(t, func(t *testing.T, options ...mcptest.Option) {
		mcptest.New(t, newServer(nil), options...).Call("work", nil)
	})
	for limit := time.Now().Add(5 * time.Second); time.Now().Before(limit); { // net/http ends its own a little later
		if runtime.NumGoroutine() <= before {
			return
		}
		runtime.Gosched()
	}
	buffer := make([]byte, 1<<16)
	t.Errorf("%d goroutines, %d before\n%s", runtime.NumGoroutine(), before, buffer[:runtime.Stack(buffer, true)])
}

// All that a call has told is there when it returns, however much that is.
func TestMuchProgress(t *testing.T) {
	const many = 500
	s := newServer(nil)
	s.MustAdd(mcp.Tool("much", func(f *mcp.Frame, _ struct{}) (string, error) {
		for i := range many {
			if err := errors.Join(f.Progress(float64(i), many), f.Log(protocol.LevelDebug, i, "worker")); err != nil {
				return "", err
			}
		}
		return "done", nil
	}))
	each(t, func(t *testing.T, options ...mcptest.Option) {
		c := mcptest.New(t, s, append(options, mcptest.Trace(nil))...)
		r := c.Call("much", nil)
		logs := c.Logs()
		if len(r.Progress) != many || len(logs) != many || len(c.Notifications()) != 2*many {
			t.Fatalf("%d progress and %d logs in %d notifications", len(r.Progress), len(logs), len(c.Notifications()))
		}
		for i := range many {
			if r.Progress[i].Progress != float64(i) || logs[i].Text() != fmt.Sprint(i) {
				t.Fatalf("at %d: %v, %v", i, r.Progress[i], logs[i])
			}
		}
	})
}

// Calls that find out at the same time that a tool wants headers all succeed.
func TestMirrorsTogether(t *testing.T) {
	c := mcptest.New(t, newServer(nil), mcptest.OverHTTP(), mcptest.Trace(spectest.New(t).Hear))
	var calls sync.WaitGroup
	for i := range 20 {
		calls.Go(func() {
			r, err := c.TryCall("book", json.RawMessage(fmt.Sprintf(`{"nights":%d,"where":{"city":"x"}}`, i)))
			if err != nil || r.Text() != fmt.Sprintf(" in x for %d", i) {
				t.Errorf("%v, %v", r, err)
			}
		})
	}
	calls.Wait()
}

// A connection that the server has ended stays so, and is an error of its own.
func TestServerGone(t *testing.T) {
	each(t, func(t *testing.T, options ...mcptest.Option) {
		s := newServer(nil)
		var sent atomic.Int64
		c := mcptest.New(t, s, append(options, mcptest.Trace(func(fromServer bool, _ []byte) {
			if !fromServer {
				sent.Add(1)
			}
		}))...)
		if err := s.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := sent.Load()
		_, err := c.TryRequest(protocol.MethodToolsList, nil)
		if fault, ok := errors.AsType[*protocol.Error](err); err == nil || ok && fault.Code == protocol.CodeInternal {
			t.Errorf("the server was gone: %v", err)
		}
		if n := sent.Load() - before; n > 1 {
			t.Errorf("%d messages for one request", n)
		}
	})
}

// erringT is a testing.TB that notes errors which do not end the test.
type erringT struct {
	testing.TB
	failed string
}

func (f *erringT) Helper() {}
func (f *erringT) Errorf(format string, args ...any) {
	f.failed = fmt.Sprintf(format, args...)
}

// A script that panics fails the test.
func TestScriptPanics(t *testing.T) {
	each(t, func(t *testing.T, options ...mcptest.Option) {
		fake := &erringT{TB: t}
		c := mcptest.New(fake, newServer(nil), append(options, mcptest.OnRequest(protocol.MethodRoots, func(json.RawMessage) (any, error) { panic("boom") }),
			mcptest.Capabilities(protocol.ClientCapabilities{Roots: &protocol.ListCapability{}, Sampling: &protocol.SamplingCapability{}}))...)
		if r, err := c.TryCall("think", nil); err == nil && !r.IsError {
			t.Errorf("result %s", r.Raw)
		}
		c.Close()
		if !strings.Contains(fake.failed, "the script for roots/list panics: boom") {
			t.Errorf("failed with %q", fake.failed)
		}
	})
}

func TestTrace(t *testing.T) {
	var sent, heard int
	c := mcptest.New(t, newServer(nil), mcptest.Trace(func(fromServer bool, message []byte) {
		if !json.Valid(message) {
			t.Errorf("not JSON: %s", message)
		}
		if fromServer {
			heard++
		} else {
			sent++
		}
	}))
	c.Call("sum", sumIn{1, 1})
	c.Close()
	if sent != 2 || heard != 2 {
		t.Errorf("%d messages to the server and %d from it, want 2 and 2", sent, heard)
	}
}

// TestPages checks that lists have all pages, and that a list without an end fails the
// test.
func TestPages(t *testing.T) {
	for _, rev := range testdep.Revisions() {
		for _, test := range []struct{ name, first, second, third, want, modern string }{
			{"pages", `"x"`, `"y"`, `null`, "abc", "abc"},
			{"null", `null`, `null`, `null`, "a", "a"},
			{"empty", `""`, `null`, `null`, "a", "ab"},
			{"repeated", `"x"`, `"x"`, `null`, "repeats", "repeats"},
			{"cycle of two", `"x"`, `"y"`, `"x"`, "repeats", "repeats"},
		} {
			s := newServer(nil)
			s.Use(func(next mcp.Handler) mcp.Handler {
				return func(f *mcp.Frame) (protocol.Result, error) {
					if f.Request().Method != protocol.MethodToolsList {
						return next(f)
					}
					name, cursor := "a", test.first
					switch string(f.Request().Params.Cursor) {
					case "":
					case `"y"`:
						name, cursor = "c", test.third
					default:
						name, cursor = "b", test.second
					}
					return protocol.JSONResult{Value: json.RawMessage(fmt.Sprintf(`{"tools":[{"name":%q,"inputSchema":{"type":"object"}}],"nextCursor":%s,"ttlMs":0,"cacheScope":"private"}`, name, cursor))}, nil
				}
			})
			f := &fakeT{TB: t}
			c := mcptest.New(f, s, mcptest.Revision(rev))
			got, done := "", make(chan struct{})
			go func() {
				defer close(done)
				for _, tool := range c.Tools() {
					got += tool.Name
				}
			}()
			<-done
			want := test.want
			if rev.Modern() {
				want = test.modern
			}
			if want == "repeats" {
				if !strings.Contains(f.failed, "tools/list") || !strings.Contains(f.failed, want) {
					t.Errorf("%s, %s: failed with %q", rev, test.name, f.failed)
				}
			} else if got != want || f.failed != "" {
				t.Errorf("%s, %s: got %s, want %s; %s", rev, test.name, got, want, f.failed)
			}
		}
	}
}
