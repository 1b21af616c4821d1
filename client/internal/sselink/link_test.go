package sselink_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/client/internal/linktest"
	"github.com/talaria-go/mcp/client/internal/sselink"
	"github.com/talaria-go/mcp/internal/clients/origin"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// script is a server without a network, so that time can be false.
type script struct {
	gets   []reply
	begin  time.Time
	at     []time.Duration // when each GET came
	ids    []string        // its Last-Event-ID
	posts  []string        // where POSTs went
	header http.Header     // of the last
	status int             // for them; 0 means 202
}

// reply is one answer to GET.
type reply struct {
	err    error
	status int
	kind   string
	events string
	lasts  time.Duration // 0 means for ever
}

// RoundTrip implements http.RoundTripper.
func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	res := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: r}
	if r.Method == http.MethodPost {
		s.posts, s.header = append(s.posts, r.URL.String()), r.Header
		if res.StatusCode = s.status; res.StatusCode == 0 {
			res.StatusCode = http.StatusAccepted
		}
		return res, nil
	}
	s.at, s.ids = append(s.at, time.Since(s.begin)), append(s.ids, r.Header.Get("Last-Event-Id"))
	next := reply{err: errors.New("connection refused")}
	if len(s.gets) > 0 {
		next, s.gets = s.gets[0], s.gets[1:]
	}
	if next.err != nil {
		return nil, next.err
	}
	if next.status != 0 {
		res.StatusCode = next.status
	}
	res.Header.Set("Content-Type", "text/event-stream")
	if next.kind != "" {
		res.Header.Set("Content-Type", next.kind)
	}
	body, w := io.Pipe()
	go func() {
		_, _ = io.WriteString(w, next.events)
		var over <-chan time.Time
		if next.lasts > 0 {
			over = time.After(next.lasts)
		}
		select {
		case <-over:
			_ = w.Close()
		case <-r.Context().Done():
			_ = w.CloseWithError(r.Context().Err())
		}
	}()
	res.Body = body
	return res, nil
}

func (s *script) open(t *testing.T, ctx context.Context) (*linktest.Recorder, link.Link, error) {
	t.Helper()
	s.begin = time.Now()
	server, err := origin.New("http://example.com/mcp/sse", origin.Options{Client: &http.Client{Transport: s}, MaxMessage: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	to := linktest.NewRecorder(t)
	l, err := sselink.New(server).Open(ctx, to)
	return to, l, err
}

const endpoint = "event: endpoint\ndata: /mcp/messages?s=1\n\n"

// The address for messages may be written in several ways.
func TestEndpoint(t *testing.T) {
	for data, want := range map[string]string{
		"/messages/123":                  "http://example.com/messages/123",
		"messages?s=1":                   "http://example.com/mcp/messages?s=1",
		"/mcp/messages":                  "http://example.com/mcp/messages",
		"http://example.com:80/messages": "http://example.com:80/messages",
		"https://evil.example/messages":  "",
		"//evil.example/messages":        "",
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{gets: []reply{{events: ": hi\n\nevent: endpoint\ndata: " + data + "\n\n"}}}
			_, l, err := s.open(t, t.Context())
			if want == "" {
				if err == nil || !strings.Contains(err.Error(), "a different origin") {
					t.Errorf("%s: %v", data, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Send(t.Context(), linktest.Call(protocol.V20250618, 1, "ping")); err != nil || s.posts[0] != want {
				t.Errorf("%s: posted to %v, %v; want %s", data, s.posts, err, want)
			}
			if got := s.header.Get("Mcp-Protocol-Version"); got != "2025-06-18" {
				t.Errorf("version header %q", got)
			}
			_ = l.Close(t.Context())
		})
	}
}

func TestOpenFails(t *testing.T) {
	tests := []struct {
		get  reply
		want string
	}{
		{reply{err: errors.New("connection refused")}, "connection refused"},
		{reply{status: 405}, "HTTP status 405"},
		{reply{kind: "text/html", events: "<h1>", lasts: 1}, `Content-Type is "text/html"`},
		{reply{events: "data: x\n\n", lasts: 1}, "did not say where messages go"},
		{reply{events: "event: endpoint\ndata: http://[\n\n"}, "address that is not valid"},
		{reply{events: "event: endpoint\ndata: " + strings.Repeat("x", 20_000) + "\n\n"}, "longer than the limit"},
		{reply{events: ": silence\n\n"}, "deadline exceeded"},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			s := &script{gets: []reply{tt.get}}
			_, l, err := s.open(t, ctx)
			if l != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

// A stream that breaks is opened again after 1 s times the square of the
// attempt, and lost after five.
func TestReconnect(t *testing.T) {
	refused := reply{err: errors.New("connection refused")}
	const one = "id: 5\ndata: {\"id\":1}\n\n"
	tests := []struct {
		name string
		gets []reply
		want []string
		lost string
		at   []time.Duration
		ids  []string
	}{
		{"drops thrice, then works", []reply{{events: endpoint, lasts: time.Minute}, refused, {status: 502 /* whose body has no end, and is given a second */}, refused, {events: endpoint + one}},
			[]string{`{"id":1}`}, "", []time.Duration{0, 61e9, 65e9, 75e9, 90e9}, []string{"", "", "", "", ""}},
		{"six failures", []reply{{events: endpoint + one, lasts: time.Minute}}, []string{`{"id":1}`}, "after 5 attempts",
			[]time.Duration{0, 61e9, 65e9, 74e9, 89e9, 104e9}, []string{"", "5", "5", "5", "5", "5"}},
		{"another session", []reply{{events: endpoint, lasts: time.Minute}, {events: strings.Replace(endpoint, "s=1", "s=2", 1)}}, nil, "begun another",
			[]time.Duration{0, 61e9}, []string{"", ""}},
		{"breaks at once, for ever", slices.Repeat([]reply{{events: "retry: 0\n" + endpoint, lasts: 1}}, 20), nil, "after 5 attempts",
			[]time.Duration{0, 1e9 + 1, 5e9 + 2, 14e9 + 3, 29e9 + 4, 44e9 + 5}, []string{"", "", "", "", "", ""}},
		{"other events", []reply{{events: endpoint + "event: ping\ndata: x\n\n" + one}}, []string{`{"id":1}`}, "", []time.Duration{0}, []string{""}},
		{"too long", []reply{{events: endpoint + "data: " + strings.Repeat("x", 20_000) + "\n\n" + one}}, []string{`{"id":1}`}, "", []time.Duration{0}, []string{""}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{gets: tt.gets}
				to, l, err := s.open(t, t.Context())
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				if got := to.Texts(); !slices.Equal(got, tt.want) && len(got)+len(tt.want) > 0 {
					t.Errorf("received %q, want %q", got, tt.want)
				}
				if !slices.Equal(s.at, tt.at) || !slices.Equal(s.ids, tt.ids) {
					t.Errorf("GETs at %v after %q, want %v after %q", s.at, s.ids, tt.at, tt.ids)
				}
				switch lost := to.Losses(); {
				case tt.lost == "" && len(lost) > 0:
					t.Errorf("lost: %v", lost)
				case tt.lost != "" && (len(lost) != 1 || !strings.Contains(lost[0].Error(), tt.lost)):
					t.Errorf("lost: %v, want %q", lost, tt.lost)
				}
				_ = l.Close(t.Context())
			})
		})
	}
}

func TestSend(t *testing.T) {
	for status, want := range map[int]string{200: "", 202: "", 400: "HTTP status 400", 404: "ended the session", 500: "HTTP status 500"} {
		synctest.Test(t, func(t *testing.T) {
			s := &script{gets: []reply{{events: endpoint}}, status: status}
			_, l, err := s.open(t, t.Context())
			if err != nil {
				t.Fatal(err)
			}
			err = l.Send(t.Context(), linktest.Call(protocol.V20241105, 1, "ping"))
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%d: %v", status, err)
			}
			if err := errors.Join(l.Close(t.Context()), l.Close(t.Context())); err != nil {
				t.Error(err)
			}
			after := transport.ErrClosed
			if status == http.StatusNotFound {
				after = link.ErrSession
			}
			if err := l.Send(t.Context(), linktest.Call(protocol.V20241105, 1, "ping")); !errors.Is(err, after) {
				t.Errorf("after Close: %v, want %v", err, after)
			}
		})
	}
}
