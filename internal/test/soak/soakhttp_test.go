package soak_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	raw "github.com/coder/websocket"

	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
)

// soakWebSocket is a link over WebSocket.
type soakWebSocket struct {
	c    *soakClient
	conn *raw.Conn
}

func openSoakWebSocket(c *soakClient) soakLink {
	conn, _, err := raw.Dial(context.Background(), c.url+"/ws", &raw.DialOptions{Subprotocols: []string{"mcp"}})
	if err != nil {
		c.t.Error(err)
		return openSoakPipes(c)
	}
	conn.SetReadLimit(-1)
	return &soakWebSocket{c, conn}
}

func (l *soakWebSocket) exchange(lines []string) ([]string, error) {
	written := make(chan error, 1)
	go func() {
		var err error
		for _, line := range lines {
			err = errors.Join(err, l.conn.Write(context.Background(), raw.MessageText, []byte(line)))
		}
		written <- err
	}()
	heard, err := untilAnswered(lines, func() (string, error) {
		_, message, err := l.conn.Read(context.Background())
		return string(message), err
	})
	return heard, errors.Join(err, <-written)
}

// untilAnswered hears messages until each request among lines has an answer.
func untilAnswered(lines []string, next func() (string, error)) (heard []string, err error) {
	want := 0
	for _, line := range lines {
		if harness.IsRequest(line) {
			want++
		}
	}
	for want > 0 {
		message, err := next()
		if err != nil {
			return heard, err
		}
		heard = append(heard, message)
		if !strings.Contains(message, `"method":"notifications/`) {
			want--
		}
	}
	return heard, nil
}

func (l *soakWebSocket) leave(call string) time.Time {
	if err := l.conn.Write(context.Background(), raw.MessageText, []byte(call)); err != nil {
		l.c.t.Error(err)
	}
	for {
		_, message, err := l.conn.Read(context.Background())
		if err != nil || strings.Contains(string(message), protocol.MethodProgress) {
			break
		}
	}
	gone := time.Now()
	_ = l.conn.CloseNow() // without a word
	return gone
}

func (l *soakWebSocket) stall(call string) {
	if err := l.conn.Write(context.Background(), raw.MessageText, []byte(call)); err != nil {
		l.c.t.Error(err)
	}
}

func (l *soakWebSocket) close() []string {
	_ = l.conn.Close(raw.StatusNormalClosure, "") // the server may have gone, if the client stalled
	return nil
}

// soakSSE is a link over HTTP+SSE.
type soakSSE struct {
	c      *soakClient
	cancel context.CancelFunc
	body   io.ReadCloser
	stream *harness.SSEClient // its events alone
	post   string
}

func openSoakSSE(c *soakClient) soakLink {
	ctx, cancel := context.WithCancel(context.Background())
	l := &soakSSE{c: c, cancel: cancel}
	if err := l.connect(ctx); err != nil {
		cancel()
		c.t.Error(err)
		return openSoakPipes(c)
	}
	return l
}

func (l *soakSSE) connect(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.c.url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "text/event-stream")
	res, err := l.c.http.Do(req)
	if err != nil {
		return err
	}
	l.body = res.Body
	l.stream = &harness.SSEClient{T: l.c.t, Events: bufio.NewReader(res.Body)}
	kind, data, err := l.stream.Event()
	if err != nil || kind != "endpoint" {
		res.Body.Close()
		return fmt.Errorf("no endpoint: %s %s %w", res.Status, data, err)
	}
	endpoint, err := url.Parse(data)
	if err != nil {
		return err
	}
	l.post = req.URL.ResolveReference(endpoint).String()
	return nil
}

// say posts a message; its answer comes on the stream.
func (l *soakSSE) say(line string) error {
	res, err := l.c.http.Post(l.post, "application/json", strings.NewReader(line))
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusAccepted {
		return fmt.Errorf("POST of %s: %s %s %w", line, res.Status, body, err)
	}
	return nil
}

func (l *soakSSE) exchange(lines []string) ([]string, error) {
	var mu sync.Mutex
	var said error
	var all sync.WaitGroup
	for _, line := range lines {
		all.Go(func() {
			err := l.say(line)
			mu.Lock()
			defer mu.Unlock()
			said = errors.Join(said, err)
		})
	}
	heard, err := untilAnswered(lines, func() (string, error) {
		_, data, err := l.stream.Event()
		return data, err
	})
	all.Wait()
	return heard, errors.Join(err, said)
}

func (l *soakSSE) leave(call string) time.Time {
	if err := l.say(call); err != nil {
		l.c.t.Error(err)
	}
	for {
		_, data, err := l.stream.Event()
		if err != nil || strings.Contains(data, protocol.MethodProgress) {
			break
		}
	}
	gone := time.Now()
	l.close()
	return gone
}

func (l *soakSSE) stall(call string) {
	if err := l.say(call); err != nil {
		l.c.t.Error(err)
	}
}

func (l *soakSSE) close() []string {
	l.cancel()
	l.body.Close()
	return nil
}
