package streamable

import (
	"bytes"
	"net/http"
	"slices"
	"strings"

	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
)

// admission checks what was posted before anything of it runs: that it can be
// read, which revision and session it belongs to, and that its headers agree
// with its body. It does not change and is safe for concurrent use.
type admission struct {
	backend Backend
	batch   int // messages of a batch; 0 means wire.DefaultMaxBatch
}

// admit scans body into c and sets the revision and session of c. A fault comes
// with the HTTP status to answer with. The revision of c is 0 for initialize,
// which negotiates it, and after a fault that came before it was known.
func (a *admission) admit(c *Call, body []byte) (status int, fault *protocol.Error) {
	if fault := wire.Scan(body, &c.Message); fault != nil {
		if bytes.HasPrefix(body, []byte("\x1f\x8b")) {
			// RFC 9110, section 15.5.16: "as a result of inspecting the data directly".
			return http.StatusUnsupportedMediaType, protocol.Errorf(protocol.CodeParseError, "Parse error: the body is gzip without a Content-Encoding; send the message as it is")
		}
		return http.StatusBadRequest, fault
	}
	if fault := c.Read(&c.Message); fault != nil {
		return http.StatusBadRequest, fault
	}
	if a.isModern(c) {
		return http.StatusBadRequest, a.admitModern(c)
	}
	return a.admitLegacy(c)
}

// isModern reports whether a message belongs to a modern revision: it names one
// in _meta, and is not of the legacy handshake. Without a session a header that
// names one is enough, so that the error for a modern request without its
// metadata says what it lacks, and does not ask for a session.
func (a *admission) isModern(c *Call) bool {
	inSession := first(c.HTTP, headerSession) != ""
	switch {
	case c.Initializes(), c.Message.Method == protocol.MethodInitialized && inSession:
		return false
	case c.Params.Meta.ProtocolVersion != "":
		return true
	}
	return namesModern(c.HTTP) && !inSession
}

// namesModern reports whether the version header names a modern revision.
func namesModern(r *http.Request) bool {
	rev, _ := protocol.ParseRevision(first(r, headerVersion))
	return rev.Modern()
}

// admitModern sets the revision of a modern message and checks its metadata and
// headers. Modern clients send no responses.
func (a *admission) admitModern(c *Call) *protocol.Error {
	if c.Message.Kind() == protocol.KindResponse {
		return wire.Refused("era", protocol.CodeInvalidRequest, "responses are not accepted: answers travel in inputResponses")
	}
	if c.Message.Kind() == protocol.KindNotification {
		c.Revision = protocol.Latest
		return a.checkNotification(c)
	}
	meta := &c.Params.Meta
	if meta.ProtocolVersion != "" {
		if fault := matchHeader(c.HTTP, headerVersion, meta.ProtocolVersion); fault != nil {
			return fault
		}
	}
	rev, fault := wire.CheckModern(meta, a.backend.Revisions)
	if fault != nil {
		return fault
	}
	c.Revision = rev
	return a.checkHeaders(c)
}

// checkNotification checks that a modern notification names a revision that the
// server serves, in its _meta or its header, and the same one if in both.
func (a *admission) checkNotification(c *Call) *protocol.Error {
	name, header := c.Params.Meta.ProtocolVersion, c.HTTP.Header[headerVersion]
	switch {
	case name == "" && len(header) > 0:
		name = header[0]
	case len(header) > 0 && header[0] != name:
		return mismatch(headerVersion, header[0], name)
	}
	supported := a.backend.Revisions
	if rev, _ := protocol.ParseRevision(name); !rev.Modern() || !slices.Contains(supported, rev) {
		return wire.UnsupportedVersion(name, supported)
	}
	return nil
}

// admitLegacy sets the session and revision of a legacy message, for which the
// header must name a session that lives. initialize must not name one.
func (a *admission) admitLegacy(c *Call) (status int, fault *protocol.Error) {
	if c.Message.Method == protocol.MethodInitialize && c.Message.Kind() == protocol.KindRequest {
		// The revision is negotiated, so that a client may name one here that the
		// server does not have.
		if fault := a.checkVersion(c.HTTP); fault != nil && !namesModern(c.HTTP) {
			return http.StatusBadRequest, fault
		}
		if id := c.HTTP.Header.Get(headerSession); id != "" {
			if _, fault := a.backend.Session(id, c.HTTP); fault == nil {
				return http.StatusBadRequest, wire.Refused("initialized", protocol.CodeInvalidRequest,
					"this session is initialized already: a new one begins without Mcp-Session-Id")
			}
		}
		return 0, nil
	}
	if c.Session, status, fault = a.session(c.HTTP); fault == nil {
		c.Revision = c.Session.Revision()
	}
	return status, fault
}

// checkVersion refuses a version header that names none of the server's
// revisions. Without the header, the session says which it is.
func (a *admission) checkVersion(r *http.Request) *protocol.Error {
	name := first(r, headerVersion)
	if name == "" {
		return nil
	}
	supported := a.backend.Revisions
	if rev, _ := protocol.ParseRevision(name); !slices.Contains(supported, rev) {
		return wire.UnsupportedVersion(name, supported)
	}
	return nil
}

// session returns the session that the headers of r name, and looks at nothing
// else of r. status goes with a fault.
func (a *admission) session(r *http.Request) (x *session.Session, status int, fault *protocol.Error) {
	if fault = a.checkVersion(r); fault != nil {
		return nil, http.StatusBadRequest, fault
	}
	id := first(r, headerSession)
	if id == "" {
		return nil, http.StatusBadRequest, wire.Refused("no_session", protocol.CodeInvalidRequest,
			"header Mcp-Session-Id is missing: send initialize first, or a request of revision %s", protocol.Latest)
	}
	if x, fault = a.backend.Session(id, r); fault != nil {
		return nil, statusOf(fault, 0, true), fault
	}
	return x, 0, nil
}

// revisionOf returns the revision of a client whose message cannot be read:
// that of the header, else that of the session, else the latest.
func (a *admission) revisionOf(r *http.Request) protocol.Revision {
	if rev, ok := protocol.ParseRevision(first(r, headerVersion)); ok {
		return rev
	}
	if x, _, fault := a.session(r); fault == nil {
		return x.Revision()
	}
	return protocol.Latest
}

// admitBatch splits a batch into calls, of which only Message and Params are
// set, and checks them. fault refuses the whole batch; faults has the fault of
// each single message, nil for none. Both are checked before any message is
// served.
func (a *admission) admitBatch(rev protocol.Revision, body []byte) (calls []*Call, faults []*protocol.Error, fault *protocol.Error) {
	messages, fault := wire.ScanBatch(body, rev, a.batch)
	if fault != nil {
		return nil, nil, fault
	}
	calls = make([]*Call, len(messages))
	faults = make([]*protocol.Error, len(messages))
	for i, message := range messages {
		c := new(Call)
		calls[i] = c
		if faults[i] = wire.Scan(message, &c.Message); faults[i] == nil {
			faults[i] = c.Read(&c.Message)
		}
		if c.Message.Method == protocol.MethodInitialize {
			return nil, nil, wire.ErrInitializeInBatch()
		}
		if c.Params.Meta.ProtocolVersion != "" && c.Message.Kind() == protocol.KindRequest {
			faults[i] = wire.ErrModernInBatch()
		}
	}
	return calls, faults, nil
}

// named reports whether clients repeat the name, uri or taskId of a method in the
// header Mcp-Name.
func named(method string) bool {
	switch method {
	case protocol.MethodToolsCall, protocol.MethodResourcesRead, protocol.MethodPromptsGet, protocol.MethodTasksGet, protocol.MethodTasksUpdate, protocol.MethodTasksCancel:
		return true
	}
	return false
}

// checkHeaders compares the headers of a modern request with its body
// (basic/transports/streamable-http, "Request Metadata"). Gateways decide by
// the headers, and the server must not do something else than what they have
// let pass.
func (a *admission) checkHeaders(c *Call) *protocol.Error {
	if fault := matchHeader(c.HTTP, headerMethod, c.Message.Method); fault != nil {
		return fault
	}
	if !named(c.Message.Method) {
		return nil
	}
	if strings.HasPrefix(c.Message.Method, "tasks/") && c.HTTP.Header[headerName] == nil {
		// The extension wants it of clients, for those who route requests; unlike
		// for calls no server has to refuse one that lost it on its way, and the
		// body names the task.
		return nil
	}
	value, fault := wire.HeaderValue(headerName, c.HTTP.Header[headerName])
	if fault != nil {
		return fault
	}
	if value != c.Params.Name {
		return mismatch(headerName, value, c.Params.Name)
	}
	if c.Message.Method != protocol.MethodToolsCall {
		return nil
	}
	for _, p := range a.backend.HeaderParams(c) {
		if fault := wire.CheckHeaderParam(c.HTTP.Header, p, c.Params.Arguments); fault != nil {
			return fault
		}
	}
	return nil
}
