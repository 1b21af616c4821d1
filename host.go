package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/call"
	"github.com/talaria-go/mcp/internal/conn"
	"github.com/talaria-go/mcp/internal/dispatch"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/guard"
	"github.com/talaria-go/mcp/internal/post"
	"github.com/talaria-go/mcp/internal/principal"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/topics"
	"github.com/talaria-go/mcp/internal/upcall"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
)

// The reasons for which sessions end, for errors.Is in Options.OnSessionEnd.
var (
	ErrSessionClosed  = upcall.ErrSessionClosed  // its connection ended, or any of the others
	ErrSessionDeleted = upcall.ErrSessionDeleted // the client ended it with DELETE
	ErrSessionIdle    = upcall.ErrSessionIdle    // it was not used for Timeouts.Session
)

// methodSessionEnd is what Frames of Options.OnSessionEnd have for a method. No
// client can ask for it.
const methodSessionEnd = "session/terminate"

// host is the Server as its connections and sessions see it. It is a type of its
// own so that the methods of conn.Host, which users must not call, are none of
// Server's.
type host Server

var _ conn.Host = (*host)(nil)

// newSessions makes the table of HTTP sessions. NewServer calls it. Sessions
// that come from a store have not passed Opened in this process, so that the
// table is told what to do when one ends.
func (h *host) newSessions() *session.Manager {
	config := h.opts.sessions(logStore(&h.logger, "session store"))
	if h.post != nil {
		config.Seal, config.Post, config.Node, config.Topics = h.opts.sealer("session"), h.post, h.post.Node(), h.topics
	}
	config.RestoredEnd = h.sessionEnded
	return session.NewManager(config)
}

// newPost makes what carries messages between the replicas of the server, and
// what tells of changes at other replicas. If the server is alone, there are none.
func (h *host) newPost() {
	if h.opts.Store == nil {
		return
	}
	h.post = post.New(post.Config{Store: h.opts.Store, Seal: h.opts.sealer("post"), Failed: logStore(&h.logger, "post")})
	h.topics = topics.New(topics.Config{
		Store: h.opts.Store, Seal: h.opts.sealer("topics"), Node: h.post.Node(), Lives: h.post.Lives, Now: h.post.Now,
		Catalogue: h.catalogue, Failed: logStore(&h.logger, "changes"),
		Changed: func(topic string) bool { return h.subscriptions.heard(topic) },
		Told:    func(who any, topic string) { h.subscriptions.heardLate(who.(*session.Session), topic) },
	})
}

// catalogue returns a digest of each list, by the method that tells of it; nil
// until the server serves, as it may not be complete before. Components that
// encode themselves are code of users: where that fails, there is no digest, and
// two that fail do not differ.
func (h *host) catalogue() map[string]string {
	if h.dispatcher.Load() == nil {
		return nil
	}
	digests := make(map[string]string, len(kindsOfLists))
	for _, list := range kindsOfLists {
		digests[list.method] = ""
		err := safely.Try(func() (err error) {
			digests[list.method], err = h.server().catalog.Internal(call.Private{}).Digest(list.kinds...)
			return err
		})
		if err != nil {
			safely.Log(h.logger.Error().Err(visible.Error(err)).Str("list", list.method), "a list does not encode")
		}
	}
	return digests
}

// share begins to hear of other replicas, and to renew what they share.
func (h *host) share() {
	if h.post != nil {
		replicas := (*conn.Replicas)(h.connections)
		h.post.Start(func(m post.Message) {
			if !h.notified(m) && !h.tasks.Delivered(m) && !h.sessions.Delivered(m) {
				replicas.Delivered(m)
			}
		})
		h.topics.Start()
		h.sessions.Share(replicas.SessionChanged)
		h.tasks.Share()
	}
}

// notify sends a notification to the sessions that are here.
func (h *host) notify(n *notification) {
	h.sessions.Each(func(x *session.Session) {
		if n.wanted(x) {
			x.Send(n.text)
		}
	})
}

// kindNotify is the kind of messages to all replicas that have a notification for
// every session.
const kindNotify = "notify"

// shared is such a notification.
type shared struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
}

// notifyOthers makes the other replicas send a notification to their sessions.
func (h *host) notifyOthers(method string, params []byte) error {
	if h.post == nil {
		return nil
	}
	body, err := json.Marshal(shared{method, params})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), notifyTimeout)
	defer cancel()
	if err := h.post.Tell(ctx, kindNotify, body); err != nil {
		return fmt.Errorf("mcp: notification %q: %w", method, err)
	}
	return nil
}

// notifyTimeout bounds how long NotifyAll waits for the store.
const notifyTimeout = 5 * time.Second

// notified handles a message of notifyOthers.
func (h *host) notified(m post.Message) bool {
	if m.Kind != kindNotify {
		return false
	}
	var s shared
	err := json.Unmarshal(m.Body, &s)
	if err == nil {
		var n notification
		var params any
		if s.Params != nil {
			params = s.Params
		}
		if n, err = newNotification(s.Method, params); err == nil {
			h.notify(&n)
		}
	}
	if err != nil {
		safely.Log(h.logger.Error().Err(visible.Error(err)), "a notification of another replica cannot be read")
	}
	return true
}

// newConnections makes what serves clients. NewServer calls it when the options
// are complete, and h has its sessions and its rounds.
func (h *host) newConnections() *conn.Manager {
	o := &h.opts
	return conn.NewManager(conn.Config{
		Host: h, Running: &h.running, Sessions: h.sessions, Askers: h.rounds, Revisions: o.Revisions, Logger: h.logger,
		Guard: guard.New(o.AllowedHosts, o.AllowedOrigins), Post: h.post,
		Max: o.Limits.Connections, MaxPerPrincipal: o.Limits.ConnectionsPerPrincipal,
		Concurrent: o.Limits.Concurrent, Subscriptions: o.Limits.PerConnection, Batch: o.Limits.Batch,
		Questions: o.Limits.Questions, QuestionTimeout: o.Timeouts.Question, Grace: o.Timeouts.Grace, Polling: o.HTTP.Polling,
	})
}

// server returns h as what it is.
func (h *host) server() *Server { return (*Server)(h) }

// Dispatcher implements conn.Host.
func (h *host) Dispatcher() *dispatch.Dispatcher { return h.server().dispatch() }

// InitializesSlowly implements conn.Host.
func (h *host) InitializesSlowly() bool {
	return h.opts.OnSessionStart != nil || h.opts.OnSessionAttach != nil || h.opts.Discover != nil || len(h.middleware) > 0
}

// Opened implements conn.Host: Options.OnSessionEnd runs when x ends.
func (h *host) Opened(x *session.Session) {
	if h.opts.OnSessionEnd != nil {
		x.OnEnd(func(reason error) { h.sessionEnded(x, reason) })
	}
}

// HeaderParams implements conn.Host.
func (h *host) HeaderParams(name string) (params []facts.Header, forAll bool) {
	if tool, ok := h.catalog.Internal(call.Private{}).Get(KindTool, name); ok {
		params = tool.Headers
	}
	return params, h.catalog.View(nil, nil).Internal(call.Private{}).Open(KindTool)
}

// Offers implements conn.Host.
func (h *host) Offers(f *frame.Frame, name string) (ok bool) {
	_, err := h.Dispatcher().Guard(f, func(f *frame.Frame) (protocol.Result, error) {
		_, ok = h.server().view(f).Get(KindTool, name)
		return nil, nil
	})
	return ok && err == nil
}

// sessionEnded runs Options.OnSessionEnd for x, which has ended and whose last
// request is over, with a Frame that has the session and no peer: nothing
// reaches the client any more. A panic costs nothing but itself.
func (h *host) sessionEnded(x *session.Session, reason error) {
	if h.opts.OnSessionEnd == nil {
		return
	}
	ctx := principal.With(context.Background(), x.Principal())
	f := frame.Internal(call.Private{}).New(ctx, upcall.Config{Method: methodSessionEnd, Revision: x.Revision(), Session: x})
	_, err := h.Dispatcher().Guard(f, func(f *frame.Frame) (protocol.Result, error) {
		h.opts.OnSessionEnd(f, reason)
		return nil, nil
	})
	if err != nil { // it panicked, which is in the log
		safely.Log(h.logger.Debug().Err(visible.Error(err)), "OnSessionEnd")
	}
}
