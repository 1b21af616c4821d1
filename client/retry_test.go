package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/clients/origin"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// A call with Retry is sent again where its error may pass and the call is safe,
// with the waits of Options.Reconnect or of the server.
func TestRetryBusy(t *testing.T) {
	busy := func(data string) string { return fmt.Sprintf(`{"code":429,"message":"busy"%s}`, data) }
	tests := []struct {
		name    string
		fault   string // of every answer but the last
		passes  int    // the attempt that succeeds; 0 means none
		options []CallOption
		calls   int
		took    time.Duration
		is      error
	}{
		{"not asked for", busy(""), 2, []CallOption{Idempotent()}, 1, 0, ErrBusy},
		{"not safe", busy(""), 2, []CallOption{Retry(3)}, 1, 0, ErrBusy},
		{"not to pass", `{"code":-32603,"message":"x"}`, 2, []CallOption{Retry(3), Idempotent()}, 1, 0, nil},
		{"once", busy(""), 2, []CallOption{Retry(1), Idempotent()}, 1, 0, ErrBusy},
		{"passes", busy(""), 3, []CallOption{Retry(3), Idempotent()}, 3, 5 * time.Second, nil}, // 1 + 4
		{"does not pass", busy(""), 0, []CallOption{Retry(3), Idempotent()}, 3, 5 * time.Second, ErrBusy},
		{"the server's wait", busy(`,"data":{"retryAfterMs":7500}`), 2, []CallOption{Retry(3), Idempotent()}, 2, 7500 * time.Millisecond, nil},
		{"a wait too long", busy(`,"data":{"retryAfterMs":3600000}`), 2, []CallOption{Retry(3), Idempotent()}, 1, 0, ErrBusy},
		{"silence", "", 2, []CallOption{Retry(2), Idempotent(), Timeout(3 * time.Second)}, 2, 4 * time.Second, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			calls := 0
			opts := &Options{Reconnect: &Backoff{Jitter: -1}}
			in(t, opts, func(s *script) {
				for h := s.until("tools/call"); h != nil; h = s.until("tools/call") {
					switch calls++; {
					case calls == tt.passes:
						s.result(h, `{"content":[]}`)
					case tt.fault != "":
						s.say(`{"jsonrpc":"2.0","id":%s,"error":%s}`, h.ID, tt.fault)
					}
				}
			}, func(t *testing.T, c *Client) {
				begin := time.Now()
				_, err := c.Call(t.Context(), "x", nil, tt.options...)
				if took := time.Since(begin); took != tt.took {
					t.Errorf("it took %v, want %v", took, tt.took)
				}
				if (err == nil) != (tt.passes == tt.calls) || tt.is != nil && !errors.Is(err, tt.is) {
					t.Errorf("error %v, want %v", err, tt.is)
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				if calls != tt.calls {
					t.Errorf("%d calls were sent, want %d", calls, tt.calls)
				}
			})
		})
	}
}

// The end of the context ends the waiting, and one that would come first is not
// waited for.
func TestRetryContext(t *testing.T) {
	in(t, &Options{Reconnect: &Backoff{Base: time.Minute, Max: time.Minute}}, func(s *script) {
		for h := s.until("tools/call"); h != nil; h = s.until("tools/call") {
			s.fault(h, 429, "busy")
		}
	}, func(t *testing.T, c *Client) {
		begin := time.Now()
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		if _, err := c.Call(ctx, "x", nil, Retry(9), Idempotent()); !errors.Is(err, ErrBusy) || time.Since(begin) != 0 {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(5*time.Second, cancel)
		if _, err := c.Call(ctx, "x", nil, Retry(9), Idempotent()); err == nil || time.Since(begin) != 5*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}

// Retry-After is a number of seconds or a date.
func TestRetryAfterHeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for value, want := range map[string]time.Duration{
			"":     0,
			"3":    3 * time.Second,
			"-3":   0,
			"soon": 0,
			time.Now().Add(time.Minute).UTC().Format(http.TimeFormat): time.Minute,
		} {
			err := wrap("call", "", &origin.StatusError{Code: http.StatusServiceUnavailable, Header: http.Header{"Retry-After": {value}}})
			if got := retryAfter(err); got != want {
				t.Errorf("%q: %v, want %v", value, got, want)
			}
			if !errors.Is(err, ErrBusy) || !Retriable(err) {
				t.Errorf("%q: %v", value, err)
			}
		}
	})
}

// Each cause that a program can act on has its sentinel, in every revision.
func TestSentinels(t *testing.T) {
	each(t, func(t *testing.T, rev protocol.Revision) {
		s := fixture(t, nil)
		s.MustAdd(
			mcp.Tool("busy", func(*mcp.Frame, struct{}) (string, error) { return "", mcp.Errorf(protocol.CodeBusy, "later") }),
			mcp.Tool("picky", func(*mcp.Frame, struct{}) (string, error) { return "", mcp.Errorf(protocol.CodeInvalidParams, "no") }),
			mcp.Tool("guarded", func(*mcp.Frame, struct{}) (string, error) { return "", nil }, mcp.Scopes("secrets")),
		)
		over := map[string]Transport{"pipe": serving(t, s), "http": HTTP(handler(t, s.Handler()), nil)}
		for name, tr := range over {
			c := connect(t, tr, only(rev))
			for _, tt := range []struct {
				what string
				do   func() error
				want error // nil: none of them
			}{
				{"an unknown tool", func() error { return callError(c.Call(t.Context(), "none", nil)) }, ErrNotFound},
				{"bad params of a known one", func() error { return callError(c.Call(t.Context(), "picky", nil)) }, nil},
				{"an unknown prompt", func() error { _, err := c.GetPrompt(t.Context(), "none", nil); return err }, ErrNotFound},
				{"an unknown resource", func() error { _, err := c.Read(t.Context(), "test://none"); return err }, ErrNotFound},
				{"a limit", func() error { return callError(c.Call(t.Context(), "busy", nil)) }, ErrBusy},
				{"a result of another type", func() error { _, err := Call[int](t.Context(), c, "sum", sumIn{1, 2}); return err }, ErrInvalidResult},
				{"a method that there is not", func() error { return c.Request(t.Context(), "x/y", nil, nil) }, ErrUnsupported},
			} {
				err := tt.do()
				if err == nil || strings.Count(err.Error(), "mcp: ") > 0 && tt.want == nil {
					t.Errorf("%s, %s: %v", name, tt.what, err)
				}
				for _, kind := range []error{ErrNotFound, ErrBusy, ErrInvalidResult, ErrUnsupported, ErrConnection, ErrUnauthorized} {
					if errors.Is(err, kind) != (kind == tt.want) {
						t.Errorf("%s, %s: errors.Is %v is %v: %v", name, tt.what, kind, kind != tt.want, err)
					}
				}
			}
			if err := callError(c.Call(t.Context(), "guarded", nil)); err == nil {
				t.Errorf("%s: called without the right to", name)
			}
		}
	})
}

// Safe says of every request whether it may be sent again.
func TestErrorSafe(t *testing.T) {
	in(t, nil, func(s *script) {
		s.result(s.until("tools/list"), `{"tools":[{"name":"reader","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}`)
		for h := s.next(); h != nil; h = s.next() {
			s.fault(h, -32603, "x")
		}
	}, func(t *testing.T, c *Client) {
		for range c.Tools(t.Context()) {
		}
		for _, tt := range []struct {
			what string
			do   func() error
			want bool
		}{
			{"a tool", func() error { return callError(c.Call(t.Context(), "writer", nil)) }, false},
			{"a tool that only reads", func() error { return callError(c.Call(t.Context(), "reader", nil)) }, true},
			{"a tool that the caller knows", func() error { return callError(c.Call(t.Context(), "writer", nil, Idempotent())) }, true},
			{"once only", func() error { return callError(c.Call(t.Context(), "reader", nil, Retry(1))) }, false},
			{"a read", func() error { _, err := c.Read(t.Context(), "x"); return err }, true},
			{"an unknown method", func() error { return c.Request(t.Context(), "x/y", nil, nil) }, false},
		} {
			var own *Error
			if err := tt.do(); !errors.As(err, &own) || own.Safe != tt.want {
				t.Errorf("%s: %v, Safe %v", tt.what, err, own != nil && own.Safe)
			}
		}
	})
}

// A server in this process is a transport, which the client ends.
func TestLocal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, Local(fixture(t, nil).ServeConn), nil)
		if sum, err := Call[sumOut](t.Context(), c, "sum", sumIn{1, 2}); err != nil || sum.Sum != 3 {
			t.Errorf("%v, %v", sum, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := Connect(t.Context(), Local(func(context.Context, transport.Conn) error {
		panic("boom")
	}), nil); !errors.Is(err, ErrConnection) {
		t.Errorf("a server that panics: %v", err)
	}
}
