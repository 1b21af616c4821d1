package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// handshake opens connections: it finds out what the server speaks and agrees
// on a revision. It has no state of its own; each attempt is one call of open.
//
// The order is that of basic/versioning of 2026-07-28: server/discover, then
// initialize on the same connection, then initialize on a new connection, then
// over HTTP the older transport with server-sent events. What the server turned
// out to be is remembered in the cache, so that the next attempt begins there.
type handshake struct{ client *Client }

// open returns a connection on which a revision has been agreed. The caller
// installs or discards it.
func (h handshake) open(ctx context.Context) (*connection, error) {
	opts := &h.client.opts
	known := opts.Cache.kind(h.client.server)
	if opts.newest(true) != 0 && (known == kindLegacy || known == kindFallback) && opts.newest(false) != 0 {
		// What is remembered saves the probe; if it is wrong, all is tried.
		conn, err := h.openAs(ctx, known)
		if err == nil || ctx.Err() != nil {
			return conn, err
		}
		h.remember(kindUnknown)
	}
	return h.openAs(ctx, kindUnknown)
}

// remember keeps what the server turned out to be.
func (h handshake) remember(now serverKind) { h.client.opts.Cache.setKind(h.client.server, now) }

// openAs connects to a server that is known to be of a kind, or finds that out
// if it is kindUnknown.
func (h handshake) openAs(ctx context.Context, known serverKind) (*connection, error) {
	t := h.client.transport.transport()
	if known == kindFallback {
		stand, ok := t.(link.Fallback)
		if !ok {
			return nil, errors.New("the transport has no stand-in any more")
		}
		return h.openLegacy(ctx, stand.Fallback(), kindFallback)
	}
	if known == kindLegacy || h.client.opts.newest(true) == 0 {
		return h.openLegacyOrFallback(ctx, t)
	}
	conn, err := h.dial(ctx, t)
	if err != nil {
		return nil, err
	}
	fallback, err := h.discover(ctx, conn)
	if err == nil && fallback == 0 {
		h.remember(kindModern)
		return conn, nil
	}
	if err != nil {
		h.client.discard(conn)
		return nil, err
	}
	return h.fallBack(ctx, conn, t, fallback)
}

// fallBack goes on with initialize on a connection whose probe failed, or on a
// new one if that is lost.
func (h handshake) fallBack(ctx context.Context, conn *connection, t link.Transport, rev protocol.Revision) (*connection, error) {
	err := conn.lostErr()
	if err == nil {
		err = h.initialize(ctx, conn, rev)
	}
	if err == nil {
		h.remember(kindLegacy)
		return conn, nil
	}
	if fault := (*protocol.Error)(nil); conn.silent && errors.As(err, &fault) && ctx.Err() == nil {
		// It was not legacy but slow to start.
		if again, late := h.discover(ctx, conn); late == nil && again == 0 {
			h.remember(kindModern)
			return conn, nil
		}
	}
	lost := conn.lostErr() != nil
	h.client.discard(conn)
	if ctx.Err() != nil {
		return nil, err
	}
	if lost { // some legacy servers end when they are asked before initialize
		return h.openLegacyOrFallback(ctx, t)
	}
	return h.standIn(ctx, t, err)
}

// openLegacyOrFallback connects with initialize. If the server refuses that, it
// tries the transport's stand-in.
func (h handshake) openLegacyOrFallback(ctx context.Context, t link.Transport) (*connection, error) {
	conn, err := h.openLegacy(ctx, t, kindLegacy)
	if err == nil || ctx.Err() != nil {
		return conn, err
	}
	return h.standIn(ctx, t, err)
}

// standIn connects over the stand-in of t, after initialize failed with err. It
// returns err if there is no stand-in or the error does not call for one.
func (h handshake) standIn(ctx context.Context, t link.Transport, err error) (*connection, error) {
	var status *link.StatusError
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
	conn, second := h.openLegacy(ctx, instead, kindFallback)
	if second != nil {
		return nil, fmt.Errorf("%w; and over HTTP with server-sent events: %w", err, second)
	}
	return conn, nil
}

// openLegacy connects with initialize.
func (h handshake) openLegacy(ctx context.Context, t link.Transport, now serverKind) (*connection, error) {
	rev := h.client.opts.newest(false)
	if rev == 0 {
		return nil, &Error{kind: ErrUnsupported, Err: errors.New("the server is a legacy one, and Options.Revisions has none of them")}
	}
	conn, err := h.dial(ctx, t)
	if err != nil {
		return nil, err
	}
	if err := h.initialize(ctx, conn, rev); err != nil {
		h.client.discard(conn)
		return nil, err
	}
	h.remember(now)
	return conn, nil
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
		_, answered := errors.AsType[*link.StatusError](err)
		switch {
		case slow:
			err = &Error{kind: ErrTimeout, Err: fmt.Errorf("the connection was not open after %v: %w", h.client.opts.Timeout, err)}
		case ctx.Err() == nil && !unusable && !answered && kindOf("", "", err) == nil:
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

// Fail implements link.Failer.
func (e early) Fail(id protocol.ID, err error) {
	<-e.ready
	e.conn.Fail(id, err)
}

// discover sends the probe. If fallback is not 0, the server turned out to be a
// legacy one and initialize should offer that revision.
func (h handshake) discover(ctx context.Context, conn *connection) (fallback protocol.Revision, err error) {
	rev, legacy := h.client.opts.newest(true), h.client.opts.newest(false)
	for range 2 {
		conn.speak(rev)
		if err = conn.declare(rev); err != nil {
			return 0, err
		}
		r := &request{client: h.client, op: "discover", method: protocol.MethodDiscover, options: &callOptions{timeout: h.client.opts.ProbeTimeout, maxTimeout: -1}}
		if legacy == 0 {
			r.options.timeout = h.client.opts.Timeout // nothing to fall back to
		}
		result, err := r.roundTrip(ctx, conn, round{})
		if err == nil {
			return h.discovered(conn, result, rev, legacy)
		}
		if ctx.Err() != nil {
			return 0, err
		}
		var fault *protocol.Error
		if !errors.As(err, &fault) || !modernFault(fault.Code) {
			conn.silent = errors.Is(err, ErrTimeout)
			return legacyAfter(err, legacy)
		}
		names := supportedIn(fault)
		next := h.client.opts.mutual(names, true)
		if next == 0 || next == rev {
			if old := h.client.opts.mutual(names, false); old != 0 {
				return old, nil // a server of all revisions that is set to a legacy one
			}
		}
		if next == 0 {
			return 0, h.noRevision(err, names)
		}
		rev = next // which may be the same one, if the server names it nevertheless
	}
	return 0, errors.New("the server refuses the revisions that it says it supports")
}

// legacyAfter decides whether a failed probe means that the server is a legacy
// one. legacy is the revision to offer then, or 0 if the client speaks none.
func legacyAfter(err error, legacy protocol.Revision) (protocol.Revision, error) {
	var status *link.StatusError
	var fault *protocol.Error
	switch {
	case legacy == 0:
		return 0, err
	case errors.As(err, &status):
		if !status.Answers && (status.Code == http.StatusUnauthorized || status.Code == http.StatusForbidden) {
			return 0, err
		}
		return legacy, nil
	case errors.As(err, &fault), errors.Is(err, ErrTimeout):
		return legacy, nil
	}
	// An answer that is no answer, or the end of the connection: the next
	// request shows whether the server is there.
	return legacy, nil
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
	if len(raw) == 0 || json.Unmarshal(raw, &data) != nil {
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
	if err := json.Unmarshal(result, &hello); err != nil || hello.Supported == nil {
		if legacy != 0 { // some server that answers anything
			return legacy, nil
		}
		return 0, fmt.Errorf("the server's result is not that of server/discover: %.200s", result)
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
		_ = json.Unmarshal(info, &conn.server.Info)
	}
	conn.opening.Store(false)
	return 0, nil
}

// initialize opens a legacy session (basic/lifecycle of the legacy revisions),
// with a second attempt if the server names a revision that it supports.
func (h handshake) initialize(ctx context.Context, conn *connection, rev protocol.Revision) error {
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
	if err := json.Unmarshal(result, &hello); err != nil {
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
	if err != nil {
		return err
	}
	level := h.client.logLevel()
	if level == 0 || hello.Capabilities.Logging == nil {
		return nil
	}
	_, err = levelRequest(h.client, level).roundTrip(ctx, conn, round{})
	return err
}
