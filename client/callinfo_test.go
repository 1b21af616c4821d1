package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/protocol"
)

// Around is there once for a call of the API, whatever that takes.
func TestAround(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		opts := asker(protocol.V20260728)
		elicit := opts.Elicit
		opts.Elicit = func(ctx context.Context, q *ElicitParams) (*ElicitResult, error) {
			time.Sleep(8 * time.Second)
			return elicit(ctx, q)
		}
		opts.Around = func(ctx context.Context, call *CallInfo, next func(context.Context) error) error {
			began := time.Now()
			err := next(ctx)
			told = append(told, fmt.Sprintf("%s %s %s %d %v of %v %v", call.Server, call.Method, call.Name, call.Sent, call.Waited, time.Since(began), err != nil))
			return err
		}
		c := connect(t, serving(t, tasking(t)), opts)
		for _, call := range []func() error{
			func() error { _, err := c.Call(t.Context(), "sum", sumIn{1, 2}); return err },
			func() error { _, err := c.Call(t.Context(), "greet", nil); return err },
			func() error { _, err := c.Call(t.Context(), "later", sumIn{1, 2}); return err },
			func() error { _, err := c.Read(t.Context(), "test://a"); return err },
			func() error { _, err := c.Read(t.Context(), "test://a"); return err },
			func() error { return c.Request(t.Context(), "tools/list", nil, nil) },
			func() error { return c.Ping(t.Context()) },
		} {
			if err := call(); err != nil {
				t.Error(err)
			}
		}
		if _, err := c.Call(t.Context(), "refuse", nil); err == nil {
			t.Error("no error")
		}
		want := []string{
			"fixture tools/call sum 1 0s of 0s false",
			"fixture tools/call greet 2 8s of 8s false",
			"fixture tools/call later n 0s of 3s false",
			"fixture resources/read test://a 1 0s of 0s false",
			"fixture resources/read test://a 1 0s of 0s false",
			"fixture tools/list  1 0s of 0s false",
			"fixture server/discover  1 0s of 0s false",
			"fixture tools/call refuse 1 0s of 0s true",
		}
		for _, n := range []string{"4", "5"} { // it may be asked just before, and just after its end
			told[2] = strings.Replace(told[2], "later "+n, "later n", 1)
		}
		if !slices.Equal(told, want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
		}
	})
}

// What Around returns is the call's, and without a result there is none.
func TestAroundDecides(t *testing.T) {
	refusal := errors.New("not now")
	for _, tt := range []struct {
		what   string
		around func(context.Context, *CallInfo, func(context.Context) error) error
		tool   string
		args   any
		want   string
	}{
		{"refuses", func(context.Context, *CallInfo, func(context.Context) error) error { return refusal }, "sum", sumIn{1, 2}, "not now"},
		{"refuses what went well", func(ctx context.Context, _ *CallInfo, next func(context.Context) error) error {
			return errors.Join(next(ctx), refusal)
		}, "sum", sumIn{1, 2}, "not now"},
		{"forgets next", func(context.Context, *CallInfo, func(context.Context) error) error { return nil }, "sum", sumIn{1, 2}, "has not called next"},
		{"hides an error", func(ctx context.Context, _ *CallInfo, next func(context.Context) error) error {
			_ = next(ctx)
			return nil
		}, "refuse", nil, "no"},
	} {
		c := connect(t, serving(t, fixture(t, nil)), &Options{Around: tt.around})
		if r, err := c.Call(t.Context(), tt.tool, tt.args); r != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, %v", tt.what, r, err)
		}
		if err := c.Request(t.Context(), "tools/call", map[string]any{"name": tt.tool, "arguments": cmp.Or(tt.args, any(struct{}{}))}, nil); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", tt.what, err)
		}
	}
}

// Inject is in every message but answers, and does not change what is said there.
func TestInject(t *testing.T) {
	each(t, func(t *testing.T, rev protocol.Revision) {
		opts := asker(rev)
		var mu sync.Mutex
		sent := map[string]json.RawMessage{} // _meta, by method
		opts.Trace = func(fromServer bool, message []byte) {
			var m struct {
				Method string
				Params struct {
					Meta json.RawMessage `json:"_meta"`
				}
			}
			if err := json.Unmarshal(message, &m); err != nil {
				t.Error(err)
			}
			if !fromServer && m.Method != "" {
				mu.Lock()
				defer mu.Unlock()
				sent[m.Method] = bytes.Clone(m.Params.Meta)
			}
		}
		opts.Inject = func(_ context.Context, set func(key, value string)) {
			set("traceparent", "00-1")
			set("com.example/own", "injected")
			set("progressToken", "stolen")
		}
		c := connect(t, serving(t, fixture(t, nil)), opts)
		if _, err := c.Call(t.Context(), "sum", sumIn{1, 2}, Meta("com.example/own", "mine"), OnProgress(func(Progress) {})); err != nil {
			t.Fatal(err)
		}
		for _, err := range c.Tools(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		stop()
		_, _ = c.Call(ctx, "wait", nil)
		if err := errors.Join(c.Notify(t.Context(), "x/one", nil), c.Notify(t.Context(), "x/two", map[string]any{"a": 1, "_meta": map[string]any{"b": 2}})); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		defer mu.Unlock()
		for method, meta := range sent {
			if n := strings.Count(string(meta), `"traceparent":"00-1"`); n != 1 || strings.Contains(string(meta), "stolen") {
				t.Errorf("%s: %s", method, meta)
			}
		}
		if call := string(sent["tools/call"]); !strings.Contains(call, `"com.example/own":"mine"`) || strings.Contains(call, "injected") || !strings.Contains(call, `"progressToken":`) {
			t.Errorf("tools/call: %s", call)
		}
		if two := string(sent["x/two"]); !strings.Contains(two, `"b":2`) {
			t.Errorf("x/two: %s", two)
		}
		want := []string{"tools/call", "tools/list", "x/one", "x/two"}
		if rev.Modern() {
			want = append(want, "server/discover")
		} else {
			want = append(want, "initialize", "notifications/initialized")
		}
		for _, method := range want {
			if sent[method] == nil {
				t.Errorf("there is no %s", method)
			}
		}
	})
}

// The Cache does not look at what is injected.
func TestInjectAndCache(t *testing.T) {
	calls := 0
	opts := only(protocol.V20260728)
	opts.Inject = func(_ context.Context, set func(key, value string)) { calls++; set("traceparent", fmt.Sprint(calls)) }
	var served atomic.Int32
	c := connect(t, cacheable(t, "private", &served), opts)
	for range 3 {
		if _, err := listTools(t.Context(), c, ""); err != nil {
			t.Fatal(err)
		}
	}
	if served.Load() != 1 || calls != 2 { // server/discover, and one list
		t.Errorf("%d lists, %d messages", served.Load(), calls)
	}
}
