package mcp

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/talaria-go/mcp/internal/conn"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
)

// The errors of addressing a session.
var (
	ErrSessionNotFound = conn.ErrSessionNotFound // it is not there, or has ended
	ErrSlowClient      = conn.ErrSlowClient      // the message was dropped: its client does not read what waits for it already
)

// Notify sends a notification to one legacy session, which Frame.SessionID
// names. params encode to a JSON object; nil leaves them out. It does not wait
// for the client: what cannot go out yet waits in a bounded queue, in which
// equal messages count as one. The errors are ErrSessionNotFound, ErrSlowClient, and
// those of a notification that a server must not send.
//
// Modern clients have no session: what they are told of goes through
// subscriptions, to which only changes of lists and resources belong.
//
// notifications/message goes out if the session wants its level, and
// notifications/resources/updated if it has subscribed to the resource.
// Progress belongs to a request: see Frame.Progress.
func (s *Server) Notify(sessionID, method string, params any) error {
	n, err := s.notification(method, params)
	if err != nil {
		return err
	}
	x, err := s.connections.Session(sessionID)
	if err != nil {
		return err
	}
	if n.uri != "" && !s.sessionMayHear(x, n.uri) {
		return nil // as if it had not subscribed
	}
	if !n.sendTo(x) {
		return ErrSlowClient
	}
	return nil
}

// NotifyAll sends a notification to every legacy session; see Notify. Sessions
// that are too far behind go without it. Changes of lists and resources go to
// the subscriptions of modern clients, too; nothing else does, because the
// specification lets servers tell them nothing that they did not ask for.
func (s *Server) NotifyAll(method string, params any) error {
	n, err := s.notification(method, params)
	if err != nil {
		return err
	}
	switch method {
	case protocol.MethodToolsChanged, protocol.MethodResourcesChanged, protocol.MethodPromptsChanged:
		s.announce(method)
	case protocol.MethodResourceUpdated:
		s.ResourceUpdated(n.uri)
	default:
		s.sessions.Each(func(x *session.Session) { n.sendTo(x) })
	}
	return nil
}

// notification is one that belongs to no request.
type notification struct {
	text  []byte
	uri   string         // of the resource that it is about, or ""
	level protocol.Level // of a log message, or 0
}

// sendTo sends it to a session that wants it; false means that it was dropped.
func (n *notification) sendTo(x *session.Session) bool {
	if n.level != 0 && n.level < x.LogLevel() || n.uri != "" && !x.Subscribed(n.uri) {
		return true
	}
	return x.Send(n.text)
}

// notification checks that the server may send such a notification.
func (s *Server) notification(method string, params any) (n notification, err error) {
	refuse := func(format string, args ...any) (notification, error) {
		return notification{}, fmt.Errorf("mcp: notification %q: %w", method, fmt.Errorf(format, args...))
	}
	var text []byte
	if params != nil {
		if text, err = jsonx.Append(nil, params); err != nil {
			return refuse("params: %w", err)
		}
		if text[0] != '{' {
			return refuse("params must encode to a JSON object, %T does not", params)
		}
	}
	var about struct {
		URI   string `json:"uri"`
		Level string `json:"level"`
	}
	if text != nil {
		_ = json.Unmarshal(text, &about) // other notifications may have other types there
	}
	switch method {
	case protocol.MethodProgress, protocol.MethodCancelled, protocol.MethodAcknowledged, protocol.MethodInitialized:
		return refuse("it belongs to a request, or to clients; see Frame.Progress")
	case protocol.MethodLog:
		level, fault := protocol.ParseLevel(about.Level)
		if fault != nil {
			return refuse("params: %w", fault)
		}
		n.level = level
	case protocol.MethodResourceUpdated:
		if about.URI == "" {
			return refuse("params need the resource's uri")
		}
		n.uri = about.URI
	default:
		if faults := methodFaults(method); faults != nil && !isNotification(method) {
			return refuse("%s", faults[0])
		}
	}
	n.text = protocol.AppendNotification(nil, method, text)
	return n, nil
}

func isNotification(method string) bool {
	return len(method) > len(notificationPrefix) && method[:len(notificationPrefix)] == notificationPrefix
}

// Do runs fn in a legacy session, which Frame.SessionID names, with a Frame that
// has the session's client, principal and assigns, and returns what fn returns.
// So the program can turn what happens in it into what a client is told:
//
//	err := s.Do(ctx, id, func(f *mcp.Frame) error {
//		return f.Log(protocol.LevelInfo, shipped, "orders")
//	})
//
// fn runs on the caller's goroutine, so that what a caller does keeps its order,
// and Do may be called with go; several may run in a session at once. The Frame
// ends with ctx and with the session, which stays alive meanwhile; its request
// has neither id nor method. Log, and questions to the client, go out on the
// session's stream; Frame.EndSession ends it. The errors are
// ErrSessionNotFound, ErrServerClosed, and that of fn; a panic becomes an error.
func (s *Server) Do(ctx context.Context, sessionID string, fn func(f *Frame) error) error {
	return s.connections.Do(ctx, sessionID, fn)
}
