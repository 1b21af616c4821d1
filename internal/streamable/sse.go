package streamable

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// paramSession is the query parameter that ties a POST to its stream.
const paramSession = "sessionId"

// maxPosted is how many messages may wait for the goroutine that reads them,
// and postTime how long a POST waits for room before it is refused. The reader
// itself waits for nothing, so that a full queue is rare.
const (
	maxPosted = 64
	postTime  = time.Second
)

// Posted is a connection of the HTTP+SSE transport (basic/transports of
// 2024-11-05): the server's messages are events of one stream, the client's
// messages come by POST. It is open until end, which the Backend, a failed
// write or the keep-alive calls; the stream itself lasts until the handler of
// the GET returns.
type Posted struct {
	id     string
	out    *exchange
	posted chan posted
	last   *http.Request                 // what brought the message that Read returned last
	ours   func(post *http.Request) bool // tells whether the client is the same
	gone   <-chan struct{}               // the client has closed the stream

	once   sync.Once
	closed chan struct{}
	alive  sync.WaitGroup
}

var _ transport.Conn = (*Posted)(nil)

// posted is a message, or what is known of one that is too long, and the request that
// has brought it.
type posted struct {
	message []byte
	long    *transport.TooLongError // nil for a message
	by      *http.Request
}

// By returns the request that brought the message that Read returned last: its
// identity is that of the message, and its context does not end. It is for the
// goroutine that reads.
func (c *Posted) By() *http.Request { return c.last }

// Read implements transport.Conn. When the client closes the stream, it is gone
// as a whole, since there is nowhere to answer.
func (c *Posted) Read() ([]byte, error) {
	select {
	case p := <-c.posted:
		c.last = p.by
		if p.long != nil {
			return nil, p.long
		}
		return p.message, nil
	case <-c.gone:
		return nil, transport.ErrPeerGone
	case <-c.closed:
		return nil, transport.ErrClosed
	}
}

// take hands what by brings to Read, and waits up to postTime for room. The
// values of by's context, such as the identity, stay; its end does not. The fault is
// CodeSessionNotFound for a message of another client, or on a stream that is over, or
// CodeBusy.
func (c *Posted) take(by *http.Request, p posted) *protocol.Error {
	if !c.ours(by) {
		return streamNotFound()
	}
	select {
	case <-c.closed:
		return streamNotFound()
	default:
	}
	p.by = by.WithContext(context.WithoutCancel(by.Context())) // which ends with the response
	select {
	case c.posted <- p:
		return nil
	default:
	}
	timer := time.NewTimer(postTime)
	defer timer.Stop()
	select {
	case c.posted <- p:
		return nil
	case <-timer.C:
	case <-by.Context().Done():
	case <-c.closed:
	}
	return protocol.Errorf(protocol.CodeBusy, "%d messages of the session wait, the limit", maxPosted)
}

// streamNotFound is the error for a stream of HTTP+SSE that has ended or never
// was, or belongs to another client.
func streamNotFound() *protocol.Error {
	return protocol.Errorf(protocol.CodeSessionNotFound, "Session not found: open a new stream with GET")
}

// Write implements transport.Conn. A client that does not take a message within
// the write timeout loses the connection.
func (c *Posted) Write(message []byte) error {
	select {
	case <-c.closed:
		return transport.ErrClosed
	default:
	}
	err := c.out.Send(message)
	if err != nil {
		c.end()
	}
	return err
}

// ComeBack tells the client, if it takes the message, after what time to open
// another stream.
func (c *Posted) ComeBack(retry time.Duration) { c.out.ComeBack(retry) }

// Flush implements transport.Conn. Every Write is flushed already.
func (*Posted) Flush() error { return nil }

// lastWrite is how long a write that is in progress may still take when the
// connection is closed.
const lastWrite = 100 * time.Millisecond

// Close implements transport.Conn. It interrupts a write that is in progress
// and waits for the goroutine of keepAlive; the response is ended by the
// handler of the GET.
func (c *Posted) Close() error {
	c.end()
	if c.out.mu.TryLock() {
		c.out.mu.Unlock()
	} else {
		// Not every ResponseWriter has deadlines; without, the server's hold.
		_ = http.NewResponseController(c.out.w).SetWriteDeadline(time.Now().Add(lastWrite))
	}
	c.alive.Wait()
	return nil
}

// end closes c for reading and writing; it may be called again.
func (c *Posted) end() { c.once.Do(func() { close(c.closed) }) }

// keepAlive writes comments, to keep a quiet stream open and to notice that the
// client is gone, until the connection ends.
func (c *Posted) keepAlive(every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if c.out.comment() != nil {
				c.end()
				return
			}
		case <-c.closed:
			return
		case <-c.gone:
			return
		}
	}
}

// sseStreams serves HTTP+SSE. It holds its open connections by their ids. An id
// is in the URL that the client POSTs to; it is random and cannot be guessed,
// and yet a POST must also come from the same client. A POST for another id is
// answered with 404, also if another replica has that stream: a balancer has to send
// all requests of a client to one replica.
type sseStreams struct {
	backend Backend
	opts    *Options // of the Handler

	mu   sync.Mutex
	open map[string]*Posted
}

// add makes c reachable for POSTs.
func (s *sseStreams) add(c *Posted) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		s.open = make(map[string]*Posted)
	}
	s.open[c.id] = c
}

// get returns the open connection with that id.
func (s *sseStreams) get(id string) (c *Posted, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, ok = s.open[id]
	return c, ok
}

// remove makes later POSTs to that id fail with 404.
func (s *sseStreams) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, id)
}

// connect serves the GET that opens a connection, and returns when that has
// ended.
func (s *sseStreams) connect(w http.ResponseWriter, r *http.Request) {
	out := &exchange{w: w, timeout: s.opts.WriteTimeout, shared: r.ProtoMajor > 1, events: true}
	c := &Posted{out: out, posted: make(chan posted, maxPosted), gone: r.Context().Done(), closed: make(chan struct{})}
	opened := false
	fault := s.backend.Connect(r, func(o Opening) (*Posted, error) {
		opened = true
		c.id, c.ours = o.ID, o.Ours
		s.add(c)
		if err := out.announce(s.endpoint(r, c.id)); err != nil {
			return nil, err
		}
		if s.opts.KeepAlive > 0 {
			c.alive.Go(func() { c.keepAlive(s.opts.KeepAlive) })
		}
		return c, nil
	})
	s.remove(c.id)
	_ = c.Close() // the backend has done so, unless it refused
	out.hush()
	if !opened && fault != nil {
		s.refuse(w, r, statusOf(fault, 0, true), fault)
	}
}

// endpoint returns where the client is to POST: the path that it asked for
// itself, which is right under any router, with the id in the query.
func (s *sseStreams) endpoint(r *http.Request, id string) string {
	query := r.URL.Query()
	query.Set(paramSession, id)
	if s.opts.SSEEndpoint != "" {
		separator := "?"
		if strings.Contains(s.opts.SSEEndpoint, "?") {
			separator = "&"
		}
		return s.opts.SSEEndpoint + separator + url.Values{paramSession: {id}}.Encode()
	}
	path := r.URL.EscapedPath()
	if asked, err := url.ParseRequestURI(r.RequestURI); err == nil {
		path = asked.EscapedPath() // routers cut prefixes off r.URL
	}
	if strings.HasPrefix(path, "//") {
		path = "" // it would name another host; relative, it is the same
	}
	return path + "?" + query.Encode()
}

// of returns the id of the stream that a POST belongs to, "" if it is for
// Streamable HTTP.
func (s *sseStreams) of(r *http.Request) string {
	if !s.opts.SSE || r.URL.RawQuery == "" || r.Header.Get(headerSession) != "" {
		return ""
	}
	return r.URL.Query().Get(paramSession)
}

// post takes a message for a connection and answers 202; the answer to the
// message itself travels on the stream, also to one that is too long.
func (s *sseStreams) post(w http.ResponseWriter, r *http.Request, id string, p posted) {
	fault := streamNotFound()
	if c, ok := s.get(id); ok {
		fault = c.take(r, p)
	}
	if fault == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	s.refuse(w, r, statusOf(fault, 0, true), fault)
}

// refuse tells of an error that belongs to no request, and answers with it.
func (s *sseStreams) refuse(w http.ResponseWriter, r *http.Request, status int, fault *protocol.Error) {
	s.backend.Refused(r, true, fault)
	writeFault(w, status, fault)
}
