package mcp

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/peer"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
)

// frameOf makes the Frame of a message. x is nil in the modern era.
func (s *Server) frameOf(ctx context.Context, m *protocol.Message, params *protocol.Params, rev protocol.Revision, x *session.Session, c frame.Config) (*frame.Frame, *protocol.Error) {
	c.Askers, c.Ender = s.rounds, (*ender)(s)
	c.Request = frame.Request{ID: m.ID, Method: m.Method, Params: *params}
	c.Revision = rev
	if x != nil {
		c.Session, c.Askers = x, s.questionsTo(x)
		x.SetIdentity(frame.IdentityOf(ctx))
	} else if fault := tooMuch("the clientInfo and clientCapabilities of params._meta", params.Meta.ClientInfo, params.Meta.ClientCapabilities); fault != nil {
		return nil, fault
	} else if raw := params.Meta.LogLevel; raw != nil {
		var name string
		// It is a string: ScanParams has seen to that.
		_ = json.Unmarshal(raw, &name)
		level, fault := protocol.ParseLevel(name)
		if fault != nil {
			return nil, fault
		}
		c.LogLevel = level
	}
	return frame.New(ctx, c), nil
}

// What a client says of itself is decoded, and kept as long as its session or its
// request lives. It may have maxClient bytes, and commas, which part the members
// and items: decoded, an item of three bytes takes a hundred.
const (
	maxClient       = 32 << 10
	maxClientCommas = 250
)

// tooMuch returns the error for a client that says more of itself; where names
// what it has said.
func tooMuch(where string, info, capabilities []byte) *protocol.Error {
	if len(info)+len(capabilities) > maxClient {
		return protocol.Errorf(protocol.CodeInvalidParams, "%s are longer than %d bytes; link icons in place of including them", where, maxClient)
	}
	if comma := []byte{','}; bytes.Count(info, comma)+bytes.Count(capabilities, comma) > maxClientCommas {
		return protocol.Errorf(protocol.CodeInvalidParams, "%s have more than %d members and items; leave some out", where, maxClientCommas)
	}
	return nil
}

// clientOf reads what an initialize request says of the client and negotiates
// the revision.
func (s *Server) clientOf(raw []byte) (c session.Client, fault *protocol.Error) {
	var params protocol.InitializeParams
	if err := json.Unmarshal(raw, &params); raw == nil || err != nil || params.ProtocolVersion == "" {
		return c, protocol.Errorf(protocol.CodeInvalidParams, "initialize needs params with protocolVersion, capabilities and clientInfo")
	}
	rev, ok := protocol.Negotiate(params.ProtocolVersion, s.opts.Revisions)
	if !ok {
		return c, protocol.UnsupportedVersion(params.ProtocolVersion, s.opts.Revisions)
	}
	if fault := tooMuch("params.clientInfo and params.capabilities", params.ClientInfo, params.Capabilities); fault != nil {
		return c, fault
	}
	c = session.Client{Revision: rev, Capabilities: &protocol.ClientCapabilities{}, Cost: session.ClientCost(params.ClientInfo, params.Capabilities)}
	if err := decodeOptional(params.Capabilities, c.Capabilities); err != nil {
		return c, protocol.Errorf(protocol.CodeInvalidParams, "params.capabilities: %w", err)
	}
	*c.Capabilities = c.Capabilities.For(rev)
	if len(params.ClientInfo) > 0 {
		c.Info = &protocol.Implementation{}
		if err := decodeOptional(params.ClientInfo, c.Info); err != nil {
			return c, protocol.Errorf(protocol.CodeInvalidParams, "params.clientInfo: %w", err)
		}
	}
	return c, nil
}

func decodeOptional(raw []byte, v any) error {
	if len(raw) == 0 {
		return nil
	}
	return json.Unmarshal(raw, v)
}

// cancel ends the request that a notifications/cancelled names, and returns
// its id. One that names none is to be ignored.
func cancel(under *peer.Inflight, params *protocol.Params) (id protocol.ID) {
	var cancelled protocol.CancelledParams
	if json.Unmarshal(params.Raw, &cancelled) == nil {
		id = cancelled.RequestID
		under.CancelFor(id, visible.Line(cancelled.Reason, visible.Sentence))
	}
	return id
}
