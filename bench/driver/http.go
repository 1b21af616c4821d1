package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// httpConn is one keep-alive connection. It parses as little of HTTP as the
// servers use, because it shares the processors with them.
type httpConn struct {
	net.Conn
	in      *bufio.Reader
	body    []byte // of the last answer
	session string // Mcp-Session-Id of the last answer that had one
}

func dialHTTP(addr string) (*httpConn, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &httpConn{Conn: c, in: bufio.NewReaderSize(c, 1<<16)}, nil
}

// post returns m as an HTTP request.
func post(addr, headers string, m message) message {
	head := fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\n"+
		"Accept: application/json, text/event-stream\r\n%sContent-Length: %d\r\n\r\n", addr, headers, len(m.text))
	return message{append([]byte(head), m.text...), len(head) + m.at}
}

// roundTrip sends a request and reads the answer into c.body. An event stream
// is reduced to the data of its last event.
func (c *httpConn) roundTrip(request []byte) (status int, err error) {
	if _, err := c.Write(request); err != nil {
		return 0, err
	}
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	if len(line) < 12 {
		return 0, fmt.Errorf("bad status line %q", line)
	}
	status, err = strconv.Atoi(string(line[9:12]))
	if err != nil {
		return 0, fmt.Errorf("bad status line %q", line)
	}
	length, events := -1, false
	for {
		if line, err = c.in.ReadSlice('\n'); err != nil {
			return 0, err
		}
		if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
			break
		}
		switch line[0] | 0x20 {
		case 'c', 'm': // the others have nothing that matters here
			name, value, _ := strings.Cut(string(line), ": ")
			switch {
			case strings.EqualFold(name, "Content-Length"):
				if length, err = strconv.Atoi(value); err != nil {
					return 0, err
				}
			case strings.EqualFold(name, "Content-Type"):
				events = strings.HasPrefix(value, "text/event-stream")
			case strings.EqualFold(name, "Mcp-Session-Id"):
				c.session = value
			}
		}
	}
	if err := c.readBody(length, status); err != nil {
		return 0, err
	}
	if events {
		c.body = lastEvent(c.body)
	}
	return status, nil
}

// readBody reads a body of known length, or a chunked one.
func (c *httpConn) readBody(length, status int) error {
	c.body = c.body[:0]
	if length >= 0 {
		return c.readInto(length)
	}
	if status == 204 {
		return nil
	}
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		size, err := strconv.ParseInt(strings.TrimSpace(string(line)), 16, 32)
		if err != nil {
			return err
		}
		if err := c.readInto(int(size)); err != nil {
			return err
		}
		if _, err := c.in.Discard(2); err != nil || size == 0 {
			return err
		}
	}
}

func (c *httpConn) readInto(n int) error {
	old := len(c.body)
	c.body = append(c.body, make([]byte, n)...)
	_, err := io.ReadFull(c.in, c.body[old:])
	return err
}

func lastEvent(stream []byte) []byte {
	var data []byte
	for line := range bytes.Lines(stream) {
		if rest, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			data = bytes.TrimSpace(rest)
		}
	}
	return data
}

// open makes a connection ready for calls: for legacy revisions each is a client
// of its own with its own session. token is a header of all requests. It returns the headers of calls.
func (c *httpConn) open(addr, token string, t task) (headers string, err error) {
	if t.kind == "modern" {
		return fmt.Sprintf("%sMCP-Protocol-Version: %s\r\nMcp-Method: tools/call\r\nMcp-Name: %s\r\n", token, modernRevision, t.tool), nil
	}
	if t.server.bare { // it gets the same bytes, but knows of no session
		return legacyHeaders("0123456789abcdef0123456789abcdef"), nil
	}
	status, err := c.roundTrip(post(addr, token, initializeMessage()).text)
	if err != nil || status != 200 {
		return "", fmt.Errorf("initialize: status %d, %.200s, %w", status, c.body, err)
	}
	headers = token + legacyHeaders(c.session)
	status, err = c.roundTrip(post(addr, headers, newMessage("notifications/initialized", 0, nil)).text)
	if err != nil || status != 202 && status != 200 {
		return "", fmt.Errorf("notifications/initialized: status %d, %.200s, %w", status, c.body, err)
	}
	return headers, nil
}

// authorization returns the header of the i-th connection, if there are tokens.
func authorization(tokens []string, i int) string {
	if len(tokens) == 0 {
		return ""
	}
	return "Authorization: Bearer " + tokens[i%len(tokens)] + "\r\n"
}

func legacyHeaders(session string) string {
	headers := "MCP-Protocol-Version: " + legacyRevision + "\r\n"
	if session != "" {
		headers += "Mcp-Session-Id: " + session + "\r\n"
	}
	return headers
}

// call makes one call and returns how long it took.
func (c *httpConn) call(request message, id int, check *checker) (time.Duration, error) {
	putID(request.text[request.at:], id)
	start := time.Now()
	status, err := c.roundTrip(request.text)
	took := time.Since(start)
	if err != nil {
		return 0, err
	}
	if status != 200 {
		return 0, fmt.Errorf("status %d: %.300s", status, c.body)
	}
	got, err := check.check(c.body)
	if err == nil && got != id {
		err = fmt.Errorf("answer to %d has the id %d", id, got)
	}
	return took, err
}

// driveHTTP keeps one call in flight on each of many connections.
func driveHTTP(p *process, t task, w *window) error {
	type client struct {
		*httpConn
		request message
		check   *checker
	}
	clients := make([]client, t.inFlight)
	for i := range clients {
		conn, err := dialHTTP(p.addr)
		if err != nil {
			return err
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(t.limit()))
		headers, err := conn.open(p.addr, authorization(p.token, i), t)
		if err != nil {
			return unsupported{err}
		}
		clients[i] = client{conn, post(p.addr, headers, callMessage(t.kind, t.tool)), newChecker(t.tool)}
		if _, err := conn.call(clients[i].request, firstID, clients[i].check); err != nil {
			return unsupported{err}
		}
	}
	failures := make(chan error, len(clients))
	for i := range clients {
		c, lane := &clients[i], w.lane(i)
		go func() {
			var failed error
			for id := firstID + 1; failed == nil && !w.over(); id++ {
				var took time.Duration
				if took, failed = c.call(c.request, id, c.check); failed == nil {
					lane.done(took)
				}
			}
			if failed != nil {
				w.stop()
			}
			failures <- failed
		}()
	}
	var all error
	if err := w.run(p); err != nil {
		all = err
	}
	for range clients {
		all = errors.Join(all, <-failures)
	}
	return all
}
