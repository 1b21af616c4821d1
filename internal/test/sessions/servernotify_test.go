package sessions_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
)

// sessions returns a server with a tool that tells the session's id.
func sessions(opts mcp.Options) *mcp.Server {
	s := harness.Bare(opts)
	s.MustAdd(
		mcp.Tool("id", func(f *mcp.Frame, _ struct{}) (string, error) { return f.SessionID(), nil }),
		mcp.Resource("a:b", harness.ReadText),
	)
	return s
}

func note(method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params)
}

// Each session hears what is for it, and for all, in order.
func TestNotify(t *testing.T) {
	s := sessions(mcp.Options{})
	first, firstID := harness.Session1(t, s)
	second, secondID := harness.Session1(t, s)
	if firstID == secondID {
		t.Fatalf("two connections have one id, %s", firstID)
	}
	first.Say(`{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"a:b"}}`)
	first.Hear()
	second.Say(`{"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"error"}}`)
	second.Hear()
	type m = map[string]any
	err := errors.Join(
		s.Notify(firstID, "notifications/acme/one", m{"n": 1}),
		s.Notify(secondID, "acme/two", nil),
		s.NotifyAll("notifications/message", m{"level": "warning", "data": "w"}),
		s.NotifyAll("notifications/message", m{"level": "error", "data": "e"}),
		s.NotifyAll("notifications/resources/updated", m{"uri": "a:b"}),
		s.Notify(secondID, "notifications/resources/updated", m{"uri": "a:b"}),
		s.NotifyAll("notifications/tools/list_changed", nil),
		s.NotifyAll("notifications/acme/end", json.RawMessage(`{"<":1}`)),
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, hears := range []struct {
		name string
		c    harness.Listener
		want []string
	}{
		{"first", first, []string{
			note("notifications/acme/one", `{"n":1}`), note("notifications/message", `{"data":"w","level":"warning"}`),
			note("notifications/message", `{"data":"e","level":"error"}`), note("notifications/resources/updated", `{"uri":"a:b"}`),
			`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`, note("notifications/acme/end", `{"<":1}`),
		}},
		{"second", second, []string{
			`{"jsonrpc":"2.0","method":"acme/two"}`, note("notifications/message", `{"data":"e","level":"error"}`),
			`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`, note("notifications/acme/end", `{"<":1}`),
		}},
	} {
		for _, want := range hears.want {
			if got := hears.c.Hear(); got != want {
				t.Fatalf("%s heard %s, want %s", hears.name, got, want)
			}
		}
	}
}

func TestNotifyFaults(t *testing.T) {
	s := sessions(mcp.Options{})
	_, id := harness.Session1(t, s)
	type m = map[string]any
	for _, tt := range []struct {
		id, method string
		params     any
		want       string
	}{
		{"nobody", "acme/x", nil, `there is no such session: "nobody"`},
		{"", "acme/x", nil, "there is no such session"},
		{id, "acme/x", []int{1}, "params must encode to a JSON object, []int does not"},
		{id, "acme/x", func() {}, "type func() has no JSON form"},
		{id, "notifications/progress", m{}, "see Frame.Progress"},
		{id, "notifications/cancelled", m{}, "belongs to a request"},
		{id, "notifications/resources/updated", m{}, "need the resource's uri"},
		{id, "tools/call", m{}, `owns names that begin with "tools/"`},
		{id, "", m{}, "1 to 128"},
	} {
		if err := s.Notify(tt.id, tt.method, tt.params); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Notify(%q, %q): %v, want %q", tt.id, tt.method, err, tt.want)
		}
	}
	if err := sessions(mcp.Options{}).NotifyAll("notifications/message", m{"level": "loud"}); err == nil {
		t.Error("a level that is none was accepted")
	}
}

// A client that does not read loses messages; the program is told.
func TestNotifyBehind(t *testing.T) {
	s := sessions(mcp.Options{})
	_, id := harness.Session1(t, s)
	var err error
	for i := 0; err == nil && i < 10_000; i++ {
		err = s.Notify(id, "acme/tick", map[string]int{"i": i})
	}
	if !errors.Is(err, mcp.ErrSlowClient) {
		t.Errorf("got %v, want ErrSlowClient", err)
	}
}

var orders = mcp.NewKey[int]("orders")

func TestDo(t *testing.T) {
	errKnown := errors.New("known")
	s := sessions(mcp.Options{})
	ship := func(order int) func(f *mcp.Frame) error {
		return func(f *mcp.Frame) error {
			sum := orders.Update(f, func(n int) int { return n + order })
			return errors.Join(f.Log(protocol.LevelInfo, sum), s.Notify(f.SessionID(), "acme/shipped", map[string]int{"sum": sum}))
		}
	}
	c, id := harness.Session1(t, s)
	for i, want := range []int{1, 3, 6} {
		if err := s.WithSession(t.Context(), id, ship(i+1)); err != nil {
			t.Fatal(err)
		}
		if got := c.Hear(); got != note("notifications/message", fmt.Sprintf(`{"level":"info","data":%d}`, want)) {
			t.Errorf("heard %s, want the sum %d in the log", got, want)
		}
		if got := c.Hear(); got != note("acme/shipped", fmt.Sprintf(`{"sum":%d}`, want)) {
			t.Errorf("heard %s, want the sum %d", got, want)
		}
	}
	if err := s.WithSession(t.Context(), id, func(f *mcp.Frame) error { return s.AddToSession(f, harness.Tool("own")) }); err != nil {
		t.Error(err)
	}
	if got := c.Hear(); !strings.Contains(got, "tools/list_changed") {
		t.Errorf("heard %s, want that a tool has come", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	for _, tt := range []struct {
		name  string
		err   error
		is    error
		holds string
	}{
		{"error of the func", s.WithSession(t.Context(), id, func(*mcp.Frame) error { return errKnown }), errKnown, ""},
		{"panic", s.WithSession(t.Context(), id, func(*mcp.Frame) error { panic("event") }), nil, "panicked"},
		{"nobody", s.WithSession(t.Context(), "nobody", ship(1)), mcp.ErrSessionNotFound, ""},
		{"cancelled", s.WithSession(ctx, id, func(f *mcp.Frame) error { cancel(); <-f.Done(); return f.Err() }), context.Canceled, ""},
	} {
		if tt.err == nil || tt.is != nil && !errors.Is(tt.err, tt.is) || !strings.Contains(tt.err.Error(), tt.holds) {
			t.Errorf("%s: %v", tt.name, tt.err)
		}
	}
}

// What a session was told and has taken does not count any more: there is no end
// to what it may be told over its life.
func TestNotifyForLong(t *testing.T) {
	s := sessions(mcp.Options{})
	c, id := harness.Session1(t, s)
	text := strings.Repeat("x", 100<<10)
	for i := range 60 {
		if err := s.Notify(id, "notifications/acme/long", map[string]any{"n": i, "text": text}); err != nil {
			t.Fatalf("notification %d: %v", i, err)
		}
		if heard := c.Hear(); !strings.Contains(heard, fmt.Sprintf(`"n":%d,`, i)) {
			t.Fatalf("notification %d: heard %.100s", i, heard)
		}
	}
}
