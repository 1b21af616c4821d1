package streamable

import (
	"net/http"

	"github.com/talaria-go/mcp/protocol"
)

// get opens the stream of a legacy session, or a connection of HTTP+SSE.
func (h *Handler) get(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get(headerSession) == "" && !h.opts.SSE {
		notAllowed(w, "GET is for legacy sessions and needs Mcp-Session-Id; all else is a POST")
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
	id, _, status, fault := h.session(r)
	if fault != nil {
		refuse(w, status, fault)
		return
	}
	out := &exchange{w: w, timeout: h.opts.WriteTimeout, events: true}
	to := &Events{Last: r.Header.Get(headerLast), KeepAlive: h.opts.KeepAlive, out: out}
	if fault := h.backend.Listen(id, r, to); fault != nil && !to.opened {
		refuse(w, http.StatusBadRequest, fault)
	}
}

// delete ends a legacy session.
func (h *Handler) delete(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get(headerSession) == "" {
		notAllowed(w, "DELETE is for legacy sessions and needs Mcp-Session-Id")
		return
	}
	id, _, status, fault := h.session(r)
	if fault != nil {
		refuse(w, status, fault)
		return
	}
	h.backend.EndSession(id)
	w.WriteHeader(http.StatusNoContent)
}
