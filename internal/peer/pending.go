package peer

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/talaria-go/mcp/protocol"
)

// Pending is the table of requests that this side has sent and waits for. The
// zero value is empty and ready; it is safe for concurrent use.
type Pending struct {
	mu     sync.Mutex
	last   int64
	waits  map[protocol.ID]chan reply
	closed error
}

type reply struct {
	result json.RawMessage
	err    error
}

// Call sends a request with send and waits for its answer. When ctx ends
// first, the other side is told that the request is cancelled.
func (p *Pending) Call(ctx context.Context, send func([]byte) error, method string, params json.RawMessage) (json.RawMessage, error) {
	id, answered, err := p.enter()
	if err != nil {
		return nil, err
	}
	defer p.leave(id)
	request := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%q`, id, method)
	if params != nil {
		request = append(append(request, `,"params":`...), params...)
	}
	if err := send(append(request, '}')); err != nil {
		return nil, fmt.Errorf("%s could not be sent to the client: %w", method, err)
	}
	select {
	case r := <-answered:
		return r.result, r.err
	case <-ctx.Done():
		params := fmt.Appendf(nil, `{"requestId":%s,"reason":"the server no longer needs the answer"}`, id)
		// The client may be gone, which is as good.
		_ = send(protocol.AppendNotification(nil, protocol.MethodCancelled, params))
		return nil, context.Cause(ctx)
	}
}

func (p *Pending) enter() (protocol.ID, chan reply, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed != nil {
		return protocol.ID{}, nil, p.closed
	}
	if p.waits == nil {
		p.waits = make(map[protocol.ID]chan reply)
	}
	p.last++
	id := protocol.IntID(p.last)
	answered := make(chan reply, 1)
	p.waits[id] = answered
	return id, answered, nil
}

func (p *Pending) leave(id protocol.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waits, id)
}

// Answer gives a response to the request that waits for it, and tells whether
// there is one.
func (p *Pending) Answer(m *protocol.Message) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	answered, ok := p.waits[m.ID]
	if !ok {
		return false
	}
	delete(p.waits, m.ID)
	r := reply{result: m.Result}
	if m.Error != nil {
		var fault struct {
			Code    protocol.Code `json:"code"`
			Message string        `json:"message"`
		}
		if err := json.Unmarshal(m.Error, &fault); err != nil {
			r.err = fmt.Errorf("the client answered with an error that is none: %w", err)
		} else {
			r.err = fmt.Errorf("the client answered with error %d: %s", int(fault.Code), fault.Message)
		}
	}
	answered <- r
	return true
}

// Close fails every request that waits, and every later one, with err.
func (p *Pending) Close(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = err
	for id, answered := range p.waits {
		delete(p.waits, id)
		answered <- reply{err: err}
	}
}
