package mcp

import (
	"sync"
	"time"

	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
)

// announceEvery is how long changes of a list gather before clients are told of
// them, unless it has been quiet: each of them reads the list anew for it.
const announceEvery = 100 * time.Millisecond

// announcer tells everybody who wants to know, in either era, of changes of one
// list: of the first at once, of those that follow soon as one.
type announcer struct {
	server *Server
	change *protocol.Change
	topic  string

	mu     sync.Mutex
	timer  *time.Timer // runs while changes gather; nil else
	more   bool        // there were changes since it was told
	closed bool
}

// newAnnouncers makes those of all lists, by the method that tells of them.
func (s *Server) newAnnouncers() map[string]*announcer {
	all := make(map[string]*announcer, 3)
	for _, method := range []string{protocol.MethodToolsChanged, protocol.MethodResourcesChanged, protocol.MethodPromptsChanged} {
		all[method] = &announcer{server: s, change: protocol.NewChange(method, nil), topic: method}
	}
	return all
}

// changed says that the list has changed.
func (a *announcer) changed() {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.closed:
	case a.timer != nil:
		a.more = true
	case a.tell():
		a.timer = time.AfterFunc(announceEvery, a.due)
	}
}

// due tells of what has gathered.
func (a *announcer) due() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.more || a.closed {
		a.timer = nil
		return
	}
	a.more = false
	a.timer.Reset(announceEvery)
	a.tell()
}

// tell waits for nobody, and returns false if nobody is there. a.mu is held.
func (a *announcer) tell() (heard bool) {
	heard = a.server.hub.Len() > 0
	a.server.hub.Publish(a.topic, a.change)
	a.server.sessions.Each(func(x *session.Session) {
		heard = true
		x.Send(a.change.Plain())
	})
	return heard
}

// close tells of what has gathered, and then of nothing any more.
func (a *announcer) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.more && !a.closed {
		a.tell()
	}
	a.closed = true
	if a.timer != nil {
		a.timer.Stop()
	}
}
