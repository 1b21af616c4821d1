package conn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
)

// ErrSessionNotFound means that the session does not exist or has ended.
var ErrSessionNotFound = errors.New("mcp: there is no such session")

// ErrSlowClient is returned when a message is dropped because the client does
// not read those that wait for it already.
var ErrSlowClient = errors.New("mcp: the client is too far behind; the message was dropped")

// knows is what core.Server calls Knows.
func (m *Manager) knows(method, name string) (knowsMethod, knowsName bool) {
	return m.Hooks.Dispatcher().Knows(method), m.Hooks.Names(method, name)
}

// sentLong logs each method and name once, of which there are as many as
// Frame.Labels has.
func (m *Manager) sentLong(method, name string, size int) {
	if _, known := m.long.LoadOrStore(method+" "+name, true); known {
		return
	}
	safely.Log(m.Logger.Warn().Str("method", method).Str("name", name).Int("bytes", size),
		fmt.Sprintf("a message is longer than the %d bytes that clients take by default: send less, such as a page or a link to a resource, or raise the limit of the client", facts.MaxMessage))
}

// endSession ends a session of HTTP. A nil reason is core.ErrSessionClosed.
func (m *Manager) endSession(s core.Session, reason error) error {
	x, ok := s.(*session.Session)
	if !ok || x.Context().Err() != nil {
		return ErrSessionNotFound
	}
	if reason == nil {
		reason = core.ErrSessionClosed
	}
	return m.Sessions.Stop(x, reason)
}

// sessionPeer sends to the stream of a session what belongs to no request.
type sessionPeer struct{ session *session.Session }

// Send implements core.Peer. It copies message, which is sent later.
func (p sessionPeer) Send(message []byte) error {
	return Post(context.Background(), p.session, append([]byte(nil), message...))
}

// Post sends a message to the stream of a session, at whichever replica that is.
// The error is ErrSlowClient or that of the store.
func Post(ctx context.Context, x *session.Session, message []byte) error {
	sent, err := x.Route(ctx, message)
	switch {
	case err != nil:
		return fmt.Errorf("mcp: the client's stream may be at another replica, which cannot be reached: %w", err)
	case !sent:
		return ErrSlowClient
	}
	return nil
}

// asker makes the Asker of a request. The client of a legacy session is asked as the
// session itself does, within the limits that the Manager has for the number of
// unanswered questions and for the time.
func (m *Manager) asker(of core.AskerRequest) core.Asker {
	if x, ok := of.Session.(*session.Session); ok {
		return &boundedAsker{x.Asker(of), x, m}
	}
	return m.Askers(of)
}

// boundedAsker asks the client of a session within those limits.
type boundedAsker struct {
	core.Asker
	session *session.Session
	manager *Manager
}

// Ask implements core.Asker. A client that keeps its connection open but never
// answers costs its caller QuestionTimeout at most.
func (a *boundedAsker) Ask(ctx context.Context, list []protocol.InputRequest) ([]json.RawMessage, error) {
	m := a.manager
	release, ok := a.session.Pending.Reserve(len(list), m.Questions)
	if !ok {
		return nil, protocol.Errorf(protocol.CodeBusy, "the client has as many unanswered questions as it may, which is %d", m.Questions)
	}
	defer release()
	ctx, cancel := context.WithTimeoutCause(ctx, m.QuestionTimeout, fmt.Errorf("the client has not answered for %v", m.QuestionTimeout))
	defer cancel()
	return a.Asker.Ask(ctx, list)
}
