package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
)

// asker returns options with a handler for everything.
func asker(rev protocol.Revision) *Options {
	opts := only(rev)
	opts.Roots = []protocol.Root{{URI: "file:///home"}}
	opts.Sample = func(_ context.Context, q *protocol.SampleParams) (*protocol.SampleResult, error) {
		text := fmt.Sprintf("about %s in %d", q.Messages[0].Content[0].(protocol.TextContent).Text, q.MaxTokens)
		return &protocol.SampleResult{Model: "m", Content: []protocol.Content{protocol.TextContent{Text: text}}}, nil
	}
	opts.Elicit = func(_ context.Context, q *protocol.ElicitParams) (*protocol.ElicitResult, error) {
		return Accept(map[string]string{"name": "Ada"})
	}
	return opts
}

// The same handlers answer legacy requests and modern results.
func TestAsking(t *testing.T) {
	each(t, func(t *testing.T, rev protocol.Revision) {
		c := connect(t, serving(t, fixture(t, nil)), asker(rev))
		got, err := Call[string](t.Context(), c, "think", nil)
		if err != nil || got != "about file:///home in 9" {
			t.Errorf("thought %q, %v", got, err)
		}
		if !rev.Has(protocol.FeatureElicitation) {
			return
		}
		got, err = Call[string](t.Context(), c, "greet", nil)
		if err != nil || got != "Hello, red Ada!" && got != "Hello,  Ada!" {
			t.Errorf("greeting %q, %v", got, err)
		}
	})
}

func TestElicitAnswers(t *testing.T) {
	tests := []struct {
		name   string
		answer func() (*protocol.ElicitResult, error)
		want   string // in the greeting, or in the error
	}{
		{"decline", Decline, "stranger"},
		{"dismiss", Cancel, "stranger"},
		{"does not fit", func() (*protocol.ElicitResult, error) { return Accept(map[string]int{"name": 5}) }, "does not fit the requested schema"},
		{"missing", func() (*protocol.ElicitResult, error) { return Accept(nil) }, "does not fit the requested schema"},
		{"no object", func() (*protocol.ElicitResult, error) { return Accept(5) }, "must be a JSON object"},
		{"error", func() (*protocol.ElicitResult, error) { return nil, errors.New("user is asleep") }, "user is asleep"},
		{"nothing", func() (*protocol.ElicitResult, error) { return nil, nil }, "gave no answer"},
		{"panic", func() (*protocol.ElicitResult, error) { panic("boom") }, "the client's handler failed"},
		{"unknown action", func() (*protocol.ElicitResult, error) { return &protocol.ElicitResult{Action: "maybe"}, nil }, "it must be accept"},
	}
	for _, rev := range []protocol.Revision{protocol.V20250618, protocol.V20251125, protocol.V20260728} {
		for _, tt := range tests {
			t.Run(rev.String()+"/"+tt.name, func(t *testing.T) {
				opts := only(rev)
				opts.Elicit = func(context.Context, *protocol.ElicitParams) (*protocol.ElicitResult, error) { return tt.answer() }
				c := connect(t, serving(t, fixture(t, nil)), opts)
				got, err := Call[string](t.Context(), c, "greet", nil)
				if said := got + fmt.Sprint(err); !strings.Contains(said, tt.want) {
					t.Errorf("got %q, %v; want %q", got, err, tt.want)
				}
			})
		}
	}
}

// A form's defaults are filled in where the user left something out.
func TestDefaults(t *testing.T) {
	form := `{"type":"object","properties":{
		"name":{"type":"string","default":"Bob"},"age":{"type":"integer","default":30},"score":{"type":"number","default":0.5},
		"ok":{"type":"boolean","default":true},"color":{"type":"string","enum":["red","blue"],"default":"blue"},
		"tags":{"type":"array","items":{"type":"string","enum":["a","b"]},"default":["a"]},"free":{"type":"string"}},"required":["name"]}`
	tests := []struct{ content, want string }{
		{``, `{"name":"Bob","age":30,"score":0.5,"ok":true,"color":"blue","tags":["a"]}`},
		{`{"name":"Ada", "ok":false}`, `{"name":"Ada","ok":false,"age":30,"score":0.5,"color":"blue","tags":["a"]}`},
		{`{"free":"x"}`, `{"free":"x","name":"Bob","age":30,"score":0.5,"ok":true,"color":"blue","tags":["a"]}`},
	}
	for _, tt := range tests {
		got, err := fillForm(json.RawMessage(form), json.RawMessage(tt.content))
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: %s, %v; want %s", tt.content, got, err, tt.want)
		}
	}
	for _, bad := range []string{`{`, `{"type":"nonsense"}`, `{"$ref":"https://example.com/s"}`} {
		if got, err := fillForm(json.RawMessage(bad), nil); err == nil {
			t.Errorf("form %s gave %s", bad, got)
		}
	}
}

// What a legacy server asks by itself, and what it hears.
func TestServerRequests(t *testing.T) {
	failing := &Options{Sample: func(context.Context, *protocol.SampleParams) (*protocol.SampleResult, error) {
		return nil, errors.New("no model today")
	}}
	panicking := &Options{Sample: func(context.Context, *protocol.SampleParams) (*protocol.SampleResult, error) { panic("boom") }}
	declared := &Options{Capabilities: protocol.ClientCapabilities{Sampling: &protocol.SamplingCapability{}}}
	answering := func(item protocol.Content) *Options {
		return &Options{Sample: func(context.Context, *protocol.SampleParams) (*protocol.SampleResult, error) {
			return &protocol.SampleResult{Content: []protocol.Content{item}}, nil
		}}
	}
	rooted := &Options{Roots: []protocol.Root{{URI: "file:///a", Name: "A"}}}
	sample := `{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":1}`
	tests := []struct {
		name           string
		opts           *Options
		method, params string
		want           string // in the answer
	}{
		{"ping", nil, "ping", `{}`, `"result":{}`},
		{"unknown", nil, "no/such", `{}`, `"code":-32601`},
		{"sampling off", nil, "sampling/createMessage", sample, `"code":-32601,"message":"the client does not support sampling"`},
		{"no handler", declared, "sampling/createMessage", sample, `"code":-32601,"message":"the client does not support sampling"`},
		{"handler fails", failing, "sampling/createMessage", sample, `"code":-1,"message":"no model today"`},
		{"handler panics", panicking, "sampling/createMessage", sample, `the client's handler failed`},
		{"bad params", failing, "sampling/createMessage", `{"messages":[{"role":"user","content":{"type":"image","data":7}}]}`, `"code":-32602`},
		{"unknown content", failing, "sampling/createMessage", `{"messages":[{"role":"user","content":{"type":"alien"}}],"maxTokens":1}`, `"code":-1,"message":"no model today"`},
		{"image without a media type", answering(protocol.ImageContent{Data: []byte("\x89PNG\r\n\x1a\n"), MIMEType: "png"}), "sampling/createMessage", sample, `not a media type: write it as image/`},
		{"image of another media type", answering(protocol.ImageContent{Data: []byte("a"), MIMEType: "text/plain"}), "sampling/createMessage", sample, `begins with image/`},
		{"audio of another media type", answering(protocol.AudioContent{Data: []byte("a"), MIMEType: "image/png"}), "sampling/createMessage", sample, `begins with audio/`},
		{"audio with parameters", answering(protocol.AudioContent{Data: []byte("a"), MIMEType: "audio/webm; codecs=opus"}), "sampling/createMessage", sample, `audio/webm; codecs=opus`},
		{"roots", rooted, "roots/list", `{}`, `{"roots":[{"uri":"file:///a","name":"A"}]}`},
		{"no roots", nil, "roots/list", `{}`, `"code":-32601`},
		{"elicitation off", nil, "elicitation/create", `{"message":"?","requestedSchema":{"type":"object"}}`, `"code":-32601,"message":"the client does not support elicitation"`},
		{"elicitation of a mode", asker(0), "elicitation/create", `{"mode":"url","message":"?","url":"https://example.com/x"}`, `"code":-32602`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := make(chan string, 1)
			tr := scripted(t, func(s *script) {
				s.legacyHello("2025-11-25")
				s.say(`{"jsonrpc":"2.0","id":"q","method":%q,"params":%s}`, tt.method, tt.params)
				if h := s.next(); h != nil {
					got <- h.raw
				}
				s.drain()
			})
			opts := Options{}
			if tt.opts != nil {
				opts = *tt.opts
			}
			opts.Revisions = []protocol.Revision{protocol.V20251125}
			connect(t, tr, &opts)
			if answer := <-got; !strings.Contains(answer, tt.want) || !strings.Contains(answer, `"id":"q"`) {
				t.Errorf("answer %s, want %s", answer, tt.want)
			}
		})
	}
}

// What is around the answers to a server sees each of them, whatever answers, and
// may refuse it.
func TestAroundServerRequest(t *testing.T) {
	each(t, func(t *testing.T, rev protocol.Revision) {
		if rev < protocol.V20250618 {
			t.Skip("no elicitation")
		}
		var mu sync.Mutex
		var seen []string
		opts := only(rev)
		refuse := false
		opts.Elicit = func(ctx context.Context, q *protocol.ElicitParams) (*protocol.ElicitResult, error) {
			if ctx.Value(spanKey{}) != "s" {
				t.Error("the handler has another context")
			}
			return Accept(map[string]string{"name": "Ada"})
		}
		opts.AroundServerRequest = func(ctx context.Context, r *ServerRequest, next func(context.Context) error) error {
			mu.Lock()
			defer mu.Unlock()
			if refuse {
				return errors.New("not today")
			}
			before := string(r.Result)
			err := next(context.WithValue(ctx, spanKey{}, "s"))
			seen = append(seen, fmt.Sprintf("%s %t %q %s %v", r.Method, strings.Contains(string(r.Params), "requestedSchema"), before, r.Result, err))
			return nil // what next returned counts
		}
		c := connect(t, serving(t, fixture(t, nil)), opts)
		if got, err := Call[string](t.Context(), c, "greet", nil); err != nil || !strings.Contains(got, "Ada") {
			t.Errorf("got %q, %v", got, err)
		}
		mu.Lock()
		content := `{"name":"Ada"}`
		if rev >= protocol.V20251125 {
			content = `{"name":"Ada","color":"red"}` // with the default of the form
		}
		if want := `elicitation/create true "" {"action":"accept","content":` + content + `} <nil>`; len(seen) != 1 || seen[0] != want {
			t.Errorf("seen %q, want %q", seen, want)
		}
		refuse = true
		mu.Unlock()
		got, err := Call[string](t.Context(), c, "greet", nil)
		if said := got + fmt.Sprint(err); !strings.Contains(said, "not today") {
			t.Errorf("a refused question: %q, %v", got, err)
		}
	})
}

// What next returns is the answer where AroundServerRequest returns no error, and
// one that does not call it answers nothing.
func TestAroundServerRequestFails(t *testing.T) {
	for name, tt := range map[string]struct {
		around func(context.Context, *ServerRequest, func(context.Context) error) error
		want   string
	}{
		"hides an error": {func(ctx context.Context, _ *ServerRequest, next func(context.Context) error) error {
			_ = next(ctx)
			return nil
		}, `"code":-32601,"message":"Method not found: no/such"`},
		"calls nothing": {func(context.Context, *ServerRequest, func(context.Context) error) error { return nil }, `has not called next`},
		"panics":        {func(context.Context, *ServerRequest, func(context.Context) error) error { panic("boom") }, `the client's handler failed`},
		"has a code": {func(context.Context, *ServerRequest, func(context.Context) error) error {
			return protocol.Errorf(protocol.CodeBusy, "later")
		}, `"message":"later"`},
	} {
		t.Run(name, func(t *testing.T) {
			got := make(chan string, 2)
			connect(t, scripted(t, func(s *script) {
				s.legacyHello("2025-11-25")
				for _, method := range []string{"no/such", "ping"} {
					s.say(`{"jsonrpc":"2.0","id":%q,"method":%q}`, method, method)
					if h := s.next(); h != nil {
						got <- h.raw
					}
				}
				s.drain()
			}), &Options{Revisions: []protocol.Revision{protocol.V20251125}, AroundServerRequest: tt.around})
			if answer := <-got; !strings.Contains(answer, tt.want) {
				t.Errorf("answer %s, want %s", answer, tt.want)
			}
			if answer := <-got; !strings.Contains(answer, `"result":{}`) {
				t.Errorf("answer to a ping: %s", answer)
			}
		})
	}
}

// A handler tells the server how far it is, in the revisions in which the server
// waits for it, and only while the answer is not sent.
func TestReportProgress(t *testing.T) {
	each(t, func(t *testing.T, rev protocol.Revision) {
		if !rev.Has(protocol.FeatureElicitation) {
			t.Skip("no elicitation")
		}
		s := fixture(t, nil)
		told := make(chan string, 10)
		if err := s.OnNotification(protocol.MethodProgress, func(f *mcp.Frame) error { told <- string(f.Request().Params.Raw); return nil }); err != nil {
			t.Fatal(err)
		}
		opts := only(rev)
		later := make(chan context.Context, 1)
		opts.Elicit = func(ctx context.Context, q *protocol.ElicitParams) (*protocol.ElicitResult, error) {
			for _, p := range []Progress{{Progress: 1, Total: 3, Message: "thinking"}, {Progress: 2.5}} {
				if err := ReportProgress(ctx, p); err != nil {
					t.Error(err)
				}
			}
			for _, bad := range []Progress{{Progress: 2.5}, {Progress: math.NaN()}, {Progress: 3, Total: math.Inf(1)}} {
				if err := ReportProgress(ctx, bad); (err == nil) != rev.Modern() {
					t.Errorf("%+v: %v", bad, err)
				}
			}
			later <- ctx
			return Accept(map[string]string{"name": "Ada"})
		}
		c := connect(t, serving(t, s), opts)
		if got, err := Call[string](t.Context(), c, "greet", nil); err != nil || !strings.Contains(got, "Ada") {
			t.Errorf("got %q, %v", got, err)
		}
		if err := ReportProgress(<-later, Progress{Progress: 9}); err != nil {
			t.Errorf("after the answer: %v", err)
		}
		if err := ReportProgress(t.Context(), Progress{Progress: 1}); err != nil {
			t.Errorf("outside of a handler: %v", err)
		}
		if err := c.Ping(t.Context()); err != nil { // after which all notifications are there
			t.Error(err)
		}
		if rev.Modern() {
			if len(told) != 0 {
				t.Errorf("the server was told %s", <-told)
			}
			return
		}
		for _, want := range []string{`"progress":1,"total":3,"message":"thinking"}`, `"progress":2.5}`} {
			if got := <-told; !strings.HasPrefix(got, `{"progressToken":`) || !strings.HasSuffix(got, want) {
				t.Errorf("the server was told %s, want %s", got, want)
			}
		}
		if len(told) != 0 {
			t.Errorf("the server was told %s, too", <-told)
		}
	})
}

// Without a token, and with one that is none, a server is told nothing.
func TestReportProgressUnasked(t *testing.T) {
	for _, meta := range []string{``, `,"_meta":{}`, `,"_meta":{"progressToken":null}`, `,"_meta":{"progressToken":{"a":1}}`, `,"_meta":{"progressToken":true}`, `,"_meta":5`} {
		got := make(chan string, 1)
		connect(t, scripted(t, func(s *script) {
			s.legacyHello("2025-11-25")
			s.say(`{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1%s}}`, meta)
			if h := s.next(); h != nil {
				got <- h.raw
			}
			s.drain()
		}), &Options{Revisions: []protocol.Revision{protocol.V20251125}, OnRequest: func(ctx context.Context, _ string, _ json.RawMessage) (any, error) {
			return struct{}{}, ReportProgress(ctx, Progress{Progress: 1})
		}})
		if answer := <-got; !strings.Contains(answer, `"result":{}`) {
			t.Errorf("%s: %s", meta, answer)
		}
	}
}

func TestElicitURL(t *testing.T) {
	bad := []string{"not a url", "javascript://example.com/%0aalert(1)", "file://example.com/x", "data:text/html,x", "https://bank.example@example.com"}
	got := make(chan string, 1+len(bad))
	tr := scripted(t, func(s *script) {
		s.legacyHello("2025-11-25")
		for _, url := range append([]string{"https://example.com/pay"}, bad...) {
			s.say(`{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"mode":"url","message":"Pay","url":%q,"elicitationId":"e"}}`, url)
			got <- s.next().raw
		}
		s.drain()
	})
	connect(t, tr, &Options{Revisions: []protocol.Revision{protocol.V20251125},
		ElicitURL: func(_ context.Context, q *protocol.ElicitParams) (*protocol.ElicitResult, error) {
			if q.URL != "https://example.com/pay" || q.ElicitationID != "e" {
				t.Errorf("asked %+v", q)
			}
			return Accept(nil)
		}})
	if answer := <-got; !strings.Contains(answer, `"result":{"action":"accept"}`) {
		t.Errorf("answer %s", answer)
	}
	for _, url := range bad {
		if answer := <-got; !strings.Contains(answer, `"code":-32602`) {
			t.Errorf("answer to %s: %s", url, answer)
		}
	}
}

// The client sends the state back as it came, and with the answers of that
// round alone.
func TestRounds(t *testing.T) {
	ask := func(state, key string) string {
		return `{"resultType":"input_required","inputRequests":{"` + key + `":{"method":"roots/list","params":{}}},"requestState":` + state + `}`
	}
	var bodies []string
	tr := scripted(t, func(s *script) {
		s.modernHello()
		for _, result := range []string{
			ask(`"s 1é\u0000"`, "k/1"), ask(`"s2"`, "k2"),
			`{"resultType":"input_required","requestState":"s3"}`,
			`{"resultType":"input_required","requestState":""}`,
			`{"resultType":"input_required","inputRequests":{}}`,
			`{"resultType":"complete","content":[]}`,
		} {
			h := s.next()
			bodies = append(bodies, string(h.Params))
			s.result(h, result)
		}
		s.drain()
	})
	c := connect(t, tr, asker(protocol.V20260728))
	if _, err := c.Call(t.Context(), "x", nil); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	roots := `{"roots":[{"uri":"file:///home"}]}`
	want := []string{
		`{"name":"x",`, `{"name":"x","inputResponses":{"k/1":` + roots + `},"requestState":"s 1é\u0000",`,
		`{"name":"x","inputResponses":{"k2":` + roots + `},"requestState":"s2",`, `{"name":"x","requestState":"s3",`,
		`{"name":"x","requestState":"",`, `{"name":"x",`,
	}
	for i, body := range bodies {
		if i >= len(want) || !strings.HasPrefix(body, want[i]+`"_meta"`) && !strings.HasPrefix(body, want[i]+`"inputResponses":{},"_meta"`) {
			t.Errorf("round %d: %s", i, body)
		}
	}
}

func TestRoundLimits(t *testing.T) {
	endless := func(rounds *atomic.Int32) *testTransport {
		return scripted(t, func(s *script) {
			s.modernHello()
			for h := s.next(); h != nil; h = s.next() {
				rounds.Add(1)
				s.result(h, `{"resultType":"input_required","inputRequests":{"k":{"method":"roots/list"}},"requestState":"s"}`)
			}
		})
	}
	var rounds atomic.Int32
	opts := asker(protocol.V20260728)
	c := connect(t, endless(&rounds), opts)
	_, err := c.Call(t.Context(), "x", nil)
	if err == nil || !strings.Contains(err.Error(), "after 10 rounds") || rounds.Load() != 11 {
		t.Errorf("%v after %d rounds", err, rounds.Load())
	}
	_, err = c.Call(t.Context(), "x", nil, NoRounds())
	asks, ok := errors.AsType[*InputRequiredError](err)
	if !ok || len(asks.Requests) != 1 || asks.Requests[0].Key != "k" || asks.State != "s" {
		t.Errorf("NoRounds: %v", err)
	}
	off := *opts
	off.MaxRounds = -1
	if _, err = connect(t, endless(&rounds), &off).Call(t.Context(), "x", nil); !errors.As(err, &asks) {
		t.Errorf("MaxRounds -1: %v", err)
	}
	if err := c.Request(t.Context(), "tools/list", nil, nil); err == nil || !strings.Contains(err.Error(), "must not need any") {
		t.Errorf("a list that wants input: %v", err)
	}
}

// The rounds can be driven by hand.
func TestAnswersByHand(t *testing.T) {
	c := connect(t, serving(t, fixture(t, nil)), asker(protocol.V20260728))
	_, err := c.Call(t.Context(), "greet", nil, NoRounds())
	asks, ok := errors.AsType[*InputRequiredError](err)
	if !ok {
		t.Fatalf("error %v", err)
	}
	answers := map[string]any{asks.Requests[0].Key: map[string]any{"action": "accept", "content": map[string]string{"name": "Eve", "color": "blue"}}}
	r, err := c.Call(t.Context(), "greet", nil, Answers(answers, asks.State))
	if err != nil || r.Text() != "Hello, blue Eve!" {
		t.Errorf("result %+v, %v", r, err)
	}
}

// While the user thinks, the call that waits for the answer does not time out.
func TestAskingStopsTheClock(t *testing.T) {
	for _, rev := range []protocol.Revision{protocol.V20250618, protocol.V20260728} {
		t.Run(rev.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts := asker(rev)
				opts.Elicit = func(context.Context, *protocol.ElicitParams) (*protocol.ElicitResult, error) {
					time.Sleep(2 * time.Minute)
					return Accept(map[string]string{"name": "Ada"})
				}
				c := connect(t, serving(t, fixture(t, nil)), opts)
				if _, err := Call[string](t.Context(), c, "greet", nil); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// An answer that takes long to be sent arrives, and one that cannot be sent is logged.
func TestSlowAnswers(t *testing.T) {
	for wait, want := range map[time.Duration]string{29 * time.Second: "", 31 * time.Second: `"an answer was not sent"`} {
		synctest.Test(t, func(t *testing.T) {
			var log logText
			logger := zerolog.New(&log).Level(zerolog.WarnLevel)
			opts := asker(protocol.V20250618)
			opts.Logger = &logger
			tried := make(chan error, 1)
			server := rtFunc(func(r *http.Request) (*http.Response, error) {
				body, _ := io.ReadAll(r.Body)
				m, _ := protocol.Decode(body)
				send := func(code int, kind, text string) (*http.Response, error) {
					return respond(code, kind, text, nil)(r)
				}
				switch {
				case r.Method != http.MethodPost:
					return send(405, "text/plain", "no")
				case m.Method == protocol.MethodInitialize:
					return send(200, "application/json", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}`, m.ID))
				case m.Kind() == protocol.KindNotification:
					return send(202, "", "")
				case m.Kind() == protocol.KindResponse:
					select {
					case <-time.After(wait):
						tried <- nil
						return send(202, "", "")
					case <-r.Context().Done():
						tried <- r.Context().Err()
						return nil, r.Context().Err()
					}
				}
				in, out := io.Pipe()
				go func() {
					fmt.Fprint(out, `data: {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"who?","requestedSchema":{"type":"object","properties":{}}}}`+"\n\n")
					if err := <-tried; err != nil {
						time.Sleep(time.Second) // for the line in the log
					}
					fmt.Fprintf(out, `data: {"jsonrpc":"2.0","id":%s,"result":{"content":[]}}`+"\n\n", m.ID)
					out.Close()
				}()
				return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: in, Request: r}, nil
			})
			c := connect(t, HTTP("http://example.com/mcp", &HTTPOptions{Client: &http.Client{Transport: server}}), opts)
			if _, err := c.Call(t.Context(), "ask", nil); err != nil {
				t.Errorf("after %v: %v", wait, err)
			}
			if got := log.String(); (want == "") != (got == "") || !strings.Contains(got, want) {
				t.Errorf("after %v the log has %q, want %q", wait, got, want)
			}
		})
	}
}

func TestRoots(t *testing.T) {
	changes := make(chan string, 10)
	tr := scripted(t, func(s *script) {
		s.legacyHello("2025-06-18")
		for h := s.next(); h != nil; h = s.next() {
			changes <- h.Method
		}
		close(changes)
	})
	opts := *legacy
	opts.Roots = []protocol.Root{}
	c := connect(t, tr, &opts)
	ctx := t.Context()
	a, b := Root{URI: "file:///a"}, Root{URI: "file:///b", Name: "B"}
	for _, roots := range [][]Root{{a}, {a}, {{URI: a.URI, Name: "A"}}, {a, b}, {b, a}, {}, nil} { // two are as before
		if err := c.SetRoots(ctx, roots); err != nil {
			t.Errorf("%v: %v", roots, err)
		}
		if got := c.Roots(); len(got) != len(roots) || len(got) > 0 && got[0].Name != roots[0].Name {
			t.Errorf("roots %v, want %v", got, roots)
		}
	}
	if err := c.SetRoots(ctx, []Root{a, {URI: "https://x"}}); err == nil || len(c.Roots()) != 0 {
		t.Errorf("a root that is no file: %v, roots %v", err, c.Roots())
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	n := 0
	for method := range changes {
		if method != "notifications/roots/list_changed" {
			t.Errorf("sent %s", method)
		}
		n++
	}
	if n != 5 {
		t.Errorf("%d notices of change, want 5", n)
	}
	without := connect(t, serving(t, fixture(t, nil)), nil)
	if err := without.SetRoots(ctx, []Root{a}); !errors.Is(err, ErrUnsupported) {
		t.Errorf("roots that were not declared: %v", err)
	}
}

// A server may take its question back.
func TestQuestionCancelled(t *testing.T) {
	asked, ended := make(chan struct{}), make(chan error, 1)
	tr := scripted(t, func(s *script) {
		s.legacyHello("2025-06-18")
		s.say(`{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object"}}}`)
		<-asked
		s.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`)
		if h := s.next(); h != nil {
			t.Errorf("the client still sent %s", h.raw)
		}
	})
	opts := *legacy
	opts.Elicit = func(ctx context.Context, _ *protocol.ElicitParams) (*protocol.ElicitResult, error) {
		close(asked)
		<-ctx.Done()
		ended <- ctx.Err()
		return nil, ctx.Err()
	}
	c := connect(t, tr, &opts)
	if err := <-ended; err == nil {
		t.Error("the handler's context did not end")
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// A request that needs the user to visit a URL is made again after that.
func TestURLRequired(t *testing.T) {
	play := func(s *script) {
		s.legacyHello("2025-11-25")
		for h := s.until("tools/call"); h != nil; h = s.until("tools/call") {
			s.say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32042,"message":"visit","data":{"elicitations":[{"mode":"url","elicitationId":"e1","url":"https://example.com/connect","message":"Authorize"}]}}}`, h.ID)
			s.say(`{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"e0"}}`)
			s.say(`{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":"e1"}}`)
			s.result(s.until("tools/call"), `{"content":[{"type":"text","text":"done"}]}`)
		}
	}
	tests := []struct {
		name    string
		answer  func() (*protocol.ElicitResult, error)
		options []CallOption
		fails   bool
	}{
		{"accept", func() (*protocol.ElicitResult, error) { time.Sleep(time.Millisecond); return Accept(nil) }, nil, false},
		{"decline", Decline, nil, true},
		{"not wanted", Decline, []CallOption{Retry(1)}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts := only(protocol.V20251125)
				opts.ElicitURL = func(_ context.Context, q *protocol.ElicitParams) (*protocol.ElicitResult, error) {
					if q.URL != "https://example.com/connect" || q.Message != "Authorize" {
						t.Errorf("asked %+v", q)
					}
					return tt.answer()
				}
				c := connect(t, scripted(t, play), opts)
				r, err := c.Call(t.Context(), "x", nil, tt.options...)
				if tt.fails != (code(err) == codeURLRequired) || !tt.fails && (err != nil || r.Text() != "done") {
					t.Errorf("%+v, %v", r, err)
				}
			})
		})
	}
}

// spanKey is the key of a value in the contexts of a test.
type spanKey struct{}
