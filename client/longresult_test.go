package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
	"github.com/talaria-go/mcp/transport/websocket"
)

// limited are all the transports with a limit, by the option that raises it. Each is to
// a fixture of its own.
var limited = map[string]func(t *testing.T, max int) map[string]Transport{
	"CommandTransport.MaxMessage": func(_ *testing.T, max int) map[string]Transport {
		tr := command("fixture")
		tr.MaxMessage = max
		return map[string]Transport{"command": tr}
	},
	"HTTPOptions.MaxMessage": func(t *testing.T, max int) map[string]Transport {
		opts := &HTTPOptions{MaxMessage: max}
		return map[string]Transport{
			"HTTP":      HTTP(handler(t, fixture(t, nil).Handler()), opts),
			"SSE":       SSE(handler(t, fixture(t, &mcp.Options{HTTP: mcp.HTTPOptions{SSE: true}}).Handler()), opts),
			"WebSocket": WebSocket(handler(t, websocket.Handler(fixture(t, nil))), opts),
		}
	},
	"transport.SocketOptions.MaxMessage": func(t *testing.T, max int) map[string]Transport {
		opts := &transport.SocketOptions{MaxMessage: max}
		return map[string]Transport{
			"TCP":  Dial("tcp", accept(t, fixture(t, nil), "tcp", "127.0.0.1:0"), opts),
			"Unix": Dial("unix", accept(t, fixture(t, nil), "unix", filepath.Join(t.TempDir(), "s")), opts),
		}
	},
	"transport.StreamOptions.MaxMessage": func(t *testing.T, max int) map[string]Transport {
		r, w := bytesTo(t)
		return map[string]Transport{"stream": Stream(r, w, &transport.StreamOptions{MaxMessage: max})}
	},
	"MaxMessage of the options of the transport.Conn": func(t *testing.T, max int) map[string]Transport {
		return map[string]Transport{"Conn": Conn(func(context.Context) (transport.Conn, error) {
			r, w := bytesTo(t)
			return transport.NewStream(r, w, &transport.StreamOptions{MaxMessage: max}), nil
		})}
	},
}

// bytesTo returns byte streams to a fixture of their own.
func bytesTo(t *testing.T) (io.Reader, io.Writer) {
	r, theirs := io.Pipe()
	ours, w := io.Pipe()
	s := fixture(t, nil)
	var running sync.WaitGroup
	running.Go(func() { _ = s.ServeConn(context.Background(), transport.NewStream(ours, theirs, nil)) }) // its end is the client's doing
	t.Cleanup(running.Wait)
	return r, w
}

// TestLongResult checks that the error of an answer over the limit names the option that
// raises the limit, that the connection can be used afterwards, and that the option works.
func TestLongResult(t *testing.T) {
	const limit = 6 << 10
	long := strings.Repeat("x", limit)
	for option, open := range limited {
		each(t, func(t *testing.T, rev protocol.Revision) {
			for _, max := range []int{limit, 4 * limit} {
				for name, tr := range open(t, max) {
					if name == "SSE" && rev.Modern() {
						continue // it has no modern revisions
					}
					opts := only(rev)
					opts.Elicit = func(context.Context, *protocol.ElicitParams) (*protocol.ElicitResult, error) {
						return Accept(map[string]any{"name": long})
					}
					c := connect(t, tr, opts)
					_, err := c.Read(t.Context(), "users://"+long+"/profile")
					checkLong(t, name+", plain", err, max == limit, limit, option)
					if rev.Has(protocol.FeatureElicitation) {
						_, err = c.Call(t.Context(), "greet", nil) // on a stream, in sessions over HTTP
						checkLong(t, name+", asked", err, max == limit, limit, option)
					}
					if sum, err := Call[sumOut](t.Context(), c, "sum", sumIn{2, 3}); err != nil || sum.Sum != 5 {
						t.Errorf("%s: then %v, %v", name, sum, err)
					}
				}
			}
		})
	}
}

// checkLong checks the error of an answer that is over the limit, or is not.
func checkLong(t *testing.T, name string, err error, over bool, limit int, option string) {
	t.Helper()
	if !over {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		return
	}
	tooLong, ok := errors.AsType[*transport.TooLongError](err)
	if !ok || tooLong.Limit != limit || tooLong.Option != option || !strings.Contains(err.Error(), fmt.Sprintf("longer than the limit of %d bytes (%s raises it)", limit, option)) {
		t.Errorf("%s: %v, want one that names %s", name, err, option)
	}
}

// TestLongMessageLogCallsFrame checks that the log of a long message may use the Frame that
// sends it.
func TestLongMessageLogCallsFrame(t *testing.T) {
	testdep.NoRace(t, "one goroutine reads a message of 4 MiB")
	sends := map[string]func(f *mcp.Frame, text string) error{
		"Notify": func(f *mcp.Frame, text string) error {
			return f.Notify("notifications/acme/row", map[string]string{"text": text})
		},
		"Progress": func(f *mcp.Frame, text string) error { return f.Progress(1, 2, text) },
		"Log":      func(f *mcp.Frame, text string) error { return f.Log(protocol.LevelError, text) },
	}
	for name, send := range sends {
		var frame *mcp.Frame
		var line string
		logger := zerolog.New(writerFunc(func(p []byte) (int, error) {
			line = string(p)
			return len(p), frame.Notify("notifications/acme/logged", nil)
		})).Level(zerolog.WarnLevel)
		s := mcp.NewServer(mcp.Info{Name: "s", Version: "1"}, &mcp.Options{Logger: &logger})
		s.MustAdd(mcp.Tool("t", func(f *mcp.Frame, _ struct{}) (string, error) {
			frame = f
			return "", send(f, strings.Repeat("x", 5<<20))
		}, mcp.Doc("for the test")))
		c := connect(t, serving(t, s), only(protocol.V20251125))
		if _, err := c.Call(t.Context(), "t", nil, OnProgress(func(Progress) {})); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.Contains(line, "longer than") {
			t.Errorf("%s: logged %s", name, line)
		}
	}
}

// writerFunc is an io.Writer that calls a function.
type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestLongResultLogged checks that a server logs once that it sends more than clients take
// by default, for each thing that does, and whatever its clients take.
func TestLongResultLogged(t *testing.T) {
	testdep.NoRace(t, "one goroutine reads each message of 4 MiB")
	for _, rev := range []protocol.Revision{protocol.V20251125, protocol.V20260728} {
		logs := &logText{}
		logger := zerolog.New(logs)
		s := mcp.NewServer(mcp.Info{Name: "s", Version: "1"}, &mcp.Options{Logger: &logger})
		long := strings.Repeat("x", 4<<20)
		describe := mcp.Doc("for the test")
		s.MustAdd(
			mcp.Tool("long", func(*mcp.Frame, struct{}) (string, error) { return long, nil }, describe),
			mcp.Tool("short", func(*mcp.Frame, struct{}) (string, error) { return long[:1<<20], nil }, describe),
			mcp.Tool("error", func(*mcp.Frame, struct{}) (string, error) { return "", mcp.Errorf(1, "%s", long) }, describe),
			mcp.Tool("told", func(f *mcp.Frame, _ struct{}) (string, error) {
				return "", f.Notify("notifications/acme/row", map[string]string{"text": long})
			}, describe),
			mcp.Resource("long:1", func(*mcp.Frame) (string, error) { return long, nil }),
			mcp.Resource("long:2", func(*mcp.Frame) (string, error) { return long, nil }),
		)
		web := httptest.NewServer(s.Handler())
		t.Cleanup(web.Close)
		for _, tr := range []Transport{serving(t, s), HTTP(web.URL, &HTTPOptions{MaxMessage: 64 << 20})} {
			c := connect(t, tr, only(rev))
			for _, tool := range []string{"long", "short", "error", "told", "long"} {
				_, _ = c.Call(t.Context(), tool, nil) // one fails
			}
			for _, uri := range []string{"long:1", "long:2"} {
				if _, err := c.Read(t.Context(), uri); err != nil {
					t.Error(err)
				}
			}
		}
		got := logs.String()
		for _, want := range []string{
			`"method":"tools/call","name":"long","bytes":41`, `"method":"tools/call","name":"error","bytes":41`,
			`"method":"tools/call","name":"told","bytes":41`, `"method":"resources/read","name":"","bytes":41`,
		} {
			if strings.Count(got, want) != 1 {
				t.Errorf("want %s once in the log:\n%s", want, got)
			}
		}
		if lines := strings.Count(got, "longer than the 4194304 bytes that clients take by default"); lines != 4 {
			t.Errorf("%d lines:\n%s", lines, got)
		}
	}
}
