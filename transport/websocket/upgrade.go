// Package websocket carries messages over WebSocket (RFC 6455), with the
// subprotocol "mcp": one message of the protocol is one text message. No
// revision of the specification describes it; it keeps to what they say of
// transports of one's own, and to their rules for byte streams.
package websocket

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	neturl "net/url"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/talaria-go/mcp/internal/guard"
	"github.com/talaria-go/mcp/transport"
)

// Subprotocol is what clients and servers agree on in the handshake.
const Subprotocol = "mcp"

// DefaultKeepAlive is the time between pings if Options name none.
const DefaultKeepAlive = 25 * time.Second

// Options shape connections. The zero value is the default.
type Options struct {
	MaxMessage   int           // bytes of a message; 0 means transport.DefaultMaxMessage
	ReadTimeout  time.Duration // for the rest of a message that a peer has begun; 0 means transport.DefaultReadTimeout, negative none
	WriteTimeout time.Duration // for a peer to take a message; 0 means transport.DefaultWriteTimeout, negative none
	KeepAlive    time.Duration // between pings; 0 means DefaultKeepAlive, negative none. A peer may take as long to answer, at least WriteTimeout.
	// AllowedHosts and AllowedOrigins are those of mcp.Options. They
	// matter to servers alone.
	AllowedHosts   []string
	AllowedOrigins []string
}

func (o Options) orDefaults() Options {
	if o.MaxMessage <= 0 {
		o.MaxMessage = transport.DefaultMaxMessage
	}
	if o.ReadTimeout == 0 {
		o.ReadTimeout = transport.DefaultReadTimeout
	}
	if o.WriteTimeout == 0 {
		o.WriteTimeout = transport.DefaultWriteTimeout
	}
	if o.KeepAlive == 0 {
		o.KeepAlive = DefaultKeepAlive
	}
	return o
}

// Upgrader turns HTTP requests into connections. It is safe for concurrent use.
type Upgrader struct {
	opts  Options
	guard guard.Guard
}

// NewUpgrader returns an Upgrader.
func NewUpgrader(opts Options) *Upgrader {
	return &Upgrader{opts: opts.orDefaults(), guard: guard.New(opts.AllowedHosts, opts.AllowedOrigins)}
}

// Upgrade makes a connection of a request, which must be a WebSocket handshake.
// When it returns an error, it has answered the request. Who calls it must
// close the connection before the handler of the request returns.
func (u *Upgrader) Upgrade(w http.ResponseWriter, r *http.Request) (*Conn, error) {
	if fault := u.guard.Check(r); fault != "" {
		http.Error(w, fault, http.StatusForbidden)
		return nil, errors.New("websocket: " + fault)
	}
	if !offers(r.Header) {
		fault := fmt.Sprintf("the subprotocol must be %q; Sec-WebSocket-Protocol offers %q", Subprotocol, r.Header["Sec-Websocket-Protocol"])
		http.Error(w, fault, http.StatusBadRequest)
		return nil, errors.New("websocket: " + fault)
	}
	if !canHijack(w) {
		const fault = "the connection cannot become a WebSocket: HTTP/2, or a middleware that hides http.Hijacker"
		http.Error(w, fault, http.StatusNotImplemented)
		return nil, errors.New("websocket: " + fault)
	}
	taken := &hijacked{ResponseWriter: w}
	ws, err := websocket.Accept(taken, r, &websocket.AcceptOptions{
		Subprotocols:       []string{Subprotocol},
		InsecureSkipVerify: true, // the guard has checked Origin
	})
	if err != nil {
		return nil, fmt.Errorf("websocket: %w", err)
	}
	return newConn(ws, taken.conn, u.opts), nil
}

// canHijack tells whether w, or what it wraps, is an http.Hijacker.
func canHijack(w http.ResponseWriter) bool {
	for {
		switch t := w.(type) {
		case http.Hijacker:
			return true
		case interface{ Unwrap() http.ResponseWriter }:
			w = t.Unwrap()
		default:
			return false
		}
	}
}

// hijacked remembers the connection that was taken from net/http.
type hijacked struct {
	http.ResponseWriter
	conn net.Conn
}

// Hijack implements http.Hijacker.
func (h *hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(h.ResponseWriter).Hijack()
	h.conn = conn
	return conn, buffered, err
}

// offers tells whether the client can speak the subprotocol: it offers it, or
// names none at all.
func offers(header http.Header) bool {
	values := header["Sec-Websocket-Protocol"]
	for _, value := range values {
		for name := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(strings.TrimSpace(name), Subprotocol) {
				return true
			}
		}
	}
	return len(values) == 0
}

// Dial connects to a server. ctx bounds the handshake alone. url begins with
// ws, wss, http or https; header, which may be nil, is sent with the handshake;
// a nil client means http.DefaultClient, and one with a Timeout limits the
// whole connection by it.
func Dial(ctx context.Context, url string, client *http.Client, header http.Header, opts Options) (*Conn, error) {
	var below net.Conn
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { below = info.Conn }})
	ws, res, err := websocket.Dial(ctx, url, &websocket.DialOptions{
		HTTPClient: client, HTTPHeader: header, Subprotocols: []string{Subprotocol},
	})
	if err != nil {
		if failed, ok := errors.AsType[*neturl.Error](err); ok {
			err = failed.Err // who dials knows the URL, which may have a secret in it
		}
		if res != nil {
			return nil, fmt.Errorf("websocket: the server answered %s: %w", res.Status, err)
		}
		return nil, fmt.Errorf("websocket: %w", err)
	}
	return newConn(ws, below, opts.orDefaults()), nil
}
