package mcp

import (
	"context"
	"encoding/json"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/peer"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
)

// frameOf makes the Frame of a message. x is nil in the modern era.
func (s *Server) frameOf(ctx context.Context, m *protocol.Message, params *protocol.Params, rev protocol.Revision, x *session.Session, c frame.Config) (*frame.Frame, *protocol.Error) {
	c.Askers, c.Components = s.rounds, (*sessionComponents)(s)
	c.Request = frame.Request{ID: m.ID, Method: m.Method, Params: *params}
	c.Revision = rev
	if x != nil {
		c.Session, c.Askers = x, x
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

// maxClient bounds what a session keeps of its client's description, in bytes.
const maxClient = 32 << 10

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
	if len(params.ClientInfo)+len(params.Capabilities) > maxClient {
		return c, protocol.Errorf(protocol.CodeInvalidParams, "params.clientInfo and params.capabilities are longer than %d bytes; link icons in place of including them", maxClient)
	}
	c = session.Client{Revision: rev, Capabilities: &protocol.ClientCapabilities{}}
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

// cancel ends the request that a notifications/cancelled names. One that names
// none is to be ignored.
func cancel(under *peer.Inflight, params *protocol.Params) {
	var cancelled protocol.CancelledParams
	if json.Unmarshal(params.Raw, &cancelled) == nil {
		under.CancelFor(cancelled.RequestID, cancelled.Reason)
	}
}
