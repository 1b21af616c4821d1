package mcp

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/rounds"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
)

// questions asks the client of a legacy session, as the session does, within
// Limits.Questions and Timeouts.Question.
type questions struct {
	*session.Session
	limits rounds.Config
}

// questionsTo makes what asks the client of x.
func (s *Server) questionsTo(x *session.Session) questions {
	return questions{x, s.opts.rounds()}
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
	limits := a.questions.limits
	release, ok := a.questions.Pending.Reserve(len(list), limits.MaxOpen)
	if !ok {
		return nil, protocol.Errorf(protocol.CodeBusy, "the client has as many unanswered questions as it may, which is %d", limits.MaxOpen)
	}
	defer release()
	ctx, cancel := context.WithTimeoutCause(f, limits.Expiry, fmt.Errorf("the client has not answered for %v", limits.Expiry))
	defer cancel()
	return a.Asker.Ask(f.WithContext(ctx), list)
}
