package conn

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/talaria-go/mcp/internal/bus"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
	"github.com/talaria-go/mcp/session"
)

// The kinds of messages between replicas. The bodies are letters.
const (
	letterEnded      = "ended"      // to all: a session has ended
	letterSubscribed = "subscribed" // to all: a session has other subscriptions
	letterCancel     = "cancel"     // to all: a client cancels a request, which is in progress at some replica
	letterAnswer     = "answer"     // to the one that asked: the response to a question
)

// letter is what one replica tells another of a session.
type letter struct {
	Session string            `json:"session"`
	Message *protocol.Message `json:"message,omitempty"`
}

// Replicas passes messages between a Manager and the other replicas of its server.
type Replicas struct{ *Manager }

// tell tells all other replicas.
func (r Replicas) tell(kind string, l letter) error {
	body, err := json.Marshal(l)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), postTimeout)
	defer cancel()
	return r.Post.Broadcast(ctx, kind, body)
}

// SessionChanged notifies the other replicas that a session has ended, or that
// its subscriptions have changed. One that misses the notification finds out
// when the session is used there.
func (r Replicas) SessionChanged(id string, ended bool) {
	kind := letterSubscribed
	if ended {
		kind = letterEnded
	}
	if err := r.tell(kind, letter{Session: id}); err != nil {
		safely.Log(r.Logger.Warn().Err(visible.Error(err)).Str("kind", kind), "the other replicas were not told of a session")
	}
}

// handleMessage handles a message of another replica. It does not wait.
func (r Replicas) handleMessage(message bus.Message) {
	var l letter
	if err := jsonx.Unmarshal(message.Body, &l); err != nil {
		safely.Log(r.Logger.Error().Err(visible.Error(err)).Str("kind", visible.Line(message.Kind, visible.Name)), "a message of another replica cannot be read")
		return
	}
	switch message.Kind {
	case letterEnded, letterSubscribed:
		r.Sessions.HandleChange(l.Session, message.Kind == letterEnded)
	}
	x := r.Sessions.Local(l.Session)
	if x == nil || l.Message == nil {
		return
	}
	switch message.Kind {
	case letterCancel:
		cancelRequest(&x.Inflight, l.Message.Params)
	case letterAnswer:
		if !x.Pending.Answer(l.Message) {
			r.Manager.unasked(core.Transport{Kind: "replica"}, l.Session, l.Message)
		}
	}
}

// answered takes the response of a client to a question, which another replica
// may have asked. One that no question waits for is dropped, and asked is false. The fault
// says that the replica that waits could not be reached.
func (r Replicas) answered(x *session.Session, response *protocol.Message) (asked bool, fault *protocol.Error) {
	if x.Pending.Answer(response) {
		return true, nil
	}
	node, _, ok := strings.Cut(strings.Trim(response.ID.String(), `"`), "-")
	if r.Post == nil || !ok || node == r.Post.ReplicaID() || !bus.IsReplicaID(node) {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), postTimeout)
	defer cancel()
	body, err := json.Marshal(letter{x.ID(), response})
	if err == nil {
		err = r.Post.Send(ctx, node, letterAnswer, body)
	}
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, bus.ErrNoReplica):
		return false, nil
	case errors.Is(err, scale.ErrFull), errors.Is(err, scale.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		return true, wire.Unavailable("the answer cannot be handed to the replica that asked", err)
	}
	safely.Log(r.Logger.Warn().Err(visible.Error(err)), "an answer did not reach the replica that asked")
	return true, wire.Refused("too_long", protocol.CodeInvalidRequest, "the answer cannot be handed to the replica that asked: it may have %d bytes", scale.MaxValue/2)
}

// cancelled cancels a request of a session, wherever it is in progress.
func (r Replicas) cancelled(x *session.Session, notification *protocol.Message) {
	id, found := cancelRequest(&x.Inflight, notification.Params)
	if found || id.IsZero() || r.Post == nil {
		return
	}
	// Not as it came: all replicas get it.
	short, err := protocol.NewNotification(notification.Method, map[string]any{"requestId": id, "reason": reasonOf(notification.Params)})
	if err == nil {
		err = r.tell(letterCancel, letter{x.ID(), &short})
	}
	if err != nil {
		safely.Log(r.Logger.Debug().Err(visible.Error(err)), "the other replicas were not told of a cancellation")
	}
}

// reasonOf returns why a client cancels a request, cut for a log.
func reasonOf(params []byte) string {
	var cancelled wire.CancelledParams
	_ = jsonx.Unmarshal(params, &cancelled) // cancelRequest has read it
	return visible.Line(cancelled.Reason, visible.Sentence)
}
