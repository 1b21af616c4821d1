package middleware_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/middleware"
	"github.com/talaria-go/mcp/protocol"
)

// request returns the frame of a request; args may be "".
func request(ctx context.Context, method, name, args string) *mcp.Frame {
	return frame.Internal(facts.Private{}).New(ctx, core.Config{
		Request: &core.Request{ID: protocol.NewID(1), Method: method, Params: protocol.Params{Raw: []byte("{}"), Name: name, Arguments: []byte(args)}},
	})
}

func callOf(name string) *mcp.Frame {
	return request(context.Background(), protocol.MethodToolsCall, name, "")
}

func textResult(text string) *protocol.CallToolResult {
	return &protocol.CallToolResult{Content: []protocol.Content{protocol.TextContent{Text: text}}}
}

func answer(r protocol.Result, err error) mcp.Handler {
	return func(*mcp.Frame) (protocol.Result, error) { return r, err }
}

// show returns a result, or an error with its data, as text.
func show(t testing.TB, r protocol.Result, err error) string {
	t.Helper()
	if err == nil {
		var text []byte
		if text, err = wire.AppendResult(nil, r, wire.To{Revision: protocol.LatestLegacy}); err == nil {
			return string(text)
		}
	}
	if fault, ok := errors.AsType[*protocol.Error](err); ok {
		return string(wire.AppendError(nil, fault))
	}
	return err.Error()
}

// ended is what a server does when the answer to the request of f has been made.
func ended(f *mcp.Frame) {
	if end := frame.Internal(facts.Private{}).TakeEnd(f); end != nil {
		end(nil)
	}
}

func TestLogging(t *testing.T) {
	secret := &protocol.CallToolResult{Content: []protocol.Content{protocol.TextContent{Text: "secret"}}, IsError: true}
	for _, tt := range []struct {
		name string
		f    *mcp.Frame
		next mcp.Handler
		want map[string]any
	}{
		{"tool", request(context.Background(), "tools/call", "add", `{"a":"secret"}`), answer(textResult("secret"), nil), map[string]any{"method": "tools/call", "name": "add"}},
		{"failed tool", callOf("add"), answer(secret, nil), map[string]any{"method": "tools/call", "name": "add", "failed": true}},
		{"prompt", request(context.Background(), "prompts/get", "p", ""), answer(nil, nil), map[string]any{"method": "prompts/get", "name": "p"}},
		{"resource", request(context.Background(), "resources/read", "file:///secret", ""), answer(nil, nil), map[string]any{"method": "resources/read"}},
		{"error", callOf("x"), answer(nil, fmt.Errorf("secret: %w", &mcp.Error{Code: 4711, Message: "secret"})), map[string]any{"method": "tools/call", "name": "x", "code": 4711.0}},
		{"ordinary error", callOf("x"), answer(nil, errors.New("secret")), map[string]any{"method": "tools/call", "name": "x", "code": -32603.0}},
		{"question", callOf("x"), answer(nil, mcp.ErrInputRequired), map[string]any{"method": "tools/call", "name": "x", "asked": true}},
		{"subscription", request(context.Background(), "subscriptions/listen", "", ""), answer(wire.ListenResult{}, nil), map[string]any{"method": "subscriptions/listen", "opened": true}},
		{"long name", callOf(strings.Repeat("x", 1000)), answer(nil, nil), map[string]any{"method": "tools/call", "name": strings.Repeat("x", 200) + "… (1000 bytes)"}},
		{"panic", callOf("x"), func(*mcp.Frame) (protocol.Result, error) { panic("secret") }, map[string]any{"method": "tools/call", "name": "x", "code": -32603.0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				h := middleware.Logging(zerolog.New(&log))(func(f *mcp.Frame) (protocol.Result, error) {
					time.Sleep(20 * time.Millisecond)
					return tt.next(f)
				})
				func() {
					defer func() {
						if (recover() != nil) != (tt.name == "panic") {
							t.Error("a panic was made or swallowed")
						}
					}()
					_, _ = h(tt.f)
					ended(tt.f)
				}()
				tt.want["level"], tt.want["message"], tt.want["ms"], tt.want["revision"] = "info", "handled", 20.0, protocol.Latest.String()
				var got map[string]any
				if err := json.Unmarshal(log.Bytes(), &got); err != nil {
					t.Fatal(err)
				}
				if fmt.Sprint(got) != fmt.Sprint(tt.want) {
					t.Errorf("logged %v, want %v", got, tt.want)
				}
			})
		})
	}
}

func TestTiming(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		errKnown := errors.New("known")
		var got []string
		h := middleware.Timing(func(f *mcp.Frame, took time.Duration, err error) {
			got = append(got, fmt.Sprint(f.Request().Params.Name, " ", took, " ", err))
		})(func(f *mcp.Frame) (protocol.Result, error) {
			time.Sleep(time.Second)
			switch f.Request().Params.Name {
			case "fail":
				return nil, errKnown
			case "panic":
				panic(1)
			}
			return nil, nil
		})
		for _, name := range []string{"fine", "fail", "panic"} {
			func() {
				defer func() { _ = recover() }()
				f := callOf(name)
				_, _ = h(f)
				ended(f)
			}()
		}
		if want := "fine 1s <nil>, fail 1s known, panic 1s Internal error: the handler panicked"; strings.Join(got, ", ") != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestConcurrencyLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		h := middleware.ConcurrencyLimit(2, time.Second)(func(f *mcp.Frame) (protocol.Result, error) {
			if f.Request().Params.Name == "panic" {
				panic(1)
			}
			<-release
			return textResult("done"), nil
		})
		for range 3 {
			func() {
				defer func() { _ = recover() }()
				_, _ = h(callOf("panic"))
			}()
		}
		var done sync.WaitGroup
		results := make(chan string, 10)
		start := func(f *mcp.Frame) {
			done.Go(func() {
				r, err := h(f)
				results <- show(t, r, err)
			})
			synctest.Wait()
		}
		start(callOf("one"))
		start(callOf("two"))
		ctx, cancel := context.WithCancel(t.Context())
		start(request(ctx, "tools/call", "cancelled", ""))
		cancel()
		if got := <-results; got != "context canceled" {
			t.Errorf("one that was cancelled while it waited: %s", got)
		}
		begin := time.Now()
		start(callOf("refused"))
		if got := <-results; got != `{"code":429,"message":"The server has 2 requests in progress, the limit"}` || time.Since(begin) != time.Second {
			t.Errorf("after %v: %s", time.Since(begin), got)
		}
		start(callOf("waits"))
		close(release)
		done.Wait()
		for range 3 {
			if got := <-results; !strings.Contains(got, "done") {
				t.Errorf("got %s", got)
			}
		}
	})
}

// What the server answers by itself needs no place.
func TestConcurrencyLimitIsForHandlers(t *testing.T) {
	var h mcp.Handler
	depth := 0
	h = middleware.ConcurrencyLimit(0, 0)(func(f *mcp.Frame) (protocol.Result, error) {
		if depth++; depth > 1 {
			return textResult("inner"), nil
		}
		defer func() { depth = 0 }()
		for method, refused := range map[string]bool{
			"tools/list": false, "ping": false, "subscriptions/listen": false, "initialize": false, "tasks/get": false,
			"tools/call": true, "resources/read": true, "prompts/get": true, "completion/complete": true, "acme/own": true,
		} {
			r, err := h(request(f, method, "", ""))
			if got := show(t, r, err); strings.Contains(got, `"code":429`) != refused {
				t.Errorf("%s: %s", method, got)
			}
		}
		return textResult("outer"), nil
	})
	if r, err := h(callOf("x")); err != nil {
		t.Error(show(t, r, err))
	}
}

func TestResultSizeLimitOff(t *testing.T) {
	r, err := middleware.ResultSizeLimit(0)(answer(textResult(strings.Repeat("x", 1000)), nil))(callOf("x"))
	if got := show(t, r, err); !strings.Contains(got, "xxx") {
		t.Errorf("got %s", got)
	}
}

func TestResultSizeLimit(t *testing.T) {
	long := textResult(strings.Repeat("x", 100))
	several := &protocol.CallToolResult{IsError: true, Meta: map[string]any{"k": 1}, Content: []protocol.Content{
		protocol.TextContent{Text: "first"}, protocol.ImageContent{Data: []byte("png"), MIMEType: "image/png"},
		protocol.TextContent{Text: strings.Repeat("é\n", 200)}, protocol.TextContent{Text: "last"}, protocol.ResourceLink{URI: "a:b", Name: "c"},
	}}
	structured := textResult("short")
	structured.AppendStructured = func(dst []byte) ([]byte, error) {
		return append(dst, `{"a":"`+strings.Repeat("x", 100)+`"}`...), nil
	}
	picture := &protocol.CallToolResult{Content: []protocol.Content{protocol.ImageContent{Data: make([]byte, 300), MIMEType: "image/png"}, protocol.TextContent{Text: strings.Repeat("x", 300)}}}
	for _, tt := range []struct {
		method string
		result protocol.Result
		limit  int
		want   string
	}{
		{"tools/call", textResult("short"), 100, "short"},
		{"tools/call", long, 139, `"xxxx`},
		{"tools/call", long, 138, `x\n[cut: 33 of 100 bytes; ask for less, with a filter or a limit]"}]}`},
		{"tools/call", long, 100, `{"content":[{"type":"text","text":"The result has 139 bytes, over the limit of 100. Ask for less."}],"isError":true}`},
		{"tools/call", textResult(strings.Repeat("line\n", 400)), 1000, `line\nline\n[cut: 739 of 2,000 bytes; ask for less, with a filter or a limit]"}]}`},
		{"tools/call", textResult(strings.Repeat("x", 1_203_551)), 40_000, `x\n[cut: 39,883 of 1,203,551 bytes; ask for less, with a filter or a limit]"}]}`},
		{"tools/call", several, 400, `bytes; ask for less, with a filter or a limit]"},{"type":"resource_link","uri":"a:b","name":"c"}],"isError":true,"_meta":{"k":1}}`},
		{"tools/call", several, 400, `{"content":[{"type":"text","text":"first"},{"type":"image","data":"cG5n","mimeType":"image/png"},{"type":"text","text":"é\né`},
		{"tools/call", structured, 150, "over the limit of 150. Ask for less."},
		{"tools/call", picture, 400, "over the limit of 400. Ask for less."},
		{"prompts/get", long, 100, `{"code":-32603,"message":"The result has 139 bytes, over the limit of 100. Ask for less."}`},
		{"tools/list", long, 100, "xxx"},
	} {
		r, err := middleware.ResultSizeLimit(tt.limit)(answer(tt.result, nil))(request(context.Background(), tt.method, "x", ""))
		got := show(t, r, err)
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s, want %s", tt.method, got, tt.want)
		}
		if tt.method == "tools/call" && len(got) > max(tt.limit, 120) {
			t.Errorf("%d bytes, over the limit of %d", len(got), tt.limit)
		}
	}
}

// Whatever a text has in it, what is left of it is a beginning, within the limit.
func TestResultSizeLimitOfAnyText(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	parts := []string{"x", "é", "\n", "\"", "\\", "<", "&", "\u2028", "\x00", "\b", "\x7f", "\xff", "\ufffd", "😀", strings.Repeat("word ", 30)}
	for range 2000 {
		var text strings.Builder
		for range 1 + random.IntN(60) {
			text.WriteString(parts[random.IntN(len(parts))])
		}
		limit := 130 + random.IntN(600)
		r, err := middleware.ResultSizeLimit(limit)(answer(textResult(text.String()), nil))(request(context.Background(), "tools/call", "x", ""))
		got := show(t, r, err)
		var result struct {
			Content []struct{ Text string }
			IsError bool
		}
		if err := json.Unmarshal([]byte(got), &result); err != nil || len(got) > limit {
			t.Fatalf("%d bytes of %d: %s, %v", len(got), limit, got, err)
		}
		shown, mark, cut := strings.Cut(result.Content[0].Text, "\n[cut: ")
		if whole := strings.ToValidUTF8(text.String(), "\ufffd"); !result.IsError && (!strings.HasPrefix(strings.ReplaceAll(whole, "\ufffd", ""), strings.ReplaceAll(shown, "\ufffd", "")) || cut && !strings.HasSuffix(mark, " a limit]")) {
			t.Fatalf("%q is no beginning of %q", shown, whole)
		}
	}
}
