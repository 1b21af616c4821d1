package mcptest

import (
	"encoding/json"
	"fmt"

	"github.com/talaria-go/mcp/protocol"
)

// objectOf returns params as the members of an object.
func objectOf(params any) (map[string]any, error) {
	members := map[string]any{}
	if params == nil {
		return members, nil
	}
	text, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, fmt.Errorf("params must encode to an object: %w", err)
	}
	for name, value := range raw {
		members[name] = value
	}
	return members, nil
}

// faultOf reads the error of an answer.
func faultOf(raw []byte) error {
	var fault struct {
		Code    protocol.Code   `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(raw, &fault); err != nil {
		return fmt.Errorf("the server answered with an error that is none: %s", raw)
	}
	e := &protocol.Error{Code: fault.Code, Message: fault.Message}
	if fault.Data != nil {
		e.Data = fault.Data
	}
	return e
}

// encode returns a message, with the metadata that its revision demands.
func (c *Client) encode(id *protocol.ID, method string, members map[string]any) ([]byte, error) {
	message := map[string]any{"jsonrpc": "2.0", "method": method}
	if id != nil {
		message["id"] = id
	}
	if c.conf.revision.Modern() || members["_meta"] != nil {
		meta := map[string]any{}
		if raw, ok := members["_meta"].(json.RawMessage); ok {
			if err := json.Unmarshal(raw, &meta); err != nil {
				return nil, fmt.Errorf("_meta must be an object: %w", err)
			}
		}
		if c.conf.revision.Modern() && id != nil {
			meta[protocol.MetaVersion] = c.conf.revision.String()
			meta[protocol.MetaClientInfo] = c.conf.info
			meta[protocol.MetaCapabilities] = c.conf.capabilities
			meta[protocol.MetaLogLevel] = c.conf.level
		}
		with := map[string]any{"_meta": meta}
		for name, value := range members {
			if name != "_meta" {
				with[name] = value
			}
		}
		members = with
	}
	if len(members) > 0 {
		message["params"] = members
	}
	return json.Marshal(message)
}
