package httplink_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/client/internal/linktest"
	"github.com/talaria-go/mcp/internal/clients/origin"
	"github.com/talaria-go/mcp/protocol"
)

// script is a server without a network, so that time can be false. It answers
// the GETs of the script one after the other; POSTs before get what a session
// needs, and the first call what post says.
type script struct {
	t     *testing.T
	post  string // the events that answer the call
	gets  []reply
	posts int
	begin time.Time
	at    []time.Duration // when each GET came
	ids   []string        // its Last-Event-ID
}

// reply is one answer to GET: an error, a status, or a stream that ends after
// its events, or stays open.
type reply struct {
	err    error
	status int
	events string
	lasts  time.Duration
	broken bool
}

// RoundTrip implements http.RoundTripper.
func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	res := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: r}
	switch r.Method {
	case http.MethodPost:
		s.posts++
		switch {
		case s.posts == 1:
			res.Header.Set("Mcp-Session-Id", session)
			res.Header.Set("Content-Type", "application/json")
			res.Body = io.NopCloser(strings.NewReader(answer))
		case s.posts == 2:
			res.StatusCode = http.StatusAccepted
		default:
			s.begin = time.Now()
			res.Header.Set("Content-Type", "text/event-stream")
			res.Body = io.NopCloser(strings.NewReader(s.post))
		}
	case http.MethodGet:
		s.ids = append(s.ids, r.Header.Get("Last-Event-Id"))
		s.at = append(s.at, time.Since(s.begin))
		if r.Header.Get("Mcp-Session-Id") != session || r.Header.Get("Accept") != "text/event-stream" {
			s.t.Errorf("GET with %v", r.Header)
		}
		if len(s.gets) == 0 {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}
		next := s.gets[0]
		s.gets = s.gets[1:]
		if next.err != nil {
			return nil, next.err
		}
		if next.status != 0 {
			res.StatusCode = next.status
			return res, nil
		}
		res.Header.Set("Content-Type", "text/event-stream")
		res.Body = next.body(r.Context())
	}
	return res, nil
}

// body is the stream of a reply.
func (next reply) body(ctx context.Context) io.ReadCloser {
	r, w := io.Pipe()
	go func() {
		_, _ = io.WriteString(w, next.events)
		select {
		case <-time.After(next.lasts):
		case <-ctx.Done():
			_ = w.CloseWithError(ctx.Err())
			return
		}
		if next.broken {
			_ = w.CloseWithError(io.ErrUnexpectedEOF)
		}
		_ = w.Close()
	}()
	return r
}

// run opens a session on a script.
func (s *script) run(t *testing.T, rev protocol.Revision, noStream bool) (*linktest.Recorder, link.Link) {
	t.Helper()
	s.t, s.begin = t, time.Now()
	to, l := open(t, "http://example.com/mcp", origin.Options{Client: &http.Client{Transport: s}}, noStream)
	initialize(t, l)
	initialized(t, l, rev)
	return to, l
}

var errRefused = errors.New("connection refused")

// A call whose stream breaks off is answered on another, after the time that
// the server asks for, and not answered when that is hopeless.
func TestResume(t *testing.T) {
	const n2 = `{"jsonrpc":"2.0","method":"notifications/progress"}`
	end := fmt.Sprintf("id: 9\ndata: %s\n\n", answer)
	tests := []struct {
		name string
		rev  protocol.Revision
		post string
		gets []reply
		want string // of the error
		ids  []string
		at   []time.Duration
	}{
		{"poll", protocol.V20251125, "id: 1\nretry: 500\ndata:\n\n", []reply{{events: end}}, "",
			[]string{"1"}, []time.Duration{500 * time.Millisecond}},
		{"without retry", protocol.V20250326, "id: 1\ndata: " + n2 + "\n\n", []reply{{events: end}}, "",
			[]string{"1"}, []time.Duration{time.Second}},
		{"poll thrice", protocol.V20251125, "retry: 100\nid: 1\ndata:\n\n",
			[]reply{{events: "id: 2\nretry: 3000\ndata:\n\n"}, {events: "retry: 0\nid: 3\n\n"}, {events: end}}, "",
			[]string{"1", "2", "3"}, []time.Duration{100 * time.Millisecond, 3100 * time.Millisecond, 3190 * time.Millisecond}},
		{"network down", protocol.V20250618, "id: 1\nretry: 500\ndata:\n\n",
			[]reply{{err: errRefused}, {err: errRefused}, {status: 503}, {events: end}}, "",
			[]string{"1", "1", "1", "1"}, []time.Duration{500 * time.Millisecond, 4500 * time.Millisecond, 13500 * time.Millisecond, 28500 * time.Millisecond}},
		{"network gone", protocol.V20250618, "id: 1\ndata:\n\n",
			[]reply{{err: errRefused}, {err: errRefused}, {err: errRefused}, {err: errRefused}, {err: errRefused}}, "5 attempts to resume it failed",
			[]string{"1", "1", "1", "1", "1"}, []time.Duration{1 * time.Second, 5 * time.Second, 14 * time.Second, 29 * time.Second, 44 * time.Second}},
		{"not offered", protocol.V20251125, "id: 1\nretry: 1\ndata:\n\n", []reply{{status: 405}}, "cannot be resumed",
			[]string{"1"}, []time.Duration{10 * time.Millisecond}},
		{"session over", protocol.V20251125, "id: 1\nretry: 10\ndata:\n\n", []reply{{status: 404}}, "ended the session",
			[]string{"1"}, []time.Duration{10 * time.Millisecond}},
		{"no ids", protocol.V20251125, "data: " + n2 + "\n\n", nil, "broke off before the response", nil, nil},
		{"no such thing", protocol.V20241105, "id: 1\ndata:\n\n", nil, "broke off before the response", nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{post: tt.post, gets: tt.gets}
				to, l := s.run(t, tt.rev, true)
				err := l.Send(t.Context(), call(tt.rev))
				switch {
				case tt.want == "" && err != nil:
					t.Errorf("%v", err)
				case tt.want == "" && to.Texts()[len(to.Texts())-1] != answer:
					t.Errorf("received %q", to.Texts())
				case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
					t.Errorf("%v, want %q", err, tt.want)
				}
				if !slices.Equal(s.ids, tt.ids) || !slices.Equal(s.at, tt.at) {
					t.Errorf("GETs after %q at %v, want %q at %v", s.ids, s.at, tt.ids, tt.at)
				}
				_ = l.Close(t.Context())
			})
		})
	}
}

// Waiting to resume ends with the context.
func TestResumeGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{post: "id: 1\nretry: 3600000\ndata:\n\n"}
		_, l := s.run(t, protocol.V20251125, true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := l.Send(ctx, call(protocol.V20251125)); !errors.Is(err, context.DeadlineExceeded) || time.Since(s.begin) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(s.begin))
		}
		_ = l.Close(t.Context())
	})
}

// The stream for what the server sends by itself is opened once the session is,
// and kept open.
func TestListen(t *testing.T) {
	one, two := `{"jsonrpc":"2.0","method":"one"}`, `{"jsonrpc":"2.0","method":"two"}`
	tests := []struct {
		name string
		gets []reply
		want []string
		lost string // "" means that it is not
		at   []time.Duration
	}{
		{"not offered", []reply{{status: 405}}, nil, "", []time.Duration{0}},
		{"not found", []reply{{status: 400}}, nil, "", []time.Duration{0}},
		{"resumed", []reply{{events: "id: 1\ndata: " + one + "\n\n", lasts: time.Minute}, {events: "retry: 50\ndata: " + two + "\n\n"}}, []string{one, two}, "",
			[]time.Duration{0, 61 * time.Second, 61*time.Second + 50*time.Millisecond}},
		{"drops thrice, then works", []reply{{lasts: time.Minute}, {err: errRefused}, {err: errRefused}, {err: errRefused}, {events: "data: " + one + "\n\n", lasts: time.Hour}}, []string{one}, "",
			[]time.Duration{0, 61 * time.Second, 65 * time.Second, 74 * time.Second, 89 * time.Second, 89*time.Second + time.Hour + time.Second}},
		{"quiet and cut", []reply{{lasts: time.Minute, broken: true}, {lasts: time.Minute, broken: true}, {lasts: time.Minute, broken: true},
			{lasts: time.Minute, broken: true}, {lasts: time.Minute, broken: true}, {lasts: time.Minute, broken: true}, {lasts: time.Minute, broken: true}}, nil, "",
			[]time.Duration{0, 61e9, 122e9, 183e9, 244e9, 305e9, 366e9, 427e9}},
		{"lost", []reply{{lasts: time.Minute}, {err: errRefused}, {err: errRefused}, {err: errRefused}, {err: errRefused}, {err: errRefused}}, nil, "connection refused",
			[]time.Duration{0, 61e9, 65e9, 74e9, 89e9, 104e9}},
		{"session over", []reply{{events: "data: " + one + "\n\n"}, {status: 404}}, []string{one}, "ended the session", []time.Duration{0, time.Second}},
		{"never there", []reply{{err: errRefused}, {err: errRefused}, {status: 500}, {err: errRefused}, {err: errRefused}, {err: errRefused}}, nil, "",
			[]time.Duration{0, 1e9, 5e9, 14e9, 29e9, 44e9}},
		{"ends at once, and asks for no wait", slices.Repeat([]reply{{events: "retry: 0\ndata: " + one + "\n\n"}}, 13), slices.Repeat([]string{one}, 13), "",
			[]time.Duration{0, 10e6, 50e6, 140e6, 300e6, 550e6, 910e6, 1400e6, 2040e6, 2850e6, 3850e6, 4850e6, 5850e6, 6850e6}},
		{"too long", []reply{{events: "data: " + strings.Repeat("x", 5<<20) + "\n\ndata: " + one + "\n\n", lasts: time.Hour}}, []string{one}, "", []time.Duration{0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{gets: tt.gets}
				to, l := s.run(t, protocol.V20251125, false)
				if tt.name == "too long" {
					to.Wait(2)
				} else {
					time.Sleep(2 * time.Hour)
				}
				synctest.Wait()
				if got := to.Texts()[1:]; tt.name != "too long" && !slices.Equal(got, tt.want) && len(got)+len(tt.want) > 0 {
					t.Errorf("received %q, want %q", got, tt.want)
				}
				if !slices.Equal(s.at, tt.at) {
					t.Errorf("GETs at %v, want %v", s.at, tt.at)
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

func TestListenNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{}
		_, l := s.run(t, protocol.V20251125, true)
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(s.at) > 0 {
			t.Errorf("GET at %v though it was not wanted", s.at)
		}
		_ = l.Close(t.Context())
	})
}
