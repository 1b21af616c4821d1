package httplink

import (
	"fmt"
	"maps"
	"net/http"
	"sync"

	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// The headers, as net/http spells them.
const (
	versionHeader = "Mcp-Protocol-Version"
	sessionHeader = "Mcp-Session-Id"
	methodHeader  = "Mcp-Method"
	nameHeader    = "Mcp-Name"
	eventHeader   = "Last-Event-Id"
)

// session is the legacy session of a link, if it has one, and makes the headers
// of all that the link sends. A link has one session in its life: after expired
// it stays without one, and the client opens another link. base does not
// change; mu guards the fields below it.
type session struct {
	base http.Header // of every POST

	mu       sync.Mutex
	id       string // "" if there is none
	revision protocol.Revision
	all      http.Header // of messages, made once; nil if they are to be made
	over     bool        // the server does not know the session any more
}

// current returns the id of the session, "" if there is none.
func (s *session) current() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// header returns the headers of a message, and the session that they name. The
// headers may be shared and must not be changed.
func (s *session) header(m *link.Message) (all http.Header, id string) {
	if m.Modern {
		return s.modern(m), ""
	}
	s.mu.Lock()
	if s.all == nil || s.revision != m.Revision {
		s.revision = m.Revision
		s.all = maps.Clone(s.base)
		s.add(s.all)
	}
	all, id = s.all, s.id
	s.mu.Unlock()
	if opens(m) {
		all = maps.Clone(all)
		delete(all, sessionHeader)
		delete(all, versionHeader)
		id = ""
	}
	return with(all, m.Header), id
}

// opens reports whether a message opens a session. In a session that is open,
// initialize is a request like any other, which the server refuses.
func opens(m *link.Message) bool {
	return m.Method == protocol.MethodInitialize && m.Revision == 0
}

// add adds the headers of the session. s.mu is held.
func (s *session) add(to http.Header) {
	if s.revision.Has(protocol.FeatureVersionHeader) {
		to[versionHeader] = []string{s.revision.String()}
	}
	if s.id != "" {
		to[sessionHeader] = []string{s.id}
	}
}

// modern returns the headers of a message of a revision without sessions
// (basic/transports/streamable-http of 2026-07-28, Request Metadata).
func (s *session) modern(m *link.Message) http.Header {
	all := make(http.Header, len(s.base)+len(m.Header)+3)
	maps.Copy(all, s.base)
	values := [3]string{m.Revision.String(), m.Method}
	all[versionHeader] = values[0:1:1]
	if m.Method != "" {
		all[methodHeader] = values[1:2:2]
	}
	if m.Name != "" {
		values[2] = wire.EncodeHeaderValue(m.Name)
		all[nameHeader] = values[2:3:3]
	}
	for name, value := range m.Header {
		all[http.CanonicalHeaderKey(name)] = value
	}
	return all
}

// with returns headers together with more of them. It copies only if there are
// any.
func with(all, more http.Header) http.Header {
	if len(more) == 0 {
		return all
	}
	all = maps.Clone(all)
	for name, value := range more {
		all[http.CanonicalHeaderKey(name)] = value
	}
	return all
}

// bare returns the headers of a request without a message: GET and DELETE. They
// belong to the caller.
func (s *session) bare() http.Header {
	header := maps.Clone(s.base)
	delete(header, "Content-Type")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.add(header)
	return header
}

// maxSession is how long the id of a session may be, in bytes, since every
// request carries it.
const maxSession = 4 << 10

// capture stores the session that a response to initialize names.
func (s *session) capture(res *http.Response) error {
	id := res.Header.Get(sessionHeader)
	if len(id) > maxSession {
		return fmt.Errorf("the server's session id is longer than %d bytes", maxSession)
	}
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return fmt.Errorf("the server's session id %q has characters other than visible ASCII", id)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.id, s.all = id, nil
	return nil
}

// expired forgets a session that the server does not know any more.
func (s *session) expired(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.id == id {
		s.id, s.all, s.over = "", nil, true
	}
}

// isOver reports whether the link had a session that is gone.
func (s *session) isOver() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}
