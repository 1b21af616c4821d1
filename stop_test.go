package mcp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// errFired is a reason for which tests stop sessions.
var errFired = errors.New("the user was fired")

// TestStop sees that an event, and a notification, can end the session over
// every transport, that its calls are cancelled, and that Terminate learns why.
func TestStop(t *testing.T) {
	for _, by := range []string{"event", "notification"} {
		for _, tr := range transportsOf(protocol.LatestLegacy) {
			t.Run(by+"/"+tr.name, func(t *testing.T) {
				ended, started, cancelled := make(chan error, 2), make(chan string, 1), make(chan error, 1)
				s := fixture(t, &mcp.Options{
					OnEvent:   func(_ *mcp.Frame, event any) error { return fmt.Errorf("late: %w", mcp.Stop(event.(error))) },
					Terminate: func(_ *mcp.Frame, reason error) { ended <- reason },
				})
				s.MustAdd(mcp.Tool("wait", func(f *mcp.Frame, _ empty) (string, error) {
					started <- f.SessionID()
					<-f.Done()
					cancelled <- f.Err()
					return "", f.Err()
				}))
				if err := s.OnNotification("notifications/acme/bye", func(*mcp.Frame) error { return mcp.Stop(errFired) }); err != nil {
					t.Fatal(err)
				}
				p := join(t, tr, protocol.LatestLegacy, s)
				h := p.hear()
				h.send("7", "tools/call", `"name":"wait"`)
				id := <-started
				if by == "event" {
					if err := s.Post(t.Context(), id, errFired); !errors.Is(err, errFired) {
						t.Errorf("Post: %v, want the reason", err)
					}
				} else {
					h.line(`{"jsonrpc":"2.0","method":"notifications/acme/bye"}`)
				}
				<-cancelled
				select {
				case reason := <-ended:
					if reason != errFired {
						t.Errorf("Terminate: %v, want the reason", reason)
					}
				case <-time.After(patience):
					t.Fatal("Terminate did not run")
				}
				if err := s.Post(t.Context(), id, errFired); !errors.Is(err, mcp.ErrNoSession) {
					t.Errorf("Post afterwards: %v, want ErrNoSession", err)
				}
				if c, ok := p.c.(*httpClient); ok {
					wantGone(t, c)
				}
				select {
				case reason := <-ended:
					t.Errorf("Terminate ran again: %v", reason)
				default:
				}
			})
		}
	}
}

// wantGone checks that the session of c is unknown.
func wantGone(t *testing.T, c *httpClient) {
	req, err := http.NewRequest(http.MethodPost, c.url, strings.NewReader(pingLine))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	c.setHeaders(req, pingLine)
	res, err := c.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusNotFound {
		t.Errorf("the session answers with %d, %v, want 404", res.StatusCode, err)
	}
}

// Stop for no reason has one, and ends the service of a connection with it,
// once its client has heard what was sent before.
func TestStopConnection(t *testing.T) {
	s := sessions(mcp.Options{OnEvent: func(f *mcp.Frame, _ any) error {
		return errors.Join(f.Log(protocol.LevelError, "bye"), mcp.Stop(nil))
	}})
	client, server := transport.Pipe()
	served := make(chan error, 1)
	go func() { served <- s.ServeConn(t.Context(), server) }()
	c := newConnClient(t, client, protocol.LatestLegacy)
	c.say(initLine)
	c.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	var id struct {
		Result struct{ Content []struct{ Text string } }
	}
	if err := json.Unmarshal([]byte(c.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"id"}}`)[0]), &id); err != nil {
		t.Fatal(err)
	}
	if err := s.Post(t.Context(), id.Result.Content[0].Text, "end"); !errors.Is(err, mcp.ErrSessionClosed) {
		t.Errorf("Post: %v, want ErrSessionClosed", err)
	}
	if err := <-served; !errors.Is(err, mcp.ErrSessionClosed) {
		t.Errorf("ServeConn: %v, want ErrSessionClosed", err)
	}
	if got := c.hear(); !strings.Contains(got, `"data":"bye"`) {
		t.Errorf("heard %s, want the log", got)
	}
	if _, err := client.Read(); !errors.Is(err, transport.ErrPeerGone) {
		t.Errorf("read %v, want ErrPeerGone", err)
	}
}
