package mcptest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
)

// Client is connected to a server for the length of a test. Methods that take
// no error back end the test on failure, so they belong on its goroutine; Do
// may be called from any.
type Client struct {
	t    testing.TB
	conf *config
	wire wire

	// Server is the answer to initialize, or to server/discover.
	Server ServerInfo

	mu            sync.Mutex
	last          int64
	waits         map[protocol.ID]chan protocol.Message
	notifications []Notification
	logs          []Log
	progress      map[string][]Progress
	mirrors       map[string][]protocol.HeaderParam // by tool, of those that were learned
	another       chan struct{}                     // closed when a notification comes
	answering     sync.WaitGroup
	closed        sync.Once

	listening context.Context // of all subscriptions; stop ends it
	stop      context.CancelCauseFunc
	listeners sync.WaitGroup
}

// ServerInfo is what the server says of itself.
type ServerInfo struct {
	ProtocolVersion string                  `json:"protocolVersion"` // of initialize
	Info            protocol.Implementation `json:"serverInfo"`      // of initialize
	Capabilities    json.RawMessage         `json:"capabilities"`
	Instructions    string                  `json:"instructions"`
}

// wire is a connection to the server.
type wire interface {
	// send sends a message. Those of the server go to Client.receive.
	send(m *outgoing) error
	// ready is called when a legacy session is initialized.
	ready()
	// close ends the connection and waits for that.
	close() error
}

// outgoing is a message on its way to the server.
type outgoing struct {
	text    []byte
	request bool
	method  string
	name    string            // of the tool or prompt, or the resource's URI
	headers map[string]string // that mirror arguments, over HTTP
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
	c := &Client{t: t, conf: newConfig(options), waits: map[protocol.ID]chan protocol.Message{}, progress: map[string][]Progress{}, another: make(chan struct{})}
	c.listening, c.stop = context.WithCancelCause(context.Background())
	if c.conf.http {
		c.wire = newHTTPWire(c, server)
	} else {
		c.wire = newPipeWire(c, server)
	}
	t.Cleanup(c.Close)
	if err := c.open(); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// open does what the revision begins with.
func (c *Client) open() error {
	if c.conf.revision.Modern() {
		result, err := c.Do(protocol.MethodDiscover, nil)
		if err != nil {
			return err
		}
		return json.Unmarshal(result, &c.Server)
	}
	result, err := c.Do(protocol.MethodInitialize, map[string]any{
		"protocolVersion": c.conf.revision.String(), "capabilities": c.conf.capabilities, "clientInfo": c.conf.info,
	})
	if err != nil {
		return err
	}
	if err := json.Unmarshal(result, &c.Server); err != nil {
		return err
	}
	if c.Server.ProtocolVersion != c.conf.revision.String() {
		return fmt.Errorf("the server speaks %s, not %v", c.Server.ProtocolVersion, c.conf.revision)
	}
	if err := c.notify(protocol.MethodInitialized, nil); err != nil {
		return err
	}
	c.wire.ready()
	var can struct{ Logging *struct{} }
	if json.Unmarshal(c.Server.Capabilities, &can) == nil && can.Logging != nil {
		_, err = c.Do(protocol.MethodSetLevel, map[string]any{"level": c.conf.level})
	}
	return err
}

// Close ends the connection, as the end of the test does.
func (c *Client) Close() {
	c.closed.Do(func() {
		c.stop(errClosed)
		c.listeners.Wait()
		if err := c.wire.close(); err != nil {
			c.t.Errorf("mcptest: the server ended the connection with: %v", err)
		}
		c.answering.Wait()
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
	ctx, cancel := context.WithTimeoutCause(context.Background(), c.conf.timeout, fmt.Errorf("no answer to %s within %v", method, c.conf.timeout))
	defer cancel()
	return c.DoContext(ctx, method, params)
}

// DoContext is Do without the client's timeout: when ctx ends, the request is
// cancelled and the cause of ctx returned.
func (c *Client) DoContext(ctx context.Context, method string, params any) (json.RawMessage, error) {
	members, err := objectOf(params)
	if err != nil {
		return nil, err
	}
	for range maxRounds {
		result, err := c.round(ctx, method, members)
		if err != nil || !c.conf.revision.Modern() {
			return result, err
		}
		if done, err := c.conf.answerAll(result, members); done || err != nil {
			return result, err
		}
	}
	return nil, fmt.Errorf("the server still asks after %d rounds", maxRounds)
}

// round sends a request and waits for its answer. It sends it once more if the
// tool turns out to want arguments in headers.
func (c *Client) round(ctx context.Context, method string, members map[string]any) (json.RawMessage, error) {
	result, err := c.send(ctx, method, members)
	var tool string
	if name, ok := members["name"].(json.RawMessage); ok && err != nil && json.Unmarshal(name, &tool) == nil && c.learnMirrors(method, tool, err) {
		return c.send(ctx, method, members)
	}
	return result, err
}

// send sends a request and waits for its answer.
func (c *Client) send(ctx context.Context, method string, members map[string]any) (json.RawMessage, error) {
	id, answered := c.enter()
	defer c.leave(id)
	text, err := c.encode(&id, method, members)
	if err != nil {
		return nil, err
	}
	name, _ := members["name"].(json.RawMessage)
	if name == nil {
		name, _ = members["uri"].(json.RawMessage)
	}
	m := &outgoing{text: text, request: true, method: method}
	_ = json.Unmarshal(name, &m.name) // what is no string has no header
	if arguments, ok := members["arguments"].(json.RawMessage); ok {
		m.headers = c.mirrored(method, m.name, arguments)
	}
	c.trace(false, text)
	if err := c.wire.send(m); err != nil {
		return nil, err
	}
	select {
	case answer := <-answered:
		if answer.Error == nil {
			return answer.Result, nil
		}
		return nil, faultOf(answer.Error)
	case <-ctx.Done():
		if !c.conf.revision.Modern() || !c.conf.http {
			_ = c.notify(protocol.MethodCancelled, map[string]any{"requestId": id}) // the test has its error
		}
		return nil, context.Cause(ctx)
	}
}

// Notify sends a notification.
func (c *Client) Notify(method string, params any) {
	c.t.Helper()
	if err := c.notify(method, params); err != nil {
		c.t.Fatalf("mcptest: %s: %v", method, err)
	}
}

func (c *Client) notify(method string, params any) error {
	members, err := objectOf(params)
	if err != nil {
		return err
	}
	text, err := c.encode(nil, method, members)
	if err != nil {
		return err
	}
	c.trace(false, text)
	return c.wire.send(&outgoing{text: text, method: method})
}

func (c *Client) trace(fromServer bool, text []byte) {
	if c.conf.trace != nil {
		c.conf.trace(fromServer, text)
	}
}

func (c *Client) enter() (protocol.ID, chan protocol.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	id, answered := protocol.IntID(c.last), make(chan protocol.Message, 1)
	c.waits[id] = answered
	return id, answered
}

func (c *Client) leave(id protocol.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waits, id)
}

// receive takes a message of the server.
func (c *Client) receive(text []byte) {
	c.trace(true, text)
	var m protocol.Message
	if fault := protocol.Scan(text, protocol.Limits{}, &m); fault != nil {
		c.t.Errorf("mcptest: the server sent %q: %v", text, fault)
		return
	}
	switch {
	case m.IsResponse():
		c.mu.Lock()
		answered := c.waits[m.ID]
		delete(c.waits, m.ID)
		c.mu.Unlock()
		if answered != nil { // else it was given up
			answered <- m
		}
	case m.IsNotification():
		c.note(&m)
	default:
		c.answering.Go(func() { c.respond(&m) })
	}
}

// fail fails a request that no answer can come to.
func (c *Client) fail(err error) {
	fault := protocol.Errorf(protocol.CodeInternal, "%w", err)
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, answered := range c.waits {
		delete(c.waits, id)
		answered <- protocol.Message{Error: fault.Append(nil)}
	}
}

// respond answers a request of the server.
func (c *Client) respond(m *protocol.Message) {
	result, fault := c.conf.answer(m.Method, m.Params)
	var text []byte
	if fault != nil {
		text = protocol.AppendErrorResponse(nil, m.ID, fault, c.conf.revision)
	} else {
		text = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}
	c.trace(false, text)
	if err := c.wire.send(&outgoing{text: text}); err != nil && !errors.Is(err, errEnded) {
		c.t.Errorf("mcptest: answering %s: %v", m.Method, err)
	}
}

// errEnded is the error of sending what the server no longer takes.
var errEnded = errors.New("the connection is over")

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
