package sessions_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// TestEndSession sees that Do, a notification, and a call can end the session over
// every transport, that its calls are cancelled, and that OnSessionEnd learns why.
func TestEndSession(t *testing.T) {
	for _, by := range []string{"event", "notification", "call"} {
		for _, tr := range harness.TransportsOf(protocol.LatestLegacy) {
			t.Run(by+"/"+tr.Name, func(t *testing.T) {
				ended, started, cancelled := make(chan error, 2), make(chan string, 1), make(chan error, 1)
				s := harness.Fixture(t, &mcp.Options{
					OnSessionEnd: func(_ *mcp.Frame, reason error) { ended <- reason },
				})
				end := func(f *mcp.Frame) error { return f.EndSession(harness.ErrFired) }
				s.MustAdd(mcp.Tool("end", func(f *mcp.Frame, _ struct{}) (string, error) { return "", end(f) }))
				s.MustAdd(mcp.Tool("wait", func(f *mcp.Frame, _ struct{}) (string, error) {
					started <- f.SessionID()
					<-f.Done()
					cancelled <- f.Err()
					return "", f.Err()
				}))
				if err := s.OnNotification("notifications/acme/bye", end); err != nil {
					t.Fatal(err)
				}
				p := harness.Join(t, tr, protocol.LatestLegacy, s)
				h := p.Hear()
				h.Send("7", "tools/call", `"name":"wait"`)
				id := <-started
				switch by {
				case "event":
					if err := s.WithSession(t.Context(), id, end); err != nil {
						t.Errorf("Do: %v", err)
					}
				case "notification":
					h.Line(`{"jsonrpc":"2.0","method":"notifications/acme/bye"}`)
				case "call":
					h.Send("8", "tools/call", `"name":"end"`)
				}
				<-cancelled
				select {
				case reason := <-ended:
					if reason != harness.ErrFired {
						t.Errorf("OnSessionEnd: %v, want the reason", reason)
					}
				case <-time.After(harness.Patience):
					t.Fatal("OnSessionEnd did not run")
				}
				if err := s.WithSession(t.Context(), id, end); !errors.Is(err, mcp.ErrSessionNotFound) {
					t.Errorf("Do afterwards: %v, want ErrSessionNotFound", err)
				}
				if c, ok := p.C.(*harness.HTTPClient); ok {
					wantGone(t, c)
				}
				select {
				case reason := <-ended:
					t.Errorf("OnSessionEnd ran again: %v", reason)
				default:
				}
			})
		}
	}
}

// wantGone checks that the session of c is unknown.
func wantGone(t *testing.T, c *harness.HTTPClient) {
	req, err := http.NewRequest(http.MethodPost, c.URL, strings.NewReader(harness.PingLine))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	c.SetHeaders(req, harness.PingLine)
	res, err := c.Client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusNotFound {
		t.Errorf("the session answers with %d, %v, want 404", res.StatusCode, err)
	}
}

// EndSession for no reason has one, and ends the service of a connection with it,
// once its client has heard what was sent before.
func TestEndSessionOfConnection(t *testing.T) {
	s := sessions(mcp.Options{})
	end := func(f *mcp.Frame) error { return errors.Join(f.Log(protocol.LevelError, "bye"), f.EndSession(nil)) }
	client, server := transport.Pipe()
	served := make(chan error, 1)
	go func() { served <- s.ServeConn(t.Context(), server) }()
	c := harness.NewConnClient(t, client, protocol.LatestLegacy)
	c.Say(harness.InitLine)
	c.Say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	var id struct {
		Result struct{ Content []struct{ Text string } }
	}
	if err := json.Unmarshal([]byte(c.Say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"id"}}`)[0]), &id); err != nil {
		t.Fatal(err)
	}
	if err := s.WithSession(t.Context(), id.Result.Content[0].Text, end); err != nil {
		t.Errorf("Do: %v", err)
	}
	if err := <-served; !errors.Is(err, mcp.ErrSessionClosed) {
		t.Errorf("ServeConn: %v, want ErrSessionClosed", err)
	}
	if got := c.Hear(); !strings.Contains(got, `"data":"bye"`) {
		t.Errorf("heard %s, want the log", got)
	}
	if _, err := client.Read(); !errors.Is(err, transport.ErrPeerGone) {
		t.Errorf("read %v, want ErrPeerGone", err)
	}
}

// Where there is no session, EndSession says so.
func TestEndSessionWithoutOne(t *testing.T) {
	s := harness.Bare(mcp.Options{})
	s.MustAdd(mcp.Tool("end", func(f *mcp.Frame, _ struct{}) (string, error) { return "", f.EndSession(harness.ErrFired) }))
	c := mcptest.New(t, s, mcptest.Revision(protocol.Latest))
	if r := c.Call("end", nil); !r.IsError || !strings.Contains(r.Text(), "no session") {
		t.Errorf("got %s", r.Raw)
	}
}
