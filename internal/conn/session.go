package conn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
)

// ErrSessionNotFound is the error of addressing a session that is not there, or has
// ended.
var ErrSessionNotFound = errors.New("mcp: there is no such session")

// ErrSlowClient is the error of a message that was dropped because its client does
// not read what waits for it already.
var ErrSlowClient = errors.New("mcp: the client is too far behind; the message was dropped")

// ender is a Manager as frame.EndSession sees it.
type ender Manager

// EndSession implements frame.Ender.
func (e *ender) EndSession(f *frame.Frame, reason error) error {
	x, ok := f.Session().(*session.Session)
	if !ok || x.Context().Err() != nil {
		return ErrSessionNotFound
	}
	if reason == nil {
		reason = session.ErrClosed
	}
	e.Sessions.Stop(x, reason)
	return nil
}

// sessionPeer sends on the stream of a session.
type sessionPeer struct{ session *session.Session }

// Send implements frame.Peer.
func (p sessionPeer) Send(message []byte) error {
	if !p.session.Send(append([]byte(nil), message...)) {
		return ErrSlowClient
	}
	return nil
}

// questions asks the client of a legacy session, as the session does, within
// the limits of the Manager.
type questions struct {
	*session.Session
	manager *Manager
}

// Asker implements frame.Askers.
func (q questions) Asker(f *frame.Frame, send func([]byte) error) frame.Asker {
	return &boundedAsker{q.Session.Asker(f, send), q}
}

type boundedAsker struct {
	frame.Asker
	questions questions
}

// Ask implements frame.Asker: nobody waits for ever, though the client keeps
// its connection, or its stream, open.
func (a *boundedAsker) Ask(f *frame.Frame, list []*frame.Question) ([]json.RawMessage, error) {
	m := a.questions.manager
	release, ok := a.questions.Pending.Reserve(len(list), m.Questions)
	if !ok {
		return nil, protocol.Errorf(protocol.CodeBusy, "the client has as many unanswered questions as it may, which is %d", m.Questions)
	}
	defer release()
	ctx, cancel := context.WithTimeoutCause(f, m.QuestionTimeout, fmt.Errorf("the client has not answered for %v", m.QuestionTimeout))
	defer cancel()
	return a.Asker.Ask(f.WithContext(ctx), list)
}
