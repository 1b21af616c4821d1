package behavior_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// heardEnd is what an observer was told of one message.
type heardEnd struct {
	id, method, target string
	status             string
	code               protocol.Code
	failed             bool
	err                error
}

// observing is an observer that keeps what it is told, by the ids of requests.
type observing struct {
	t     testing.TB
	mu    sync.Mutex
	begun map[string]int
	ended map[string][]heardEnd
	told  chan struct{}
}

func observe(t testing.TB, s *mcp.Server) *observing {
	o := &observing{t: t, begun: map[string]int{}, ended: map[string][]heardEnd{}, told: make(chan struct{}, 10_000)}
	s.Observe(mcp.Observer{Begin: o.begin, End: o.end})
	return o
}

// key is the id of a request, or the method of a notification.
func (o *observing) key(f *mcp.Frame) string {
	return cmp.Or(strings.Trim(f.Request().ID.String(), `"`), f.Request().Method)
}

func (o *observing) begin(f *mcp.Frame) (context.Context, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.begun[o.key(f)]++
	return f, nil
}

func (o *observing) end(f *mcp.Frame, out mcp.Outcome) {
	method, target := f.Labels()
	if out.Duration <= 0 {
		o.t.Errorf("%v took %v", f, out.Duration)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended[o.key(f)] = append(o.ended[o.key(f)], heardEnd{f.Request().ID.String(), method, target, out.Status, out.Code, out.Failed(), out.Err})
	o.told <- struct{}{}
}

// wait returns how the message with that key ended, when it has.
func (o *observing) wait(key string) heardEnd {
	o.t.Helper()
	late := time.After(harness.Patience / 4)
	for {
		o.mu.Lock()
		ends := slices.Clone(o.ended[key])
		o.mu.Unlock()
		if len(ends) > 0 {
			return ends[0]
		}
		select {
		case <-o.told:
		case <-late:
			o.t.Fatalf("no end of %s is heard; %v began, %v ended", key, o.begun, o.ended)
		}
	}
}

// once checks that each message that began did so once, and ends once. Nobody else
// waits for the end of a notification.
func (o *observing) once() {
	o.t.Helper()
	for {
		o.mu.Lock()
		open := ""
		for key := range o.begun {
			if len(o.ended[key]) == 0 {
				open = key
			}
		}
		if open == "" {
			break
		}
		o.mu.Unlock()
		o.wait(open)
	}
	defer o.mu.Unlock()
	for key, n := range o.begun {
		if n != 1 || len(o.ended[key]) != 1 {
			o.t.Errorf("%s began %d times and ended %d times", key, n, len(o.ended[key]))
		}
	}
	if len(o.ended) != len(o.begun) {
		o.t.Errorf("%d messages began, %d ended", len(o.begun), len(o.ended))
	}
}

// outcomes are calls that end by themselves.
var outcomes = []struct {
	what, method, members string
	modern                bool // there alone
	method_, target       string
	status                string
	code                  protocol.Code
	err                   string
}{
	{what: "all is well", method: "tools/call", members: `"name":"greet","arguments":{"name":"Ada"}`, target: "greet"},
	{what: "a list", method: "tools/list"},
	{what: "a resource", method: "resources/read", members: `"uri":"config://app"`},
	{what: "a prompt that is not there", method: "prompts/get", members: `"name":"nobody"`, target: "_OTHER", status: "invalid_params", code: -32602, err: "nobody"},
	{what: "a tool that fails", method: "tools/call", members: `"name":"fail"`, target: "fail", status: "tool_error", err: "disk full"},
	{what: "arguments that do not fit", method: "tools/call", members: `"name":"add","arguments":{"a":"x"}`, target: "add", status: "arguments", err: "integer"},
	{what: "the arguments of a prompt", method: "prompts/get", members: `"name":"strict","arguments":{}`, target: "strict", status: "arguments", code: -32602, err: "id"},
	{what: "a code of a handler", method: "tools/call", members: `"name":"refuse"`, target: "refuse", status: "_OTHER", code: 4711, err: "not today"},
	{what: "a known code of a handler", method: "tools/call", members: `"name":"busy"`, target: "busy", status: "busy", code: 429, err: "later"},
	{what: "a panic", method: "tools/call", members: `"name":"panic"`, target: "panic", status: "panic", code: -32603, err: "handler panicked"},
	{what: "a goroutine that ends", method: "tools/call", members: `"name":"exit"`, target: "exit", status: "panic", code: -32603, err: "handler panicked"},
	{what: "a result that panics", method: "tools/call", members: `"name":"bad"`, target: "bad", status: "panic", code: -32603, err: "handler panicked"},
	{what: "a call out of time", method: "tools/call", members: `"name":"late"`, target: "late", status: "timeout", err: "timed out"},
	{what: "a resource out of time", method: "resources/read", members: `"uri":"late://"`, status: "timeout", code: -32603, err: "timed out"},
	{what: "an unknown tool", method: "tools/call", members: `"name":"nobody"`, target: "_OTHER", status: "invalid_params", code: -32602, err: "Unknown tool"},
	{what: "an unknown method", method: "x/y", method_: "_OTHER", status: "method_not_found", code: -32601, err: "x/y"},
	{what: "a question", method: "tools/call", members: `"name":"ask"`, modern: true, target: "ask", status: "input_required"},
}

type unencodable struct{}

func (unencodable) MarshalJSON() ([]byte, error) { panic("secret") }

// observed is a fixture with what the outcomes need.
func observed(t testing.TB) *mcp.Server {
	s := harness.Fixture(t, nil)
	s.MustAdd(
		mcp.Tool("exit", func(*mcp.Frame, struct{}) (string, error) { runtime.Goexit(); return "", nil }),
		mcp.Tool("bad", func(*mcp.Frame, struct{}) (any, error) { return unencodable{}, nil }),
		mcp.Tool("busy", func(*mcp.Frame, struct{}) (string, error) { return "", mcp.Errorf(mcp.CodeBusy, "later") }),
		mcp.Tool("late", func(f *mcp.Frame, _ struct{}) (string, error) { <-f.Done(); return "", f.Err() }, mcp.Timeout(time.Millisecond)),
		mcp.Resource("late://", func(f *mcp.Frame) (string, error) { <-f.Done(); return "", f.Err() }, mcp.Timeout(time.Millisecond)),
		mcp.Prompt("strict", func(_ *mcp.Frame, in struct {
			ID string `json:"id" validate:"required,min=3"`
		}) (string, error) {
			return in.ID, nil
		}),
		mcp.Tool("ask", func(f *mcp.Frame, _ struct{}) (string, error) {
			_, err := mcp.Elicit[struct {
				Name string `json:"name"`
			}](f, "who", "Who?")
			return "asked", err
		}),
	)
	return s
}

func TestOutcomes(t *testing.T) {
	harness.RunBehaviors(t, []harness.Behavior{{What: "ends", Run: func(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
		s := observed(t)
		o := observe(t, s)
		p := harness.Join(t, tr, rev, s)
		for i, tt := range outcomes {
			if tt.modern && !rev.Modern() {
				continue
			}
			id := fmt.Sprint("o", i)
			p.C.Say(strings.Replace(p.Request(`"`+id+`"`, tt.method, tt.members), `Capabilities":{}`, `Capabilities":{"elicitation":{}}`, 1))
			got := o.wait(id)
			err := ""
			if got.err != nil {
				err = got.err.Error()
			}
			wantMethod := cmp.Or(tt.method_, tt.method)
			if got.method != wantMethod || got.target != tt.target || got.status != tt.status || got.code != tt.code ||
				!strings.Contains(err, tt.err) || (err == "") != (tt.err == "") {
				t.Errorf("%s: %+v", tt.what, got)
			}
			if wantFailed := tt.status != "" && tt.status != "input_required"; got.failed != wantFailed {
				t.Errorf("%s: failed is %v", tt.what, got.failed)
			}
		}
		o.once()
	}}})
}

// A client that leaves, or cancels, is no error of the server; what a shutdown
// cuts short is.
func TestOutcomesOfEnds(t *testing.T) {
	for _, tt := range []struct {
		what, transport string // "" is all
		status          string
		end             func(h *harness.Hearing, hangUp func(), s *mcp.Server)
	}{
		{"notifications/cancelled", "", "cancelled", func(h *harness.Hearing, hangUp func(), _ *mcp.Server) {
			if _, web := h.C.(*harness.HTTPClient); web && h.Rev.Modern() {
				hangUp() // this is how it is said there
				return
			}
			h.Line(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"r1"}}`)
		}},
		{"the client leaves", "connections", "cancelled", func(h *harness.Hearing, _ func(), _ *mcp.Server) {
			switch c := h.C.(type) {
			case *harness.Stream:
				c.In.(io.Closer).Close()
			case *harness.ConnClient:
				c.Conn.Close()
			case *harness.SSEClient:
				c.Leave()
			}
		}},
		{"shutdown", "", "down", func(_ *harness.Hearing, _ func(), s *mcp.Server) {
			ctx, cancel := context.WithCancel(context.Background())
			cancel()
			_ = s.Shutdown(ctx) // there is no time for the call
		}},
	} {
		harness.RunBehaviors(t, []harness.Behavior{{What: tt.what, Transport: tt.transport, Run: func(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
			s := harness.Fixture(t, &mcp.Options{Timeouts: mcp.Timeouts{Grace: time.Millisecond}})
			g := harness.NewGate()
			s.MustAdd(g.Tool("gate"))
			defer close(g.Open)
			o := observe(t, s)
			h := harness.Join(t, tr, rev, s).Hear()
			hangUp := h.Send(`"r1"`, "tools/call", `"name":"gate"`)
			harness.Await(t, g.Running, "the call")
			tt.end(h, hangUp, s)
			if got := o.wait("r1"); got.status != tt.status || got.failed != (tt.status == "down") {
				t.Errorf("%+v, want %s", got, tt.status)
			}
			o.once()
		}}})
	}
}

// Notifications, and each message of a batch, have an end of their own.
func TestOutcomesOfOthers(t *testing.T) {
	harness.RunBehaviors(t, []harness.Behavior{{What: "batch", Revisions: []protocol.Revision{protocol.V20250326}, Run: func(t *testing.T, tr harness.TransportUnderTest, rev protocol.Revision) {
		s := harness.Fixture(t, nil)
		if err := s.OnNotification("x/told", func(*mcp.Frame) error { return errors.New("not now") }); err != nil {
			t.Fatal(err)
		}
		o := observe(t, s)
		p := harness.Join(t, tr, rev, s)
		p.C.Say(`[{"jsonrpc":"2.0","id":"b1","method":"ping"},{"jsonrpc":"2.0","method":"x/told"},{"jsonrpc":"2.0","id":"b2","method":"tools/call","params":{"name":"fail"}},{"jsonrpc":"2.0","method":"x/unknown"}]`)
		for key, want := range map[string]heardEnd{
			"1":                         {method: "initialize"},
			"notifications/initialized": {method: "notifications/initialized"},
			"b1":                        {method: "ping"},
			"b2":                        {method: "tools/call", target: "fail", status: "tool_error"},
			"x/told":                    {method: "x/told", status: "internal", code: -32603},
			"x/unknown":                 {method: "_OTHER", code: -32601},
		} {
			if got := o.wait(key); got.method != want.method || got.target != want.target || got.status != want.status || got.code != want.code {
				t.Errorf("%s: %+v", key, got)
			}
		}
		o.once()
	}}})
}

// lineOf is an observer that writes what it is told to a list.
func lineOf(name string, mu *sync.Mutex, lines *[]string, begin func(*mcp.Frame) (context.Context, error)) mcp.Observer {
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		*lines = append(*lines, name+" "+fmt.Sprintf(format, args...))
	}
	return mcp.Observer{
		Begin: func(f *mcp.Frame) (context.Context, error) {
			if f.Request().Method != protocol.MethodToolsCall {
				return f, nil
			}
			say("begin %s", f.Request().Params.Name)
			if begin != nil {
				return begin(f)
			}
			return f, nil
		},
		End: func(f *mcp.Frame, o mcp.Outcome) {
			if f.Request().Method == protocol.MethodToolsCall {
				say("end %s %v %s %v", f.Request().Params.Name, f.Value(colour{}), o.Status, o.Err)
			}
		},
	}
}

type colour struct{}

// One that refuses, or does not return, keeps the handler from running, and those
// before it are told, the last first.
func TestObserversAreUnwound(t *testing.T) {
	refusal := errors.New("the disk is full")
	for _, tt := range []struct {
		what   string
		begin  func(*mcp.Frame) (context.Context, error)
		answer string
		want   string
	}{
		{"all is well", func(f *mcp.Frame) (context.Context, error) { return context.WithValue(f, colour{}, "red"), nil }, `red`,
			"a begin colour, b begin colour, c begin colour, c end colour red  <nil>, b end colour red  <nil>, a end colour red  <nil>"},
		{"it refuses", func(*mcp.Frame) (context.Context, error) { return nil, refusal }, `"code":-32603,"message":"Internal error"`,
			"a begin colour, b begin colour, a end colour <nil> internal Internal error"},
		{"it refuses with a code", func(*mcp.Frame) (context.Context, error) { return nil, mcp.Errorf(4711, "secret") }, `"code":-32603,"message":"Internal error"`,
			"a begin colour, b begin colour, a end colour <nil> internal Internal error"},
		{"it has no context", func(*mcp.Frame) (context.Context, error) { return nil, nil }, `"code":-32603,"message":"Internal error"`,
			"a begin colour, b begin colour, a end colour <nil> internal Internal error"},
		{"it panics", func(*mcp.Frame) (context.Context, error) { panic("secret") }, `"code":-32603,"message":"Internal error: the handler panicked"`,
			"a begin colour, b begin colour, a end colour <nil> panic Internal error: the handler panicked"},
		{"it ends its goroutine", func(*mcp.Frame) (context.Context, error) { runtime.Goexit(); return nil, nil }, `"code":-32603,"message":"Internal error: the handler panicked"`,
			"a begin colour, b begin colour, a end colour <nil> panic Internal error: the handler panicked"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			s := harness.Fixture(t, nil)
			ran := false
			s.MustAdd(mcp.Tool("colour", func(f *mcp.Frame, _ struct{}) (any, error) { ran = true; return f.Value(colour{}), nil }))
			var mu sync.Mutex
			var lines []string
			s.Observe(lineOf("a", &mu, &lines, nil))
			s.Observe(lineOf("b", &mu, &lines, tt.begin))
			s.Observe(lineOf("c", &mu, &lines, nil))
			s.Use(func(next mcp.Handler) mcp.Handler {
				return func(f *mcp.Frame) (protocol.Result, error) {
					ran = ran || f.Request().Method == protocol.MethodToolsCall
					return next(f)
				}
			})
			p := harness.Join(t, harness.Transports[0], protocol.LatestLegacy, s)
			answer := p.Ask("tools/call", `"name":"colour"`)
			p.Want(answer, tt.answer)
			if strings.Contains(answer, "secret") || strings.Contains(answer, "disk") || ran != (tt.what == "all is well") {
				t.Errorf("it ran: %v; the client hears %s", ran, answer)
			}
			mu.Lock()
			defer mu.Unlock()
			if got := strings.Join(lines, ", "); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// An End that panics changes nothing; all others are told, and the next message is
// served, even after one that ends its goroutine.
func TestObserverEndsThatDoNotReturn(t *testing.T) {
	for way, fail := range harness.Ways {
		for _, tr := range harness.TransportsOf(protocol.LatestLegacy) {
			t.Run(way+"/"+tr.Name, func(t *testing.T) {
				var log harness.LogText
				s := harness.TrapServer(&log, mcp.Options{})
				a := &harness.Trap{Way: fail}
				var mu sync.Mutex
				var lines []string
				s.Observe(lineOf("outer", &mu, &lines, nil))
				s.Observe(mcp.Observer{End: func(*mcp.Frame, mcp.Outcome) { a.Spring() }, Event: func(mcp.Event) { a.Spring() }})
				p := harness.Join(t, tr, protocol.LatestLegacy, s)
				a.Armed.Store(true)
				want := "all is well"
				if way == "goexit" {
					want = "the handler panicked"
				}
				p.Want(p.Ask("tools/call", `"name":"fine"`), want)
				a.Armed.Store(false)
				p.Want(p.AskAs("2", "tools/call", `"name":"fine"`), "all is well")
				if !strings.Contains(log.String(), "observer_test.go") {
					t.Errorf("the log has no stack: %s", log.String())
				}
				mu.Lock()
				defer mu.Unlock()
				if got := strings.Join(lines, ", "); got != "outer begin fine, outer end fine <nil>  <nil>, outer begin fine, outer end fine <nil>  <nil>" {
					t.Error(got)
				}
			})
		}
	}
}

// Observers of a mounted server hear of what is called of it, once, and know it
// by its own name.
func TestObserversOfMounts(t *testing.T) {
	child, middle, root := harness.Weather(mcp.Options{MaskErrors: true}), harness.Bare(mcp.Options{}), harness.Bare(mcp.Options{})
	child.MustAdd(mcp.Tool("boom", func(*mcp.Frame, struct{}) (string, error) { panic("secret") }))
	var mu sync.Mutex
	var lines []string
	child.Observe(lineOf("child", &mu, &lines, nil))
	root.Observe(lineOf("root", &mu, &lines, func(f *mcp.Frame) (context.Context, error) { return context.WithValue(f, colour{}, "red"), nil }))
	var labels []string
	child.Observe(mcp.Observer{End: func(f *mcp.Frame, o mcp.Outcome) {
		method, target := f.Labels()
		labels = append(labels, method+" "+target+" "+o.Status)
	}})
	if err := errors.Join(root.Mount("eu", middle), middle.Mount("w", child)); err != nil {
		t.Fatal(err)
	}
	p := harness.Join(t, harness.Transports[0], protocol.LatestLegacy, root)
	p.Ask("tools/call", `"name":"eu_w_forecast","arguments":{"city":"Oslo"}`)
	p.AskAs("2", "tools/call", `"name":"eu_w_forecast"`)
	p.AskAs("3", "tools/call", `"name":"eu_w_boom"`)
	p.AskAs("4", "prompts/get", `"name":"eu_w_describe","arguments":{"id":"no"}`)
	mu.Lock()
	defer mu.Unlock()
	var got []string
	for _, line := range lines {
		got = append(got, strings.Join(strings.Fields(line)[:3], " "))
	}
	var want []string
	for _, name := range []string{"forecast", "forecast", "boom"} {
		want = append(want, "root begin eu_w_"+name, "child begin "+name, "child end "+name, "root end eu_w_"+name)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if got, want := strings.Join(labels, ", "), "tools/call forecast , tools/call forecast arguments, tools/call boom panic, prompts/get describe arguments"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Labels are names that the server has, and not more than so many.
func TestLabels(t *testing.T) {
	s := harness.Bare(mcp.Options{})
	seen := map[string]bool{}
	s.Observe(mcp.Observer{End: func(f *mcp.Frame, _ mcp.Outcome) {
		method, target := f.Labels()
		seen[method+" "+target] = true
	}})
	p := harness.Join(t, harness.Transports[0], protocol.LatestLegacy, s)
	for i := range 2000 {
		name := fmt.Sprint("t", i)
		s.MustAdd(harness.Tool(name))
		p.AskAs(fmt.Sprint(10+2*i), "tools/call", fmt.Sprintf(`"name":%q`, name))
		p.AskAs(fmt.Sprint(11+2*i), "tools/call", fmt.Sprintf(`"name":"nobody%d"`, i))
		s.Remove(mcp.KindTool, name)
	}
	for i := range 100 {
		p.AskAs(fmt.Sprint(10_000+i), fmt.Sprint("x/", i), "")
	}
	if !seen["tools/call t0"] || !seen["tools/call t499"] || !seen["tools/call _OTHER"] || !seen["_OTHER "] || len(seen) != 504 {
		t.Errorf("%d labels", len(seen)) // with initialize and what follows it
	}
}

// Observe while requests come is either before the first of them, or it panics.
func TestObserveWhileServing(t *testing.T) {
	for range 20 {
		s := harness.Bare(mcp.Options{})
		o := make(chan *observing, 1)
		start := make(chan struct{})
		go func() {
			<-start
			defer func() {
				if value := recover(); value != nil {
					if !strings.Contains(fmt.Sprint(value), "after the server began to serve") {
						t.Errorf("Observe panics with %v", value)
					}
					o <- nil
				}
			}()
			o <- observe(t, s)
		}()
		close(start)
		p := harness.Join(t, harness.Transports[0], protocol.LatestLegacy, s)
		p.AskAs("2", "ping", "")
		if observed := <-o; observed != nil {
			observed.wait("2")
			observed.wait("1")
			observed.once()
		}
	}
}

// An observer that takes its time over a stream that opens does not hold up the call
// whose answer goes out on that.
func TestObserverOfOpeningHoldsNoCall(t *testing.T) {
	p := harness.NewPlaced(t, protocol.LatestLegacy, scale.NewLocal(), []int{0, 0, 0})
	var seen sync.Once
	opened, open := make(chan struct{}), make(chan struct{})
	p.Servers[0].Observe(mcp.Observer{Event: func(e mcp.Event) {
		if e.Kind == "stream.opened" {
			seen.Do(func() {
				close(opened)
				<-open
			})
		}
	}})
	step, said := make(chan struct{}), make(chan error)
	p.Servers[0].MustAdd(mcp.Tool("steps", func(f *mcp.Frame, _ struct{}) (string, error) {
		if err := f.Log(protocol.LevelInfo, "first"); err != nil {
			return "", err
		}
		for _, what := range []string{"second", "third"} {
			harness.Await(t, step, what)
			said <- f.Log(protocol.LevelInfo, what)
		}
		return "done", nil
	}))
	p.Initialize()
	call := p.Call("steps")
	event := call.Has(`^id: (.*)\n`)[1]
	call.Has("first")
	call.Leave()
	step <- struct{}{}
	err := harness.Await(t, said, "second") // which is missed
	stream := p.Send(http.MethodGet, "", http.Header{"Last-Event-Id": {event}})
	stream.Has("second")
	harness.Await(t, opened, "the event of the opening")
	step <- struct{}{}
	stream.Has("third")
	if err := errors.Join(err, harness.Await(t, said, "third")); err != nil {
		t.Error(err)
	}
	close(open)
	stream.Has("done")
}
