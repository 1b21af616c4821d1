package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/protocol"
)

// open makes a connection and agrees on a revision.
func (c *Client) open(ctx context.Context) (*connection, error) {
	c.mu.Lock()
	known := c.known
	c.mu.Unlock()
	modern, legacy := c.opts.newest(true), c.opts.newest(false)
	if modern != 0 && legacy != 0 {
		switch known {
		case eraLegacy, eraFallback:
			// What is remembered saves the probe; if it is wrong, all is tried.
			conn, err := c.openAs(ctx, known)
			if err == nil {
				return conn, nil
			}
			if ctx.Err() != nil {
				return nil, err
			}
			c.remember(eraUnknown)
		}
	}
	conn, err := c.openAs(ctx, eraUnknown)
	return conn, err
}

// remember keeps what the server turned out to be.
func (c *Client) remember(now era) {
	c.mu.Lock()
	c.known = now
	c.mu.Unlock()
	c.opts.Eras.set(c.server, now)
}

// openAs makes a connection to a server of that era; of eraUnknown it finds
// out.
func (c *Client) openAs(ctx context.Context, known era) (*connection, error) {
	t := c.transport.transport()
	if known == eraFallback {
		stand, ok := t.(link.Fallback)
		if !ok {
			return nil, errors.New("the transport has no stand-in any more")
		}
		return c.openLegacy(ctx, stand.Fallback(), eraFallback)
	}
	if known == eraLegacy || c.opts.newest(true) == 0 {
		return c.openLegacyOrFallback(ctx, t)
	}
	conn, err := c.dial(ctx, t)
	if err != nil {
		return nil, err
	}
	fallback, err := c.discover(ctx, conn)
	if err == nil && fallback == 0 {
		c.remember(eraModern)
		return conn, nil
	}
	if err != nil {
		c.hangUp(conn)
		return nil, err
	}
	return c.fallBack(ctx, conn, t, fallback)
}

// fallBack goes on with initialize on a connection whose probe failed.
func (c *Client) fallBack(ctx context.Context, conn *connection, t link.Transport, rev protocol.Revision) (*connection, error) {
	err := conn.lostErr()
	if err == nil {
		err = c.initialize(ctx, conn, rev)
	}
	if err == nil {
		c.remember(eraLegacy)
		return conn, nil
	}
	if fault := (*protocol.Error)(nil); conn.silent && errors.As(err, &fault) && ctx.Err() == nil {
		// It was not legacy but slow to start.
		if again, late := c.discover(ctx, conn); late == nil && again == 0 {
			c.remember(eraModern)
			return conn, nil
		}
	}
	lost := conn.lostErr() != nil
	c.hangUp(conn)
	if ctx.Err() != nil {
		return nil, err
	}
	if lost { // some legacy servers end when they are asked before initialize
		return c.openLegacyOrFallback(ctx, t)
	}
	return c.standIn(ctx, t, err)
}

// openLegacyOrFallback connects with initialize, and on the transport's
// stand-in if that is refused.
func (c *Client) openLegacyOrFallback(ctx context.Context, t link.Transport) (*connection, error) {
	conn, err := c.openLegacy(ctx, t, eraLegacy)
	if err == nil || ctx.Err() != nil {
		return conn, err
	}
	return c.standIn(ctx, t, err)
}

// standIn connects over the stand-in of t after err was the answer to
// initialize.
func (c *Client) standIn(ctx context.Context, t link.Transport, err error) (*connection, error) {
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
	conn, second := c.openLegacy(ctx, instead, eraFallback)
	if second != nil {
		return nil, fmt.Errorf("%w; and over HTTP with server-sent events: %w", err, second)
	}
	return conn, nil
}

// openLegacy connects with initialize.
func (c *Client) openLegacy(ctx context.Context, t link.Transport, now era) (*connection, error) {
	rev := c.opts.newest(false)
	if rev == 0 {
		return nil, &Error{kind: ErrUnsupported, Err: errors.New("the server is a legacy one, and Options.Revisions has none of them")}
	}
	conn, err := c.dial(ctx, t)
	if err != nil {
		return nil, err
	}
	if err := c.initialize(ctx, conn, rev); err != nil {
		c.hangUp(conn)
		return nil, err
	}
	c.remember(now)
	return conn, nil
}

// dial opens a link.
func (c *Client) dial(ctx context.Context, t link.Transport) (*connection, error) {
	c.setState(StateConnecting, nil)
	conn := &connection{client: c}
	conn.meta.Store(&[]byte{})
	conn.opening.Store(true)
	ready := make(chan struct{})
	l, err := t.Open(ctx, early{conn, ready})
	if err != nil {
		close(ready)
		return nil, err
	}
	conn.link = l
	if s, ok := l.(link.Synchronous); ok {
		conn.sync = s.Synchronous()
	}
	close(ready)
	c.setState(StateInitializing, nil)
	return conn, nil
}

// early is a connection whose link is not known yet: what comes before Open
// returns waits.
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

// hangUp closes a connection that is of no use.
func (c *Client) hangUp(conn *connection) {
	ctx, stop := context.WithTimeout(context.Background(), c.opts.CloseTimeout)
	defer stop()
	_ = conn.close(ctx) // why it is closed says more
}

// discover probes for a modern server. fallback is not 0 if the server turns
// out to be a legacy one: the revision to initialize with.
func (c *Client) discover(ctx context.Context, conn *connection) (fallback protocol.Revision, err error) {
	rev, legacy := c.opts.newest(true), c.opts.newest(false)
	for range 2 {
		conn.speak(rev)
		if err = conn.declare(rev); err != nil {
			return 0, err
		}
		r := &request{op: "discover", method: protocol.MethodDiscover, options: &callOptions{timeout: c.opts.ProbeTimeout, maxTimeout: -1}}
		if legacy == 0 {
			r.options.timeout = c.opts.Timeout // nothing to fall back to
		}
		result, err := c.roundTrip(ctx, conn, r, round{})
		if err == nil {
			return c.discovered(conn, result, rev, legacy)
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
		next := c.opts.mutual(names, true)
		if next == 0 || next == rev {
			if old := c.opts.mutual(names, false); old != 0 {
				return old, nil // a server of both eras that is set to the older
			}
		}
		if next == 0 {
			return 0, c.noRevision(err, names)
		}
		rev = next // which may be the same one, if the server names it nevertheless
	}
	return 0, errors.New("the server refuses the revisions that it says it supports")
}

// legacyAfter takes the server for a legacy one after a probe that failed, if
// the failure allows that.
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

// modernFault tells whether only a modern server answers with that code.
func modernFault(code protocol.Code) bool {
	switch code {
	case protocol.CodeUnsupportedVersion, protocol.CodeMissingCapability, protocol.CodeHeaderMismatch:
		return true
	}
	return false
}

// supportedIn lists the revisions that an error names.
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

func (c *Client) noRevision(err error, names []string) error {
	return &Error{kind: ErrUnsupported, Err: fmt.Errorf("the server speaks %v, this client %v: %w", names, protocol.RevisionNames(c.opts.Revisions), err)}
}

// discovered reads the result of server/discover.
func (c *Client) discovered(conn *connection, result []byte, rev, legacy protocol.Revision) (protocol.Revision, error) {
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
	best := c.opts.mutual(hello.Supported, true)
	if best == 0 {
		if old := c.opts.mutual(hello.Supported, false); old != 0 {
			return old, nil
		}
		return 0, c.noRevision(errors.New("no revision in common"), hello.Supported)
	}
	if best != rev {
		conn.speak(best)
		if err := conn.declare(best); err != nil {
			return 0, err
		}
	}
	conn.about = about{caps: hello.Capabilities, instructions: hello.Instructions, raw: result}
	if info := hello.Meta[protocol.MetaServerInfo]; info != nil {
		// A name that does not decode costs nothing but the name.
		_ = json.Unmarshal(info, &conn.about.info)
	}
	conn.opening.Store(false)
	return 0, nil
}

// initialize opens a legacy session (basic/lifecycle of the legacy revisions).
func (c *Client) initialize(ctx context.Context, conn *connection, rev protocol.Revision) error {
	var last error
	for range 2 {
		result, err := c.sayInitialize(ctx, conn, rev)
		if err == nil {
			return c.initialized(ctx, conn, result)
		}
		last = err
		var fault *protocol.Error
		if !errors.As(err, &fault) {
			return err
		}
		names := supportedIn(fault)
		next := c.opts.mutual(names, false)
		if next == 0 || next == rev {
			if len(names) > 0 {
				return c.noRevision(err, names)
			}
			return err
		}
		rev = next
	}
	return last
}

func (c *Client) sayInitialize(ctx context.Context, conn *connection, rev protocol.Revision) (json.RawMessage, error) {
	members, err := json.Marshal(struct {
		Version      string                      `json:"protocolVersion"`
		Capabilities protocol.ClientCapabilities `json:"capabilities"`
		Info         protocol.Implementation     `json:"clientInfo"`
	}{rev.String(), c.capabilitiesFor(rev), c.opts.Info.For(rev)})
	if err != nil {
		return nil, fmt.Errorf("Options.Info or Options.Capabilities do not encode: %w", err)
	}
	conn.speak(0) // none is agreed on
	r := &request{op: "initialize", method: protocol.MethodInitialize, members: members[1 : len(members)-1], options: &callOptions{}}
	return c.roundTrip(ctx, conn, r, round{})
}

// initialized reads the result of initialize and ends the handshake.
func (c *Client) initialized(ctx context.Context, conn *connection, result []byte) error {
	var hello protocol.InitializeResult
	if err := json.Unmarshal(result, &hello); err != nil {
		return fmt.Errorf("the server's result is not that of initialize: %w", err)
	}
	rev := c.opts.mutual([]string{hello.ProtocolVersion}, false)
	if rev == 0 {
		return c.noRevision(errors.New("no revision in common"), []string{hello.ProtocolVersion})
	}
	conn.speak(rev)
	conn.about = about{info: hello.ServerInfo, caps: hello.Capabilities, instructions: hello.Instructions, raw: result}
	conn.opening.Store(false)
	if err := conn.send(ctx, protocol.MethodInitialized, protocol.AppendNotification(nil, protocol.MethodInitialized, nil)); err != nil {
		return err
	}
	c.mu.Lock()
	level := c.level
	c.mu.Unlock()
	if level == 0 || hello.Capabilities.Logging == nil {
		return nil
	}
	_, err := c.roundTrip(ctx, conn, levelRequest(level), round{})
	return err
}
