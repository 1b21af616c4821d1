package client_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

type lockedLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// What callbacks of a client do not return from is in the log, the call goes on,
// and the server hears nothing of it.
func TestCallbacksThatDoNotReturn(t *testing.T) {
	for name, way := range map[string]func(){"panic": func() { panic("pa55phrase") }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			var log, peer lockedLog
			logger, quiet := zerolog.New(&log), zerolog.New(&peer)
			s := mcp.NewServer(mcp.Info{Name: "s", Version: "1"}, &mcp.Options{Logger: &quiet})
			s.MustAdd(mcp.Tool("ask", func(f *mcp.Frame, _ struct{}) (string, error) {
				_, err := mcp.Elicit[struct {
					Yes bool `json:"yes"`
				}](f, "yes", "Yes?")
				if err != nil {
					return err.Error(), nil
				}
				return "asked", nil
			}), mcp.Tool("fine", func(*mcp.Frame, struct{}) (string, error) { return "all is well", nil }))
			here, there := transport.Pipe()
			served := make(chan error, 1)
			go func() { served <- s.ServeConn(t.Context(), there) }()
			c, err := client.Connect(t.Context(), client.Conn(func(context.Context) (transport.Conn, error) { return here, nil }), &client.Options{
				Logger: &logger, Revisions: []protocol.Revision{protocol.LatestLegacy},
				Inject:         func(context.Context, func(key, value string)) { way() },
				Trace:          func(bool, []byte) { way() },
				OnState:        func(client.State, error) { way() },
				OnNotification: func(client.Notification) { way() },
				OnLog:          func(client.LogEntry) { way() },
				Elicit: func(context.Context, *protocol.ElicitParams) (*protocol.ElicitResult, error) {
					way()
					return nil, nil
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, tool := range []string{"ask", "fine", "ask"} {
				r, err := c.Call(t.Context(), tool, nil)
				if err != nil {
					t.Fatalf("%s: %v", tool, err)
				}
				text, _ := json.Marshal(r)
				if strings.Contains(string(text), "pa55phrase") {
					t.Errorf("the server heard %s", text)
				}
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			<-served
			log.mu.Lock()
			defer log.mu.Unlock()
			for _, what := range []string{"Inject", "Trace", "OnState", "elicitation/create", "goroutine"} {
				if !strings.Contains(log.text.String(), what) {
					t.Errorf("the log does not tell of %s", what)
				}
			}
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A RoundTripper that panics fails what it was for.
func TestRoundTripperThatPanics(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	hc := &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) { panic("no wire") })}
	_, err := client.Connect(t.Context(), client.HTTP(web.URL, &client.HTTPOptions{Client: hc}), nil)
	if err == nil || !strings.Contains(err.Error(), "no wire") {
		t.Errorf("the error is %v", err)
	}
}

type trapConn struct {
	transport.Conn
	way func()
}

func (c trapConn) Read() ([]byte, error) { c.way(); return nil, errors.New("not reached") }

// A connection that panics is one that is lost.
func TestConnThatDoesNotReturn(t *testing.T) {
	t.Parallel()
	for name, way := range map[string]func(){"panic": func() { panic("no wire") }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			here, there := transport.Pipe()
			defer there.Close()
			_, err := client.Connect(t.Context(), client.Conn(func(context.Context) (transport.Conn, error) { return trapConn{here, way}, nil }), nil)
			if err == nil {
				t.Error("connected over a connection that cannot be read")
			}
		})
	}
}

// spring fails when it is armed.
type spring struct {
	armed atomic.Bool
	way   func()
}

func (s *spring) hit() {
	if s.armed.Load() {
		s.way()
	}
}

type springLog struct{ *spring }

func (l springLog) Write(p []byte) (int, error) { l.hit(); return len(p), nil }

// Code of the user's that does not return fails what it was for, and the client
// goes on.
func TestDoorsOfAClient(t *testing.T) {
	for name, way := range map[string]func(){"panic": func() { panic("pa55phrase") }, "goexit": runtime.Goexit} {
		quiet := zerolog.Nop()
		s := mcp.NewServer(mcp.Info{Name: "s", Version: "1"}, &mcp.Options{Logger: &quiet})
		s.MustAdd(mcp.Tool("fine", func(f *mcp.Frame, _ struct{}) (string, error) {
			return "all is well", errors.Join(f.Progress(1, 2, ""), f.Log(protocol.LevelError, "one"))
		}))
		web := httptest.NewServer(s.Handler())
		defer web.Close()
		try := func(t *testing.T, http *client.HTTPOptions, opts *client.Options, a *spring, fails bool, more ...client.CallOption) {
			t.Helper()
			c, err := client.Connect(t.Context(), client.HTTP(web.URL, http), opts)
			if err != nil {
				t.Fatal(err)
			}
			a.armed.Store(true)
			var wg sync.WaitGroup
			wg.Go(func() { // which ends where a body that is read ends it
				if _, err := c.Call(t.Context(), "fine", nil, more...); (err != nil) != fails {
					t.Errorf("the error is %v", err)
				}
			})
			wg.Wait()
			a.armed.Store(false)
			if _, err := c.Call(t.Context(), "fine", nil); err != nil {
				t.Error(err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
		for _, rev := range []protocol.Revision{protocol.LatestLegacy, protocol.Latest} {
			opts := func() *client.Options {
				return &client.Options{Logger: &quiet, Revisions: []protocol.Revision{rev}}
			}
			t.Run(name+"/"+rev.String()+"/HeaderFunc", func(t *testing.T) {
				a := &spring{way: way}
				try(t, &client.HTTPOptions{HeaderFunc: func(context.Context, *http.Request) error { a.hit(); return nil }}, opts(), a, true)
			})
			t.Run(name+"/"+rev.String()+"/RoundTripper", func(t *testing.T) {
				a := &spring{way: way}
				hc := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
					a.hit()
					return http.DefaultTransport.RoundTrip(r)
				})}
				try(t, &client.HTTPOptions{Client: hc}, opts(), a, true)
			})
			t.Run(name+"/"+rev.String()+"/body", func(t *testing.T) {
				a := &spring{way: way}
				hc := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
					res, err := http.DefaultTransport.RoundTrip(r)
					if err == nil && r.Method == http.MethodPost {
						res.Body = springBody{res.Body, a}
					}
					return res, err
				})}
				o := opts()
				o.NoReconnect = false
				try(t, &client.HTTPOptions{Client: hc}, o, a, true)
			})
			t.Run(name+"/"+rev.String()+"/Logger", func(t *testing.T) {
				a := &spring{way: way}
				o := opts()
				log := zerolog.New(springLog{a})
				o.Logger = &log
				try(t, nil, o, a, false, client.OnProgress(func(client.Progress) { way() }))
			})
			t.Run(name+"/"+rev.String()+"/handlers", func(t *testing.T) {
				a := &spring{way: way}
				o := opts()
				o.OnNotification = func(client.Notification) { way() }
				o.OnLog = func(client.LogEntry) { way() }
				o.OnState = func(client.State, error) { way() }
				c, err := client.Connect(t.Context(), client.HTTP(web.URL, nil), o)
				if err != nil {
					t.Fatal(err)
				}
				for range 2 {
					if _, err := c.Call(t.Context(), "fine", nil, client.OnProgress(func(client.Progress) { way() })); err != nil {
						t.Error(err)
					}
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				a.hit()
			})
		}
		t.Run(name+"/dial", func(t *testing.T) {
			if _, err := client.Connect(t.Context(), client.Conn(func(context.Context) (transport.Conn, error) {
				way()
				return nil, errors.New("not reached")
			}), &client.Options{Logger: &quiet}); err == nil {
				t.Error("connected to nothing")
			}
		})
	}
}

type springBody struct {
	io.ReadCloser
	*spring
}

func (b springBody) Read(p []byte) (int, error) { b.hit(); return b.ReadCloser.Read(p) }
