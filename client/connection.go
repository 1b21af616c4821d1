package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/internal/clients/origin"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/inflight"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// connection is one link to the server, from its opening to its end. It is not
// reused.
//
// States: opening, until the handshake is done (opening is set, and rev is 0
// before a revision is agreed on); in use, after lifecycle.install; lost, when
// err is set. client, link, sync and server do not change once it is in use.
type connection struct {
	client    *Client
	link      link.Link
	sync      bool          // Send returns when the answer has come
	rev       atomic.Uint32 // what is spoken, 0 before that is agreed on
	server    Server
	meta      atomic.Pointer[[]byte] // members of every modern request's _meta
	asking    atomic.Int32           // questions of the server that a handler works on
	asked     inflight.Requests      // the same, by id
	answering atomic.Int32           // questions whose answers are not sent yet
	questions atomic.Int64           // length of their params
	askedAt   atomic.Int64           // when the last of them was answered, in nanoseconds
	opening   atomic.Bool
	// rootsChange says that initialize has declared roots.listChanged.
	rootsChange atomic.Bool

	ready time.Time // when it became the client's; written before it is shared

	mu        sync.Mutex
	err       error // why it was lost
	invalid   string
	invalidAt time.Time
	stray     string // the id of the last answer to no request that there ever was
	strayAt   time.Time
}

// maxAsked is how many questions of a server are handled at a time, and
// maxAskedSize how long their params may be together, in bytes, if there are
// several.
const (
	maxAsked     = 256
	maxAskedSize = 16 << 20
)

// revision returns what is spoken, 0 before that is agreed on.
func (conn *connection) revision() protocol.Revision { return protocol.Revision(conn.rev.Load()) }

// speak sets the revision. Only the handshake calls it, and nothing else runs
// in the meantime.
func (conn *connection) speak(rev protocol.Revision) { conn.rev.Store(uint32(rev)) }

// lostErr returns why the connection was lost, or nil. A caller adds its call
// to the table first and looks here afterwards: either it sees the loss, or the
// loss sees the call.
func (conn *connection) lostErr() error {
	conn.mu.Lock()
	defer conn.mu.Unlock()
	return conn.err
}

// Lost implements link.Receiver. It ends the calls in progress and starts
// reconnecting.
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
	conn.client.life.lost(conn, err)
}

// askedLately reports whether a question of the server is being answered, or
// was within the given time.
func (conn *connection) askedLately(now time.Time, within time.Duration) bool {
	return conn.asking.Load() > 0 || now.UnixNano()-conn.askedAt.Load() < int64(within)
}

// Fail implements link.Failer: a message of the server was too long. A question is
// answered with an error, and what may be an answer ends the call that it is for.
func (conn *connection) Fail(m *protocol.Message, err error) {
	kind := m.Kind()
	switch c := conn.callOf(m.ID); {
	case kind == protocol.KindRequest && !conn.revision().Modern():
		fault := protocol.Errorf(protocol.CodeInvalidRequest, "%w", err)
		conn.client.life.note(func(ctx context.Context) {
			_ = conn.carry(ctx, &link.Message{Body: wire.AppendErrorResponse(nil, m.ID, fault, conn.revision()), Revision: conn.revision()}) // a server that is gone needs none
		})
	case kind == protocol.KindRequest, kind == protocol.KindNotification:
	case c != nil:
		conn.client.calls.finish(c.id, conn, nil, err)
		return
	case m.ID.IsZero() && conn.attribute(err):
		return
	}
	conn.invalidMessage([]byte(err.Error()), nil, err)
}

// attribute ends the calls that an error without an id is for, and reports whether
// there are any. Over streamable HTTP the exchange tells that.
func (conn *connection) attribute(err error) bool {
	if conn.sync {
		return false
	}
	ended := conn.client.calls.suspects(conn)
	for _, c := range ended {
		conn.client.calls.finish(c.id, conn, nil, err)
	}
	return len(ended) > 0
}

// close closes the link in order. If users' code in it, a Conn or a
// RoundTripper, does not return in time, it is left behind.
func (conn *connection) close(ctx context.Context) error {
	ended := make(chan error, 1)
	if !inflight.Within(ctx, afterKill, func() { ended <- conn.link.Close(ctx) }) {
		return errors.New("the transport does not close")
	}
	return <-ended
}

// afterKill is how long closing may continue after its time is over: a process
// that was killed has to be reaped.
const afterKill = 6 * time.Second

// Receive implements link.Receiver.
func (conn *connection) Receive(text []byte, during *link.Message) {
	conn.client.calls.received.add(len(text))
	conn.trace(true, text)
	if !wire.IsBatch(text) {
		conn.receive(text, during)
		return
	}
	messages, fault := wire.ScanBatch(text, conn.batchRevision(), maxBatch)
	if fault != nil {
		conn.invalidMessage(text, during, fault)
		return
	}
	for _, message := range messages {
		conn.receive(message, during)
	}
}

// maxBatch is how many messages a batch of the server may have.
const maxBatch = 10000

// batchRevision returns the revision by which batches are read; before one is
// agreed on there are none.
func (conn *connection) batchRevision() protocol.Revision {
	if conn.opening.Load() {
		return protocol.V20241105
	}
	return conn.revision()
}

// receive handles one message. A message that is not valid still ends the call
// that it answers, if its id can be read: the caller would otherwise wait in
// vain.
func (conn *connection) receive(text []byte, during *link.Message) {
	var m protocol.Message
	fault := wire.Scan(text, &m)
	if fault == nil && m.Kind() == protocol.KindResponse && m.ID.IsZero() && during == nil && !conn.opening.Load() {
		if m.Error != nil && conn.attribute(fmt.Errorf("%w (the server named no request; this one is the only one that it can mean)", serverFault(m.Error))) {
			return
		}
		fault = protocol.Errorf(protocol.CodeInvalidRequest, "it answers no request: its id is null")
	}
	if fault != nil {
		if m.Error != nil && m.ID.IsZero() && m.Kind() == protocol.KindResponse && (during != nil || conn.opening.Load()) {
			conn.answer(&m, during) // its id is null: the server could not read that of the request
			return
		}
		if c := conn.callOf(m.ID); c != nil {
			err := invalid(fmt.Errorf("it is not valid: %w", fault))
			conn.client.calls.finish(c.id, conn, nil, err)
			return
		}
		conn.invalidMessage(text, during, fault)
		return
	}
	switch {
	case m.Kind() == protocol.KindResponse:
		conn.answer(&m, during)
	case m.Kind() == protocol.KindNotification:
		conn.notified(&m, during)
	default:
		conn.question(&m)
	}
}

// invalidMessage counts and logs text that is not a message, and remembers its
// beginning for errors. during is the HTTP request whose response had the
// text, or nil.
func (conn *connection) invalidMessage(text []byte, during *link.Message, err error) {
	conn.client.calls.count(func(s *Stats) *int64 { return &s.InvalidMessages })
	conn.client.logDropped(conn.client.opts.Logger.Warn, "the server sent an invalid message", func(e *zerolog.Event) *zerolog.Event {
		return e.Err(visible.Error(err)).Str("text", visible.Line(string(text), 100))
	})
	if during == nil {
		conn.mu.Lock()
		conn.invalid, conn.invalidAt = string(text[:min(len(text), 100)]), time.Now()
		conn.mu.Unlock()
		return
	}
	if c := conn.callOf(during.ID); c != nil {
		c.mu.Lock()
		c.fault = invalid(fmt.Errorf("it is not valid: %w", err))
		c.mu.Unlock()
	}
}

// garbled reports whether the server has sent what is not a message.
func (conn *connection) garbled() bool {
	conn.mu.Lock()
	defer conn.mu.Unlock()
	return conn.invalid != ""
}

// lastWords is how long before its end a server may have said why it ends.
const lastWords = time.Second

// blame adds to an error, once, the invalid text that the server has sent since a
// time, or during the handshake: it may be the reason.
func (conn *connection) blame(err error, since time.Time) error {
	conn.mu.Lock()
	defer conn.mu.Unlock()
	if _, blamed := errors.AsType[*strayIDError](err); !blamed && conn.stray != "" && !conn.strayAt.Before(since) {
		err = &strayIDError{err, conn.stray}
	}
	if _, blamed := errors.AsType[*invalidMessageError](err); blamed || conn.invalid == "" || conn.invalidAt.Before(since) && !conn.opening.Load() {
		return err
	}
	return &invalidMessageError{err, conn.invalid}
}

// unanswered adds what may be the reason to the error of a stream that ended without the
// answer to a request of a time.
func (conn *connection) unanswered(failure error, since time.Time) error {
	own, ok := failure.(*Error)
	if !ok || own.kind != ErrConnection {
		return failure
	}
	explained := *own
	explained.Err = conn.blame(own.Err, since)
	return &explained
}

// explain adds to the error of waiting in vain since a time what may be the
// reason.
func (conn *connection) explain(failure error, since time.Time) error {
	own, ok := failure.(*Error)
	if !ok || own.kind != ErrTimeout && !conn.opening.Load() {
		return failure
	}
	explained := *own
	explained.Err = conn.silence(conn.blame(own.Err, since))
	return &explained
}

// silence adds to the error of a handshake that was not answered what the link
// knows about the server.
func (conn *connection) silence(err error) error {
	l, ok := conn.link.(link.Silent)
	if !ok || !conn.opening.Load() {
		return err
	}
	stderr, withheld, ok := l.Silence()
	if !ok {
		return err
	}
	return fmt.Errorf("%w; %w", err, &SilentError{stderr, withheld})
}

// callOf returns the call with an id that the server has sent back, or nil if
// it is not one of this connection.
func (conn *connection) callOf(id protocol.ID) *call {
	n, err := strconv.ParseInt(id.Canonical().String(), 10, 64)
	if err != nil {
		return nil
	}
	if c := conn.client.calls.find(n); c != nil && c.conn == conn {
		return c
	}
	return nil
}

// answer delivers a response to the call that waits for it.
func (conn *connection) answer(m *protocol.Message, during *link.Message) {
	id := m.ID
	if id.IsZero() && during != nil {
		id = during.ID // the answer to the one request of this exchange
	}
	c := conn.callOf(id)
	if c == nil && id.IsZero() && conn.opening.Load() {
		if all := conn.client.calls.suspects(conn); len(all) == 1 {
			c = all[0] // nothing else is in progress
		}
	}
	if c == nil {
		conn.client.calls.count(func(s *Stats) *int64 { return &s.Unmatched })
		conn.unmatched(id, during)
		if m.Error == nil && resultType(m.Result) == "task" && conn.client.calls.late(id) {
			abandonUnread(conn.client, m.Result, nil)
		}
		conn.client.logDropped(conn.client.opts.Logger.Debug, "an answer to no request that is under way", func(e *zerolog.Event) *zerolog.Event {
			return e.Str("id", visible.Line(id.String(), visible.Name))
		})
		return
	}
	if m.Error != nil {
		conn.client.calls.finish(c.id, conn, nil, serverFault(m.Error))
		return
	}
	conn.client.calls.finish(c.id, conn, clone(m.Result), nil)
}

// unmatched remembers an answer with an id that no request of this client has
// or had, such as "1" for 1: it may be the reason why a request gets no answer.
func (conn *connection) unmatched(id protocol.ID, during *link.Message) {
	if n, err := strconv.ParseInt(id.Canonical().String(), 10, 64); err == nil && conn.client.calls.issued(n) {
		return // it is late
	}
	conn.mu.Lock()
	conn.stray, conn.strayAt = visible.Line(id.String(), visible.Name), time.Now()
	conn.mu.Unlock()
	if during == nil {
		return
	}
	if c := conn.callOf(during.ID); c != nil {
		c.mu.Lock()
		c.fault = invalid(fmt.Errorf("the server answered the request %v with the id %s: an answer has the id as it was sent", during.ID, id))
		c.mu.Unlock()
	}
}

// send sends a notification.
func (conn *connection) send(ctx context.Context, method string, body []byte) error {
	body = conn.client.injectInto(ctx, method, body)
	return conn.carry(ctx, &link.Message{
		Body: body, Method: method, Revision: conn.revision(), Modern: conn.revision().Modern(),
	})
}

// carry passes a message to the link, and to Options.Trace.
func (conn *connection) carry(ctx context.Context, m *link.Message) error {
	conn.client.calls.sent.add(len(m.Body))
	if conn.client.opts.Trace == nil {
		return conn.link.Send(ctx, m)
	}
	conn.trace(false, m.Body)
	err := conn.link.Send(ctx, m)
	if status, ok := errors.AsType[*origin.StatusError](err); ok && status.Err != nil && json.Valid(status.Body) {
		conn.trace(true, status.Body) // an error of the protocol that came as one of HTTP
	}
	return err
}

// trace passes a message to Options.Trace. A callback that panics does not
// disturb the reader of the connection.
func (conn *connection) trace(fromServer bool, message []byte) {
	if fn := conn.client.opts.Trace; fn != nil {
		_ = conn.client.guard("Trace", func() { fn(fromServer, message) })
	}
}

// sendSoon sends a notification on a goroutine of the client, with the values of
// about; done is closed afterwards, whatever became of it.
func (conn *connection) sendSoon(about context.Context, method string, body []byte) (done <-chan struct{}) {
	ended := make(chan struct{})
	if !conn.client.life.note(func(ctx context.Context) {
		defer close(ended)
		if err := conn.send(lasting{ctx, about}, method, body); err != nil {
			safely.Log(conn.client.opts.Logger.Debug().Err(visible.Error(err)).Str("method", visible.Line(method, visible.Name)), "a message was not sent")
		}
	}) {
		close(ended)
	}
	return ended
}

// cancels reports whether giving up a request is announced by a notification.
// Over modern HTTP the end of the exchange says it (basic/patterns/cancellation
// of 2026-07-28). The handshake is not cancelled: a server that has not
// answered it may not accept notifications yet.
func (conn *connection) cancels(method string) bool {
	if method == protocol.MethodDiscover && !conn.revision().Modern() {
		return false // a probe that was answered neither in time nor late
	}
	return method != protocol.MethodInitialize && !conn.opening.Load() && !(conn.sync && conn.revision().Modern())
}

// cancelledBody returns the notification that a request is cancelled.
func cancelledBody(id int64, reason string) []byte {
	params := jsonx.AppendInt([]byte(`{"requestId":`), id)
	if reason != "" {
		params = jsonx.AppendString(append(params, `,"reason":`...), reason)
	}
	return wire.AppendNotification(nil, protocol.MethodCancelled, append(params, '}'))
}

// cancelAll tells the server that these requests are not wanted any more, as
// many as notesTimeout suffices for.
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

// notified handles a notification of the server: it drops what the cache holds
// about it, finds the subscription that it belongs to, and queues it.
func (conn *connection) notified(m *protocol.Message, during *link.Message) {
	c := conn.client
	switch m.Method {
	case protocol.MethodProgress:
		conn.progressed(m.Params, during)
		return
	case protocol.MethodCancelled:
		conn.gaveUp(m.Params)
	case protocol.MethodToolsChanged:
		c.tools.stale()
		c.opts.Cache.drop(c.server, protocol.MethodToolsList, "")
	case protocol.MethodPromptsChanged:
		c.opts.Cache.drop(c.server, protocol.MethodPromptsList, "")
	case protocol.MethodResourcesChanged:
		c.opts.Cache.drop(c.server, protocol.MethodResourcesList, "")
		c.opts.Cache.drop(c.server, protocol.MethodResourceTemplates, "")
	case protocol.MethodElicited:
		c.handlers.elicited.complete(stringIn(m.Params, "elicitationId"))
	case protocol.MethodResourceUpdated:
		if uri := stringIn(m.Params, "uri"); uri != "" {
			c.opts.Cache.drop(c.server, protocol.MethodResourcesRead, string(named("uri", uri)))
		}
	}
	if to := conn.streamOf(m); to != nil {
		to.put(m)
		return
	}
	sub := conn.subscriptionOf(m, during)
	if sub != nil && m.Method == protocol.MethodAcknowledged {
		sub.acknowledged(m.Params)
		return
	}
	var fn func(Notification)
	if sub != nil {
		fn = sub.fn
	} else if !conn.revision().Modern() {
		fn = c.subs.legacy(m)
	}
	c.notifications.push(Notification{Server: c.server, Method: m.Method, Params: clone(m.Params)}, fn)
}

// progressed passes progress to the call whose token it carries. Progress for
// no call in progress is ignored, since it may be late.
func (conn *connection) progressed(params []byte, during *link.Message) {
	var p Progress
	var token protocol.ID
	err := given(params, func(name []byte, s *jsonx.Scanner) error {
		switch string(name) {
		case "progressToken":
			return token.UnmarshalJSON(value(s))
		case "progress":
			p.Progress = number(value(s))
		case "total":
			p.Total = number(value(s))
		case "message":
			if s.Peek() == jsonx.String {
				text, err := s.Str()
				p.Message = string(text)
				return err
			}
			s.SkipChecked()
		default:
			s.SkipChecked()
		}
		return nil
	})
	if err != nil {
		conn.client.logUnread(protocol.MethodProgress, err)
		return
	}
	if c := conn.callOf(token); c != nil { // or else it is late, or no request of this client has such a token
		c.advance(p, conn.sync)
	}
}

// number reads a number of a notification. Anything else counts as 0, because
// unreadable progress is not a reason to fail a call.
func number(raw []byte) float64 {
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return 0
	}
	return f
}

// stringIn returns the string at a path in an object, "" if there is none.
func stringIn(raw []byte, path ...string) string {
	text := jsonx.Lookup(raw, path)
	s := jsonx.Scanner{Buf: text}
	if s.Peek() != jsonx.String {
		return ""
	}
	b, err := s.Str()
	if err != nil {
		return ""
	}
	return string(b)
}

// gaveUp handles notifications/cancelled: the server needs no answer to its
// question any more, or gives up a request of the client.
func (conn *connection) gaveUp(params []byte) {
	var p wire.CancelledParams
	if jsonx.Unmarshal(params, &p) != nil || p.RequestID.IsZero() {
		return // to be ignored
	}
	if conn.asked.Cancel(p.RequestID) {
		return
	}
	c := conn.callOf(p.RequestID)
	if c == nil {
		return
	}
	reason := cmp.Or(p.Reason, "no reason given")
	err := &Error{kind: ErrCancelled, Err: &serverCancelled{reason}}
	if sub := c.subscription(); sub != nil {
		err = &Error{kind: ErrClosed, Err: &serverCancelled{reason}}
	}
	if conn.client.calls.finish(c.id, conn, nil, err) {
		c.abort(err)
	}
}

// serverCancelled is the cause of a request that the server gave up.
type serverCancelled struct{ reason string }

// Error names the server, so that the cause is not searched on this side.
func (e *serverCancelled) Error() string { return "the server cancelled it: " + e.reason }

// streamOf returns the stream of events that a notification belongs to, or nil.
func (conn *connection) streamOf(m *protocol.Message) *eventQueue {
	if !strings.HasPrefix(m.Method, eventNotifications) || m.Method == wire.MethodEventsChanged {
		return nil
	}
	var id protocol.ID
	if raw := jsonx.Lookup(m.Params, []string{"_meta", facts.MetaSubscription}); raw == nil || id.UnmarshalJSON(raw) != nil {
		return nil
	}
	if c := conn.callOf(id); c != nil {
		return c.events
	}
	return nil
}

// eventNotifications begins the methods of notifications about events.
const eventNotifications = "notifications/events/"

// subscriptionOf returns the subscription that a notification of a modern
// server belongs to, or nil.
func (conn *connection) subscriptionOf(m *protocol.Message, during *link.Message) *Subscription {
	if !conn.revision().Modern() {
		return nil
	}
	var c *call
	if raw := jsonx.Lookup(m.Params, []string{"_meta", facts.MetaSubscription}); raw != nil {
		var id protocol.ID
		if id.UnmarshalJSON(raw) == nil {
			c = conn.callOf(id)
		}
	} else if during != nil {
		c = conn.callOf(during.ID)
	} else {
		return conn.client.subs.only(m)
	}
	if c == nil {
		return nil
	}
	return c.subscription()
}

// declare encodes what every request of a modern revision carries in _meta.
func (conn *connection) declare(rev protocol.Revision) error {
	c := conn.client
	info, err := json.Marshal(wire.ImplementationFor(c.opts.Info, rev))
	if err != nil {
		return fmt.Errorf("Options.Info does not encode: %w", err)
	}
	caps, err := json.Marshal(c.capabilitiesFor(rev))
	if err != nil {
		return fmt.Errorf("Options.Capabilities do not encode: %w", err)
	}
	meta := fmt.Appendf(nil, `"%s":"%s","%s":%s,"%s":%s`, facts.MetaVersion, rev,
		facts.MetaClientInfo, info, facts.MetaCapabilities, caps)
	conn.meta.Store(&meta)
	return nil
}

// question handles a request of the server on a goroutine of the client.
// Requests beyond the limits, and a second one with the same id, are not
// answered.
func (conn *connection) question(m *protocol.Message) {
	c := conn.client
	if conn.revision().Modern() {
		// Clients send no responses in modern revisions.
		c.logDropped(c.opts.Logger.Warn, "the server sent a request, which its revision does not have", func(e *zerolog.Event) *zerolog.Event {
			return e.Str("method", visible.Line(m.Method, visible.Name))
		})
		return
	}
	id, method, size := m.ID, m.Method, int64(len(m.Params))
	if working := conn.answering.Load(); working >= maxAsked || working > 0 && conn.questions.Load()+size > maxAskedSize {
		c.logDropped(c.opts.Logger.Warn, "the server asks too much at a time; not answered", func(e *zerolog.Event) *zerolog.Event {
			return e.Str("method", visible.Line(method, visible.Name))
		})
		return
	}
	ctx, done, ok := conn.asked.Start(c.life.ctx, id)
	if !ok {
		c.logDropped(c.opts.Logger.Warn, "the server asks twice under one id; not answered", func(e *zerolog.Event) *zerolog.Event {
			return e.Str("id", visible.Line(id.String(), visible.Name))
		})
		return
	}
	params := clone(m.Params)
	conn.answering.Add(1)
	conn.questions.Add(size)
	answered := func() {
		conn.questions.Add(-size)
		conn.answering.Add(-1)
	}
	if !c.life.spawn(func() {
		defer answered()
		conn.respond(ctx, done, id, method, params)
	}) {
		answered()
		done()
	}
}

// respond answers a request of the server. done is called before the answer is
// sent, because the server may use the id again as soon as it has the answer.
func (conn *connection) respond(ctx context.Context, done func(), id protocol.ID, method string, params json.RawMessage) {
	report := &reporter{conn: conn, token: progressToken(params)}
	result, err := conn.client.handlers.answer(context.WithValue(ctx, reporterKey{}, report), conn, method, params)
	report.end()
	gone := ctx.Err() != nil
	done()
	if gone {
		return // no caller waits for it any more
	}
	var body []byte
	if err != nil {
		body = wire.AppendErrorResponse(nil, id, asFault(err), conn.revision())
	} else {
		body = wire.AppendID([]byte(`{"jsonrpc":"2.0","id":`), id)
		body = append(append(append(body, `,"result":`...), result...), '}')
	}
	// The server waits for the answer, so the limit is that of other writes.
	sending, stop := context.WithTimeout(conn.client.life.ctx, facts.WriteTimeout)
	defer stop()
	if err := conn.carry(sending, &link.Message{Body: body, Revision: conn.revision()}); err != nil && conn.client.life.ctx.Err() == nil {
		safely.Log(conn.client.opts.Logger.Warn().Err(visible.Error(err)).Str("method", visible.Line(method, visible.Name)), "an answer was not sent")
	}
}
