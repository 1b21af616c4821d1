package mcptest

import (
	"encoding/json"
	"fmt"

	"github.com/talaria-go/mcp/protocol"
)

// headerPrefix begins the headers that mirror arguments (Custom Headers from
// Tool Parameters in basic/transports/streamable-http of 2026-07-28).
const headerPrefix = "Mcp-Param-"

// mirrored returns the headers for a call of a tool, whose parameters were
// learned; nil before.
func (c *Client) mirrored(method, tool string, arguments json.RawMessage) map[string]string {
	if method != protocol.MethodToolsCall {
		return nil
	}
	c.mu.Lock()
	params := c.mirrors[tool]
	c.mu.Unlock()
	headers := make(map[string]string, len(params))
	for _, p := range params {
		raw := protocol.Lookup(arguments, p.Path)
		if raw == nil || string(raw) == "null" {
			continue
		}
		value := string(raw)
		if raw[0] == '"' && json.Unmarshal(raw, &value) != nil {
			continue // it is no JSON, which the server tells
		}
		headers[headerPrefix+p.Name] = protocol.EncodeHeaderValue(value)
	}
	return headers
}

// learnMirrors finds out which arguments of a tool are mirrored, as a client
// does whose call lacked them. It tells whether that is anything new.
func (c *Client) learnMirrors(method, tool string, fault error) bool {
	e, ok := fault.(*protocol.Error)
	if !ok || e.Code != protocol.CodeHeaderMismatch || method != protocol.MethodToolsCall || !c.conf.http {
		return false
	}
	c.mu.Lock()
	_, known := c.mirrors[tool]
	c.mu.Unlock()
	if known {
		return false
	}
	params, err := c.mirrorsOf(tool)
	if err != nil || params == nil {
		return false // the fault of the call says what matters
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mirrors == nil {
		c.mirrors = map[string][]protocol.HeaderParam{}
	}
	c.mirrors[tool] = params
	return true
}

// mirrorsOf reads the tool's schema in the list of tools.
func (c *Client) mirrorsOf(tool string) ([]protocol.HeaderParam, error) {
	for cursor := map[string]any(nil); ; {
		text, err := c.Do(protocol.MethodToolsList, cursor)
		if err != nil {
			return nil, err
		}
		var page struct {
			Tools []struct {
				Name        string
				InputSchema mirrorSchema
			}
			NextCursor *string
		}
		if err := json.Unmarshal(text, &page); err != nil {
			return nil, fmt.Errorf("tools/list: %w", err)
		}
		for _, t := range page.Tools {
			if t.Name == tool {
				return t.InputSchema.params(nil, nil), nil
			}
		}
		if page.NextCursor == nil {
			return nil, nil
		}
		cursor = map[string]any{"cursor": *page.NextCursor}
	}
}

// mirrorSchema is what matters here of a JSON Schema: a header may stand at
// properties that are reached through properties alone.
type mirrorSchema struct {
	Header     string                     `json:"x-mcp-header"`
	Properties map[string]json.RawMessage `json:"properties"`
}

func (s mirrorSchema) params(list []protocol.HeaderParam, path []string) []protocol.HeaderParam {
	if s.Header != "" {
		list = append(list, protocol.HeaderParam{Name: s.Header, Path: path})
	}
	for name, raw := range s.Properties {
		var inner mirrorSchema
		if json.Unmarshal(raw, &inner) == nil { // a boolean is a schema, too
			list = inner.params(list, append(path[:len(path):len(path)], name))
		}
	}
	return list
}
