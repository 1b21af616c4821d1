package streamable

import (
	"net/http"
	"sync"

	"github.com/talaria-go/mcp/protocol"
)

// postBatch serves a JSON array of messages, which a session of revision
// 2025-03-26 may send (basic/transports of that revision). The requests run at
// the same time; the answers leave together, in the order of the requests: as
// an array, or as events one by one if a message came ahead of them.
func (h *Handler) postBatch(out *exchange, r *http.Request, body []byte) {
	var x Session
	rev, status, fault := protocol.Revision(0), 0, (*protocol.Error)(nil)
	if r.Header.Get(headerSession) != "" { // without one there is no revision, which has no batches
		if x, status, fault = h.session(r); fault == nil {
			rev = x.Revision()
		}
	}
	var calls []*Call
	var faults []*protocol.Error
	if fault == nil {
		status = http.StatusBadRequest
		calls, faults, fault = h.admitBatch(rev, body)
	}
	if fault != nil {
		if rev == 0 {
			rev = protocol.Latest
		}
		out.json = true // an error with a status is never an event
		setRetryAfter(out.w.Header(), fault)
		out.answer(status, protocol.AppendErrorResponse(nil, protocol.ID{}, fault, rev))
		return
	}
	answers := make([][]byte, len(calls))
	for _, c := range calls {
		c.HTTP, c.Revision, c.Session, c.out, c.batch = r, rev, x, out, true
	}
	requests := 0
	var running sync.WaitGroup
	for i, c := range calls {
		switch {
		case faults[i] != nil && c.Message.MeantAsResponse(): // which nobody answers
		case faults[i] != nil:
			requests++
			answers[i] = protocol.AppendErrorResponse(nil, c.Message.ID, faults[i], c.Revision)
		case c.Message.IsRequest():
			requests++
			running.Go(func() {
				answer := panicked(c) // unless the handler returns
				defer func() { answers[i] = answer.Response }()
				answer = h.backend.Serve(c)
			})
		default:
			h.backend.Notify(c)
		}
	}
	running.Wait()
	if requests == 0 {
		out.end()
		out.w.WriteHeader(http.StatusAccepted)
		return
	}
	out.answerAll(answers)
}

// admitBatch splits a batch into calls, which have their messages alone yet,
// and checks what must be right before anything runs. fault refuses all of it;
// faults are those of single messages.
func (h *Handler) admitBatch(rev protocol.Revision, body []byte) (calls []*Call, faults []*protocol.Error, fault *protocol.Error) {
	limits := protocol.Limits{Depth: h.opts.MaxDepth}
	messages, fault := protocol.ScanBatch(body, limits, rev, h.opts.MaxBatch)
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

// answerAll ends the response with the answers to a batch; nil is none.
func (e *exchange) answerAll(answers [][]byte) {
	e.mu.Lock()
	streams := e.started || !e.json
	if streams {
		e.start()
		e.ended = true
		for _, answer := range answers {
			if answer != nil && e.event("", answer) != nil {
				break // the client is gone; net/http notices by itself
			}
		}
	}
	e.mu.Unlock()
	if !streams {
		e.answer(http.StatusOK, protocol.AppendBatch(nil, answers))
	}
}
