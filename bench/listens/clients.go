package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// clients are connections that count their messages. A message ends with a
// newline and some framing.
type clients struct {
	all   []*client
	heard chan error // one element per client that received the message
}

type client struct {
	conn net.Conn

	mu   sync.Mutex
	last []byte // the last message
}

// timeLimit is the time limit of a round.
const timeLimit = time.Minute

// request returns the HTTP request that opens a subscription. All have the same
// length.
func request(_ string, i int) (string, error) {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},`+
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"listens","version":"1.0.0"},`+
		`"io.modelcontextprotocol/clientCapabilities":{}}}}`, 100_000+i)
	return fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: localhost\r\nUser-Agent: listens/1.0\r\nContent-Type: application/json\r\n"+
		"Accept: application/json, text/event-stream\r\nMcp-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\n"+
		"Content-Length: %d\r\n\r\n%s", len(body), body), nil
}

// sessionRequest opens a legacy session, and returns the HTTP request that opens
// its stream.
func sessionRequest(addr string, _ int) (string, error) {
	const revision = "2025-11-25"
	say := func(session, body string) (*http.Response, error) {
		r, err := http.NewRequest(http.MethodPost, "http://"+addr+"/mcp", strings.NewReader(body))
		if err != nil {
			return nil, err
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
			r.Header.Set("Mcp-Protocol-Version", revision)
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			return nil, err
		}
		defer res.Body.Close()
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			return nil, err
		}
		if res.StatusCode >= 300 {
			return nil, fmt.Errorf("the server answered %s", res.Status)
		}
		return res, nil
	}
	res, err := say("", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+revision+`","capabilities":{},"clientInfo":{"name":"listens","version":"1.0.0"}}}`)
	if err != nil {
		return "", err
	}
	id := res.Header.Get("Mcp-Session-Id")
	if _, err := say(id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`); err != nil {
		return "", err
	}
	return "GET /mcp HTTP/1.1\r\nHost: localhost\r\nUser-Agent: listens/1.0\r\nAccept: text/event-stream\r\n" +
		"Mcp-Protocol-Version: " + revision + "\r\nMcp-Session-Id: " + id + "\r\n\r\n", nil
}

// dial opens n connections, says the request of each, and waits for what
// answers it.
func dial(addr string, n int, request func(addr string, i int) (string, error)) (*clients, error) {
	c := &clients{heard: make(chan error, n)}
	for i := range n {
		text, err := request(addr, i)
		if err != nil {
			c.close()
			return nil, err
		}
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			c.close()
			return nil, err
		}
		one := &client{conn: conn}
		c.all = append(c.all, one)
		if _, err := conn.Write([]byte(text)); err != nil {
			c.close()
			return nil, err
		}
		go one.read(c.heard)
		if i%100 == 99 { // a client at a time, more or less, as in life
			if err := c.await(100); err != nil {
				c.close()
				return nil, err
			}
		}
	}
	if err := c.await(n % 100); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// read reports every message: what a read returns that ends a line of data.
func (c *client) read(heard chan<- error) {
	buffer := make([]byte, 2048)
	var text []byte
	for {
		n, err := c.conn.Read(buffer)
		text = append(text, buffer[:n]...)
		if err != nil {
			heard <- err
			return
		}
		if !bytes.HasSuffix(text, []byte("\n\n\r\n")) && !bytes.HasSuffix(text, []byte("\r\n\r\n")) && !bytes.Equal(text, []byte("ready\n")) {
			continue
		}
		c.mu.Lock()
		c.last, text = text, c.last[:0]
		c.mu.Unlock()
		heard <- nil
	}
}

// wait returns when every client has received one more message.
func (c *clients) wait() error { return c.await(len(c.all)) }

func (c *clients) await(n int) error {
	timer := time.NewTimer(timeLimit)
	defer timer.Stop()
	for i := range n {
		select {
		case err := <-c.heard:
			if err != nil {
				return err
			}
		case <-timer.C:
			return fmt.Errorf("%d of %d clients have heard nothing after %v", n-i, n, timeLimit)
		}
	}
	return nil
}

// first returns the last message of the first client.
func (c *clients) first() []byte {
	one := c.all[0]
	one.mu.Lock()
	defer one.mu.Unlock()
	return bytes.Clone(one.last)
}

func (c *clients) close() {
	for _, one := range c.all {
		one.conn.Close()
	}
}
