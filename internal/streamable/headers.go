package streamable

import (
	"net/http"
	"strings"

	"github.com/talaria-go/mcp/protocol"
)

// named are the methods whose name, uri or taskId is mirrored into Mcp-Name.
var named = map[string]bool{"tools/call": true, "resources/read": true, "prompts/get": true,
	"tasks/get": true, "tasks/update": true, "tasks/cancel": true}

// checkHeaders compares the headers of a modern request with its body
// (Request Metadata in basic/transports/streamable-http).
func (h *Handler) checkHeaders(c *Call) *protocol.Error {
	if fault := matchHeader(c.HTTP, headerMethod, c.Message.Method); fault != nil {
		return fault
	}
	if !named[c.Message.Method] {
		return nil
	}
	if _, sent := c.HTTP.Header[headerName]; !sent && strings.HasPrefix(c.Message.Method, "tasks/") {
		// The extension wants it of clients, for those who route requests; unlike
		// for calls no server has to refuse one that lost it on its way, and the
		// body names the task.
		return nil
	}
	value, fault := encodedHeader(c.HTTP, headerName)
	if fault != nil {
		return fault
	}
	if value != c.Params.Name {
		return mismatch(headerName, value, c.Params.Name)
	}
	if c.Message.Method != protocol.MethodToolsCall {
		return nil
	}
	for _, p := range h.backend.HeaderParams(c) {
		if fault := checkParam(c, p); fault != nil {
			return fault
		}
	}
	return nil
}

// matchHeader wants a header to be there and to have that value.
func matchHeader(r *http.Request, name, want string) *protocol.Error {
	values := r.Header[name]
	if len(values) != 1 {
		return protocol.Errorf(protocol.CodeHeaderMismatch, "Header mismatch: %s must be sent once, with value %q", name, want)
	}
	if values[0] != want {
		return mismatch(name, values[0], want)
	}
	return nil
}

func mismatch(name, header, body string) *protocol.Error {
	return protocol.Errorf(protocol.CodeHeaderMismatch, "Header mismatch: %s header value %q does not match body value %q", name, header, body)
}

// encodedHeader returns the value of a header that may be encoded.
func encodedHeader(r *http.Request, name string) (string, *protocol.Error) {
	values := r.Header[http.CanonicalHeaderKey(name)]
	if len(values) != 1 {
		return "", protocol.Errorf(protocol.CodeHeaderMismatch, "Header mismatch: %s must be sent once", name)
	}
	value, ok := protocol.DecodeHeaderValue(values[0])
	if !ok {
		return "", protocol.Errorf(protocol.CodeHeaderMismatch, "Header mismatch: %s is neither plain ASCII nor valid =?base64?…?=", name)
	}
	return value, nil
}

// checkParam compares one mirrored argument with its header. An argument that
// is absent or null must not have one that says otherwise.
func checkParam(c *Call, p protocol.HeaderParam) *protocol.Error {
	name := headerParam + p.Name
	_, sent := c.HTTP.Header[http.CanonicalHeaderKey(name)]
	raw := protocol.Lookup(c.Params.Arguments, p.Path)
	if raw == nil || string(raw) == "null" {
		if sent {
			return protocol.Errorf(protocol.CodeHeaderMismatch, "Header mismatch: %s is sent, but the argument %s is not", name, strings.Join(p.Path, "."))
		}
		return nil
	}
	value, fault := encodedHeader(c.HTTP, name)
	if fault != nil {
		return fault
	}
	if !protocol.EqualsHeader(raw, value) {
		return protocol.Errorf(protocol.CodeHeaderMismatch, "Header mismatch: %s header value %q does not match argument %s", name, value, strings.Join(p.Path, "."))
	}
	return nil
}
