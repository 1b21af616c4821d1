package docs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/middleware"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/slogwriter"
	"github.com/talaria-go/mcp/transport"
)

func audit(logger *log.Logger) mcp.Middleware {
	return func(next mcp.Handler) mcp.Handler {
		return func(f *mcp.Frame) (protocol.Result, error) {
			begin := time.Now()
			result, err := next(f)
			logger.Printf("%s %s by %q took %v: %v", f.Request().Method, f.Request().Params.Name, f.Principal(), time.Since(begin), err)
			return result, err
		}
	}
}

type StockIn struct {
	Item string `json:"item"`
}

type StockOut struct {
	Left int `json:"left"`
}

func stock(ctx context.Context, in StockIn) (StockOut, error) { return StockOut{Left: 7}, nil }

func serveStream(ctx context.Context, s *mcp.Server, rw io.ReadWriter) error {
	return s.ServeConn(ctx, transport.NewStream(rw, rw, nil))
}

func record(r io.Reader, w io.Writer, rev protocol.Revision) error {
	for m, err := range protocol.DecodeLines(r) {
		var invalid *protocol.Error
		switch {
		case errors.As(err, &invalid):
			fmt.Fprintln(w, "invalid:", invalid)
		case err != nil:
			return err
		case m.Validate(rev) != nil:
			fmt.Fprintln(w, m.Kind(), m.Method, m.ID, "not in this revision:", m.Validate(rev))
		default:
			fmt.Fprintln(w, m.Kind(), m.Method, m.ID)
		}
	}
	return nil
}

func refuse(line []byte) ([]byte, error) {
	m, err := protocol.Decode(line)
	if err != nil || m.Kind() != protocol.KindRequest {
		return nil, err
	}
	return protocol.NewErrorResponse(m.ID, protocol.Errorf(protocol.CodeUnavailable, "closed for today")).MarshalJSON()
}

var opened atomic.Int64

func useMiddleware(s *mcp.Server, logger *log.Logger) {
	s.Use(audit(logger), middleware.RateLimit(&middleware.RateLimitOptions{Rate: 5}), middleware.ConcurrencyLimit(100, time.Second))
}

func refund(context.Context, struct{}) (string, error) { return "refunded", nil }
func isManager(f *mcp.Frame) bool                      { return f.Identity() != nil && f.Identity().Subject == "ada" }

func filtered() *mcp.Server {
	s := mcp.NewServer(mcp.Info{Name: "shop", Version: "1.0.0"}, &mcp.Options{
		Filter: func(f *mcp.Frame, kind mcp.Kind, name string) bool {
			return kind != mcp.KindTool || !strings.HasPrefix(name, "internal_") || f.Principal() != ""
		},
	})
	s.MustAdd(mcp.Tool("refund", refund, mcp.VisibleTo(isManager)))
	return s
}

func mounted(s *mcp.Server) error {
	forecast := refund
	weather := mcp.NewServer(mcp.Info{Name: "weather", Version: "1.0.0"}, nil)
	weather.MustAdd(mcp.Tool("forecast", forecast))
	if err := s.Mount("weather", weather); err != nil {
		return err
	}
	return nil
}

func ownMethods(s *mcp.Server) error {
	s.MustAdd(mcp.Method("shop/stock", stock))
	err := s.OnNotification("shop/opened", func(f *mcp.Frame) error {
		opened.Add(1)
		return nil
	})
	return err
}

func logged() *mcp.Server {
	logger := zerolog.New(slogwriter.New(slog.Default().Handler())).Level(zerolog.InfoLevel)
	s := mcp.NewServer(mcp.Info{Name: "shop", Version: "1.0.0"}, &mcp.Options{Logger: &logger})
	return s
}

func TestExtending(t *testing.T) {
	var lines bytes.Buffer
	s := filtered()
	s.MustAdd(mcp.Tool("internal_reset", refund))
	useMiddleware(s, log.New(&lines, "", 0))
	if err := mounted(s); err != nil {
		t.Fatal(err)
	}
	if err := ownMethods(s); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ who, want string }{
		{"", "weather_forecast"},
		{"bob", "internal_reset weather_forecast"},
		{"ada", "internal_reset refund weather_forecast"},
	} {
		c := mcptest.New(t, s, mcptest.As(mcp.Identity{Subject: tt.who}))
		var names []string
		for _, tool := range c.Tools() {
			names = append(names, tool.Name)
		}
		if got := strings.Join(names, " "); got != tt.want {
			t.Errorf("%q sees %s, want %s", tt.who, got, tt.want)
		}
		if got := c.Call("weather_forecast", nil).Text(); got != "refunded" {
			t.Errorf("got %q", got)
		}
		if got := string(c.Request("shop/stock", StockIn{"tea"})); !strings.Contains(got, `"left":7`) {
			t.Errorf("got %s", got)
		}
		if _, err := c.TryRequest("shop/stock", map[string]any{"item": 5}); err == nil {
			t.Error("a number was taken for a text")
		}
	}
	if !strings.Contains(lines.String(), `tools/call weather_forecast by "`) {
		t.Errorf("logged %s", &lines)
	}
	legacy := mcptest.New(t, s, mcptest.Revision(protocol.V20251125))
	legacy.Notify("shop/opened", nil)
	legacy.Call("weather_forecast", nil)
	if opened.Load() == 0 {
		t.Error("the notification was not heard")
	}
}

// A panic goes to the log by way of slog.
func TestExtendingLog(t *testing.T) {
	var lines bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&lines, nil)))
	defer slog.SetDefault(before)
	s := logged()
	s.MustAdd(mcp.Tool("panic", func(context.Context, struct{}) (string, error) { panic("oh") }))
	if _, err := mcptest.New(t, s).TryCall("panic", nil); err == nil {
		t.Error("no error")
	}
	if !strings.Contains(lines.String(), "level=ERROR") {
		t.Errorf("logged %s", &lines)
	}
}

func TestServeStream(t *testing.T) {
	s := mcp.NewServer(mcp.Info{Name: "stream", Version: "1"}, nil)
	s.MustAdd(mcp.Tool("refund", refund))
	near, far := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- serveStream(context.Background(), s, far) }()
	c, err := client.Connect(t.Context(), client.Stream(near, near, nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := client.Call[string](t.Context(), c, "refund", nil); got != "refunded" {
		t.Errorf("got %q, %v", got, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	_ = near.Close()
	<-served
}

func TestRecord(t *testing.T) {
	stream := `{"jsonrpc":"2.0","id":1,"method":"ping"}
nothing
{"jsonrpc":"2.0","id":1,"method":"server/discover"}
{"jsonrpc":"2.0","id":1,"result":{}}
`
	var got strings.Builder
	if err := record(strings.NewReader(stream), &got, protocol.V20251125); err != nil {
		t.Error(err)
	}
	want := `request ping 1
invalid: Parse error: unexpected 'n', want null at byte 0
request server/discover 1 not in this revision: Method not found: server/discover is not in revision 2025-11-25
response  1
`
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &got, want)
	}
	answer, err := refuse([]byte(`{"jsonrpc":"2.0","id":"<a>","method":"ping"}`))
	if string(answer) != `{"jsonrpc":"2.0","id":"<a>","error":{"code":503,"message":"closed for today"}}` {
		t.Errorf("got %s, %v", answer, err)
	}
}
