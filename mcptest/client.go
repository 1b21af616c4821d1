package mcptest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
)

// Client is connected to a server for the length of a test. Methods that take
// no error back end the test on failure, so they belong on its goroutine; Do
// may be called from any.
type Client struct {
	t      testing.TB
	conf   *config
	client *client.Client
	end    func() error // of the server's side

	// Server is the answer to initialize, or to server/discover.
	Server ServerInfo

	mu            sync.Mutex
	tokens        int // of progress, that calls have had
	notifications []Notification
	logs          []Log
	progress      map[string][]Progress // by token
	another       chan struct{}         // closed when a notification comes
	closed        sync.Once
}

// ServerInfo is what the server says of itself.
type ServerInfo struct {
	ProtocolVersion string                  `json:"protocolVersion"` // of initialize
	Info            protocol.Implementation `json:"serverInfo"`      // of initialize
	Capabilities    json.RawMessage         `json:"capabilities"`
	Instructions    string                  `json:"instructions"`
}

// New connects a client to the server and ends the test if that fails.
func New(t testing.TB, server *mcp.Server, options ...Option) *Client {
	t.Helper()
	c, err := Connect(t, server, options...)
	if err != nil {
		t.Fatalf("mcptest: %v", err)
	}
	return c
}

// Connect is New for tests that expect the connection to fail.
func Connect(t testing.TB, server *mcp.Server, options ...Option) (*Client, error) {
	t.Helper()
	c := &Client{t: t, conf: newConfig(options), progress: map[string][]Progress{}, another: make(chan struct{})}
	var to client.Transport
	if c.conf.http {
		to, c.end = overHTTP(c.conf, server)
	} else {
		to, c.end = overPipe(c.conf, server)
	}
	t.Cleanup(c.Close)
	if err := c.open(to); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// open connects with a client that does nothing by itself.
func (c *Client) open(to client.Transport) (err error) {
	ctx, cancel := c.within("not connected")
	defer cancel()
	c.client, err = client.Connect(ctx, to, &client.Options{
		Info: c.conf.info, Revisions: []protocol.Revision{c.conf.revision}, Capabilities: *c.conf.capabilities,
		OnRequest: c.answer, MaxRounds: maxRounds, LogLevel: c.conf.level, Trace: c.hear,
		Timeout: -1, MaxTimeout: -1, // the contexts have them
		LaxCapabilities: true, NoCache: true, Tasks: client.TasksOff, NoReconnect: true,
		CloseTimeout: max(c.conf.timeout, DefaultTimeout),
	})
	if err != nil {
		return plain(ctx, err)
	}
	return json.Unmarshal(c.client.ServerHello(), &c.Server)
}

// Close ends the connection, as the end of the test does.
func (c *Client) Close() {
	c.closed.Do(func() {
		var err error
		if c.client != nil {
			err = c.client.Close()
		}
		if err = errors.Join(err, c.end()); err != nil {
			c.t.Errorf("mcptest: the server ended the connection with: %v", err)
		}
	})
}

// Revision returns what the client speaks.
func (c *Client) Revision() protocol.Revision { return c.conf.revision }

// Request sends a request of any method and returns its result. params encode
// to an object, or are nil.
func (c *Client) Request(method string, params any) json.RawMessage {
	c.t.Helper()
	result, err := c.Do(method, params)
	if err != nil {
		c.t.Fatalf("mcptest: %s: %v", method, err)
	}
	return result
}

// maxRounds is how often Do answers the questions of one request.
const maxRounds = 20

// Do is Request for tests that expect an error: that of a JSON-RPC answer is a
// *protocol.Error.
func (c *Client) Do(method string, params any) (json.RawMessage, error) {
	ctx, cancel := c.within("no answer to " + method)
	defer cancel()
	return c.DoContext(ctx, method, params)
}

// within returns the context of what has the client's timeout.
func (c *Client) within(missing string) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(context.Background(), c.conf.timeout, fmt.Errorf("%s within %v", missing, c.conf.timeout))
}

// DoContext is Do without the client's timeout: when ctx ends, the request is
// cancelled and the cause of ctx returned.
func (c *Client) DoContext(ctx context.Context, method string, params any) (json.RawMessage, error) {
	object, err := objectOf(params)
	if err != nil {
		return nil, err
	}
	options := []client.CallOption{client.NoRetry()}
	if c.conf.http && c.conf.revision.Modern() && method == protocol.MethodToolsCall {
		options = nil // that a tool wants arguments in headers shows when it refuses a call
	}
	var result json.RawMessage
	if err := c.client.Request(ctx, method, object, &result, options...); err != nil {
		return nil, plain(ctx, err)
	}
	return result, nil
}

// Notify sends a notification.
func (c *Client) Notify(method string, params any) {
	c.t.Helper()
	object, err := objectOf(params)
	if err == nil {
		ctx, cancel := c.within("not sent")
		defer cancel()
		err = plain(ctx, c.client.Notify(ctx, method, object))
	}
	if err != nil {
		c.t.Fatalf("mcptest: %s: %v", method, err)
	}
}

// objectOf encodes params, which may be nil.
func objectOf(params any) (any, error) {
	text, err := json.Marshal(params)
	switch {
	case err != nil:
		return nil, err
	case string(text) == "null":
		return nil, nil
	case text[0] != '{':
		return nil, fmt.Errorf("params must encode to an object, got %s", text)
	}
	return json.RawMessage(text), nil
}

// plain returns the error of the server's answer, or the cause of ctx if that
// has ended, in place of what package client makes of it.
func plain(ctx context.Context, err error) error {
	own, ok := errors.AsType[*client.Error](err)
	if !ok {
		return err
	}
	if fault, ok := errors.AsType[*protocol.Error](err); ok && own.Code != 0 {
		return fault
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// hear takes a message of either side, before the client does.
func (c *Client) hear(fromServer bool, text []byte) {
	text = bytes.Clone(text)
	if c.conf.trace != nil {
		c.conf.trace(fromServer, text)
	}
	if !fromServer {
		return
	}
	var m protocol.Message
	if fault := protocol.Scan(text, protocol.Limits{}, &m); fault != nil {
		c.t.Errorf("mcptest: the server sent %q: %v", text, fault)
	} else if m.IsNotification() {
		c.note(&m)
	}
}

// WaitFor waits until the server has sent a notification of that method that
// was not waited for before, and returns its params.
func (c *Client) WaitFor(method string) json.RawMessage {
	c.t.Helper()
	timer := time.NewTimer(c.conf.timeout)
	defer timer.Stop()
	for {
		params, ok, another := c.take(method)
		if ok {
			return params
		}
		select {
		case <-another:
		case <-timer.C:
			c.t.Fatalf("mcptest: no %s within %v", method, c.conf.timeout)
		}
	}
}
