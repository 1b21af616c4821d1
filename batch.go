package mcp

import (
	"sync"

	"github.com/talaria-go/mcp/protocol"
)

// batch gathers the answers to the messages of a JSON array, which leave
// together, in the order of the questions.
type batch struct {
	send func(answers []byte)

	mu      sync.Mutex
	answers [][]byte // nil where there is none
	open    int      // messages without a reply
}

// put keeps a copy of the answer to message i, nil for none, and sends the
// array when it was the last.
func (b *batch) put(i int, answer []byte) {
	b.mu.Lock()
	if answer != nil {
		b.answers[i] = append([]byte{}, answer...)
	}
	b.open--
	last := b.open == 0
	b.mu.Unlock()
	if !last {
		return
	}
	if all := protocol.AppendBatch(nil, b.answers); all != nil {
		b.send(all)
	}
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
	b.send = func(answers []byte) { _ = l.conn.Write(answers) } // the flush at the end has the error
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
