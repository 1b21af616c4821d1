package harness

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/transport"
)

// as returns a context of a user with those scopes; "" is an anonymous client.
func as(ctx context.Context, user string, scopes ...string) context.Context {
	if user == "" {
		return ctx
	}
	return mcp.WithIdentity(ctx, &frame.Identity{Subject: user, Scopes: scopes})
}

// AsHeaders serves requests as X-User with the scopes of X-Scopes.
func AsHeaders(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(as(r.Context(), r.Header.Get("X-User"), strings.Fields(r.Header.Get("X-Scopes"))...)))
	})
}

// Heard is what a client is told, a message a line.
type Heard struct {
	T     *testing.T
	Lines *bufio.Scanner
}

// hear returns the next message, which has part in it; notices of lists are passed.
func (h *Heard) Hear(part string) string {
	h.T.Helper()
	for h.Lines.Scan() {
		line := strings.TrimPrefix(h.Lines.Text(), "data: ")
		if !strings.HasPrefix(line, "{") || strings.Contains(line, "list_changed") {
			continue
		}
		if !strings.Contains(line, part) {
			h.T.Fatalf("heard %s; want %s", line, part)
		}
		return line
	}
	h.T.Fatalf("nothing comes any more, where %s should: %v", part, h.Lines.Err())
	return ""
}

// next returns the URI of the next notice of a change.
func (h *Heard) Next() string {
	h.T.Helper()
	_, rest, _ := strings.Cut(h.Hear(`"notifications/resources/updated"`), `"uri":"`)
	uri, _, _ := strings.Cut(rest, `"`)
	return uri
}

type connectedAs struct {
	Heard
	to transport.Conn
}

func (c *connectedAs) Say(line string) {
	if err := c.to.Write([]byte(line)); err != nil {
		c.T.Fatal(err)
	}
}

func ConnectAs(t *testing.T, s *mcp.Server, user string, scopes []string) *connectedAs {
	ctx, cancel := context.WithCancel(as(context.Background(), user, scopes...))
	here, there := transport.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = s.ServeConn(ctx, here)
	}()
	t.Cleanup(func() { cancel(); there.Close(); <-served })
	return &connectedAs{Heard{t, bufio.NewScanner(&connReader{from: there})}, there}
}

// connReader reads messages as lines.
type connReader struct {
	from transport.Conn
	left []byte
}

func (r *connReader) Read(p []byte) (int, error) {
	if len(r.left) == 0 {
		message, err := r.from.Read()
		if err != nil {
			return 0, err
		}
		r.left = append(append(r.left, message...), '\n')
	}
	n := copy(p, r.left)
	r.left = r.left[n:]
	return n, nil
}

type webClientAs struct {
	t       *testing.T
	url     string
	Session string
	user    string
	scopes  string
}

func WebAs(t *testing.T, s *mcp.Server, user string, scopes []string) *webClientAs {
	server := httptest.NewServer(AsHeaders(s.Handler()))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return &webClientAs{t: t, url: server.URL, user: user, scopes: strings.Join(scopes, " ")}
}

func (c *webClientAs) Send(method, body string, headers ...string) *http.Response {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.url, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	headers = append(headers, "Content-Type", "application/json", "X-User", c.user, "X-Scopes", c.scopes, "Mcp-Session-Id", c.Session)
	accept := "application/json, text/event-stream"
	if method == http.MethodGet {
		accept = "text/event-stream"
	}
	headers = append(headers, "Accept", accept)
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] != "" {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil || res.StatusCode != http.StatusOK {
		c.t.Fatalf("%v, %v", res, err)
	}
	c.t.Cleanup(func() { res.Body.Close() })
	return res
}

func (c *webClientAs) Stream(method, body string, headers ...string) *Heard {
	c.t.Helper()
	h := &Heard{c.t, bufio.NewScanner(c.Send(method, body, headers...).Body)}
	if method == http.MethodPost {
		h.Hear("acknowledged")
	}
	return h
}
