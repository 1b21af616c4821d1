package streamable

import (
	"net/http"
	"slices"
	"strings"

	"github.com/talaria-go/mcp/protocol"
)

// admission checks what was posted before anything of it runs: that it can be
// read, its era, revision and session, and that its headers say what it says.
type admission struct {
	backend Backend
	depth   int // nesting of a message; 0 means protocol's default
	batch   int // messages of a batch; 0 means protocol.DefaultMaxBatch
}

// admit scans the message, decides its era and checks what must be right
// before anything runs. status goes with a fault.
func (a *admission) admit(c *Call, body []byte) (status int, fault *protocol.Error) {
	if fault := protocol.Scan(body, protocol.Limits{Depth: a.depth}, &c.Message); fault != nil {
		return http.StatusBadRequest, fault
	}
	if fault := protocol.ScanParams(&c.Message, &c.Params); fault != nil {
		return http.StatusBadRequest, fault
	}
	if a.isModern(c) {
		return http.StatusBadRequest, a.admitModern(c)
	}
	return a.admitLegacy(c)
}

// isModern tells the era: modern requests carry their revision in _meta. The
// header alone is enough, so that a modern request without its metadata is
// told what it lacks.
func (a *admission) isModern(c *Call) bool {
	if c.Params.Meta.ProtocolVersion != "" {
		return true
	}
	rev, _ := protocol.ParseRevision(first(c.HTTP, headerVersion))
	return rev.Modern()
}

func (a *admission) admitModern(c *Call) *protocol.Error {
	if c.Message.IsResponse() {
		return protocol.Errorf(protocol.CodeInvalidRequest, "responses are not accepted: answers travel in inputResponses")
	}
	if c.Message.IsNotification() {
		c.Revision = protocol.Latest
		return a.checkNotification(c)
	}
	meta := &c.Params.Meta
	if meta.ProtocolVersion != "" {
		if fault := matchHeader(c.HTTP, headerVersion, meta.ProtocolVersion); fault != nil {
			return fault
		}
	}
	rev, fault := meta.CheckModern(a.backend.Revisions())
	if fault != nil {
		return fault
	}
	c.Revision = rev
	return a.checkHeaders(c)
}

// checkNotification wants a modern notification to be of a revision that the
// server speaks, and to say the same twice if it says it twice.
func (a *admission) checkNotification(c *Call) *protocol.Error {
	name, header := c.Params.Meta.ProtocolVersion, c.HTTP.Header[headerVersion]
	switch {
	case name == "" && len(header) > 0:
		name = header[0]
	case len(header) > 0 && header[0] != name:
		return mismatch(headerVersion, header[0], name)
	}
	supported := a.backend.Revisions()
	if rev, _ := protocol.ParseRevision(name); !rev.Modern() || !slices.Contains(supported, rev) {
		return protocol.UnsupportedVersion(name, supported)
	}
	return nil
}

func (a *admission) admitLegacy(c *Call) (status int, fault *protocol.Error) {
	if c.Message.Method == protocol.MethodInitialize && c.Message.IsRequest() {
		if fault := a.checkVersion(c.HTTP); fault != nil {
			return http.StatusBadRequest, fault
		}
		if id := c.HTTP.Header.Get(headerSession); id != "" {
			if _, fault := a.backend.Session(id, c.HTTP); fault == nil {
				return http.StatusBadRequest, protocol.Errorf(protocol.CodeInvalidRequest,
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
	supported := a.backend.Revisions()
	if rev, _ := protocol.ParseRevision(name); !slices.Contains(supported, rev) {
		return protocol.UnsupportedVersion(name, supported)
	}
	return nil
}

// session finds the session that r names.
func (a *admission) session(r *http.Request) (x Session, status int, fault *protocol.Error) {
	if fault = a.checkVersion(r); fault != nil {
		return nil, http.StatusBadRequest, fault
	}
	id := first(r, headerSession)
	if id == "" {
		return nil, http.StatusBadRequest, protocol.Errorf(protocol.CodeInvalidRequest,
			"header Mcp-Session-Id is missing: send initialize first, or a request of revision %s", protocol.Latest)
	}
	if x, fault = a.backend.Session(id, r); fault != nil {
		return nil, statusOf(fault, 0, true), fault
	}
	return x, 0, nil
}

// revisionOf returns the revision of whoever sends a message that cannot be
// read, as well as it can be known.
func (a *admission) revisionOf(r *http.Request) protocol.Revision {
	if rev, ok := protocol.ParseRevision(first(r, headerVersion)); ok {
		return rev
	}
	if x, _, fault := a.session(r); fault == nil {
		return x.Revision()
	}
	return protocol.Latest
}

// admitBatch splits a batch into calls, which have their messages alone yet,
// and checks what must be right before anything runs. fault refuses all of it;
// faults are those of single messages.
func (a *admission) admitBatch(rev protocol.Revision, body []byte) (calls []*Call, faults []*protocol.Error, fault *protocol.Error) {
	limits := protocol.Limits{Depth: a.depth}
	messages, fault := protocol.ScanBatch(body, limits, rev, a.batch)
	if fault != nil {
		return nil, nil, fault
	}
	calls = make([]*Call, len(messages))
	faults = make([]*protocol.Error, len(messages))
	for i, message := range messages {
		c := new(Call)
		calls[i] = c
		if faults[i] = protocol.Scan(message, limits, &c.Message); faults[i] == nil {
			faults[i] = protocol.ScanParams(&c.Message, &c.Params)
		}
		if c.Message.Method == protocol.MethodInitialize {
			return nil, nil, protocol.ErrInitializeInBatch()
		}
		if c.Params.Meta.ProtocolVersion != "" && c.Message.IsRequest() {
			faults[i] = protocol.ErrModernInBatch()
		}
	}
	return calls, faults, nil
}

// named are the methods whose name, uri or taskId is mirrored into Mcp-Name.
var named = map[string]bool{"tools/call": true, "resources/read": true, "prompts/get": true,
	"tasks/get": true, "tasks/update": true, "tasks/cancel": true}

// checkHeaders compares the headers of a modern request with its body
// (Request Metadata in basic/transports/streamable-http).
func (a *admission) checkHeaders(c *Call) *protocol.Error {
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
	for _, p := range a.backend.HeaderParams(c) {
		if fault := checkParam(c, p); fault != nil {
			return fault
		}
	}
	return nil
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
