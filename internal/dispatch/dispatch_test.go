package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

const (
	legacy = protocol.V20251125
	modern = protocol.V20260728
)

// request returns the frame of a request with the id 7.
func request(ctx context.Context, method, params string, rev protocol.Revision) *frame.Frame {
	c := core.Config{Request: &core.Request{ID: protocol.NewID(7), Method: method}, Revision: rev}
	if params != "" {
		c.Request.Params.Raw = []byte(params)
	}
	return frame.Internal(facts.Private{}).New(ctx, c)
}

// codeOf is the code of an answer, 0 for a result.
func codeOf(fault *protocol.Error) protocol.Code {
	if fault == nil {
		return 0
	}
	return fault.Code
}

// text is a result with one member.
func text(s string) protocol.Result {
	return protocol.JSONResult{Value: map[string]string{"text": s}}
}

// serving returns a Dispatcher with the one method m, for all revisions.
func serving(config Config, h frame.Handler) *Dispatcher {
	config.Methods = append(config.Methods, Method{Name: "m", Revisions: Both, Serve: h})
	return New(config)
}

func TestMethodTable(t *testing.T) {
	say := func(s string) frame.Handler {
		return func(*frame.Frame) (protocol.Result, error) { return text(s), nil }
	}
	d := New(Config{
		Meta: []byte(`"who":"me"`),
		Methods: []Method{
			{Name: "old", Revisions: Legacy, Serve: say("old")},
			{Name: "new", Revisions: Modern, Serve: say("new")},
			{Name: "both", Revisions: Both, Serve: say("both")},
			{Name: "needy", Revisions: Both, Params: true, Serve: say("needy")},
			{Name: "empty", Revisions: Both, Serve: func(*frame.Frame) (protocol.Result, error) { return nil, nil }},
		},
	})
	const (
		missing = `{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"Method not found: %s"}}`
		result  = `{"jsonrpc":"2.0","id":7,"result":%s}`
		extra   = `"resultType":"complete"`
		meta    = `"_meta":{"who":"me"}`
	)
	tests := []struct {
		method, params string
		rev            protocol.Revision
		code           protocol.Code
		want           string
	}{
		{"old", "", protocol.V20241105, 0, fmt.Sprintf(result, `{"text":"old"}`)},
		{"old", "", modern, -32601, fmt.Sprintf(missing, "old")},
		{"new", "", legacy, -32601, fmt.Sprintf(missing, "new")},
		{"new", "", modern, 0, fmt.Sprintf(result, `{`+extra+`,"text":"new",`+meta+`}`)},
		{"both", "", legacy, 0, fmt.Sprintf(result, `{"text":"both"}`)},
		{"both", `{"x":1}`, modern, 0, fmt.Sprintf(result, `{`+extra+`,"text":"both",`+meta+`}`)},
		{"needy", "", legacy, -32602, `{"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"needy needs params"}}`},
		{"needy", `{}`, legacy, 0, fmt.Sprintf(result, `{"text":"needy"}`)},
		{"empty", "", legacy, 0, fmt.Sprintf(result, `{}`)},
		{"empty", "", modern, 0, fmt.Sprintf(result, `{`+extra+`,`+meta+`}`)},
		{"nobody", "", legacy, -32601, fmt.Sprintf(missing, "nobody")},
		{"NEW", "", modern, -32601, fmt.Sprintf(missing, "NEW")},
	}
	for _, tt := range tests {
		got, fault := d.Serve(request(t.Context(), tt.method, tt.params, tt.rev), nil)
		code := codeOf(fault)
		if string(got) != tt.want || code != tt.code {
			t.Errorf("%s %s in %v:\n got %d %s\nwant %d %s", tt.method, tt.params, tt.rev, code, got, tt.code, tt.want)
		}
	}
}

// Serve appends, and what was there before stays, whatever happens.
func TestServeAppends(t *testing.T) {
	for name, h := range map[string]frame.Handler{
		"result":         func(*frame.Frame) (protocol.Result, error) { return text("ok"), nil },
		"error":          func(*frame.Frame) (protocol.Result, error) { return nil, errors.New("no") },
		"encoding fails": func(*frame.Frame) (protocol.Result, error) { return protocol.JSONResult{Value: make(chan int)}, nil },
		"half a result":  func(*frame.Frame) (protocol.Result, error) { return halfResult{}, nil },
	} {
		got, _ := serving(Config{}, h).Serve(request(t.Context(), "m", "", legacy), []byte("before"))
		rest, ok := strings.CutPrefix(string(got), "before")
		if !ok || !json.Valid([]byte(rest)) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// halfResult fails after it has appended something.
type halfResult struct{ protocol.Result }

func (halfResult) Append(dst []byte, _ wire.To) ([]byte, error) {
	return append(dst, `{"half`...), errors.New("broke off")
}

// The first middleware is outermost; it sees every method, known or not, and
// may answer itself.
func TestMiddleware(t *testing.T) {
	var trace []string
	note := func(name string) frame.Middleware {
		return func(next frame.Handler) frame.Handler {
			return func(f *frame.Frame) (protocol.Result, error) {
				trace = append(trace, name+" in")
				result, err := next(f)
				trace = append(trace, name+" out")
				return result, err
			}
		}
	}
	gate := func(next frame.Handler) frame.Handler {
		return func(f *frame.Frame) (protocol.Result, error) {
			if f.Request().Method == "secret" {
				return text("closed"), nil
			}
			return next(f)
		}
	}
	d := serving(Config{Middleware: []frame.Middleware{note("a"), gate, note("b")}}, func(*frame.Frame) (protocol.Result, error) {
		trace = append(trace, "m")
		return nil, nil
	})
	tests := []struct{ method, want string }{
		{"m", "a in, b in, m, b out, a out"},
		{"unknown", "a in, b in, b out, a out"},
		{"secret", "a in, a out"},
	}
	for _, tt := range tests {
		trace = nil
		d.Serve(request(t.Context(), tt.method, "", legacy), nil)
		if got := strings.Join(trace, ", "); got != tt.want {
			t.Errorf("%s: %s\nwant %s", tt.method, got, tt.want)
		}
		trace = nil
		_ = d.Notify(request(t.Context(), tt.method, "", legacy))
		if got := strings.Join(trace, ", "); got != tt.want {
			t.Errorf("notification %s: %s\nwant %s", tt.method, got, tt.want)
		}
	}
}

func TestErrors(t *testing.T) {
	cause := errors.New("disk full")
	mine := &protocol.Error{Code: 42, Message: "mine", Data: map[string]int{"n": 1}, Err: cause}
	tests := []struct {
		name   string
		err    error
		want   string
		masked string // "" means as want
	}{
		{name: "ordinary", err: cause, want: `{"code":-32603,"message":"Internal error: disk full"}`, masked: `{"code":-32603,"message":"Internal error"}`},
		{name: "wrapped ordinary", err: fmt.Errorf("save: %w", cause), want: `{"code":-32603,"message":"Internal error: save: disk full"}`, masked: `{"code":-32603,"message":"Internal error"}`},
		{name: "protocol error", err: mine, want: `{"code":42,"message":"mine","data":{"n":1}}`},
		{name: "wrapped protocol error", err: fmt.Errorf("save: %w", mine), want: `{"code":42,"message":"mine","data":{"n":1}}`},
		{name: "joined protocol error", err: errors.Join(cause, mine), want: `{"code":42,"message":"mine","data":{"n":1}}`},
		{name: "no code", err: &protocol.Error{Message: "odd"}, want: `{"code":-32603,"message":"odd"}`},
		{name: "nothing at all", err: &protocol.Error{}, want: `{"code":-32603,"message":"Internal error"}`},
		{name: "data does not encode", err: &protocol.Error{Code: 42, Message: "m", Data: make(chan int)}, want: `{"code":42,"message":"m"}`},
		{name: "cancelled", err: context.Canceled, want: `{"code":-32603,"message":"Internal error: context canceled"}`, masked: `{"code":-32603,"message":"Internal error"}`},
	}
	for _, tt := range tests {
		if tt.masked == "" {
			tt.masked = tt.want
		}
		for mask, want := range map[bool]string{false: tt.want, true: tt.masked} {
			d := serving(Config{MaskErrors: mask}, func(*frame.Frame) (protocol.Result, error) { return nil, tt.err })
			got, fault := d.Serve(request(t.Context(), "m", "", legacy), nil)
			code := codeOf(fault)
			if want = `{"jsonrpc":"2.0","id":7,"error":` + want + `}`; string(got) != want {
				t.Errorf("%s, masked %v:\n got %s\nwant %s", tt.name, mask, got, want)
			}
			if code == 0 || !strings.Contains(string(got), fmt.Sprintf(`"code":%d,`, code)) {
				t.Errorf("%s: code %d is not that of %s", tt.name, code, got)
			}
			if err := d.Notify(request(t.Context(), "m", "", legacy)); !errors.Is(err, tt.err) {
				t.Errorf("%s: Notify returned %v, want the error itself", tt.name, err)
			}
		}
	}
}

// A result that fails to encode is an error like any other.
func TestResultDoesNotEncode(t *testing.T) {
	d := serving(Config{MaskErrors: true}, func(*frame.Frame) (protocol.Result, error) { return halfResult{}, nil })
	got, fault := d.Serve(request(t.Context(), "m", "", modern), nil)
	code := codeOf(fault)
	if want := `{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"Internal error"}}`; string(got) != want || code != protocol.CodeInternal {
		t.Errorf("got %d %s\nwant %s", code, got, want)
	}
}
