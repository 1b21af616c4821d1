package soak_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// soakConn is a link over a connection that has lines.
type soakConn struct {
	c      *soakClient
	in     io.WriteCloser
	out    io.ReadCloser
	lines  *bufio.Reader
	served chan struct{} // closed when the server has let go; nil if that cannot be seen
}

func openSoakPipes(c *soakClient) soakLink {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		// Clients go away at will: what that makes of the link is not the point.
		_ = c.server.ServeConn(context.Background(), transport.NewStream(inR, outW, nil))
	}()
	return &soakConn{c, inW, outR, bufio.NewReader(outR), served}
}

func openSoakTCP(c *soakClient) soakLink {
	conn, err := net.Dial("tcp", c.socket.String())
	if err != nil {
		c.t.Error(err)
		return openSoakPipes(c)
	}
	return &soakConn{c, halfCloser{conn.(*net.TCPConn)}, conn, bufio.NewReader(conn), nil}
}

// halfCloser closes what is written, and leaves what is read.
type halfCloser struct{ *net.TCPConn }

func (h halfCloser) Close() error { return h.CloseWrite() }

func (l *soakConn) exchange(lines []string) (heard []string, err error) {
	written := l.write(strings.Join(lines, "\n"))
	want := 0
	for _, line := range lines {
		if harness.IsRequest(line) {
			want++
		}
	}
	for want > 0 && err == nil {
		var message string
		if message, err = l.lines.ReadString('\n'); err == nil {
			heard = append(heard, strings.TrimSuffix(message, "\n"))
			if !strings.Contains(message, `"method":"notifications/`) {
				want--
			}
		}
	}
	return heard, errors.Join(err, <-written)
}

// write sends a line while it is being read, or not: the server may want what
// it sends read before it reads on.
func (l *soakConn) write(line string) (done <-chan error) {
	written := make(chan error, 1)
	go func() {
		_, err := io.WriteString(l.in, line+"\n")
		written <- err
	}()
	return written
}

func (l *soakConn) leave(call string) time.Time {
	l.write(call)
	for {
		message, err := l.lines.ReadString('\n')
		if err != nil || strings.Contains(message, protocol.MethodProgress) {
			break
		}
	}
	gone := time.Now()
	l.out.Close()
	if pipe, ok := l.in.(*io.PipeWriter); ok {
		pipe.CloseWithError(io.ErrClosedPipe) // it broke; a mere end would leave the call time to be answered
	} else {
		l.in.Close()
	}
	l.wait()
	return gone
}

func (l *soakConn) stall(call string) { l.write(call) }

func (l *soakConn) close() []string {
	l.in.Close()
	var heard []string
	for {
		message, err := l.lines.ReadString('\n')
		if err != nil {
			break
		}
		heard = append(heard, strings.TrimSuffix(message, "\n"))
	}
	l.out.Close()
	l.wait()
	return heard
}

func (l *soakConn) wait() {
	if l.served != nil {
		<-l.served
	}
}

// soakHTTP is a link over HTTP: a session in a legacy revision, else nothing
// that lasts.
type soakHTTP struct {
	c       *soakClient
	session string
	hung    net.Conn // the connection of a call that is not read
}

func openSoakHTTP(c *soakClient) soakLink { return &soakHTTP{c: c} }

func (l *soakHTTP) header() http.Header {
	h := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	if l.session != "" {
		h.Set("Mcp-Session-Id", l.session)
	}
	if rev := l.c.kind.rev; rev.Has(protocol.FeatureVersionHeader) {
		h.Set("Mcp-Protocol-Version", rev.String())
	}
	return h
}

// request makes the request that posts a message.
func (l *soakHTTP) request(ctx context.Context, line string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.c.url, strings.NewReader(line))
	if err != nil {
		return nil, err
	}
	req.Header = l.header()
	if _, name, ok := strings.Cut(line, `"name":"`); ok && l.c.kind.rev.Modern() {
		name, _, _ = strings.Cut(name, `"`)
		req.Header.Set("Mcp-Method", protocol.MethodToolsCall)
		req.Header.Set("Mcp-Name", name)
	}
	return req, nil
}

func (l *soakHTTP) exchange(lines []string) ([]string, error) {
	var mu sync.Mutex
	var heard []string
	var errs []error
	var all sync.WaitGroup
	for _, line := range lines {
		all.Go(func() {
			messages, err := l.post(line)
			mu.Lock()
			defer mu.Unlock()
			heard = append(heard, messages...)
			errs = append(errs, err)
		})
	}
	all.Wait()
	return heard, errors.Join(errs...)
}

// post posts a message. The server refuses calls of a session beyond its limit,
// for a while.
func (l *soakHTTP) post(line string) ([]string, error) {
	for {
		heard, busy, err := l.try(line)
		if !busy {
			return heard, err
		}
		l.c.counts.busy.Add(1)
		<-time.After(10 * time.Millisecond)
	}
}

func (l *soakHTTP) try(line string) (heard []string, busy bool, err error) {
	req, err := l.request(context.Background(), line)
	if err != nil {
		return nil, false, err
	}
	res, err := l.c.http.Do(req)
	if err != nil {
		return nil, false, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, false, err
	}
	if id := res.Header.Get("Mcp-Session-Id"); id != "" {
		l.session = id // of initialize, which is alone
	}
	switch {
	case res.StatusCode == http.StatusServiceUnavailable && strings.Contains(string(body), "requests in progress, the limit"):
		return nil, true, nil
	case res.StatusCode == http.StatusAccepted:
		return nil, false, nil
	case strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream"):
		messages := harness.Events(body)
		if id := idOf(line); id == "" || !strings.Contains(messages[len(messages)-1], id) {
			err = fmt.Errorf("the answer to %s is not the last of %q", line, messages)
		}
		return messages, false, err
	}
	if id := idOf(line); id != "" && !strings.Contains(string(body), id) {
		err = fmt.Errorf("%s was answered %s", line, body)
	}
	return []string{string(body)}, false, err
}

// idOf returns the id of a call as it is in its answer; "" of other messages.
func idOf(line string) string {
	_, rest, ok := strings.Cut(line, `"id":"c`)
	id, _, _ := strings.Cut(rest, `"`)
	if !ok {
		return ""
	}
	return `"id":"c` + id + `"`
}

func (l *soakHTTP) leave(call string) time.Time {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	req, err := l.request(ctx, call)
	if err != nil {
		l.c.t.Error(err)
		return time.Now()
	}
	res, err := l.c.http.Do(req)
	if err != nil {
		l.c.t.Error(err)
		return time.Now()
	}
	if _, err := bufio.NewReader(res.Body).ReadByte(); err != nil {
		l.c.t.Error(err)
	}
	gone := time.Now()
	cancel()
	res.Body.Close()
	l.end()
	return gone
}

// end deletes the session, which cancels what is under way in it: a lost
// connection does not.
func (l *soakHTTP) end() {
	if l.session == "" {
		return
	}
	req, err := http.NewRequest(http.MethodDelete, l.c.url, nil)
	if err != nil {
		l.c.t.Error(err)
		return
	}
	req.Header = l.header()
	res, err := l.c.http.Do(req)
	if err != nil {
		l.c.t.Error(err)
		return
	}
	res.Body.Close()
	if res.StatusCode != http.StatusNoContent {
		l.c.t.Errorf("%s: DELETE: %s", l.c.kind.rev, res.Status)
	}
	l.session = ""
}

func (l *soakHTTP) stall(call string) {
	req, err := l.request(context.Background(), call)
	if err != nil {
		l.c.t.Error(err)
		return
	}
	if l.hung, err = net.Dial("tcp", l.c.addr); err != nil {
		l.c.t.Error(err)
		return
	}
	if err := req.Write(l.hung); err != nil {
		l.c.t.Error(err)
	}
}

func (l *soakHTTP) close() []string {
	if l.hung != nil {
		l.hung.Close()
	}
	l.end()
	return nil
}
