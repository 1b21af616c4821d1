package main

import (
	"bytes"
	"fmt"
	"net"
	"sync"
	"time"
)

// clients are connections that count the messages they hear. A message ends
// with a newline and some framing.
type clients struct {
	all   []*client
	heard chan error // an element for each client that has heard
}

type client struct {
	conn net.Conn

	mu   sync.Mutex
	last []byte // what it heard last
}

// patience is how long a round may take.
const patience = time.Minute

// request returns the HTTP request that opens a subscription. All have the same
// length.
func request(i int) string {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},`+
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"listens","version":"1.0.0"},`+
		`"io.modelcontextprotocol/clientCapabilities":{}}}}`, 100_000+i)
	return fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: localhost\r\nUser-Agent: listens/1.0\r\nContent-Type: application/json\r\n"+
		"Accept: application/json, text/event-stream\r\nMcp-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\n"+
		"Content-Length: %d\r\n\r\n%s", len(body), body)
}

// dial opens n connections, says the request of each, and waits for what
// answers it.
func dial(addr string, n int, request func(i int) string) (*clients, error) {
	c := &clients{heard: make(chan error, n)}
	for i := range n {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			c.close()
			return nil, err
		}
		one := &client{conn: conn}
		c.all = append(c.all, one)
		if _, err := conn.Write([]byte(request(i))); err != nil {
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
		if !bytes.HasSuffix(text, []byte("\n\n\r\n")) && !bytes.Equal(text, []byte("ready\n")) {
			continue
		}
		c.mu.Lock()
		c.last, text = text, c.last[:0]
		c.mu.Unlock()
		heard <- nil
	}
}

// wait returns when every client has heard one more message.
func (c *clients) wait() error { return c.await(len(c.all)) }

func (c *clients) await(n int) error {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for i := range n {
		select {
		case err := <-c.heard:
			if err != nil {
				return err
			}
		case <-timer.C:
			return fmt.Errorf("%d of %d clients have heard nothing after %v", n-i, n, patience)
		}
	}
	return nil
}

// first returns what the first client heard last.
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
