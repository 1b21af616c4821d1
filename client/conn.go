package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/peer"
	"github.com/talaria-go/mcp/protocol"
)

// connection is one link to the server, from its opening to its end.
type connection struct {
	client    *Client
	link      link.Link
	sync      bool          // Send returns when the answer has come
	rev       atomic.Uint32 // what is spoken, 0 before that is agreed on
	about     about
	meta      atomic.Pointer[[]byte] // members of every modern request's _meta
	asking    atomic.Int32           // questions of the server that a handler works on
	asked     peer.Inflight          // the same, by id
	answering atomic.Int32           // questions whose answers are not sent yet
	askedAt   atomic.Int64           // when the last of them was answered, in nanoseconds
	opening   atomic.Bool
	silent    bool // it did not answer the probe

	mu        sync.Mutex
	err       error // why it was lost
	garbled   string
	garbledAt time.Time
}

// about is what the server says of itself.
type about struct {
	info         protocol.Implementation
	caps         protocol.ServerCapabilities
	instructions string
	raw          []byte
}

// maxAsked is how many questions of a server are worked on at a time.
const maxAsked = 256

func (conn *connection) revision() protocol.Revision { return protocol.Revision(conn.rev.Load()) }

func (conn *connection) speak(rev protocol.Revision) { conn.rev.Store(uint32(rev)) }

func (conn *connection) lostErr() error {
	conn.mu.Lock()
	defer conn.mu.Unlock()
	return conn.err
}

// Lost implements link.Receiver.
func (conn *connection) Lost(err error) {
	if err == nil {
		err = errors.New("the server ended the connection")
	}
	err = conn.blame(err, time.Now().Add(-lastWords))
	conn.mu.Lock()
	if conn.err == nil {
		conn.err = err
	}
	conn.mu.Unlock()
	conn.client.lost(conn, err)
}

// askedLately tells whether a question of the server is being answered, or was
// within that time.
func (conn *connection) askedLately(now time.Time, within time.Duration) bool {
	return conn.asking.Load() > 0 || now.UnixNano()-conn.askedAt.Load() < int64(within)
}

// Fail implements link.Failer.
func (conn *connection) Fail(id protocol.ID, err error) {
	if c := conn.callOf(id); c != nil {
		conn.client.calls.finish(c.id, conn, nil, err)
	}
}

// close ends the link in order.
func (conn *connection) close(ctx context.Context) error { return conn.link.Close(ctx) }

// Receive implements link.Receiver.
func (conn *connection) Receive(text []byte, during *link.Message) {
	if trace := conn.client.opts.Trace; trace != nil {
		trace(true, text)
	}
	if !protocol.IsBatch(text) {
		conn.receive(text, during)
		return
	}
	messages, fault := protocol.ScanBatch(text, protocol.Limits{}, conn.batchRevision(), maxBatch)
	if fault != nil {
		conn.garbage(text, during, fault)
		return
	}
	for _, message := range messages {
		conn.receive(message, during)
	}
}

// maxBatch is how many messages a server's batch may have.
const maxBatch = 10000

// batchRevision is what batches are read as: before a revision is agreed on
// there are none.
func (conn *connection) batchRevision() protocol.Revision {
	if conn.opening.Load() {
		return protocol.V20241105
	}
	return conn.revision()
}

func (conn *connection) receive(text []byte, during *link.Message) {
	var m protocol.Message
	if fault := protocol.Scan(text, protocol.Limits{}, &m); fault != nil {
		if m.Error != nil && m.ID.IsZero() && m.IsResponse() && (during != nil || conn.opening.Load()) {
			conn.answer(&m, during) // its id is null: the server could not read that of the request
			return
		}
		if c := conn.callOf(m.ID); c != nil {
			err := fmt.Errorf("the server's answer is not valid: %w", fault)
			conn.client.calls.finish(c.id, conn, nil, err)
			return
		}
		conn.garbage(text, during, fault)
		return
	}
	switch {
	case m.IsResponse():
		conn.answer(&m, during)
	case m.IsNotification():
		conn.notified(&m, during)
	default:
		conn.question(&m)
	}
}

// garbage takes what is no message.
func (conn *connection) garbage(text []byte, during *link.Message, err error) {
	conn.client.calls.count(func(s *Stats) *int64 { return &s.Garbage })
	conn.client.opts.Logger.Warn().Err(err).Str("server", conn.client.server).
		Str("text", string(text[:min(len(text), 100)])).Msg("the server sent what is no message")
	if during == nil {
		conn.mu.Lock()
		conn.garbled, conn.garbledAt = string(text[:min(len(text), 100)]), time.Now()
		conn.mu.Unlock()
		return
	}
	if c := conn.callOf(during.ID); c != nil {
		c.mu.Lock()
		c.fault = fmt.Errorf("the server's answer is not valid: %w", err)
		c.mu.Unlock()
	}
}

// lastWords is how long before its end a server says why it ends.
const lastWords = time.Second

// blame adds to an error what the server has sent since then, or in answer to
// the handshake, that is no message: that may be why.
func (conn *connection) blame(err error, since time.Time) error {
	conn.mu.Lock()
	defer conn.mu.Unlock()
	if conn.garbled == "" || conn.garbledAt.Before(since) && !conn.opening.Load() {
		return err
	}
	return &garbledError{err, conn.garbled}
}

// callOf finds the request of an id that the server sent back.
func (conn *connection) callOf(id protocol.ID) *call {
	n, err := strconv.ParseInt(id.String(), 10, 64)
	if err != nil {
		return nil
	}
	if c := conn.client.calls.find(n); c != nil && c.conn == conn {
		return c
	}
	return nil
}

// answer gives a response to the request that waits for it.
func (conn *connection) answer(m *protocol.Message, during *link.Message) {
	id := m.ID
	if id.IsZero() && during != nil {
		id = during.ID // the answer to the one request of this exchange
	}
	c := conn.callOf(id)
	if c == nil && id.IsZero() && conn.opening.Load() {
		c = conn.client.calls.only(conn) // nothing else is under way
	}
	if c == nil {
		conn.client.calls.count(func(s *Stats) *int64 { return &s.Unmatched })
		conn.client.opts.Logger.Debug().Str("server", conn.client.server).Str("id", id.String()).Msg("an answer to no request that is under way")
		return
	}
	if m.Error != nil {
		conn.client.calls.finish(c.id, conn, nil, serverFault(m.Error))
		return
	}
	conn.client.calls.finish(c.id, conn, clone(m.Result), nil)
}

// only returns the one call of conn, nil if there are none or more.
func (t *calls) only(conn *connection) (one *call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.table {
		if c.conn != conn {
			continue
		}
		if one != nil {
			return nil
		}
		one = c
	}
	return one
}

// send sends what has no answer.
func (conn *connection) send(ctx context.Context, method string, body []byte) error {
	return conn.carry(ctx, &link.Message{
		Body: body, Method: method, Revision: conn.revision(), Modern: conn.revision().Modern(),
	})
}

// carry gives a message to the link.
func (conn *connection) carry(ctx context.Context, m *link.Message) error {
	trace := conn.client.opts.Trace
	if trace == nil {
		return conn.link.Send(ctx, m)
	}
	trace(false, m.Body)
	err := conn.link.Send(ctx, m)
	if status, ok := errors.AsType[*link.StatusError](err); ok && status.Err != nil && json.Valid(status.Body) {
		trace(true, status.Body) // an error of the protocol that came as one of HTTP
	}
	return err
}

// sendSoon sends what hardly anybody waits for; done is closed afterwards.
func (conn *connection) sendSoon(method string, body []byte) (done <-chan struct{}) {
	ended := make(chan struct{})
	if !conn.client.note(func(ctx context.Context) {
		defer close(ended)
		if err := conn.send(ctx, method, body); err != nil {
			conn.client.opts.Logger.Debug().Err(err).Str("method", method).Msg("a message was not sent")
		}
	}) {
		close(ended)
	}
	return ended
}

// cancels tells whether giving up a request is told by a notification: over
// modern HTTP the end of the exchange says it
// (basic/patterns/cancellation of 2026-07-28). The handshake is not cancelled:
// a server that did not answer it may not take notifications yet.
func (conn *connection) cancels(method string) bool {
	return method != protocol.MethodInitialize && !conn.opening.Load() && !(conn.sync && conn.revision().Modern())
}

// cancelledBody is the notification that a request is given up.
func cancelledBody(id int64, reason string) []byte {
	params := jsonx.AppendInt([]byte(`{"requestId":`), id)
	if reason != "" {
		params = jsonx.AppendString(append(params, `,"reason":`...), reason)
	}
	return protocol.AppendNotification(nil, protocol.MethodCancelled, append(params, '}'))
}

// cancelAll tells the server that these requests have no use any more, as many
// as a moment suffices for.
func (conn *connection) cancelAll(ctx context.Context, ended []*call, reason string) {
	ctx, stop := context.WithTimeout(ctx, notesTimeout)
	defer stop()
	for _, c := range ended {
		if c.conn != conn || !conn.cancels(c.method) {
			continue
		}
		if conn.send(ctx, protocol.MethodCancelled, cancelledBody(c.id, reason)) != nil {
			return // the link is gone, or does not take anything
		}
	}
}
