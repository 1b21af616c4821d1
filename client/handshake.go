package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/internal/clients/attend"
	"github.com/talaria-go/mcp/internal/clients/origin"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/pause"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// handshake opens connections: it finds out what the server speaks and agrees
// on a revision. It has no state of its own; each attempt is one call of open.
//
// The order is that of basic/versioning of 2026-07-28: server/discover, then
// initialize on the same connection, then over HTTP the older transport with
// server-sent events. Only an answer decides what a server speaks, and only
// that is remembered in the cache, so that the next attempt begins there. A
// failure that may pass, such as HTTP status 503, leads to another attempt and
// then to an error.
type handshake struct{ client *Client }

// Limits of opening a connection.
const (
	openAttempts = 3                      // attempts in a row, if each failure may pass
	firstOpen    = 250 * time.Millisecond // wait between attempts; times the square of the attempt
	maxOpen      = 5 * time.Second        // the longest wait; a server that wants a longer one causes an error
	again        = time.Second            // for an answer to a probe after silence
	minLate      = time.Minute            // the least time for which a late answer to the probe is accepted
)

// passingError is a failure that may pass: it says nothing of what the server
// speaks.
type passingError struct{ err error }

// Error returns that of the cause.
func (e *passingError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *passingError) Unwrap() error { return e.err }

// open returns a connection on which a revision has been agreed. The caller
// installs or discards it.
func (h handshake) open(ctx context.Context) (*connection, error) {
	opts := &h.client.opts
	ctx, stop := attend.WithTimeout(ctx, opts.ConnectTimeout,
		&Error{kind: ErrTimeout, Err: fmt.Errorf("not connected within %v, the limit of Options.ConnectTimeout", opts.ConnectTimeout)})
	defer stop()
	known := h.known()
	for failures := 0; ; {
		conn, err := h.openAs(ctx, known, failures)
		if err == nil {
			if err = h.client.pin.instructions(&conn.server); err != nil {
				h.client.discard(conn)
				return nil, err
			}
			return conn, nil
		}
		if ctx.Err() != nil {
			return nil, err
		}
		passing, ok := err.(*passingError)
		if !ok {
			if _, unread := exited(err); unread || known == kindUnknown || known == kindModern && !errors.Is(err, ErrTimeout) {
				return nil, err
			}
			known = kindUnknown // what was remembered is wrong; all is tried
			h.remember(known)
			continue
		}
		failures++
		wait := max(pause.Growing(failures, firstOpen, maxOpen, 0), retryAfter(passing.err))
		if failures == openAttempts || wait > maxOpen {
			return nil, passing.err
		}
		if ended, _ := exited(err); ended {
			failures = openAttempts - 1 // the next attempt initializes
			safely.Log(opts.Logger.Warn().Str("server", h.client.server), "the server ended when it was asked what it speaks, and is started again")
		} else {
			safely.Log(opts.Logger.Debug().Err(visible.Error(err)).Str("server", h.client.server).Int("attempt", failures), "connecting failed, trying again")
		}
		if err := pause.For(ctx, wait); err != nil {
			return nil, err
		}
		if h.known() == kindModern {
			known = kindModern // the failed attempt has found that out
		}
	}
}

// known returns what is remembered of the server, as far as the client has the
// choice.
func (h handshake) known() serverKind {
	if h.client.opts.newest(false) == 0 {
		return kindUnknown
	}
	return h.client.opts.Cache.kind(h.client.server)
}

// remember stores what the server turned out to be.
func (h handshake) remember(now serverKind) { h.client.opts.Cache.setKind(h.client.server, now) }

// openAs connects once to a server that is known to be of a kind, or finds that
// out if it is kindUnknown. failures is how many attempts have failed before; a
// failure that may pass is a *passingError.
func (h handshake) openAs(ctx context.Context, known serverKind, failures int) (*connection, error) {
	t := h.client.transport.transport()
	if known == kindFallback {
		stand, ok := t.(link.Fallback)
		if !ok {
			return nil, errors.New("the transport has no stand-in any more")
		}
		t = stand.Fallback()
	}
	conn, err := h.dial(ctx, t)
	if err != nil {
		return nil, judged(nil, err, failures)
	}
	now, err := h.agree(ctx, conn, known, failures)
	if err == nil {
		if now != kindUnknown {
			h.remember(now)
		}
		return conn, nil
	}
	err = judged(conn, err, failures)
	h.client.discard(conn)
	h.client.calls.failAll(conn, unconnected("", err)) // a probe that still waits
	if _, passing := err.(*passingError); passing || known == kindFallback || ctx.Err() != nil {
		return nil, err
	}
	return h.standIn(ctx, t, err)
}

// checked returns err as a *passingError if it may pass. conn is nil if there
// is none.
func judged(conn *connection, err error, failures int) error {
	status, isStatus := errors.AsType[*origin.StatusError](err)
	fault, isFault := refusal(err)
	passing, dialled := false, true
	if op, ok := errors.AsType[*net.OpError](err); ok {
		dialled = op.Op != "dial"
	}
	_, unread := exited(err)
	switch _, already := err.(*passingError); {
	case already, unread, unauthorized(err):
		return err
	case isStatus:
		passing = status.Passing()
	case isFault:
		kind := kindOfFault("", fault)
		passing = kind == ErrBusy || kind == ErrConnection || kind == ErrTimeout
	case conn == nil:
	case conn.lostErr() != nil, errors.Is(err, ErrInvalidResult):
		passing = true
	case conn.sync && errors.Is(err, ErrTimeout):
		passing = failures == 0 // the next one takes longer
	default:
		passing = errors.Is(err, ErrConnection) && dialled
	}
	if passing {
		return &passingError{err}
	}
	return err
}

// exited reports whether a process has ended, and whether it had read nothing then: it
// was not the probe that ended it, and it would end again.
func exited(err error) (ended, unread bool) {
	exit, ok := errors.AsType[*transport.ExitError](err)
	return ok && exit.State != nil, ok && exit.Unread
}

// agree agrees on a revision on a new connection. It returns what the server
// turned out to be, kindUnknown if that is not sure.
func (h handshake) agree(ctx context.Context, conn *connection, known serverKind, failures int) (serverKind, error) {
	opts := &h.client.opts
	old := opts.newest(false)
	switch {
	case known == kindLegacy, known == kindFallback:
		return known, h.initialize(ctx, conn, old)
	case opts.newest(true) == 0, !conn.sync && old != 0 && failures == openAttempts-1:
		// Nothing to probe with; or the server ended at each probe, as some legacy
		// ones do.
		return kindUnknown, h.initialize(ctx, conn, old)
	}
	timeout := opts.Timeout
	var late chan probed
	if old != 0 && known != kindModern {
		if timeout = opts.ProbeTimeout; !conn.sync {
			late = make(chan probed, 4) // as many as are sent
		} else if failures > 0 {
			timeout = opts.Timeout
		}
	}
	back, err := h.discover(ctx, conn, timeout, late)
	sure := err == nil
	switch {
	case err == errSilent:
		return h.silent(ctx, conn, old, late)
	case sure && back == 0:
		return kindModern, nil
	case !sure:
		var legacy bool
		if legacy, sure = saysLegacy(err); !legacy || old == 0 {
			return kindUnknown, err
		}
		fault, refused := refusal(err)
		if failures == 0 && (!sure && (conn.sync || refused && fault.Code == protocol.CodeInternal) || known == kindModern) {
			return kindUnknown, &passingError{err}
		}
		back = old
	}
	now := kindUnknown
	if sure {
		now = kindLegacy
	}
	return h.fallBack(ctx, conn, now, h.initialize(ctx, conn, back))
}

// fallBack returns what the server turned out to be after initialize, which has
// failed with err or not. A server that refuses initialize with an error of the
// protocol is probed again: it may be a modern one after all.
func (h handshake) fallBack(ctx context.Context, conn *connection, now serverKind, err error) (serverKind, error) {
	if _, refused := refusal(err); refused && ctx.Err() == nil && conn.lostErr() == nil {
		if back, again := h.discover(ctx, conn, h.client.opts.Timeout, nil); again == nil && back == 0 {
			return kindModern, nil
		}
	}
	return now, err
}

// silent is agree on a connection on which the probe was not answered in time.
// It initializes, and at the same time waits for the late answer. The result is
// kindUnknown, because what the server is has been remembered by then: the answer
// may come later still, see ask.
func (h handshake) silent(ctx context.Context, conn *connection, old protocol.Revision, late chan probed) (serverKind, error) {
	if conn.garbled() { // the answer may be in what could not be read
		back, err := h.discover(ctx, conn, again, late)
		if err == nil && back == 0 {
			return kindModern, nil
		}
		if ctx.Err() != nil || conn.lostErr() != nil {
			return kindUnknown, err
		}
	}
	own, stop := context.WithCancel(ctx)
	defer stop()
	initialized := make(chan error, 1)
	if !h.client.life.spawn(func() { initialized <- h.initialize(own, conn, old) }) {
		return kindUnknown, &Error{kind: ErrClosed, Err: errClientClosed}
	}
	var grace <-chan time.Time // after initialize: servers answer in any order
	for {
		select {
		case answer := <-late:
			if !answer.modern() {
				continue
			}
			stop()
			if grace == nil {
				<-initialized
			}
			h.remember(kindModern)
			conn.opening.Store(true)
			if back, err := h.discover(ctx, conn, h.client.opts.Timeout, nil); err == nil && back == 0 {
				return kindModern, nil
			}
			// initialize may have selected the legacy revisions for as long as the
			// connection lives.
			return kindUnknown, &passingError{errors.New("the server answered server/discover too late")}
		case err := <-initialized:
			if err != nil {
				return h.fallBack(ctx, conn, kindUnknown, err)
			}
			h.remember(kindLegacy)
			timer := time.NewTimer(again)
			defer timer.Stop()
			grace = timer.C
		case <-grace:
			return kindUnknown, nil
		case <-ctx.Done():
			if grace == nil {
				if err := <-initialized; err != nil {
					return kindUnknown, err
				}
			}
			return kindUnknown, stopped(ctx)
		}
	}
}

// standIn connects over the stand-in of t, after initialize failed with err. It
// returns err if there is no stand-in or the error does not call for one.
func (h handshake) standIn(ctx context.Context, t link.Transport, err error) (*connection, error) {
	var status *origin.StatusError
	var fault *protocol.Error
	stand, ok := t.(link.Fallback)
	if !ok || !errors.As(err, &status) || errors.As(err, &fault) && modernFault(fault.Code) {
		return nil, err
	}
	switch status.Code {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
	default:
		return nil, err
	}
	instead := stand.Fallback()
	if instead == nil {
		return nil, err
	}
	conn, second := h.dial(ctx, instead)
	if second == nil {
		if second = h.initialize(ctx, conn, h.client.opts.newest(false)); second == nil {
			h.remember(kindFallback)
			return conn, nil
		}
		h.client.discard(conn)
	}
	return nil, fmt.Errorf("%w; and over HTTP with server-sent events: %w", err, second)
}

// dial opens a link and returns it as a connection in the state of opening.
func (h handshake) dial(ctx context.Context, t link.Transport) (*connection, error) {
	h.client.life.setState(StateConnecting, nil)
	conn := &connection{client: h.client}
	conn.meta.Store(&[]byte{})
	conn.opening.Store(true)
	ready := make(chan struct{})
	limited, stop := h.client.limited(ctx)
	l, err := t.Open(limited, early{conn, ready})
	slow := limited.Err() != nil && ctx.Err() == nil
	stop()
	if err != nil {
		close(ready)
		_, unusable := t.(broken)
		_, answered := errors.AsType[*origin.StatusError](err)
		switch {
		case slow:
			err = &Error{kind: ErrTimeout, Err: fmt.Errorf("the connection was not open after %v: %w", h.client.opts.Timeout, err)}
		case ctx.Err() == nil && !unusable && !answered && kindOf("", err) == nil:
			err = unconnected("", err)
		}
		return nil, err
	}
	conn.link = l
	if s, ok := l.(link.Synchronous); ok {
		conn.sync = s.Synchronous()
	}
	close(ready)
	h.client.life.setState(StateInitializing, nil)
	return conn, nil
}

// early receives for a connection whose link is not known yet. Whatever arrives
// before Open returns waits until ready is closed.
type early struct {
	conn  *connection
	ready chan struct{}
}

// Receive implements link.Receiver.
func (e early) Receive(message []byte, during *link.Message) {
	<-e.ready
	e.conn.Receive(message, during)
}

// Lost implements link.Receiver.
func (e early) Lost(err error) {
	<-e.ready
	e.conn.Lost(err)
}

// Gap implements link.Gapper.
func (e early) Gap() {
	<-e.ready
	e.conn.client.subs.resumed()
}

// Fail implements link.Failer.
func (e early) Fail(m *protocol.Message, err error) {
	<-e.ready
	e.conn.Fail(m, err)
}

// probed is an answer to a probe.
type probed struct {
	result json.RawMessage
	err    error
}

// modern reports whether only a modern server answers so.
func (p probed) modern() bool {
	if p.err != nil {
		fault, ok := refusal(p.err)
		return ok && modernFault(fault.Code)
	}
	return jsonx.Lookup(p.result, []string{"supportedVersions"}) != nil
}

// errSilent is the error of a probe that was not answered in time.
var errSilent = errors.New("the probe was not answered in time")

// probe sends server/discover and waits for the answer, for the given time. If
// late is not nil, an answer that comes after that goes there.
func (h handshake) probe(ctx context.Context, conn *connection, timeout time.Duration, late chan probed) (json.RawMessage, error) {
	if late == nil {
		return h.probeRequest(timeout).roundTrip(ctx, conn, round{})
	}
	began := time.Now()
	h.ask(ctx, conn, late)
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case answer := <-late:
		return answer.result, answer.err
	case <-timer.C:
		return nil, errSilent
	case <-ctx.Done():
		return nil, conn.explain(stopped(ctx), began)
	}
}

// ask sends server/discover, and the answer to late, which has room for it. It
// returns when the message is written, so that none overtakes it, or after
// notesTimeout. A server that answers as only a modern one does is remembered as
// such, however late.
func (h handshake) ask(ctx context.Context, conn *connection, late chan<- probed) {
	r := h.probeRequest(max(h.client.opts.Timeout, minLate))
	r.sent = make(chan struct{})
	over := make(chan struct{})
	own := lasting{h.client.life.ctx, ctx}
	if !h.client.life.spawn(func() {
		defer close(over)
		result, err := r.roundTrip(own, conn, round{})
		answer := probed{result, err}
		late <- answer
		if answer.modern() {
			h.remember(kindModern)
		}
	}) {
		late <- probed{err: &Error{kind: ErrClosed, Err: errClientClosed}}
		return
	}
	timer := time.NewTimer(notesTimeout)
	defer timer.Stop()
	select {
	case <-r.sent:
	case <-over:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// probeRequest returns the request server/discover with a timeout.
func (h handshake) probeRequest(timeout time.Duration) *request {
	return &request{client: h.client, op: "discover", method: protocol.MethodDiscover, options: &callOptions{timeout: timeout, maxTimeout: -1}}
}

// discover agrees on a modern revision. If back is not 0, the server says that
// it is a legacy one, and initialize should offer that revision. timeout and
// late are those of probe, whose errors it returns.
func (h handshake) discover(ctx context.Context, conn *connection, timeout time.Duration, late chan probed) (back protocol.Revision, err error) {
	rev, legacy := h.client.opts.newest(true), h.client.opts.newest(false)
	for range 2 {
		conn.speak(rev)
		if err = conn.declare(rev); err != nil {
			return 0, err
		}
		result, err := h.probe(ctx, conn, timeout, late)
		if err == nil {
			return h.discovered(conn, result, rev, legacy)
		}
		fault, ok := refusal(err)
		if ctx.Err() != nil || !ok || !modernFault(fault.Code) {
			return 0, err
		}
		names := supportedIn(fault)
		next := h.client.opts.mutual(names, true)
		if next == 0 || next == rev {
			if old := h.client.opts.mutual(names, false); old != 0 {
				return old, nil // a server of all revisions that is set to a legacy one
			}
		}
		if next == 0 && len(names) == 0 && fault.Code == protocol.CodeHeaderMismatch && legacy != 0 {
			return legacy, nil // what is between does not pass headers, or the transport has none
		}
		if next == 0 {
			return 0, h.noRevision(err, names)
		}
		rev = next // which may be the same one, if the server names it nevertheless
	}
	return 0, errors.New("the server refuses the revisions that it says it supports")
}

// saysLegacy reports whether a failed probe means that the server is a legacy
// one: an error of the protocol that no modern server sends, or over HTTP a
// status 4xx without one (basic/versioning of 2026-07-28, "Compatibility
// Matrix"). It is not sure if a modern server or a proxy may answer so for a
// while: an internal error, an error of the server's own, a rare status, or a
// result of another kind.
func saysLegacy(err error) (legacy, sure bool) {
	if errors.Is(err, errNotDiscovered) {
		return true, false
	}
	fault, isFault := refusal(err)
	status, isStatus := errors.AsType[*origin.StatusError](err)
	switch {
	case unauthorized(err), isFault && modernFault(fault.Code):
		return false, false
	case isStatus:
		if legacy = status.Code/100 == 4 && !status.Passing(); !legacy {
			return false, false
		}
		switch status.Code {
		case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotAcceptable, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
			return true, !isFault || !passingFault(fault)
		}
		return true, false // a proxy may have sent it
	case !isFault:
		return false, false
	}
	switch kindOfFault("", fault) {
	case ErrBusy, ErrConnection, ErrTimeout:
		return false, false
	}
	return true, !passingFault(fault)
}

// passingFault reports whether an error may be the answer of a server that is not
// ready: an internal one, one with a status as its code, or one with a code of the
// server's own (-32099 to -32000) that speaks of nothing that a probe lacks.
func passingFault(fault *protocol.Error) bool {
	if code := fault.Code; code < -32099 || code > codeClosed {
		return code == protocol.CodeInternal || code >= 400 && code < 600
	}
	text := strings.ToLower(fault.Message)
	return !slices.ContainsFunc([]string{"session", "initial", "version", "method", "bad request"}, func(word string) bool { return strings.Contains(text, word) })
}

// errNotDiscovered is the error of a result that is not that of server/discover,
// of a server that answers anything.
var errNotDiscovered = errors.New("the server's result is not that of server/discover")

// refusal returns the error that the server has answered with, if it has. An
// invalid response is not such an error.
func refusal(err error) (*protocol.Error, bool) {
	if errors.Is(err, ErrInvalidResult) {
		return nil, false
	}
	return errors.AsType[*protocol.Error](err)
}

// modernFault reports whether only a modern server answers with that code.
func modernFault(code protocol.Code) bool {
	switch code {
	case protocol.CodeUnsupportedVersion, protocol.CodeMissingCapability, protocol.CodeHeaderMismatch:
		return true
	}
	return false
}

// supportedIn returns the revisions that an error lists as supported.
func supportedIn(fault *protocol.Error) []string {
	raw, _ := fault.Data.(json.RawMessage)
	var data struct {
		Supported []string `json:"supported"`
	}
	if len(raw) == 0 || jsonx.Unmarshal(raw, &data) != nil {
		return nil
	}
	return data.Supported
}

// noRevision returns the error for a server with which no revision is shared.
// It names what both sides speak, because the remedy is a setting of one of
// them.
func (h handshake) noRevision(err error, names []string) error {
	return &Error{kind: ErrUnsupported, Err: fmt.Errorf("the server speaks %v, this client %v: %w", names, wire.RevisionNames(h.client.opts.Revisions), err)}
}

// discovered handles the result of server/discover. Its results are those of
// discover.
func (h handshake) discovered(conn *connection, result []byte, rev, legacy protocol.Revision) (protocol.Revision, error) {
	var hello struct {
		Supported    []string                    `json:"supportedVersions"`
		Capabilities protocol.ServerCapabilities `json:"capabilities"`
		Instructions string                      `json:"instructions"`
		Meta         map[string]json.RawMessage  `json:"_meta"`
	}
	if err := jsonx.Unmarshal(result, &hello); err != nil || hello.Supported == nil {
		return 0, fmt.Errorf("%w: %.200s", errNotDiscovered, result)
	}
	best := h.client.opts.mutual(hello.Supported, true)
	if best == 0 {
		if old := h.client.opts.mutual(hello.Supported, false); old != 0 {
			return old, nil
		}
		return 0, h.noRevision(errors.New("no revision in common"), hello.Supported)
	}
	if best != rev {
		conn.speak(best)
		if err := conn.declare(best); err != nil {
			return 0, err
		}
	}
	conn.server = Server{Capabilities: hello.Capabilities, Instructions: hello.Instructions, Raw: result}
	if info := hello.Meta[facts.MetaServerInfo]; info != nil {
		// A name that does not decode costs nothing but the name.
		_ = jsonx.Unmarshal(info, &conn.server.Info)
	}
	conn.opening.Store(false)
	return 0, nil
}

// initialize opens a legacy session (basic/lifecycle of the legacy revisions),
// with a second attempt if the server names a revision that it supports.
func (h handshake) initialize(ctx context.Context, conn *connection, rev protocol.Revision) error {
	if rev == 0 {
		return &Error{kind: ErrUnsupported, Err: errors.New("the server is a legacy one, and Options.Revisions has none of them")}
	}
	var last error
	for range 2 {
		result, err := h.sayInitialize(ctx, conn, rev)
		if err == nil {
			return h.initialized(ctx, conn, result)
		}
		last = err
		var fault *protocol.Error
		if !errors.As(err, &fault) {
			return err
		}
		names := supportedIn(fault)
		next := h.client.opts.mutual(names, false)
		if next == 0 || next == rev {
			if len(names) > 0 {
				return h.noRevision(err, names)
			}
			return err
		}
		rev = next
	}
	return last
}

// sayInitialize sends initialize, offering rev, and returns its result. Any
// legacy revision that the client speaks is accepted in the answer.
func (h handshake) sayInitialize(ctx context.Context, conn *connection, rev protocol.Revision) (json.RawMessage, error) {
	caps := h.client.capabilitiesFor(rev)
	conn.rootsChange.Store(caps.Roots != nil && caps.Roots.ListChanged)
	members, err := json.Marshal(struct {
		Version      string                      `json:"protocolVersion"`
		Capabilities protocol.ClientCapabilities `json:"capabilities"`
		Info         protocol.Implementation     `json:"clientInfo"`
	}{rev.String(), caps, wire.ImplementationFor(h.client.opts.Info, rev)})
	if err != nil {
		return nil, fmt.Errorf("Options.Info or Options.Capabilities do not encode: %w", err)
	}
	conn.speak(0) // none is agreed on
	r := &request{client: h.client, op: "initialize", method: protocol.MethodInitialize, members: members[1 : len(members)-1], options: &callOptions{}}
	return r.roundTrip(ctx, conn, round{})
}

// initialized handles the result of initialize and ends the handshake.
func (h handshake) initialized(ctx context.Context, conn *connection, result []byte) error {
	var hello wire.InitializeResult
	if err := jsonx.Unmarshal(result, &hello); err != nil {
		return fmt.Errorf("the server's result is not that of initialize: %w", err)
	}
	rev := h.client.opts.mutual([]string{hello.ProtocolVersion}, false)
	if rev == 0 {
		return h.noRevision(errors.New("no revision in common"), []string{hello.ProtocolVersion})
	}
	conn.speak(rev)
	conn.server = Server{hello.ServerInfo, hello.Capabilities, hello.Instructions, result}
	conn.opening.Store(false)
	limited, stop := h.client.limited(ctx)
	err := conn.send(limited, protocol.MethodInitialized, wire.AppendNotification(nil, protocol.MethodInitialized, nil))
	stop()
	switch {
	case err != nil && conn.sync:
		return sent(conn, err)
	case err != nil:
		return err
	}
	level := h.client.logLevel()
	if level == 0 || hello.Capabilities.Logging == nil {
		return nil
	}
	_, err = levelRequest(h.client, level).roundTrip(ctx, conn, round{})
	return err
}
