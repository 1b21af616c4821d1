// Package linktest helps to test links.
//
// A [Recorder] is the receiver that a test gives to a link in place of a
// client. It keeps what the link reports, and its Wait methods block until
// something has come, so that tests need no sleeping. [Call] and [Notification]
// make messages as a client would send them.
//
// The tests of link, httplink and sselink use it. Links call the Recorder
// from goroutines of their own; mu guards all that it keeps. Wait methods end
// the test when nothing comes for a while, and belong on its goroutine.
package linktest

import (
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/protocol"
)

// timeLimit is the longest wait of a test before it fails.
const timeLimit = 20 * time.Second

// Recorder is a link.Receiver that remembers. NewRecorder makes one.
type Recorder struct {
	t        testing.TB
	mu       sync.Mutex
	received []Received
	failed   map[protocol.ID]error
	lost     []error
	change   chan struct{} // closed at the next change
}

// Received is one message from the server, or one batch, as the link passed it
// on. Text is a copy, as links use their buffers again. During is nil for what
// came on no answer.
type Received struct {
	Text   string
	During *link.Message
}

// NewRecorder returns a Recorder.
func NewRecorder(t testing.TB) *Recorder {
	return &Recorder{t: t, failed: map[protocol.ID]error{}, change: make(chan struct{})}
}

// changed runs change while r.mu is held and wakes those that wait. Each change
// has a channel of its own, so that any number of goroutines can wait.
func (r *Recorder) changed(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
	close(r.change)
	r.change = make(chan struct{})
}

// Receive implements link.Receiver.
func (r *Recorder) Receive(message []byte, during *link.Message) {
	r.changed(func() { r.received = append(r.received, Received{string(message), during}) })
}

// Lost implements link.Receiver.
func (r *Recorder) Lost(err error) { r.changed(func() { r.lost = append(r.lost, err) }) }

// Fail implements link.Failer.
func (r *Recorder) Fail(m *protocol.Message, err error) {
	r.changed(func() {
		if m.Kind() == protocol.KindResponse {
			r.failed[m.ID] = err
		} else {
			r.failed[protocol.ID{}] = err
		}
	})
}

// wait waits until done, and fails the test if that takes too long; what names
// the thing that is missing then. done runs while r.mu is held.
func (r *Recorder) wait(what string, done func() bool) {
	r.t.Helper()
	timer := time.NewTimer(timeLimit)
	defer timer.Stop()
	for {
		r.mu.Lock()
		ok, change := done(), r.change
		r.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-change:
		case <-timer.C:
			r.t.Fatalf("no %s after %v; received %q, lost %v", what, timeLimit, r.Texts(), r.lost)
		}
	}
}

// Wait waits for n messages and returns them all.
func (r *Recorder) Wait(n int) []Received {
	r.t.Helper()
	r.wait(strconv.Itoa(n)+" messages", func() bool { return len(r.received) >= n })
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Received(nil), r.received...)
}

// Texts returns what was received.
func (r *Recorder) Texts() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	texts := []string{}
	for _, m := range r.received {
		texts = append(texts, m.Text)
	}
	return texts
}

// WaitLost waits until the link is lost, and returns why.
func (r *Recorder) WaitLost() error {
	r.t.Helper()
	r.wait("loss", func() bool { return len(r.lost) > 0 })
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost[0]
}

// Losses returns how often the link was lost.
func (r *Recorder) Losses() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]error(nil), r.lost...)
}

// WaitFailed waits until a request has failed, and returns why.
func (r *Recorder) WaitFailed(id protocol.ID) error {
	r.t.Helper()
	r.wait("failure of "+id.String(), func() bool { return r.failed[id] != nil })
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed[id]
}

// Call returns a request for a link.
func Call(rev protocol.Revision, id int64, method string) *link.Message {
	return &link.Message{
		Body: []byte(`{"jsonrpc":"2.0","id":` + strconv.FormatInt(id, 10) + `,"method":"` + method + `"}`),
		ID:   protocol.NewID(id), Method: method, Revision: rev, Modern: rev.Modern(),
	}
}

// Notification returns a notification for a link.
func Notification(rev protocol.Revision, method string) *link.Message {
	return &link.Message{
		Body: []byte(`{"jsonrpc":"2.0","method":"` + method + `"}`), Method: method, Revision: rev, Modern: rev.Modern(),
	}
}

// Failures returns how many requests have failed.
func (r *Recorder) Failures() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.failed)
}
