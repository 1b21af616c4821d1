package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// passing are the ways in which an HTTP server, or what stands before it, fails
// to answer for a reason that may pass.
var passing = map[string]http.HandlerFunc{
	"408": status(408, ""),
	"425": status(425, ""),
	"429": status(429, "slow down"),
	"429 with Retry-After": func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "2")
		status(429, "")(w, r)
	},
	"500":                            status(500, "panic: runtime error"),
	"502":                            status(502, "<html><title>Bad gateway</title></html>"),
	"503":                            status(503, ""),
	"504":                            status(504, ""),
	"520":                            status(520, "origin unreachable"),
	"500 with an internal error":     status(500, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"not yet"}}`),
	"502 with an error of a proxy":   status(502, `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"upstream is not there"}}`),
	"503 with an error of no id":     status(503, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"warming up"}}`),
	"200 with an internal error":     status(200, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"the database is not there yet"}}`),
	"200 with a server that is busy": status(200, `{"jsonrpc":"2.0","id":1,"error":{"code":503,"message":"not now","data":{"retryAfterMs":100}}}`),
	"200 with a timeout of a proxy":  status(200, `{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Request timed out"}}`),
	"202":                            status(202, ""),
	"204":                            status(204, ""),
	"407":                            status(407, "of a proxy"),
	"409":                            status(409, "<html>conflict"),
	"421":                            status(421, ""),
	"an empty body":                  status(200, ""),
	"an empty stream":                func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "text/event-stream") },
	"a page": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<html>maintenance")
	},
	"half of an answer":            status(200, `{"jsonrpc":"2.0","id":1,"result":{"resultType":"compl`),
	"an answer to another request": status(200, `{"jsonrpc":"2.0","id":"77","result":{}}`),
	"a reset":                      func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	"silence":                      func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done(); panic(http.ErrAbortHandler) },
}

// status answers with a status and a body.
func status(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// inProcess makes the requests of a client to a handler, without a network, so
// that the time of a bubble can pass. A handler that panics has reset the
// connection.
type inProcess struct{ handler http.Handler }

func (p inProcess) RoundTrip(r *http.Request) (res *http.Response, err error) {
	defer func() {
		if recover() != nil {
			err = io.ErrUnexpectedEOF
		}
	}()
	if r.Body == nil {
		r.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	p.handler.ServeHTTP(w, r)
	return w.Result(), nil
}

// faulty answers the first POSTs with a failure, then as the server does. It
// writes down the methods that it was asked.
type faulty struct {
	fail http.HandlerFunc

	mu    sync.Mutex
	inner http.Handler
	left  int
	asked []string
}

func (f *faulty) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	method := "GET"
	for _, known := range []string{protocol.MethodDiscover, protocol.MethodInitialize} {
		if bytes.Contains(body, []byte(`"`+known+`"`)) {
			method = known
		}
	}
	f.mu.Lock()
	fails := f.left > 0 && r.Method == http.MethodPost
	if fails {
		f.left--
	}
	f.asked = append(f.asked, method)
	inner := f.inner
	f.mu.Unlock()
	if fails {
		f.fail(w, r)
		return
	}
	inner.ServeHTTP(w, r)
}

// become replaces the server, also while a request is served.
func (f *faulty) become(inner http.Handler) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.inner = inner
}

// eras are servers by what they speak, with the revision that a client agrees on.
var eras = map[string]struct {
	revisions []protocol.Revision
	want      protocol.Revision
}{
	"modern": {[]protocol.Revision{protocol.V20260728}, protocol.V20260728},
	"legacy": {[]protocol.Revision{protocol.V20251125, protocol.V20250326}, protocol.V20251125},
	"both":   {nil, protocol.V20260728},
}

// A failure that may pass says nothing of what the server speaks: it leads to
// another attempt, and is not remembered. One that lasts is the error.
func TestPassingFailure(t *testing.T) {
	for name, fail := range passing {
		for era, server := range eras {
			for _, warm := range []bool{false, true} {
				for _, times := range []int{1, 2, 1000} {
					if times == 1000 && strings.HasPrefix(name, "200 with an internal") || times == 2 && strings.HasPrefix(name, "4") && !slices.Contains([]string{"408", "425", "429", "429 with Retry-After"}, name) {
						continue // lasting, it is the answer of a legacy server
					}
					t.Run(fmt.Sprintf("%s/%s/warm=%t/%d", name, era, warm, times), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							s := fixture(t, &mcp.Options{Revisions: server.revisions})
							f := &faulty{inner: s.Handler(), fail: fail}
							tr := HTTP("http://server.example/mcp", &HTTPOptions{Client: &http.Client{Transport: inProcess{f}}, NoStream: true})
							opts := &Options{Cache: NewCache(0)}
							open := func() error {
								c, err := Connect(t.Context(), tr, opts)
								if err != nil {
									return err
								}
								if c.Revision() != server.want {
									t.Errorf("revision %v, want %v, after %v", c.Revision(), server.want, f.asked)
								}
								return c.Close()
							}
							if warm {
								if err := open(); err != nil {
									t.Fatal(err)
								}
							}
							f.left = times
							if name == "silence" && times == 2 {
								f.left = 1 // twice is too long
							}
							if err := open(); (err == nil) != (times < 1000) {
								t.Errorf("Connect: %v after %v", err, f.asked)
							} else if errors.Is(err, ErrUnsupported) {
								t.Errorf("%v: nothing says what the server speaks", err)
							}
							f.left = 0
							if err := open(); err != nil {
								t.Errorf("the next Connect: %v", err)
							}
							if err := s.Shutdown(t.Context()); err != nil {
								t.Error(err)
							}
						})
					})
				}
			}
		}
	}
}

// The same over a network, for what that makes of it.
func TestPassingFailureNetwork(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"503", "an empty body", "a page", "half of an answer", "a reset"} {
		t.Run(name, func(t *testing.T) {
			f := &faulty{inner: fixture(t, nil).Handler(), fail: passing[name], left: 1}
			remembered := NewCache(0)
			for range 2 {
				if c := connect(t, HTTP(handler(t, f), nil), &Options{Cache: remembered}); c.Revision() != protocol.V20260728 {
					t.Errorf("revision %v after %v", c.Revision(), f.asked)
				}
			}
		})
	}
}

// What a client that speaks legacy revisions alone finds is no news to others:
// the server may speak more.
func TestPinnedClient(t *testing.T) {
	remembered := NewCache(0)
	tr := serving(t, fixture(t, nil))
	connect(t, tr, &Options{Cache: remembered, Revisions: []protocol.Revision{protocol.V20250618}})
	if c := connect(t, tr, &Options{Cache: remembered}); c.Revision() != protocol.V20260728 {
		t.Errorf("revision %v", c.Revision())
	}
}

// A server that was a legacy one may have become a modern one, and the other way
// round.
func TestEraChanges(t *testing.T) {
	for _, to := range []string{"modern", "legacy"} {
		f := &faulty{inner: fixture(t, &mcp.Options{Revisions: eras["legacy"].revisions}).Handler()}
		if to == "legacy" {
			f.inner = fixture(t, &mcp.Options{Revisions: eras["modern"].revisions}).Handler()
		}
		tr := HTTP(handler(t, f), nil)
		remembered := NewCache(0)
		c, err := Connect(t.Context(), tr, &Options{Cache: remembered})
		if err != nil {
			t.Fatal(err)
		}
		living := connect(t, tr, nil)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		f.become(fixture(t, &mcp.Options{Revisions: eras[to].revisions}).Handler())
		if c := connect(t, tr, &Options{Cache: remembered}); c.Revision() != eras[to].want {
			t.Errorf("to %s: revision %v", to, c.Revision())
		}
		if r, err := living.Call(t.Context(), "sum", sumIn{1, 2}); err != nil || living.Revision() != eras[to].want {
			t.Errorf("to %s, a connected client: %v, %v, revision %v", to, r, err, living.Revision())
		}
	}
}

// A modern server that answers the probe as a legacy one does, but refuses
// initialize, is a modern one.
func TestInitializeRefused(t *testing.T) {
	for _, answer := range []string{
		`{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}}`,
		`{"code":-32601,"message":"Method not found"}`,
		`{"code":-32602,"message":"the metadata is missing"}`,
	} {
		remembered := NewCache(0)
		tr := scripted(t, func(s *script) {
			s.fault(s.next(), -32000, "not ready yet")
			s.say(`{"jsonrpc":"2.0","id":%s,"error":%s}`, s.until("initialize").ID, answer)
			s.modernHello()
			s.drain()
		})
		if c := connect(t, tr, &Options{Cache: remembered}); c.Revision() != protocol.V20260728 || remembered.kind(tr.String()) != kindModern {
			t.Errorf("%s: revision %v", answer, c.Revision())
		}
	}
}

// Servers of every era that start slowly, end once, or write what is no message.
func TestUnsteadyStart(t *testing.T) {
	wait := func(d time.Duration) func(int, transport.Conn) bool {
		return func(int, transport.Conn) bool { time.Sleep(d); return true }
	}
	says := func(text string) func(int, transport.Conn) bool {
		return func(_ int, c transport.Conn) bool { return c.Write([]byte(text)) == nil }
	}
	starts := map[string]func(n int, c transport.Conn) bool{ // false ends the server
		"at once":             wait(0),
		"after 7 s":           wait(7 * time.Second),
		"after 20 s":          wait(20 * time.Second),
		"ends once":           func(n int, _ transport.Conn) bool { return n > 1 },
		"ends after a second": func(n int, _ transport.Conn) bool { time.Sleep(time.Second); return n > 1 },
		"a banner":            says("Server listening on stdio"),
		"half of a message":   says(`{"jsonrpc":"2.0","id":1,"res`),
		"the answer is lost": func(n int, c transport.Conn) bool {
			_, err := c.Read()
			return err == nil && c.Write([]byte(`{"jsonrpc":"2.0","id":1,"result":{"supp`)) == nil
		},
		"the answer is empty": func(n int, c transport.Conn) bool {
			_, err := c.Read()
			return err == nil && c.Write([]byte(`{"jsonrpc":"2.0","id":1}`)) == nil
		},
	}
	for name, start := range starts {
		for era, server := range eras {
			for _, warm := range []bool{false, true} {
				if era == "legacy" && (name == "the answer is empty" || warm && name == "the answer is lost") {
					continue // initialize itself is lost
				}
				t.Run(fmt.Sprintf("%s/%s/warm=%t", name, era, warm), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s := fixture(t, &mcp.Options{Revisions: server.revisions})
						var running sync.WaitGroup
						steady, n := warm, 0
						tr := &testTransport{"memory:unsteady", func(context.Context) (transport.Conn, error) {
							near, far := transport.Pipe()
							n++
							n, steady := n, steady
							running.Go(func() {
								defer func() { _ = far.Close() }()
								if steady || start(n, far) {
									_ = s.ServeConn(context.Background(), far)
								}
							})
							return near, nil
						}}
						opts := &Options{Cache: NewCache(0)}
						open := func(what string) {
							c, err := Connect(t.Context(), tr, opts)
							if err != nil {
								t.Errorf("%s: %v", what, err)
								return
							}
							if c.Revision() != server.want {
								t.Errorf("%s: revision %v, want %v", what, c.Revision(), server.want)
							}
							if err := c.Close(); err != nil {
								t.Error(err)
							}
						}
						if warm {
							open("steady")
						}
						steady, n = false, 0
						open("unsteady")
						steady = true
						open("the next one")
						running.Wait()
					})
				})
			}
		}
	}
}

// An answer to the probe that comes when the legacy session is open is for the
// next connection.
func TestLateDiscover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		remembered := NewCache(0)
		var starts []string
		tr := scripted(t, func(s *script) {
			probe := s.next()
			starts = append(starts, probe.Method)
			if len(starts) > 1 {
				s.result(probe, fakeDiscover)
				s.drain()
				return
			}
			s.legacyHello("2025-06-18")
			time.Sleep(time.Minute / 2)
			s.result(probe, fakeDiscover)
			s.drain()
		})
		for _, want := range []protocol.Revision{protocol.V20250618, protocol.V20260728} {
			c, err := Connect(t.Context(), tr, &Options{Cache: remembered})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			if c.Revision() != want {
				t.Errorf("revision %v, want %v", c.Revision(), want)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
		if !slices.Equal(starts, []string{"server/discover", "server/discover"}) {
			t.Errorf("the connections began with %v", starts)
		}
	})
}
