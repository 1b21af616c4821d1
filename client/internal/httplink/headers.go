package httplink

import (
	"fmt"
	"maps"
	"net/http"

	"github.com/talaria-go/mcp/client/internal/link"
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

// headers are those of a session. all is made once for all messages of the
// session and is not changed afterwards.
type headers struct {
	session  string
	revision protocol.Revision
	all      http.Header // nil if they are to be made
}

// header returns the headers of a message, and the session that they name. The
// headers may be shared and must not be changed.
func (l *Link) header(m *link.Message) (all http.Header, session string) {
	if m.Modern {
		return l.modern(m), ""
	}
	l.mu.Lock()
	if l.state.all == nil || l.state.revision != m.Revision {
		l.state.revision = m.Revision
		l.state.all = maps.Clone(l.base)
		l.state.add(l.state.all)
	}
	all, session = l.state.all, l.state.session
	l.mu.Unlock()
	if opens(m) {
		all = maps.Clone(all)
		delete(all, sessionHeader)
		delete(all, versionHeader)
		session = ""
	}
	return with(all, m.Header), session
}

// opens reports whether a message opens a session. In a session that is open,
// initialize is a request like any other, which the server refuses.
func opens(m *link.Message) bool {
	return m.Method == protocol.MethodInitialize && m.Revision == 0
}

// add adds the headers of the session. Its link's mu is held.
func (h *headers) add(to http.Header) {
	if h.revision.Has(protocol.VersionHeader) {
		to[versionHeader] = []string{h.revision.String()}
	}
	if h.session != "" {
		to[sessionHeader] = []string{h.session}
	}
}

// modern returns the headers of a message of a revision without sessions
// (basic/transports/streamable-http of 2026-07-28, Request Metadata).
func (l *Link) modern(m *link.Message) http.Header {
	all := make(http.Header, len(l.base)+len(m.Header)+3)
	maps.Copy(all, l.base)
	values := [3]string{m.Revision.String(), m.Method}
	all[versionHeader] = values[0:1:1]
	if m.Method != "" {
		all[methodHeader] = values[1:2:2]
	}
	if m.Name != "" {
		values[2] = protocol.EncodeHeaderValue(m.Name)
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
func (l *Link) bare() http.Header {
	header := maps.Clone(l.base)
	delete(header, "Content-Type")
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state.add(header)
	return header
}

// maxSession is how long the id of a session may be, in bytes, since every
// request carries it.
const maxSession = 4 << 10

// capture stores the session that a response to initialize names.
func (l *Link) capture(res *http.Response) error {
	id := res.Header.Get(sessionHeader)
	if len(id) > maxSession {
		return fmt.Errorf("the server's session id is longer than %d bytes", maxSession)
	}
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return fmt.Errorf("the server's session id %q has characters other than visible ASCII", id)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state.session, l.state.all = id, nil
	return nil
}

// expired forgets a session that the server does not know any more.
func (l *Link) expired(session string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state.session == session {
		l.state.session, l.state.all, l.over = "", nil, true
	}
}

// isOver reports whether the link had a session that is gone.
func (l *Link) isOver() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over
}
