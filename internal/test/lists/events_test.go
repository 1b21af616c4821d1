package lists_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

type watchIn struct {
	Document string `json:"document" jsonschema_description:"which document to watch"`
}

type comment struct {
	Document string `json:"document"`
	Text     string `json:"text"`
}

func concerns(_ *mcp.Frame, in watchIn, c comment) (bool, error) {
	return in.Document == c.Document, nil
}

// eventServer has one event type.
func eventServer(opts *mcp.Options, options ...mcp.Option) *mcp.Server {
	s := mcp.NewServer(mcp.Info{Name: "docs", Version: "1"}, opts)
	s.MustAdd(mcp.EventType("comment.created", concerns, append([]mcp.Option{mcp.Doc("A comment was added")}, options...)...))
	return s
}

// withStore returns options with a store of replicas.
func withStore(t *testing.T) *mcp.Options {
	t.Helper()
	return &mcp.Options{Store: scale.NewLocal(), StateKeys: [][]byte{[]byte("0123456789abcdef0123456789abcdef")}}
}

// ended ends a server with the test.
func ended(t *testing.T, s *mcp.Server) *mcp.Server {
	t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// emit emits a comment and fails the test if that fails.
func emit(t *testing.T, s *mcp.Server, document, text string) {
	t.Helper()
	if err := s.Emit(t.Context(), mcp.Occurrence{Name: "comment.created", Data: comment{document, text}, ID: "id-" + text}); err != nil {
		t.Fatal(err)
	}
}

// The transcript of a list and of polls, over every transport and in every revision, with
// a store and without.
func TestEvents(t *testing.T) {
	for name, opts := range map[string]func(t *testing.T) *mcp.Options{
		"alone": func(*testing.T) *mcp.Options { return nil }, "store": withStore,
	} {
		t.Run(name, func(t *testing.T) {
			var s *mcp.Server
			harness.Everywhere(t, func(t *testing.T) *mcp.Server { s = ended(t, eventServer(opts(t))); return s }, func(t *testing.T, c *harness.Talker) {
				want := `"events":[{"name":"comment.created","description":"A comment was added","delivery":["poll"],` +
					`"inputSchema":{"type":"object","properties":{"document":{"type":"string","description":"which document to watch"}},"additionalProperties":false,"required":["document"]},` +
					`"payloadSchema":{"type":"object","properties":{"document":{"type":"string"},"text":{"type":"string"}},"required":["document","text"]}}]`
				got := strings.Replace(c.Ask("events/list", "{}"), `["poll","push"]`, `["poll"]`, 1) // in 2026-07-28
				if !strings.Contains(got, want) {
					t.Errorf("list: %s\nwant %s", got, want)
				}
				emit(t, s, "a", "before")
				page := poll(t, c, `"name":"comment.created","arguments":{"document":"a"},"cursor":null`)
				if len(page.Events) != 0 || page.Truncated || page.HasMore || page.NextPollMs != 5000 || page.Cursor == "" {
					t.Fatalf("first: %+v", page)
				}
				emit(t, s, "a", "one")
				emit(t, s, "b", "other")
				emit(t, s, "a", "two")
				page = poll(t, c, fmt.Sprintf(`"name":"comment.created","arguments":{"document":"a"},"cursor":%q,"maxEvents":1`, page.Cursor))
				if texts(page) != "one" || page.Truncated || !page.HasMore {
					t.Errorf("one of two: %+v", page)
				}
				page = poll(t, c, fmt.Sprintf(`"name":"comment.created","arguments":{"document":"a"},"cursor":%q`, page.Cursor))
				if texts(page) != "two" || page.Truncated || page.HasMore {
					t.Errorf("the other: %+v", page)
				}
				if e := page.Events[0]; e.EventID != "id-two" || e.Name != "comment.created" || time.Since(e.Timestamp) > time.Hour || e.Data.Document != "a" {
					t.Errorf("event: %+v", e)
				}
				page = poll(t, c, fmt.Sprintf(`"name":"comment.created","arguments":{"document":"a"},"cursor":%q`, page.Cursor))
				if len(page.Events) != 0 || page.Truncated || page.HasMore {
					t.Errorf("nothing: %+v", page)
				}
			})
		})
	}
}

// eventPage is the result of a poll.
type eventPage struct {
	Events []struct {
		EventID, Name string
		Timestamp     time.Time
		Data          comment
		Cursor        *string
	}
	Cursor             string
	Truncated, HasMore bool
	NextPollMs         int
}

// poller is a client that polls.
type poller interface {
	Ask(method, params string) string
}

// poll polls with members of params, and fails the test without a result.
func poll(t *testing.T, c poller, members string) (page eventPage) {
	t.Helper()
	answer := c.Ask("events/poll", "{"+members+"}")
	var r struct {
		Result json.RawMessage
	}
	if err := json.Unmarshal([]byte(answer), &r); err != nil || r.Result == nil {
		t.Fatalf("poll %s: %s", members, answer)
	}
	if !strings.Contains(string(r.Result), `"events":[`) {
		t.Errorf("events is not a list: %s", r.Result)
	}
	if err := json.Unmarshal(r.Result, &page); err != nil {
		t.Fatal(err)
	}
	return page
}

// texts returns the texts of the comments of a page.
func texts(page eventPage) string {
	var all []string
	for _, e := range page.Events {
		all = append(all, e.Data.Text)
	}
	return strings.Join(all, " ")
}

// pipe is a client whose Ask returns the answer or the error as JSON.
type pipe struct{ *mcptest.Client }

func (p pipe) Ask(method, params string) string {
	result, err := p.TryRequest(method, json.RawMessage(params))
	if fault, ok := errors.AsType[*protocol.Error](err); ok {
		text, _ := json.Marshal(fault)
		return `{"error":` + string(text) + `}`
	}
	if err != nil {
		return err.Error()
	}
	return `{"result":` + string(result) + `}`
}

// What a client asks wrongly is answered with the code that it knows, in every revision.
func TestEventFaults(t *testing.T) {
	poll := func(members string) string {
		return `{"name":"comment.created","arguments":{"document":"a"}` + members + `}`
	}
	for name, c := range map[string]struct{ params, want string }{
		"no name":            {`{"x":1}`, `"code":-32602,"message":"params.name is missing`},
		"another type":       {`{"name":7}`, `"code":-32602`},
		"unknown":            {`{"name":"comment.creatd"}`, `"code":-32011,"message":"Unknown event: comment.creatd","data":{"kind":"event"}`},
		"no arguments":       {`{"name":"comment.created"}`, `"code":-32602`},
		"null arguments":     {`{"name":"comment.created","arguments":null}`, `"code":-32602`},
		"further argument":   {`{"name":"comment.created","arguments":{"document":"a","x":1}}`, `"code":-32602`},
		"arguments a list":   {`{"name":"comment.created","arguments":[]}`, `"code":-32602`},
		"cursor a number":    {poll(`,"cursor":7`), `"code":-32602`},
		"negative age":       {poll(`,"maxAgeMs":-1`), `"code":-32602,"message":"params.maxAgeMs is -1; give 0 or more"`},
		"age a text":         {poll(`,"maxAgeMs":"1"`), `"code":-32602`},
		"no events":          {poll(`,"maxEvents":0`), `"code":-32602,"message":"params.maxEvents is 0; give 1 or more"`},
		"huge age":           {poll(`,"maxAgeMs":9223372036854775807`), `"events":[]`},
		"huge number":        {poll(`,"maxEvents":2147483648`), `"events":[]`},
		"unreadable cursor":  {poll(`,"cursor":"x"`), `"truncated":true`},
		"cursor of 10 KB":    {poll(`,"cursor":"e1` + strings.Repeat("a", 10<<10) + `"`), `"truncated":true`},
		"cursor with CR LF":  {poll(`,"cursor":"e1a\r\n.b"`), `"truncated":true`},
		"empty cursor":       {poll(`,"cursor":""`), `"truncated":false`},
		"null in all places": {poll(`,"cursor":null,"maxAgeMs":null,"maxEvents":null`), `"truncated":false`},
	} {
		t.Run(name, func(t *testing.T) {
			mcptest.Each(t, func() *mcp.Server { return eventServer(nil) }, func(t *testing.T, client *mcptest.Client) {
				if got := (pipe{client}).Ask("events/poll", c.params); !strings.Contains(got, c.want) {
					t.Errorf("got %s, want %s", got, c.want)
				}
			})
		})
	}
	t.Run("declared", func(t *testing.T) {
		mcptest.Each(t, func() *mcp.Server { return eventServer(nil) }, func(t *testing.T, client *mcptest.Client) {
			if got := (pipe{client}).Ask("events/poll", `{"name":"x"}`); strings.Contains(got, `"code":-32023`) != client.Revision().Modern() {
				t.Errorf("got %s", got)
			}
		}, mcptest.Capabilities(protocol.ClientCapabilities{Extensions: map[string]json.RawMessage{"io.modelcontextprotocol/events": json.RawMessage("{}")}}))
	})
	t.Run("none", func(t *testing.T) {
		mcptest.Each(t, func() *mcp.Server { return harness.ListenServer(t, mcp.Options{}) }, func(t *testing.T, client *mcptest.Client) {
			for _, method := range []string{"events/list", "events/poll"} {
				if got := (pipe{client}).Ask(method, `{"name":"x"}`); !strings.Contains(got, `"code":-32601`) {
					t.Errorf("%s: %s", method, got)
				}
			}
			if client.Server.Capabilities.Events != nil {
				t.Error("declared without event types")
			}
		})
	})
}

// Both capabilities are declared, the extension only to clients of 2026-07-28.
func TestEventCapability(t *testing.T) {
	mcptest.Each(t, func() *mcp.Server { return eventServer(nil) }, func(t *testing.T, c *mcptest.Client) {
		_, extension := c.Server.Capabilities.Extensions["io.modelcontextprotocol/events"]
		if c.Server.Capabilities.Events == nil || extension != c.Revision().Modern() {
			t.Errorf("declared %+v", c.Server.Capabilities)
		}
	})
}

// Where delivery starts: after a pause, beyond the age, with a cursor of the future, of
// another log, of a log that dropped events.
func TestEventPositions(t *testing.T) {
	at := func(cursor, more string) string {
		return fmt.Sprintf(`"name":"comment.created","arguments":{"document":"a"},"cursor":%q%s`, cursor, more)
	}
	for name, opts := range map[string]func() *mcp.Options{
		"alone": func() *mcp.Options { return &mcp.Options{} }, "store": func() *mcp.Options { return withStore(t) },
	} {
		run := func(what string, limit int, test func(t *testing.T, s *mcp.Server, c poller, cursor string)) {
			t.Run(name+" "+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					o := opts()
					o.Limits.EventLog = limit
					s := ended(t, eventServer(o))
					c := pipe{mcptest.New(t, s)}
					first := poll(t, c, `"name":"comment.created","arguments":{"document":"a"}`)
					test(t, s, c, first.Cursor)
				})
			})
		}
		want := func(t *testing.T, page eventPage, events string, truncated bool) {
			t.Helper()
			if texts(page) != events || page.Truncated != truncated {
				t.Errorf("got %q, truncated %v, want %q, %v", texts(page), page.Truncated, events, truncated)
			}
		}
		run("the age", 0, func(t *testing.T, s *mcp.Server, c poller, cursor string) {
			emit(t, s, "a", "old")
			time.Sleep(10 * time.Minute)
			emit(t, s, "a", "new")
			want(t, poll(t, c, at(cursor, `,"maxAgeMs":60000`)), "new", true)
			want(t, poll(t, c, at(cursor, `,"maxAgeMs":3600000`)), "old new", false)
			time.Sleep(time.Second)
			want(t, poll(t, c, at(cursor, `,"maxAgeMs":0`)), "", true)
		})
		run("a full log", 1000, func(t *testing.T, s *mcp.Server, c poller, cursor string) {
			for i := range 20 {
				emit(t, s, "a", fmt.Sprint(i))
			}
			page := poll(t, c, at(cursor, ""))
			if !page.Truncated || len(page.Events) == 0 || len(page.Events) > 5 || page.Events[len(page.Events)-1].Data.Text != "19" {
				t.Errorf("got %q, truncated %v", texts(page), page.Truncated)
			}
			want(t, poll(t, c, at(page.Cursor, "")), "", false)
		})
		run("the future", 0, func(t *testing.T, s *mcp.Server, c poller, cursor string) {
			emit(t, s, "a", "past")
			time.Sleep(time.Minute)
			born, _, _ := strings.Cut(cursor, ".")
			page := poll(t, c, at(born+".zzzzzzzzzz", ""))
			want(t, page, "", true)
			emit(t, s, "a", "next")
			want(t, poll(t, c, at(page.Cursor, "")), "next", false)
		})
		run("other logs", 0, func(t *testing.T, s *mcp.Server, c poller, cursor string) {
			emit(t, s, "a", "kept")
			_, number, _ := strings.Cut(cursor, ".")
			want(t, poll(t, c, at("e1abc."+number, "")), "kept", true)
			want(t, poll(t, c, at("not a cursor", "")), "kept", true)
			want(t, poll(t, c, at(cursor, "")), "kept", false)
		})
		if name == "store" {
			continue // replicas do too much in a day of synctest
		}
		run("quiet cursors move with time", 0, func(t *testing.T, s *mcp.Server, c poller, cursor string) {
			for range 5 {
				time.Sleep(20 * time.Hour)
				page := poll(t, c, at(cursor, ""))
				want(t, page, "", false)
				cursor = page.Cursor
			}
			emit(t, s, "a", "late")
			want(t, poll(t, c, at(cursor, "")), "late", false)
		})
		run("a day is the limit", 0, func(t *testing.T, s *mcp.Server, c poller, cursor string) {
			emit(t, s, "a", "old")
			time.Sleep(23 * time.Hour)
			want(t, poll(t, c, at(cursor, "")), "old", false)
			emit(t, s, "a", "new")
			time.Sleep(2 * time.Hour)
			want(t, poll(t, c, at(cursor, "")), "new", true)
		})
	}
}

// A restart is reported: without a store the events are gone, with one nothing is.
func TestEventsOverRestarts(t *testing.T) {
	for name, opts := range map[string]*mcp.Options{"alone": {}, "store": withStore(t)} {
		t.Run(name, func(t *testing.T) {
			first := eventServer(opts)
			c := pipe{mcptest.New(t, first)}
			page := poll(t, c, `"name":"comment.created","arguments":{"document":"a"}`)
			emit(t, first, "a", "before")
			c.Close()
			if err := first.Shutdown(t.Context()); err != nil {
				t.Fatal(err)
			}
			second := ended(t, eventServer(opts))
			emit(t, second, "a", "after")
			page = poll(t, pipe{mcptest.New(t, second)}, fmt.Sprintf(`"name":"comment.created","arguments":{"document":"a"},"cursor":%q`, page.Cursor))
			want := "after"
			if opts.Store != nil {
				want = "before after"
			}
			if texts(page) != want || page.Truncated != (opts.Store == nil) {
				t.Errorf("got %q, truncated %v", texts(page), page.Truncated)
			}
		})
	}
}

// An event type that a client may not see does not exist for it, and one that it lacks the
// scopes of is answered with the challenge.
func TestEventRights(t *testing.T) {
	hidden := func(*mcp.Frame) bool { return false }
	for name, c := range map[string]struct {
		opts   *mcp.Options
		option mcp.Option
		as     mcp.Identity
		want   string
		listed bool
	}{
		"hidden": {nil, mcp.VisibleTo(hidden), mcp.Identity{Subject: "a"}, `"message":"Unknown event: comment.created"`, false},
		"filtered": {&mcp.Options{Filter: func(_ *mcp.Frame, kind mcp.Kind, name string) bool {
			return kind != mcp.KindEvent || name != "comment.created"
		}}, mcp.Doc(""), mcp.Identity{Subject: "a"}, `"message":"Unknown event: comment.created"`, false},
		"without scope": {nil, mcp.Scopes("comments:read"), mcp.Identity{Subject: "a"}, `"code":403`, false},
		"with scope":    {nil, mcp.Scopes("comments:read"), mcp.Identity{Subject: "a", Scopes: []string{"comments:read"}}, `"events":[]`, true},
	} {
		t.Run(name, func(t *testing.T) {
			mcptest.Each(t, func() *mcp.Server { return eventServer(c.opts, c.option) }, func(t *testing.T, client *mcptest.Client) {
				if got := (pipe{client}).Ask("events/poll", `{"name":"comment.created","arguments":{"document":"a"}}`); !strings.Contains(got, c.want) {
					t.Errorf("got %s, want %s", got, c.want)
				}
				if list := client.Events(); (len(list) == 1) != c.listed {
					t.Errorf("listed %+v", list)
				}
			}, mcptest.As(c.as))
		})
	}
}

// match receives the identity of the subscriber, and nothing of its request.
func TestEventMatchFrame(t *testing.T) {
	s := mcp.NewServer(mcp.Info{Name: "docs", Version: "1"}, nil)
	s.MustAdd(mcp.EventType("mine", func(ctx context.Context, _ struct{}, to map[string]string) (bool, error) {
		f, _ := mcp.FromContext(ctx)
		if answer, err := mcp.Elicit[struct{}](f, "k", "now"); err == nil {
			t.Errorf("match can ask the client: %v", answer)
		}
		return f.Identity() != nil && f.Identity().Subject == to["to"] && f.HasScope("x") && f.Request().Params.Raw == nil, nil
	}))
	for who, want := range map[string]string{"ann": "for ann", "bob": "for bob"} {
		c := mcptest.New(t, s, mcptest.As(mcp.Identity{Subject: who, Scopes: []string{"x"}}))
		w := c.Watch("mine", nil)
		for _, to := range []string{"ann", "bob"} {
			if err := s.Emit(t.Context(), mcp.Occurrence{Name: "mine", Data: &map[string]string{"to": to, "text": "for " + to}}); err != nil {
				t.Fatal(err)
			}
		}
		if got := string(w.Next().Data); !strings.Contains(got, want) {
			t.Errorf("%s received %s", who, got)
		}
		w.None()
	}
}

// Watch returns each event of a page once, where its streams fall back to polls, too.
func TestWatchWithoutStreams(t *testing.T) {
	for name, refused := range map[string]*protocol.Error{
		"busy":     {Code: protocol.CodeBusy, Message: "no room"},
		"unknown":  {Code: protocol.CodeMethodNotFound, Message: "Method not found"},
		"invalid":  {Code: protocol.CodeInvalidRequest, Message: "no streams through this proxy"},
		"one only": nil, // the second stream has no room
	} {
		t.Run(name, func(t *testing.T) {
			s := eventServer(nil)
			var streams atomic.Int64
			s.Use(func(next mcp.Handler) mcp.Handler {
				return func(f *mcp.Frame) (protocol.Result, error) {
					if f.Request().Method != "events/stream" {
						return next(f)
					}
					if n := streams.Add(1); refused != nil {
						return nil, refused
					} else if n > 1 {
						return nil, &protocol.Error{Code: protocol.CodeBusy, Message: "no room"}
					}
					return next(f)
				}
			})
			w := mcptest.New(t, s).Watch("comment.created", watchIn{"a"})
			for _, batch := range [][]string{{"one", "two", "three"}, {"four"}, {"five", "six"}} {
				for _, text := range batch {
					emit(t, s, "a", text)
				}
				for _, text := range batch {
					if o := w.Next(); o.ID != "id-"+text {
						t.Fatalf("received %s, want id-%s", o.ID, text)
					}
				}
				w.None()
			}
			if streams.Load() == 0 {
				t.Error("no stream was tried")
			}
		})
	}
}

// What a mounted server emits reaches the clients of those around it, under their names,
// with its filter and its middleware; its own middleware sees its own name.
func TestEventsMounted(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	child := eventServer(nil)
	child.Use(func(next mcp.Handler) mcp.Handler {
		return func(f *mcp.Frame) (protocol.Result, error) {
			mu.Lock()
			seen = append(seen, f.Request().Method+" "+f.Request().Params.Name)
			mu.Unlock()
			return next(f)
		}
	})
	middle := mcp.NewServer(mcp.Info{Name: "middle", Version: "1"}, nil)
	outer := mcp.NewServer(mcp.Info{Name: "outer", Version: "1"}, nil)
	other := mcp.NewServer(mcp.Info{Name: "other", Version: "1"}, nil)
	for _, err := range []error{middle.Mount("docs", child), outer.Mount("m", middle), other.Mount("", child)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	of := func(s *mcp.Server, name string) *mcptest.Watch {
		c := mcptest.New(t, s)
		if list := c.Events(); len(list) != 1 || list[0].Name != name {
			t.Errorf("listed %+v", list)
		}
		return c.Watch(name, watchIn{"a"})
	}
	names := map[*mcptest.Watch]string{of(outer, "m_docs_comment.created"): "m_docs_comment.created", of(middle, "docs_comment.created"): "docs_comment.created",
		of(other, "comment.created"): "comment.created", of(child, "comment.created"): "comment.created"}
	mu.Lock()
	if want := "events/poll comment.created"; len(seen) == 0 || seen[0] != want {
		t.Errorf("the middleware saw %q", seen)
	}
	mu.Unlock()
	emit(t, child, "a", "one")
	for w, name := range names {
		if o := w.Next(); o.Name != name || o.ID != "id-one" {
			t.Errorf("received %+v, want %s", o, name)
		}
		w.None()
	}
	middle.Unmount("docs", child)
	emit(t, child, "a", "two")
	for w, name := range names {
		if !strings.Contains(name, "docs") && w.Next().ID != "id-two" {
			t.Error("not received")
		}
	}
	if got := (pipe{mcptest.New(t, outer)}).Ask("events/poll", `{"name":"m_docs_comment.created"}`); !strings.Contains(got, "Unknown event") {
		t.Errorf("unmounted: %s", got)
	}
}

// What the match of a type does to a page: nothing is lost but what it panicked about.
func TestEventMatchFails(t *testing.T) {
	log := &harness.LogText{}
	logger := zerolog.New(log)
	s := mcp.NewServer(mcp.Info{Name: "docs", Version: "1"}, &mcp.Options{Logger: &logger})
	broken := true
	s.MustAdd(mcp.EventType("x", func(_ *mcp.Frame, _ struct{}, d map[string]string) (bool, error) {
		switch d["do"] {
		case "panic":
			panic("s3cret")
		case "exit":
			runtime.Goexit()
		case "fail":
			if broken {
				return false, errors.New("the database is away: s3cret")
			}
		}
		return true, nil
	}))
	c := pipe{mcptest.New(t, s)}
	start := poll(t, c, `"name":"x"`)
	for _, do := range []string{"one", "panic", "exit", "two", "fail", "three"} {
		if err := s.Emit(t.Context(), mcp.Occurrence{Name: "x", Data: map[string]string{"do": do, "text": do}}); err != nil {
			t.Fatal(err)
		}
	}
	page := poll(t, c, fmt.Sprintf(`"name":"x","cursor":%q`, start.Cursor))
	if texts(page) != "one two" || !page.HasMore || page.Truncated {
		t.Errorf("first: %+v", page)
	}
	got := c.Ask("events/poll", fmt.Sprintf(`{"name":"x","cursor":%q}`, page.Cursor))
	if !strings.Contains(got, `"code":503`) || strings.Contains(got, "s3cret") {
		t.Errorf("at the one that fails: %s", got)
	}
	broken = false
	if page = poll(t, c, fmt.Sprintf(`"name":"x","cursor":%q`, page.Cursor)); texts(page) != "fail three" {
		t.Errorf("then: %+v", page)
	}
	for _, want := range []string{"handler panicked", "Goexit", "the database is away"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log has no %q: %s", want, log)
		}
	}
}

// A match that does not return holds up its own poll alone, and for 5 s.
func TestEventMatchHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logger := zerolog.New(&harness.LogText{})
		s := mcp.NewServer(mcp.Info{Name: "docs", Version: "1"}, &mcp.Options{Logger: &logger})
		release := make(chan struct{})
		s.MustAdd(mcp.EventType("x", func(_ context.Context, in struct {
			Slow bool `json:"slow,omitempty"`
		}, d map[string]string) (bool, error) {
			if in.Slow && d["text"] == "two" {
				<-release
			}
			return true, nil
		}))
		c := pipe{mcptest.New(t, s, mcptest.Timeout(time.Minute))}
		start := poll(t, c, `"name":"x"`)
		for _, text := range []string{"one", "two", "three"} {
			if err := s.Emit(t.Context(), mcp.Occurrence{Name: "x", Data: map[string]string{"text": text}}); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		page := poll(t, c, fmt.Sprintf(`"name":"x","arguments":{"slow":true},"cursor":%q`, start.Cursor))
		if took := time.Since(began); texts(page) != "one" || !page.HasMore || took != 5*time.Second {
			t.Errorf("%v: %+v", took, page)
		}
		got := c.Ask("events/poll", fmt.Sprintf(`{"name":"x","arguments":{"slow":true},"cursor":%q}`, page.Cursor))
		if !strings.Contains(got, `"code":503`) {
			t.Errorf("at the one that hangs: %s", got)
		}
		if page = poll(t, c, fmt.Sprintf(`"name":"x","cursor":%q`, page.Cursor)); texts(page) != "two three" {
			t.Errorf("another: %+v", page)
		}
		close(release)
	})
}

// Whatever is wrong with an event type or an event is said with its name.
func TestEventMisuse(t *testing.T) {
	s := eventServer(nil)
	yes := func(*mcp.Frame, struct{}, comment) (bool, error) { return true, nil }
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"a list":        {s.Add(mcp.EventType("x", func(*mcp.Frame, struct{}, []string) (bool, error) { return true, nil })), `mcp: event "x": its data is []string, which is not a JSON object: use a struct or a map`},
		"a channel":     {s.Add(mcp.EventType("x", func(*mcp.Frame, struct{}, struct{ C chan int }) (bool, error) { return true, nil })), `mcp: event "x": its data: `},
		"no func":       {s.Add(mcp.EventType[*mcp.Frame, struct{}, comment]("x", nil)), `mcp: event "x": the func is nil`},
		"a name":        {s.Add(mcp.EventType("a b", yes)), `mcp: event "a b": a name has 1 to 128 letters, digits, '_', '-', '.' or '/'`},
		"a long name":   {s.Add(mcp.EventType(strings.Repeat("a", 129), yes)), `a name has 1 to 128`},
		"an option":     {s.Add(mcp.EventType("x", yes, mcp.Title("X"))), `mcp: event "x": an event type has no Title, Icons or Timeout; leave them out`},
		"twice":         {s.Add(mcp.EventType("comment.created", yes)), `events: "comment.created" is registered already`},
		"in a set":      {s.AddSet("some", mcp.EventType("x", yes)), `event "x" cannot be in a set`},
		"unknown":       {s.Emit(t.Context(), mcp.Occurrence{Name: "x"}), `mcp: Emit "x": there is no such event type; add it with EventType, also where no clients are served`},
		"other data":    {s.Emit(t.Context(), mcp.Occurrence{Name: "comment.created", Data: "x"}), `mcp: Emit "comment.created": its data is lists_test.comment; got string`},
		"no data":       {s.Emit(t.Context(), mcp.Occurrence{Name: "comment.created"}), `its data is lists_test.comment; got <nil>`},
		"nil data":      {s.Emit(t.Context(), mcp.Occurrence{Name: "comment.created", Data: (*comment)(nil)}), `its data is a JSON object; got null`},
		"long data":     {s.Emit(t.Context(), mcp.Occurrence{Name: "comment.created", Data: comment{Text: strings.Repeat("x", 300_000)}}), `which exceeds the limit of 261120: emit what is needed to find the rest`},
		"a small log":   {eventServer(&mcp.Options{Limits: mcp.Limits{EventLog: 100}}).Emit(t.Context(), mcp.Occurrence{Name: "comment.created", Data: comment{}}), `raise Limits.EventLog`},
		"an ID":         {s.Emit(t.Context(), mcp.Occurrence{Name: "comment.created", Data: comment{}, ID: "a\r\nb"}), `invalid ID "a\r\nb": it has 1 to 128 visible ASCII characters`},
		"a long ID":     {s.Emit(t.Context(), mcp.Occurrence{Name: "comment.created", Data: comment{}, ID: strings.Repeat("a", 129)}), `invalid ID`},
		"a time":        {s.Emit(t.Context(), mcp.Occurrence{Name: "comment.created", Data: comment{}, Time: time.Unix(1e18, 0)}), `invalid Time`},
		"a method":      {s.Add(mcp.Method("events/x", func(*mcp.Frame, struct{}) (struct{}, error) { return struct{}{}, nil })), `the specification owns names that begin with "events/"`},
		"the extension": {s.Add(mcp.Extension("io.modelcontextprotocol/events", nil)), `the server declares it by itself`},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, c.err, c.want)
		}
	}
	if n := s.Remove(mcp.KindEvent, "comment.created"); n != 1 {
		t.Errorf("removed %d", n)
	}
	if got := (pipe{mcptest.New(t, s)}).Ask("events/poll", `{"name":"comment.created"}`); !strings.Contains(got, "Unknown event") {
		t.Errorf("removed: %s", got)
	}
}

// Many emit at two replicas while others poll at both: each subscriber receives each event
// once, in one order.
func TestEventsAtReplicas(t *testing.T) {
	const emitters, each = 4, 50
	opts := withStore(t)
	replicas := []*mcp.Server{ended(t, eventServer(opts)), ended(t, eventServer(opts))}
	clients := []pipe{{mcptest.New(t, replicas[0])}, {mcptest.New(t, replicas[1])}}
	start := poll(t, clients[0], `"name":"comment.created","arguments":{"document":"a"}`).Cursor
	var emitting sync.WaitGroup
	for n := range emitters {
		emitting.Go(func() {
			for i := range each {
				if err := replicas[n%2].Emit(context.Background(), mcp.Occurrence{Name: "comment.created", Data: comment{"a", fmt.Sprintf("%d-%d", n, i)}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	var orders [2]string
	var polling sync.WaitGroup
	for n := range orders {
		polling.Go(func() {
			cursor, got := start, []string(nil)
			for turn := n; len(got) < emitters*each && turn < 10_000; turn++ { // from one replica to the other
				page := poll(t, clients[turn%2], fmt.Sprintf(`"name":"comment.created","arguments":{"document":"a"},"cursor":%q,"maxEvents":7`, cursor))
				if cursor = page.Cursor; page.Truncated {
					t.Error("truncated")
				}
				if text := texts(page); text != "" {
					got = append(got, strings.Fields(text)...)
				}
			}
			orders[n] = strings.Join(got, " ")
		})
	}
	emitting.Wait()
	polling.Wait()
	if orders[0] != orders[1] || len(strings.Fields(orders[0])) != emitters*each {
		t.Errorf("two orders:\n%s\n%s", orders[0], orders[1])
	}
}

// absentStore is a store whose boxes are unavailable at times.
type absentStore struct {
	scale.Store
	absent atomic.Bool
}

func (s *absentStore) Append(ctx context.Context, p scale.AppendOp) (scale.Rev, string, error) {
	if s.absent.Load() {
		return 0, "", scale.ErrUnavailable
	}
	return s.Store.Append(ctx, p)
}

func (s *absentStore) Read(ctx context.Context, box string, after scale.Rev, reader string) ([]scale.Message, string, error) {
	if s.absent.Load() {
		return nil, "", scale.ErrUnavailable
	}
	return s.Store.Read(ctx, box, after, reader)
}

// A store that is unavailable makes polls and emits fail, and nothing else.
func TestEventsWithoutStore(t *testing.T) {
	opts := withStore(t)
	store := &absentStore{Store: opts.Store}
	opts.Store = store
	s := ended(t, eventServer(opts))
	c := pipe{mcptest.New(t, s)}
	start := poll(t, c, `"name":"comment.created","arguments":{"document":"a"}`).Cursor
	store.absent.Store(true)
	err := s.Emit(t.Context(), mcp.Occurrence{Name: "comment.created", Data: comment{"a", "x"}})
	if !errors.Is(err, scale.ErrUnavailable) {
		t.Errorf("emit: %v", err)
	}
	if got := c.Ask("events/poll", fmt.Sprintf(`{"name":"comment.created","arguments":{"document":"a"},"cursor":%q}`, start)); !strings.Contains(got, `"code":503`) {
		t.Errorf("poll: %s", got)
	}
	store.absent.Store(false)
	emit(t, s, "a", "y")
	if page := poll(t, c, fmt.Sprintf(`"name":"comment.created","arguments":{"document":"a"},"cursor":%q`, start)); texts(page) != "y" {
		t.Errorf("then: %+v", page)
	}
}
