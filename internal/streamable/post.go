package streamable

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/talaria-go/mcp/protocol"
)

// Header names, in the canonical form of net/http.
const (
	headerVersion = "Mcp-Protocol-Version"
	headerSession = "Mcp-Session-Id"
	headerMethod  = "Mcp-Method"
	headerName    = "Mcp-Name"
	headerParam   = "Mcp-Param-"
	headerLast    = "Last-Event-Id"
)

func (h *Handler) post(w http.ResponseWriter, r *http.Request) {
	out := h.open(w, r)
	if out == nil {
		return
	}
	body, ok := h.bodyOf(out, r)
	if !ok {
		return
	}
	if id := h.streamOf(r); id != "" {
		h.postStream(w, r, id, body)
		return
	}
	if protocol.IsBatch(body) {
		h.postBatch(out, r, body)
		return
	}
	c := &Call{HTTP: r, out: out, retry: h.opts.Retry}
	if status, fault := h.admit(c, body); fault != nil {
		rev := c.Revision
		switch {
		case rev != 0:
		case fault.Code == protocol.CodeParseError, status != http.StatusBadRequest:
			rev = protocol.Latest // no message of any revision, or no session that would tell
		default:
			rev = h.revisionOf(r)
		}
		c.out.json = true // an error with a status is never an event
		setRetryAfter(w.Header(), fault)
		id := c.Message.ID
		if c.Message.MeantAsResponse() {
			id = protocol.ID{}
		}
		c.out.answer(status, protocol.AppendErrorResponse(nil, id, fault, rev))
		return
	}
	if !c.Message.IsRequest() {
		c.out.end() // the answer is bare
		h.backend.Notify(c)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	h.serve(c)
}

// open makes the exchange for a POST. It returns nil if it has refused r for
// what its headers say of the body, or of the answer.
func (h *Handler) open(w http.ResponseWriter, r *http.Request) *exchange {
	if !jsonContent(r) {
		h.dog.limitRest(w)
		refuse(w, http.StatusUnsupportedMediaType, protocol.Errorf(protocol.CodeInvalidRequest, "Content-Type must be application/json"))
		return nil
	}
	wantsJSON, wantsEvents := accepts(r)
	if !wantsJSON && !wantsEvents {
		h.dog.limitRest(w)
		refuse(w, http.StatusNotAcceptable, protocol.Errorf(protocol.CodeInvalidRequest, "Accept must list application/json and text/event-stream"))
		return nil
	}
	out := &exchange{w: w, timeout: h.opts.WriteTimeout, shared: r.ProtoMajor > 1, json: wantsJSON, events: wantsEvents, keep: h.opts.NoTakeover}
	out.reading.w = w
	return out
}

// bodyOf reads the body under the eyes of the watchdog. It is not ok if it has
// refused the request.
func (h *Handler) bodyOf(out *exchange, r *http.Request) (body []byte, ok bool) {
	h.dog.enter(&out.reading)
	body, status, fault := h.readBody(out.w, r)
	if late := h.dog.leave(&out.reading); late && fault == nil {
		// The last byte came as the time ran out: the deadline may have ended
		// the request's context already.
		status, fault = http.StatusRequestTimeout, unreadable(os.ErrDeadlineExceeded)
	}
	if fault == nil {
		return body, true
	}
	if status == http.StatusRequestEntityTooLarge {
		h.dog.limitRest(out.w)
	}
	refuse(out.w, status, fault)
	return nil, false
}

// serve answers a request.
func (h *Handler) serve(c *Call) {
	buffer := buffers.Get().(*[]byte)
	c.Buffer = (*buffer)[:0]
	returned := false
	defer func() {
		if !returned {
			c.out.leave(c.HTTP, panicked(c).Response)
		}
	}()
	answer := h.backend.Serve(c)
	returned = true
	if answer.Later {
		buffers.Put(buffer) // the answer is in memory of its own
		return
	}
	header := c.out.w.Header()
	if answer.Session != "" {
		header.Set(headerSession, answer.Session)
	}
	if answer.Challenge != "" {
		header.Set("WWW-Authenticate", answer.Challenge)
	}
	setRetryAfter(header, answer.Fault)
	if answer.Status == 0 {
		answer.Status = statusOf(answer.Fault, c.Revision, answer.Refused)
	}
	if answer.Stream != nil {
		answer.Response = bytes.Clone(answer.Response) // not to wait with the buffer
		buffers.Put(buffer)
		if answer.End != nil {
			defer answer.End()
		}
		defer c.out.hangUp()
		answer.Stream(c.out)
		c.out.answer(answer.Status, answer.Response)
		return
	}
	c.out.answer(answer.Status, answer.Response)
	if cap(answer.Response) > 0 && cap(answer.Response) <= maxPooled {
		*buffer = answer.Response[:0]
	}
	buffers.Put(buffer)
}

// buffers hold the memory of answers between requests.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// maxPooled is the size, in bytes, from which an answer's memory is given
// back: one large answer must not stay in every buffer.
const maxPooled = 64 << 10

// first returns the first value of a header, whose name is in the canonical
// form of net/http already.
func first(r *http.Request, name string) string {
	if values := r.Header[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// admit scans the message, decides its era and checks what must be right
// before anything runs. status goes with a fault.
func (h *Handler) admit(c *Call, body []byte) (status int, fault *protocol.Error) {
	if fault := protocol.Scan(body, protocol.Limits{Depth: h.opts.MaxDepth}, &c.Message); fault != nil {
		return http.StatusBadRequest, fault
	}
	if fault := protocol.ScanParams(&c.Message, &c.Params); fault != nil {
		return http.StatusBadRequest, fault
	}
	if h.isModern(c) {
		return http.StatusBadRequest, h.admitModern(c)
	}
	return h.admitLegacy(c)
}

// isModern tells the era: modern requests carry their revision in _meta. The
// header alone is enough, so that a modern request without its metadata is
// told what it lacks.
func (h *Handler) isModern(c *Call) bool {
	if c.Params.Meta.ProtocolVersion != "" {
		return true
	}
	rev, _ := protocol.ParseRevision(first(c.HTTP, headerVersion))
	return rev.Modern()
}

func (h *Handler) admitModern(c *Call) *protocol.Error {
	if c.Message.IsResponse() {
		return protocol.Errorf(protocol.CodeInvalidRequest, "responses are not accepted: answers travel in inputResponses")
	}
	if c.Message.IsNotification() {
		c.Revision = protocol.Latest
		return h.checkNotification(c)
	}
	meta := &c.Params.Meta
	if meta.ProtocolVersion != "" {
		if fault := matchHeader(c.HTTP, headerVersion, meta.ProtocolVersion); fault != nil {
			return fault
		}
	}
	rev, fault := meta.CheckModern(h.backend.Revisions())
	if fault != nil {
		return fault
	}
	c.Revision = rev
	return h.checkHeaders(c)
}

// checkNotification wants a modern notification to be of a revision that the
// server speaks, and to say the same twice if it says it twice.
func (h *Handler) checkNotification(c *Call) *protocol.Error {
	name, header := c.Params.Meta.ProtocolVersion, c.HTTP.Header[headerVersion]
	switch {
	case name == "" && len(header) > 0:
		name = header[0]
	case len(header) > 0 && header[0] != name:
		return mismatch(headerVersion, header[0], name)
	}
	supported := h.backend.Revisions()
	if rev, _ := protocol.ParseRevision(name); !rev.Modern() || !slices.Contains(supported, rev) {
		return protocol.UnsupportedVersion(name, supported)
	}
	return nil
}

func (h *Handler) admitLegacy(c *Call) (status int, fault *protocol.Error) {
	if c.Message.Method == protocol.MethodInitialize && c.Message.IsRequest() {
		if fault := h.checkVersion(c.HTTP); fault != nil {
			return http.StatusBadRequest, fault
		}
		if id := c.HTTP.Header.Get(headerSession); id != "" {
			if _, fault := h.backend.Session(id, c.HTTP); fault == nil {
				return http.StatusBadRequest, protocol.Errorf(protocol.CodeInvalidRequest,
					"this session is initialized already: a new one begins without Mcp-Session-Id")
			}
		}
		return 0, nil
	}
	if c.Session, status, fault = h.session(c.HTTP); fault == nil {
		c.Revision = c.Session.Revision()
	}
	return status, fault
}

// checkVersion refuses a version header that names none of the server's
// revisions. Without the header, the session says which it is.
func (h *Handler) checkVersion(r *http.Request) *protocol.Error {
	name := first(r, headerVersion)
	if name == "" {
		return nil
	}
	supported := h.backend.Revisions()
	if rev, _ := protocol.ParseRevision(name); !slices.Contains(supported, rev) {
		return protocol.UnsupportedVersion(name, supported)
	}
	return nil
}

// session finds the session that r names.
func (h *Handler) session(r *http.Request) (x Session, status int, fault *protocol.Error) {
	if fault = h.checkVersion(r); fault != nil {
		return nil, http.StatusBadRequest, fault
	}
	id := first(r, headerSession)
	if id == "" {
		return nil, http.StatusBadRequest, protocol.Errorf(protocol.CodeInvalidRequest,
			"header Mcp-Session-Id is missing: send initialize first, or a request of revision %s", protocol.Latest)
	}
	if x, fault = h.backend.Session(id, r); fault != nil {
		return nil, statusOf(fault, 0, true), fault
	}
	return x, 0, nil
}

// revisionOf returns the revision of whoever sends a message that cannot be
// read, as well as it can be known.
func (h *Handler) revisionOf(r *http.Request) protocol.Revision {
	if rev, ok := protocol.ParseRevision(first(r, headerVersion)); ok {
		return rev
	}
	if x, _, fault := h.session(r); fault == nil {
		return x.Revision()
	}
	return protocol.Latest
}

// statusOf returns the HTTP status of an answer with that error, nil for none.
// What was refused before it ran has the status of its reason; a handler may
// mean something else by the same code. Otherwise answers within a legacy
// session are always 200; the modern era, and an initialize that no revision
// suits, have statuses for some codes.
func statusOf(fault *protocol.Error, rev protocol.Revision, refused bool) int {
	if fault == nil {
		return http.StatusOK
	}
	if refused {
		switch fault.Code {
		case protocol.CodeBusy, protocol.CodeUnavailable:
			return http.StatusServiceUnavailable
		case protocol.CodeSessionNotFound:
			return http.StatusNotFound
		}
	}
	if rev != 0 && !rev.Modern() {
		return http.StatusOK
	}
	switch fault.Code {
	case protocol.CodeMethodNotFound:
		return http.StatusNotFound
	case protocol.CodeMissingCapability, protocol.CodeUnsupportedVersion, protocol.CodeHeaderMismatch:
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// setRetryAfter says when a request that met fault may pass, whatever the
// status: in a second, if that is not known and only a matter of time.
func setRetryAfter(header http.Header, fault *protocol.Error) {
	if fault == nil {
		return
	}
	after := fault.RetryAfter
	if after <= 0 {
		if fault.Code != protocol.CodeBusy && fault.Code != protocol.CodeUnavailable {
			return
		}
		after = time.Second
	}
	header.Set("Retry-After", strconv.FormatInt(int64((after-1)/time.Second+1), 10))
}

// jsonContent tells whether the body says that it is JSON.
func jsonContent(r *http.Request) bool {
	value := first(r, "Content-Type")
	if value == "application/json" {
		return true
	}
	media, _, err := mime.ParseMediaType(value)
	return err == nil && media == "application/json"
}

// promised is the body length, in bytes, up to which memory is taken on the
// client's word; a larger body grows as it arrives.
const promised = 64 << 10

// readBody reads the body, up to the limit.
func (h *Handler) readBody(w http.ResponseWriter, r *http.Request) (body []byte, status int, fault *protocol.Error) {
	if r.ContentLength > h.opts.MaxBody {
		return nil, http.StatusRequestEntityTooLarge, h.tooLarge()
	}
	if 0 <= r.ContentLength && r.ContentLength <= promised {
		body = make([]byte, r.ContentLength)
		if _, err := io.ReadFull(r.Body, body); err != nil {
			return nil, unreadableStatus(err), unreadable(err)
		}
		return body, 0, nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.opts.MaxBody))
	if _, tooLong := errors.AsType[*http.MaxBytesError](err); tooLong {
		return nil, http.StatusRequestEntityTooLarge, h.tooLarge()
	}
	if err != nil {
		return nil, unreadableStatus(err), unreadable(err)
	}
	return body, 0, nil
}

// unreadableStatus tells a body that took too long from one that broke off.
func unreadableStatus(err error) int {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return http.StatusRequestTimeout
	}
	return http.StatusBadRequest
}

func (h *Handler) tooLarge() *protocol.Error {
	return protocol.Errorf(protocol.CodeInvalidRequest, "body is larger than the limit of %d bytes", h.opts.MaxBody)
}

func unreadable(err error) *protocol.Error {
	return &protocol.Error{Code: protocol.CodeParseError, Message: "the body could not be read", Err: err}
}
