package conn

import (
	"bytes"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// The limits of what a client may say of itself, in bytes and in commas. It is
// decoded and kept for as long as its session or request lives, and decoded it
// takes much more memory than its text: an item of three bytes takes about a
// hundred. Commas separate members and items and are therefore a cheap measure
// of their number.
const (
	maxClient       = 32 << 10
	maxClientCommas = 250
)

// tooMuch returns the error for a client that says more of itself than the
// limits allow, else nil. where names, in the plural, the members that it has
// said it in.
func tooMuch(where string, info, capabilities []byte) *protocol.Error {
	if len(info)+len(capabilities) > maxClient {
		return protocol.Errorf(protocol.CodeInvalidParams, "%s are longer than %d bytes; link icons in place of including them", where, maxClient)
	}
	if comma := []byte{','}; bytes.Count(info, comma)+bytes.Count(capabilities, comma) > maxClientCommas {
		return protocol.Errorf(protocol.CodeInvalidParams, "%s have more than %d members and items; leave some out", where, maxClientCommas)
	}
	return nil
}

// readClient reads what an initialize request says of the client and negotiates
// the revision. raw are the params, nil if there are none. The capabilities
// that it returns are cut down to those of the revision.
func readClient(raw []byte, revisions []protocol.Revision) (c core.ClientInfo, fault *protocol.Error) {
	var params wire.InitializeParams
	if err := jsonx.Unmarshal(raw, &params); raw == nil || err != nil || params.ProtocolVersion == "" {
		return c, protocol.Errorf(protocol.CodeInvalidParams, "initialize needs params with protocolVersion, capabilities and clientInfo")
	}
	rev, ok := protocol.Negotiate(params.ProtocolVersion, revisions)
	if !ok {
		return c, wire.UnsupportedVersion(params.ProtocolVersion, revisions)
	}
	if fault := tooMuch("params.clientInfo and params.capabilities", params.ClientInfo, params.Capabilities); fault != nil {
		return c, fault
	}
	c = core.ClientInfo{Revision: rev, Capabilities: &protocol.ClientCapabilities{}, Cost: core.ClientCost(params.ClientInfo, params.Capabilities)}
	if err := decodeOptional(params.Capabilities, c.Capabilities); err != nil {
		return c, protocol.Errorf(protocol.CodeInvalidParams, "params.capabilities: %w", err)
	}
	*c.Capabilities = wire.ClientCapabilitiesFor(*c.Capabilities, rev)
	if len(params.ClientInfo) > 0 {
		c.Info = &protocol.Implementation{}
		if err := decodeOptional(params.ClientInfo, c.Info); err != nil {
			return c, protocol.Errorf(protocol.CodeInvalidParams, "params.clientInfo: %w", err)
		}
	}
	return c, nil
}

// decodeOptional decodes raw into v, and does nothing if raw is empty.
func decodeOptional(raw []byte, v any) error {
	if len(raw) == 0 {
		return nil
	}
	return jsonx.Unmarshal(raw, v)
}

// logLevel reads the log level in the _meta of a request, a JSON string.
func logLevel(raw []byte) (level protocol.Level, fault *protocol.Error) {
	var name string
	// It is a string: protocol.Message.DecodeParams has seen to that.
	_ = jsonx.Unmarshal(raw, &name)
	fault, _ = level.UnmarshalText([]byte(name)).(*protocol.Error) // it is always one
	return level, fault
}
