// Package websocket carries messages over WebSocket (RFC 6455) with the
// subprotocol "mcp": one message of the protocol is one text message. No
// revision of the specification describes this transport; it follows what they
// say about custom transports, and their rules for byte streams.
//
// [Handler] makes the endpoint of a server, [Dial] connects to one. A message that is
// too long is skipped and costs nothing else; a binary message or one that is not UTF-8
// ends the connection.
//
// The WebSocket protocol itself is that of github.com/coder/websocket. A connection
// has one goroutine, which pings a quiet peer, if KeepAlive is not turned off.
// Reads, writes and pings have time limits, after which the connection is
// closed.
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

	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/transport"
)

// subprotocol is what clients and servers agree on in the handshake.
const subprotocol = "mcp"

// defaultKeepAlive is the time between pings if options name none.
const defaultKeepAlive = 25 * time.Second

// orDefaults returns the options, or those of nil, with zero values replaced by
// the defaults.
func orDefaults(opts *transport.SocketOptions) transport.SocketOptions {
	var o transport.SocketOptions
	if opts != nil {
		o = *opts
	}
	if o.MaxMessage <= 0 {
		o.MaxMessage = facts.MaxMessage
	}
	if o.ReadTimeout == 0 {
		o.ReadTimeout = facts.ReadTimeout
	}
	if o.WriteTimeout == 0 {
		o.WriteTimeout = facts.WriteTimeout
	}
	if o.KeepAlive == 0 {
		o.KeepAlive = defaultKeepAlive
	}
	return o
}

// Server serves the connections of a Handler: an *mcp.Server.
type Server interface {
	// ServeUpgrade serves the connection that upgrade makes of r, with the options
	// given to it, until it ends, and closes it. It answers r if it rejects the
	// connection; when upgrade returns an error, it has answered r.
	ServeUpgrade(w http.ResponseWriter, r *http.Request, upgrade func(*transport.SocketOptions) (transport.Conn, error))
}

// Handler returns an HTTP endpoint that serves WebSocket connections, each as
// mcp.Server.ServeStdio serves its one: a legacy session of its own, modern
// requests next to it. Mount it into a router, under any path and behind any
// middleware that leaves http.Hijacker reachable.
//
//	r.Handle("/mcp/ws", websocket.Handler(server))
//
// Which Host and Origin are served, how long a message may be, how many
// connections there may be and how long clients may take are options of the
// server. Connections beyond that
// are refused with 503; its Shutdown closes them with code 1001 once their calls
// have ended.
func Handler(s Server) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.ServeUpgrade(w, r, func(opts *transport.SocketOptions) (transport.Conn, error) {
			return upgrade(w, r, orDefaults(opts))
		})
	})
}

// upgrade turns a request, which must be a WebSocket handshake, into a
// connection. If it returns an error, it has answered the request.
func upgrade(w http.ResponseWriter, r *http.Request, opts transport.SocketOptions) (transport.Conn, error) {
	if !offers(r.Header) {
		fault := fmt.Sprintf("the subprotocol must be %q; Sec-WebSocket-Protocol offers %q", subprotocol, r.Header["Sec-Websocket-Protocol"])
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
		Subprotocols:       []string{subprotocol},
		InsecureSkipVerify: true, // the server has checked Origin
	})
	if err != nil {
		return nil, fmt.Errorf("websocket: %w", err)
	}
	return newConn(ws, taken.conn, opts), nil
}

// canHijack reports whether w, or what it wraps, is an http.Hijacker.
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

// hijacked is an http.ResponseWriter that remembers the connection taken from
// net/http, for the deadline of closing.
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

// offers reports whether the client can speak the subprotocol: it offers that,
// or names none at all.
func offers(header http.Header) bool {
	values := header["Sec-Websocket-Protocol"]
	for _, value := range values {
		for name := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(strings.TrimSpace(name), subprotocol) {
				return true
			}
		}
	}
	return len(values) == 0
}

// Dial connects to a server. ctx bounds only the handshake. url begins with ws,
// wss, http or https; header, which may be nil, is sent with the handshake; a
// nil client means http.DefaultClient, and one with a Timeout limits the whole
// connection by it.
func Dial(ctx context.Context, url string, client *http.Client, header http.Header, opts *transport.SocketOptions) (transport.Conn, error) {
	var below net.Conn
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { below = info.Conn }})
	ws, res, err := websocket.Dial(ctx, url, &websocket.DialOptions{
		HTTPClient: client, HTTPHeader: header, Subprotocols: []string{subprotocol},
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
	return newConn(ws, below, orDefaults(opts)), nil
}
