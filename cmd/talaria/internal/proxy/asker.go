package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// asker puts questions of the server behind into the connection of the one
// client, and takes the answers out of it. The ids of the questions begin with
// questionID, so that they are not those of the proxy's own server.
type asker struct {
	mu      sync.Mutex
	conn    transport.Conn
	next    int
	waiting map[string]chan answer
	can     protocol.ClientCapabilities
}

const questionID = "talaria-proxy-"

type answer struct {
	result json.RawMessage
	err    error
}

// attach returns conn as the connection to the client.
func (a *asker) attach(conn transport.Conn) transport.Conn {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.conn, a.waiting = conn, map[string]chan answer{}
	return &askedConn{Conn: conn, asker: a}
}

type askedConn struct {
	transport.Conn
	asker *asker
}

// Read returns the next message that is not an answer to a question of the
// asker.
func (c *askedConn) Read() ([]byte, error) {
	for {
		text, err := c.Conn.Read()
		if err != nil {
			c.asker.end(err)
			return text, err
		}
		var m protocol.Message
		if wire.Scan(text, &m) != nil {
			return text, nil // the server says what is wrong with it
		}
		if m.Method == protocol.MethodInitialize {
			c.asker.meet(m.Params)
		}
		if m.Kind() != protocol.KindResponse || !c.asker.take(&m) {
			return text, nil
		}
	}
}

// meet learns what the client can be asked.
func (a *asker) meet(params []byte) {
	var hello struct {
		Capabilities protocol.ClientCapabilities `json:"capabilities"`
	}
	if jsonx.Unmarshal(params, &hello) == nil {
		a.mu.Lock()
		a.can = hello.Capabilities
		a.mu.Unlock()
	}
}

// take passes an answer to the request that waits for it.
func (a *asker) take(m *protocol.Message) bool {
	var id string
	if jsonx.Unmarshal([]byte(m.ID.String()), &id) != nil || !strings.HasPrefix(id, questionID) {
		return false
	}
	a.mu.Lock()
	waits := a.waiting[id]
	delete(a.waiting, id)
	a.mu.Unlock()
	if waits == nil {
		return true // no caller waits for it any more
	}
	got := answer{result: append(json.RawMessage(nil), m.Result...)}
	if m.Error != nil {
		fault := &protocol.Error{}
		_ = jsonx.Unmarshal(m.Error, fault) // what cannot be read is an error nevertheless
		got.err = fault
	}
	waits <- got
	return true
}

// end notifies all waiters that no answer will come.
func (a *asker) end(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, waits := range a.waiting {
		waits <- answer{err: fmt.Errorf("the client is gone: %w", err)}
		delete(a.waiting, id)
	}
}

// answerTime is how long a client may take to answer a question.
const answerTime = 15 * time.Minute

// ask sends a question to the client and waits for the answer.
func (a *asker) ask(ctx context.Context, method string, params, into any) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	a.mu.Lock()
	if a.conn == nil {
		a.mu.Unlock()
		return errors.New("there is no client to ask")
	}
	a.next++
	id := fmt.Sprintf("%s%d", questionID, a.next)
	waits := make(chan answer, 1)
	a.waiting[id] = waits
	conn := a.conn
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		delete(a.waiting, id)
		a.mu.Unlock()
	}()
	message, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	if err != nil {
		return err
	}
	if err := send(conn, message); err != nil {
		return err
	}
	select {
	case got := <-waits:
		if got.err != nil {
			return got.err
		}
		return jsonx.Unmarshal(got.result, into)
	case <-ctx.Done():
		cancelled, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": protocol.MethodCancelled,
			"params": map[string]any{"requestId": id, "reason": "the server does not wait any more"}})
		if err == nil {
			err = send(conn, cancelled)
		}
		return errors.Join(context.Cause(ctx), err)
	}
}

// writeTimeout is how long the client may take to accept a message.
const writeTimeout = 30 * time.Second

// send writes one message to the client. One that takes nothing for writeTimeout
// loses the connection, as it does when the proxy's own server writes.
func send(conn transport.Conn, message []byte) error {
	late := time.AfterFunc(writeTimeout, func() { _ = conn.Close() }) // the Write reports it
	defer late.Stop()
	return errors.Join(conn.Write(message), conn.Flush())
}

func (a *asker) elicit(ctx context.Context, params *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	a.mu.Lock()
	can := a.can.Elicitation
	a.mu.Unlock()
	if can == nil || params.Mode == "url" && can.URL == nil {
		return nil, errors.New("the client behind the proxy cannot be asked this")
	}
	var result protocol.ElicitResult
	return &result, a.ask(ctx, protocol.MethodElicit, params, &result)
}

func (a *asker) sample(ctx context.Context, params *protocol.SampleParams) (*protocol.SampleResult, error) {
	a.mu.Lock()
	can := a.can.Sampling
	a.mu.Unlock()
	if can == nil {
		return nil, errors.New("the client behind the proxy has no model")
	}
	var result protocol.SampleResult
	return &result, a.ask(ctx, protocol.MethodSample, params, &result)
}
