package client

import (
	"context"
	"errors"
	"net/http"

	"github.com/talaria-go/mcp/client/internal/connlink"
	"github.com/talaria-go/mcp/client/internal/httplink"
	"github.com/talaria-go/mcp/client/internal/origin"
	"github.com/talaria-go/mcp/client/internal/sselink"
	"github.com/talaria-go/mcp/transport"
	"github.com/talaria-go/mcp/transport/websocket"
)

// HTTPOptions shape the HTTP requests of a transport; nil means the defaults.
type HTTPOptions struct {
	// Client makes the requests: its Transport, Jar, Timeout and CheckRedirect
	// are used. Its Timeout bounds each exchange as a whole, also one that is a
	// stream; leave it 0 and give calls a timeout instead. nil means a client
	// that keeps 128 idle connections, for as many calls at the same time.
	//
	// Redirects are followed within the origin of the address, with method and
	// body; those that lead elsewhere are errors.
	Client *http.Client
	// Header is sent with every request.
	Header http.Header
	// HeaderFunc changes the headers of a request right before it is sent, such
	// as to add a token that is renewed now and then. ctx is that of the call.
	// An error fails the call. It is called by many goroutines at once.
	HeaderFunc func(ctx context.Context, r *http.Request) error
	// NoStream leaves out the stream on which a server of a legacy revision
	// sends what belongs to no request: changes of lists, updates of resources.
	NoStream bool
	// MaxMessage is the longest message of the server in bytes, after it was
	// decompressed; 0 means transport.DefaultMaxMessage.
	MaxMessage int
}

func (o *HTTPOptions) server(address string) (*origin.Server, error) {
	if o == nil {
		o = &HTTPOptions{}
	}
	return origin.New(address, origin.Options{
		Client: o.Client, Header: o.Header, HeaderFunc: o.HeaderFunc, MaxMessage: o.MaxMessage,
	})
}

// HTTP returns the transport to an MCP endpoint that speaks streamable HTTP, in
// any revision. A server that turns out to speak HTTP with server-sent events,
// as in 2024-11-05, is spoken to as SSE does.
func HTTP(address string, opts *HTTPOptions) Transport {
	server, err := opts.server(address)
	if err != nil {
		return carrier{publicName(address), broken{err}}
	}
	return carrier{server.String(), httplink.New(server, opts != nil && opts.NoStream)}
}

// SSE returns the transport to a server that speaks HTTP with server-sent
// events (basic/transports of 2024-11-05); address is that of its stream. NoStream
// means nothing here. The specification has deprecated this transport since
// 2025-03-26; HTTP falls back to it where a server has nothing newer.
func SSE(address string, opts *HTTPOptions) Transport {
	server, err := opts.server(address)
	if err != nil {
		return carrier{publicName(address), broken{err}}
	}
	return carrier{server.String(), sselink.New(server)}
}

// WebSocket returns the transport to a server that speaks WebSocket with the
// subprotocol "mcp"; address begins with ws, wss, http or https. NoStream means
// nothing here, and a call's headers are not sent: the options' are, with the
// handshake.
func WebSocket(address string, opts *HTTPOptions) Transport {
	var o HTTPOptions
	if opts != nil {
		o = *opts
	}
	header := o.Header.Clone()
	client := &http.Client{}
	if o.Client != nil {
		*client = *o.Client
	}
	client.Timeout = 0 // it would end the connection
	check := client.CheckRedirect
	client.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if r.URL.Scheme != via[0].URL.Scheme || r.URL.Host != via[0].URL.Host {
			return errors.New("mcp: the server redirects to another origin, " + r.URL.Redacted())
		}
		if check != nil {
			return check(r, via)
		}
		if len(via) > 3 {
			return errors.New("mcp: the server redirects more than 3 times")
		}
		return nil
	}
	if o.HeaderFunc != nil {
		client.Transport = &headerTransport{to: client.Transport, change: o.HeaderFunc}
	}
	return carrier{publicName(address), connlink.New(func(ctx context.Context) (transport.Conn, error) {
		conn, err := websocket.Dial(ctx, address, client, header.Clone(), websocket.Options{MaxMessage: o.MaxMessage})
		if err != nil {
			return nil, err
		}
		return conn, nil
	})}
}

// headerTransport calls a header function.
type headerTransport struct {
	to     http.RoundTripper
	change func(context.Context, *http.Request) error
}

// RoundTrip implements http.RoundTripper.
func (t *headerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if err := t.change(r.Context(), r); err != nil {
		return nil, err
	}
	to := t.to
	if to == nil {
		to = http.DefaultTransport
	}
	return to.RoundTrip(r)
}
