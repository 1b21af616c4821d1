package mcp

import (
	"net/http"
	"sync"

	"github.com/talaria-go/mcp/protocol"
)

// batch gathers the answers to the messages of a JSON array, which leave
// together, in the order of the questions.
type batch struct {
	mu      sync.Mutex
	answers [][]byte // nil where there is none
	open    int      // messages without a reply
}

// put keeps a copy of the answer to message i, nil for none. When it was the
// last, it returns the array, nil if that would be empty.
func (b *batch) put(i int, answer []byte) (all []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if answer != nil {
		b.answers[i] = append([]byte{}, answer...)
	}
	if b.open--; b.open > 0 {
		return nil
	}
	return protocol.AppendBatch(nil, b.answers)
}

// handleBatch takes a JSON array of messages, which by has brought, if not nil.
func (l *link) handleBatch(text []byte, by *http.Request) {
	messages, fault := protocol.ScanBatch(text, protocol.Limits{}, l.revision(), l.server.opts.Limits.Batch)
	if fault != nil {
		l.turnAway(&job{link: l, size: len(text)}, fault)
		return
	}
	jobs := make([]*job, len(messages))
	faults := make([]*protocol.Error, len(messages))
	b := &batch{answers: make([][]byte, len(messages)), open: len(messages)}
	for i, message := range messages {
		j := &job{link: l, batch: b, place: i, size: len(message), by: by}
		jobs[i] = j
		faults[i] = protocol.Scan(message, protocol.Limits{}, &j.message)
		if j.message.Method == protocol.MethodInitialize {
			l.turnAway(&job{link: l, size: len(text)}, protocol.ErrInitializeInBatch())
			return
		}
	}
	for i, j := range jobs {
		if faults[i] != nil {
			l.unreadable(j, faults[i])
			continue
		}
		l.take(j)
	}
}

// modernFault tells why a modern request is not served where it came.
func (l *link) modernFault(j *job) *protocol.Error {
	switch {
	case j.batch != nil:
		return protocol.ErrModernInBatch()
	case l.opts.legacy:
		return protocol.Errorf(protocol.CodeInvalidRequest,
			"the HTTP+SSE transport has no revision %s: send initialize, or POST to the endpoint without a session", protocol.Latest)
	}
	return nil
}
