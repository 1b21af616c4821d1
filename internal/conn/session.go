package conn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
)

// ErrSessionNotFound means that the session does not exist or has ended.
var ErrSessionNotFound = errors.New("mcp: there is no such session")

// ErrSlowClient is returned when a message is dropped because the client does
// not read those that wait for it already.
var ErrSlowClient = errors.New("mcp: the client is too far behind; the message was dropped")

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

// boundedAsker asks the client of a session within the limits of its Manager.
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
