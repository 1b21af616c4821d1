package client

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/internal/clients/origin"
	"github.com/talaria-go/mcp/protocol"
)

// What a client that speaks everything agrees on with servers of every kind.
func TestDetection(t *testing.T) {
	each(t, func(t *testing.T, rev protocol.Revision) {
		s := fixture(t, &mcp.Options{Revisions: []protocol.Revision{rev}})
		if c := connect(t, serving(t, s), nil); c.Revision() != rev {
			t.Errorf("revision %v, want %v", c.Revision(), rev)
		}
	})
}

// The answers of legacy servers to a probe, none of which is the same.
func TestProbeAnswers(t *testing.T) {
	tests := []struct {
		name, answer string
		want         string // the first method after the probe
	}{
		{"method not found", `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}`, "initialize"},
		{"invalid params", `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid request parameters"}}`, "initialize"},
		{"an error of its own", `{"jsonrpc":"2.0","id":1,"error":{"code":0,"message":"not initialized"}}`, "initialize"},
		{"an error of no request", `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"bad"}}`, "initialize"},
		{"an empty result", `{"jsonrpc":"2.0","id":1,"result":{}}`, "initialize"},
		{"legacy revisions alone", `{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"no","data":{"supported":["2025-06-18","2025-03-26"]}}}`, "initialize"},
		{"headers that its transport does not have", `{"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"Mcp-Method: missing required header"}}`, "initialize"},
		{"modern and legacy, the newer unknown", `{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2030-01-01","2025-06-18"],"capabilities":{},"ttlMs":0,"cacheScope":"private"}}`, "initialize"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tr := scripted(t, func(s *script) {
				if h := s.next(); h.Method != "server/discover" {
					t.Errorf("the client began with %s", h.raw)
				}
				s.say("%s", tt.answer)
				h := s.next()
				if h == nil || h.Method != tt.want {
					t.Errorf("after the probe the client sent %+v, want %s", h, tt.want)
					return
				}
				s.result(h, `{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"x","version":"1"}}`)
				s.drain()
			})
			if c := connect(t, tr, nil); c.Revision() != protocol.V20250618 {
				t.Errorf("revision %v", c.Revision())
			}
		})
	}
}

// A modern server that refuses the revision is asked again, not initialized.
func TestProbeUnsupportedVersion(t *testing.T) {
	tr := scripted(t, func(s *script) {
		s.say(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"no","data":{"supported":["2030-01-01"]}}}`, s.next().ID)
		if h := s.next(); h != nil {
			t.Errorf("the client went on with %s", h.raw)
		}
	})
	if _, err := Connect(context.Background(), tr, nil); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "2030-01-01") {
		t.Errorf("Connect: %v", err)
	}
}

// A legacy server that is silent before initialize is waited for, but not long.
func TestProbeSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := scripted(t, func(s *script) {
			s.legacyHello("2025-06-18")
			s.drain()
		})
		begin := time.Now()
		c, err := Connect(t.Context(), tr, nil)
		if err != nil || c.Revision() != protocol.V20250618 || time.Since(begin) != 6*time.Second {
			t.Fatalf("%v after %v", err, time.Since(begin))
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A legacy server that ends when it is probed is started again: once for another
// probe, as a server may end once for any reason, and then without.
func TestProbeKills(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	starts := 0
	tr := scripted(t, func(s *script) {
		mu.Lock()
		starts++
		mu.Unlock()
		h := s.next()
		if h == nil || h.Method != "initialize" {
			return
		}
		s.result(h, `{"protocolVersion":"2024-11-05","capabilities":{},"serverInfo":{"name":"x","version":"1"}}`)
		s.drain()
	})
	c := connect(t, tr, nil)
	mu.Lock()
	defer mu.Unlock()
	if c.Revision() != protocol.V20241105 || starts != 3 {
		t.Errorf("revision %v after %d starts", c.Revision(), starts)
	}
}

// What a server turned out to be is not asked twice.
func TestEras(t *testing.T) {
	var mu sync.Mutex
	var first []string
	tr := scripted(t, func(s *script) {
		h := s.next()
		mu.Lock()
		first = append(first, h.Method)
		mu.Unlock()
		if h.Method == "server/discover" {
			s.fault(h, -32601, "no")
			h = s.next()
		}
		s.result(h, `{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"x","version":"1"}}`)
		s.drain()
	})
	remembered := NewCache(0)
	for range 2 {
		if err := connect(t, tr, &Options{Cache: remembered}).Close(); err != nil {
			t.Error(err)
		}
	}
	remembered.Clear()
	connect(t, tr, &Options{Cache: remembered})
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(first, []string{"server/discover", "initialize", "server/discover"}) {
		t.Errorf("the connections began with %v", first)
	}
}

// fakeLink is a link that answers as HTTP does: within Send.
type fakeLink struct {
	to      link.Receiver
	respond func(l *fakeLink, ctx context.Context, m *link.Message) error
	mu      sync.Mutex
	sent    []*link.Message
	closed  bool
}

func (l *fakeLink) Synchronous() bool { return true }

func (l *fakeLink) Send(ctx context.Context, m *link.Message) error {
	l.mu.Lock()
	l.sent = append(l.sent, m)
	l.mu.Unlock()
	return l.respond(l, ctx, m)
}

func (l *fakeLink) Close(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return nil
}

// answer gives the client a result for m.
func (l *fakeLink) answer(m *link.Message, result string) {
	l.to.Receive([]byte(`{"jsonrpc":"2.0","id":`+m.ID.String()+`,"result":`+result+`}`), m)
}

func (l *fakeLink) fault(m *link.Message, fault string) {
	l.to.Receive([]byte(`{"jsonrpc":"2.0","id":`+m.ID.String()+`,"error":`+fault+`}`), m)
}

// fakeHTTP is a Transport of fakeLinks.
type fakeHTTP struct {
	name    string
	respond func(l *fakeLink, ctx context.Context, m *link.Message) error
	stand   *fakeHTTP
	mu      sync.Mutex
	links   []*fakeLink
}

func (f *fakeHTTP) String() string            { return f.name }
func (f *fakeHTTP) transport() link.Transport { return f }

func (f *fakeHTTP) Open(_ context.Context, to link.Receiver) (link.Link, error) {
	l := &fakeLink{to: to, respond: f.respond}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.links = append(f.links, l)
	return l, nil
}

func (f *fakeHTTP) Fallback() link.Transport {
	if f.stand == nil {
		return nil
	}
	return f.stand
}

// sent lists the methods that the client sent, on all links.
func (f *fakeHTTP) sent() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var methods []string
	for _, l := range f.links {
		l.mu.Lock()
		for _, m := range l.sent {
			methods = append(methods, m.Method)
		}
		l.mu.Unlock()
	}
	return methods
}

const fakeDiscover = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"resources":{}},"ttlMs":0,"cacheScope":"private"}`

const fakeInitialize = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"resources":{}},"serverInfo":{"name":"x","version":"1"}}`

// How servers refuse a modern request over HTTP, and what follows.
func TestHTTPDetection(t *testing.T) {
	t.Parallel()
	status := func(code int, body string) func(*fakeLink, *link.Message) error {
		return func(*fakeLink, *link.Message) error { return &origin.StatusError{Code: code, Body: []byte(body)} }
	}
	tests := []struct {
		name       string
		probe      func(l *fakeLink, m *link.Message) error
		initialize func(l *fakeLink, m *link.Message) error
		stand      bool
		want       []string
		err        string
	}{
		{name: "400 without a message", probe: status(400, "Bad Request: no session"),
			want: []string{"server/discover", "initialize", "notifications/initialized"}},
		{name: "404", probe: status(404, ""), want: []string{"server/discover", "initialize", "notifications/initialized"}},
		{name: "500", probe: status(500, ""), want: []string{"server/discover", "server/discover", "server/discover"}, err: "500"},
		{name: "501", probe: status(501, ""), want: []string{"server/discover"}, err: "501"},
		{name: "401", probe: status(401, ""), want: []string{"server/discover"}, err: "401"},
		{name: "modern fault with status", probe: func(*fakeLink, *link.Message) error {
			return &origin.StatusError{Code: 400, Err: &protocol.Error{Code: protocol.CodeUnsupportedVersion, Message: "no"}}
		}, want: []string{"server/discover"}, err: "Unsupported protocol version"},
		{name: "405 to both", probe: status(405, ""), initialize: status(405, ""), stand: true,
			want: []string{"server/discover", "initialize"}},
		{name: "404 to both, and no stand-in", probe: status(404, ""), initialize: status(404, ""),
			want: []string{"server/discover", "initialize"}, err: "404"},
		{name: "503 to both", probe: status(503, ""), initialize: status(503, ""), stand: true,
			want: []string{"server/discover", "server/discover", "server/discover"}, err: "503"},
		{name: "no answer at all", probe: func(*fakeLink, *link.Message) error { return nil },
			want: []string{"server/discover", "server/discover", "server/discover"}, err: "without a response"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tr := &fakeHTTP{name: "http://fake", respond: func(l *fakeLink, _ context.Context, m *link.Message) error {
				switch m.Method {
				case protocol.MethodDiscover:
					return tt.probe(l, m)
				case protocol.MethodInitialize:
					if tt.initialize != nil {
						return tt.initialize(l, m)
					}
					l.answer(m, fakeInitialize)
				}
				return nil
			}}
			if tt.stand {
				tr.stand = &fakeHTTP{name: "sse", respond: func(l *fakeLink, _ context.Context, m *link.Message) error {
					if m.Method == protocol.MethodInitialize {
						l.answer(m, strings.Replace(fakeInitialize, "2025-06-18", "2024-11-05", 1))
					}
					return nil
				}}
			}
			remembered := NewCache(0)
			c, err := Connect(context.Background(), tr, &Options{Cache: remembered})
			if got := tr.sent(); !slices.Equal(got, tt.want) {
				t.Errorf("sent %v, want %v", got, tt.want)
			}
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("Connect: %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			if !tt.stand {
				return
			}
			before := len(tr.sent())
			c = connect(t, tr, &Options{Cache: remembered})
			if c.Revision() != protocol.V20241105 || len(tr.sent()) != before {
				t.Errorf("revision %v; the second time the client tried %v", c.Revision(), tr.sent()[before:])
			}
		})
	}
}

func TestStatusCode(t *testing.T) {
	err := wrap("x", "", &origin.StatusError{Code: http.StatusServiceUnavailable})
	if StatusCode(err) != 503 || !Retriable(err) || StatusCode(errors.New("x")) != 0 {
		t.Errorf("StatusCode %d, Retriable %v", StatusCode(err), Retriable(err))
	}
}

// A modern server that is slow to start is not taken for a legacy one.
func TestProbeSlowStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := scripted(t, func(s *script) {
			time.Sleep(5*time.Second + time.Second)
			s.result(s.next(), fakeDiscover) // too late
			s.fault(s.next(), -32602, "the metadata is missing")
			s.modernHello()
			s.drain()
		})
		if c := connect(t, tr, nil); c.Revision() != protocol.V20260728 {
			t.Errorf("revision %v", c.Revision())
		}
	})
}
