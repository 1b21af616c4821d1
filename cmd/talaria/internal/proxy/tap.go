package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// tap puts questions of the server behind into the connection of the one
// client, and takes the answers out of it. The ids of the questions begin with
// tapID, so that they are not those of the proxy's own server.
type tap struct {
	mu      sync.Mutex
	conn    transport.Conn
	next    int
	waiting map[string]chan answer
	can     protocol.ClientCapabilities
}

const tapID = "talaria-proxy-"

type answer struct {
	result json.RawMessage
	err    error
}

// Tap returns conn as the connection to the one client.
func (p *Proxy) Tap(conn transport.Conn) transport.Conn {
	p.tap.mu.Lock()
	defer p.tap.mu.Unlock()
	p.tap.conn, p.tap.waiting = conn, map[string]chan answer{}
	return &tappedConn{Conn: conn, tap: &p.tap}
}

type tappedConn struct {
	transport.Conn
	tap *tap
}

// Read returns the next message that is no answer to a question of the tap.
func (c *tappedConn) Read() ([]byte, error) {
	for {
		text, err := c.Conn.Read()
		if err != nil {
			c.tap.end(err)
			return text, err
		}
		var m protocol.Message
		if protocol.Scan(text, protocol.Limits{}, &m) != nil {
			return text, nil // the server says what is wrong with it
		}
		if m.Method == protocol.MethodInitialize {
			c.tap.meet(m.Params)
		}
		if !m.IsResponse() || !c.tap.take(&m) {
			return text, nil
		}
	}
}

// meet learns what the client can be asked.
func (t *tap) meet(params []byte) {
	var hello struct {
		Capabilities protocol.ClientCapabilities `json:"capabilities"`
	}
	if json.Unmarshal(params, &hello) == nil {
		t.mu.Lock()
		t.can = hello.Capabilities
		t.mu.Unlock()
	}
}

// take gives an answer to who waits for it.
func (t *tap) take(m *protocol.Message) bool {
	var id string
	if json.Unmarshal([]byte(m.ID.String()), &id) != nil || !strings.HasPrefix(id, tapID) {
		return false
	}
	t.mu.Lock()
	waits := t.waiting[id]
	delete(t.waiting, id)
	t.mu.Unlock()
	if waits == nil {
		return true // nobody waits for it any more
	}
	a := answer{result: append(json.RawMessage(nil), m.Result...)}
	if m.Error != nil {
		fault := &protocol.Error{}
		var wire struct {
			Code    protocol.Code   `json:"code"`
			Message string          `json:"message"`
			Data    json.RawMessage `json:"data"`
		}
		if err := json.Unmarshal(m.Error, &wire); err == nil {
			fault.Code, fault.Message = wire.Code, wire.Message
			if wire.Data != nil {
				fault.Data = wire.Data
			}
		}
		a.err = fault
	}
	waits <- a
	return true
}

// end tells everybody who waits that no answer comes any more.
func (t *tap) end(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, waits := range t.waiting {
		waits <- answer{err: fmt.Errorf("the client is gone: %w", err)}
		delete(t.waiting, id)
	}
}

// ask sends a question to the client and waits for the answer.
func (t *tap) ask(ctx context.Context, method string, params, into any) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	t.mu.Lock()
	if t.conn == nil {
		t.mu.Unlock()
		return errors.New("there is no client to ask")
	}
	t.next++
	id := fmt.Sprintf("%s%d", tapID, t.next)
	waits := make(chan answer, 1)
	t.waiting[id] = waits
	conn := t.conn
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		delete(t.waiting, id)
		t.mu.Unlock()
	}()
	message, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	if err != nil {
		return err
	}
	if err := errors.Join(conn.Write(message), conn.Flush()); err != nil {
		return err
	}
	select {
	case a := <-waits:
		if a.err != nil {
			return a.err
		}
		return json.Unmarshal(a.result, into)
	case <-ctx.Done():
		cancelled, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": protocol.MethodCancelled,
			"params": map[string]any{"requestId": id, "reason": "the server does not wait any more"}})
		if err == nil {
			err = errors.Join(conn.Write(cancelled), conn.Flush())
		}
		return errors.Join(context.Cause(ctx), err)
	}
}

func (p *Proxy) elicit(ctx context.Context, params *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	p.tap.mu.Lock()
	can := p.tap.can.Elicitation
	p.tap.mu.Unlock()
	url := params.Mode == "url"
	if can == nil || url && can.URL == nil {
		return nil, errors.New("the client behind the proxy cannot be asked this")
	}
	var result protocol.ElicitResult
	return &result, p.tap.ask(ctx, protocol.MethodElicit, params, &result)
}

func (p *Proxy) sample(ctx context.Context, params *protocol.SampleParams) (*protocol.SampleResult, error) {
	p.tap.mu.Lock()
	can := p.tap.can.Sampling
	p.tap.mu.Unlock()
	if can == nil {
		return nil, errors.New("the client behind the proxy has no model")
	}
	var result protocol.SampleResult
	return &result, p.tap.ask(ctx, protocol.MethodSample, params, &result)
}
