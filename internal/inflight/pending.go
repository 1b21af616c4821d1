package inflight

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// Pending is the table of requests that this side has sent and waits for. The
// zero value is empty and ready; it is safe for concurrent use.
//
// A request is in waits from the moment before it is sent until it is answered,
// fails, or its caller gives up. The code that takes it out to end it sends the
// one reply; its channel has room for that, so that a send with mu held does
// not block. mu guards all fields but name.
type Pending struct {
	mu     sync.Mutex
	last   int64
	name   string // before the numbers of requests; "" for none
	waits  map[protocol.ID]chan reply
	held   int // that Reserve let in
	closed error
}

// reply is how a request ended: with a result, or with err.
type reply struct {
	result json.RawMessage
	err    error
}

// Reserve lets n more requests in, unless that makes more than max together with
// those that it let in before. release must be called when they are over.
func (p *Pending) Reserve(n, max int) (release func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held+n > max {
		return nil, false
	}
	p.held += n
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.held -= n
	}, true
}

// Call sends a request with send and waits for its answer. When ctx ends first,
// the other side is notified that the request is cancelled.
func (p *Pending) Call(ctx context.Context, send func([]byte) error, method string, params json.RawMessage) (json.RawMessage, error) {
	id, answered, err := p.enter()
	if err != nil {
		return nil, err
	}
	defer p.leave(id)
	request := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%q`, id, method)
	if params != nil {
		request = append(append(request, `,"params":`...), withToken(params, id)...)
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
		_ = send(wire.AppendNotification(nil, protocol.MethodCancelled, params))
		return nil, context.Cause(ctx)
	}
}

// withToken returns the params of a request with a token, by which the client can
// say how far its answer has come (basic/utilities/progress). They have no _meta of
// their own.
func withToken(params []byte, id protocol.ID) []byte {
	with := slices.Clip(params[:len(params)-1])
	if len(with) > 1 {
		with = append(with, ',')
	}
	return append(wire.AppendID(append(with, `"_meta":{"progressToken":`...), id), "}}"...)
}

// Name makes the ids of requests begin with name: another process that asks the
// same client counts on its own. It must be called before the first request.
func (p *Pending) Name(name string) { p.name = name }

// enter gives a request an id and makes it wait. Ids count from 1 and are not
// used again. It fails with the error of Close after that was called.
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
	id := protocol.NewID(p.last)
	if p.name != "" {
		id = protocol.NewID(p.name + "-" + strconv.FormatInt(p.last, 10))
	}
	answered := make(chan reply, 1)
	p.waits[id] = answered
	return id, answered, nil
}

// leave takes a request out that its caller waits for no more; a late answer
// finds nothing. It does nothing if the request has been answered.
func (p *Pending) leave(id protocol.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waits, id)
}

// Spoil ends the request of that id, to which an answer came that cannot be read. The
// error of its caller is not why, which would be sent to the client as its own.
func (p *Pending) Spoil(id protocol.ID, why error) {
	id = id.Canonical()
	p.mu.Lock()
	defer p.mu.Unlock()
	if answered, ok := p.waits[id]; ok {
		delete(p.waits, id)
		answered <- reply{err: fmt.Errorf("the client's answer is not valid: %v", why)}
	}
}

// Answer gives a response to the request that waits for it, and tells whether
// there is one. An error without an id is for the only request that waits.
func (p *Pending) Answer(m *protocol.Message) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := m.ID.Canonical()
	if id.IsZero() && len(p.waits) == 1 {
		for id = range p.waits {
		}
	}
	answered, ok := p.waits[id]
	if !ok {
		return false
	}
	delete(p.waits, id)
	r := reply{result: m.Result}
	if m.Error != nil {
		var fault struct {
			Code    protocol.Code `json:"code"`
			Message string        `json:"message"`
		}
		if err := jsonx.Unmarshal(m.Error, &fault); err != nil {
			r.err = fmt.Errorf("the client answered with an invalid error: %w", err)
		} else {
			r.err = fmt.Errorf("the client answered with error %d: %s", int(fault.Code), fault.Message)
		}
	}
	answered <- r
	return true
}

// Fail fails the request with that id, if it waits.
func (p *Pending) Fail(id protocol.ID, err error) {
	id = id.Canonical()
	p.mu.Lock()
	defer p.mu.Unlock()
	if answered, ok := p.waits[id]; ok {
		delete(p.waits, id)
		answered <- reply{err: err}
	}
}

// Waits reports whether a request with that id does.
func (p *Pending) Waits(id protocol.ID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.waits[id.Canonical()]
	return ok
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
