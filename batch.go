package mcp

import (
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

// handleBatch takes a JSON array of messages.
func (l *link) handleBatch(text []byte) {
	messages, fault := protocol.ScanBatch(text, protocol.Limits{}, l.revision(), l.server.opts.MaxBatch)
	if fault != nil {
		l.refuse(protocol.ID{}, l.revision(), fault)
		return
	}
	jobs := make([]*job, len(messages))
	faults := make([]*protocol.Error, len(messages))
	b := &batch{answers: make([][]byte, len(messages)), open: len(messages)}
	for i, message := range messages {
		jobs[i] = &job{link: l, batch: b, place: i}
		faults[i] = protocol.Scan(message, protocol.Limits{}, &jobs[i].message)
		if jobs[i].message.Method == protocol.MethodInitialize {
			l.refuse(protocol.ID{}, l.revision(), protocol.ErrInitializeInBatch())
			return
		}
	}
	for i, j := range jobs {
		if faults[i] != nil {
			j.refuse(l.revision(), faults[i])
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
