package frame

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/talaria-go/mcp/protocol"
)

// maxDepth is how deep calls within calls may be.
const maxDepth = 8

// asked is what Frame.Request returns in place of the request of the client.
type asked struct {
	*Request
	nested *nested // nil for the request of the client, under another name
}

// nested is a call of a tool that a handler makes in place of its client
// (mcp.Server.Call). It is a request of its own for all that looks at what was asked:
// middleware, filters, observers, labels. All else is that of the request around it,
// with which it shares the state: the session, the progress, and the Asker, to which the
// client's request is one, however many calls its handler makes. So the state of a modern
// request, which travels to the client and back, belongs to that request, and each call
// finds its own part by a prefix of its keys. The mu of the state guards key.
type nested struct {
	asked
	request Request
	outer   *Frame // whose handler calls
	depth   int
	atEnd   func(err error) // see internals.AtEnd
	key     string          // begins the keys of its questions; "" until there is one
}

// newNested returns the Frame of a call that the handler of f makes. ctx comes from f.
func newNested(ctx context.Context, f *Frame, params protocol.Params) (*Frame, error) {
	n := &nested{outer: f, depth: 1}
	if around := f.nested(); around != nil {
		n.depth += around.depth
	}
	if n.depth > maxDepth {
		return nil, protocol.Errorf(protocol.CodeInternal, "calls within calls are %d deep at most", maxDepth)
	}
	n.request = Request{ID: f.request.ID, Method: protocol.MethodToolsCall, Params: params}
	n.asked = asked{&n.request, n}
	return &Frame{ctx: ctx, state: f.state, as: &n.asked}, nil
}

// prefix returns what begins the keys of n's questions, and of what it keeps, so that
// each of the calls within a request has its own, and the same in each round: the tool, a
// digest of the arguments and of the prefix of the call around it, and a number that
// tells equal calls apart. Only calls count that ask or keep something, as others may be
// left out in a later round, by Once around them. s.mu is held.
func (n *nested) prefix(s *state) string {
	if n.key == "" {
		h := sha256.New()
		if around := n.outer.nested(); around != nil {
			h.Write([]byte(around.prefix(s)))
		}
		h.Write(n.request.Params.Arguments)
		call := fmt.Sprintf("%s/%x/", n.request.Params.Name, h.Sum(nil)[:16])
		if s.calls == nil {
			s.calls = make(map[string]int)
		}
		s.calls[call]++
		n.key = fmt.Sprintf("%s%d/", call, s.calls[call])
	}
	return n.key
}
