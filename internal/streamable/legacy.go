package streamable

import (
	"net/http"

	"github.com/talaria-go/mcp/protocol"
)

// get opens the stream of a legacy session, or a connection of HTTP+SSE.
func (h *Handler) get(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get(headerSession) == "" && !h.opts.SSE {
		notAllowed(w, "POST", "GET is for legacy sessions and needs Mcp-Session-Id; all else is a POST")
		return
	}
	if _, events := accepts(r); !events {
		refuse(w, http.StatusNotAcceptable, protocol.Errorf(protocol.CodeInvalidRequest, "Accept must list text/event-stream"))
		return
	}
	if r.Header.Get(headerSession) == "" {
		h.connect(w, r)
		return
	}
	x, status, fault := h.session(r)
	if fault != nil {
		refuse(w, status, fault)
		return
	}
	out := &exchange{w: w, timeout: h.opts.WriteTimeout, shared: r.ProtoMajor > 1, events: true, keep: h.opts.NoTakeover, line: newLine(r)}
	to := &Events{Last: r.Header.Get(headerLast), every: h.opts.KeepAlive, out: out, ctx: r.Context()}
	defer to.end()
	if fault := h.backend.Listen(x, to); fault != nil && !to.opened {
		if status = statusOf(fault, 0, true); status == http.StatusOK {
			status = http.StatusBadRequest
		}
		refuse(w, status, fault)
	}
}

// withoutSession are the methods that need no session.
func (h *Handler) withoutSession() string {
	if h.opts.SSE {
		return "POST, GET"
	}
	return "POST"
}

// delete ends a legacy session.
func (h *Handler) delete(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get(headerSession) == "" {
		notAllowed(w, h.withoutSession(), "DELETE is for legacy sessions and needs Mcp-Session-Id")
		return
	}
	x, status, fault := h.session(r)
	if fault != nil {
		refuse(w, status, fault)
		return
	}
	h.backend.EndSession(x)
	w.WriteHeader(http.StatusNoContent)
}
