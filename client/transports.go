package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/client/internal/httplink"
	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/client/internal/sselink"
	"github.com/talaria-go/mcp/internal/clients/origin"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/transport"
	"github.com/talaria-go/mcp/transport/websocket"
)

// carrier is a Transport: a link.Transport with the name under which the server
// is remembered.
type carrier struct {
	name      string
	link      link.Transport
	extension string // that its logins belong to; see HTTPOptions.Client
}

// String implements Transport.
func (c carrier) String() string { return c.name }

// transport implements Transport.
func (c carrier) transport() link.Transport { return c.link }

// extensionOf returns the extension that the client declares because of its
// transport, "" for none.
func extensionOf(t Transport) string {
	c, _ := t.(carrier)
	return c.extension
}

// CommandTransport runs a server as a child process and talks to it over its
// standard input and output (basic/transports/stdio). Command makes one; set
// its fields before Connect.
//
// Each connection is a process of its own: when a server has crashed and the
// client connects again, a new one is started.
type CommandTransport struct {
	// Name is the program, which is looked up in PATH if it has no path
	// separator; Args are its arguments.
	Name string
	Args []string
	// Env are variables, each "NAME=value", in addition to, and in place of, those
	// that every server gets of this process's environment, on Windows the
	// corresponding ones:
	//
	//   - HOME, LOGNAME, PATH, SHELL, TERM, USER, TMPDIR and XDG_*;
	//   - HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY, in lower case too;
	//   - SSL_CERT_FILE, SSL_CERT_DIR, NODE_EXTRA_CA_CERTS, REQUESTS_CA_BUNDLE and
	//     CURL_CA_BUNDLE;
	//   - npm_config_*, in upper case too; LANG, LANGUAGE, LC_* and TZ.
	//
	// The rest is kept from it, because secrets may be there. So is one of these
	// whose name speaks of a secret (npm_config__authToken), or whose value is a URL
	// with a user or a password, such as that of a proxy: put it here, if the
	// server may know it.
	Env []string
	// Dir is the working directory; "" means that of this process.
	Dir string
	// Stderr gets a copy of what the server writes to standard error, whose end
	// is in the error of a server that exits; each Write has whole lines, as
	// transport.CommandOptions says. nil means nowhere.
	Stderr io.Writer
	// Grace is how long Close waits for the server to exit, after closing its
	// standard input and again after SIGTERM, before it is killed. 0 means
	// 5 s, less than 0 not at all.
	Grace time.Duration
	// MaxMessage is the longest message in bytes; 0 means
	// 4 MiB.
	MaxMessage int
}

// Command returns the transport to a server that is a program.
func Command(name string, args ...string) *CommandTransport {
	return &CommandTransport{Name: name, Args: args}
}

// String returns the command line, as one can type it: words that a shell would
// split or change are in quotes.
func (t *CommandTransport) String() string {
	words := []string{shellWord(t.Name)}
	for _, arg := range t.Args {
		words = append(words, shellWord(arg))
	}
	return strings.Join(words, " ")
}

// shellWord quotes text unless a shell reads it as one unchanged word.
func shellWord(text string) string {
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return r <= ' ' || r == 0x7f || strings.ContainsRune("'\"`$&|;<>()[]{}*?!#~", r)
	}) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// transport implements Transport. It copies the fields, so that a change after
// Connect does not reach a process that is started later.
func (t *CommandTransport) transport() link.Transport {
	name, args := t.Name, append([]string(nil), t.Args...)
	opts := transport.CommandOptions{
		Env: append([]string(nil), t.Env...), Dir: t.Dir, Stderr: t.Stderr, Grace: t.Grace, MaxMessage: t.MaxMessage,
	}
	return link.OverConn("CommandTransport.MaxMessage", func(context.Context) (transport.Conn, error) {
		conn, err := transport.StartCommand(name, args, &opts)
		if err != nil {
			return nil, err
		}
		return conn, nil
	})
}

// Dial returns the transport to a server behind a socket that speaks as over
// standard input and output, one message a line: network and address are those
// of net.Dial, such as "tcp" or "unix". opts may be nil.
func Dial(network, address string, opts *transport.SocketOptions) Transport {
	var own *transport.SocketOptions
	if opts != nil {
		copied := *opts
		own = &copied
	}
	return carrier{name: network + ":" + address, link: link.OverConn("transport.SocketOptions.MaxMessage", func(ctx context.Context) (transport.Conn, error) {
		var d net.Dialer
		conn, err := d.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return transport.NewSocket(conn, own), nil
	})}
}

// Conn returns the transport over connections of your own making. dial is
// called for each connection, again to reconnect; its ctx bounds only the
// dialing. The client closes what it returns. A connection with a method
// Shutdown(context.Context) error is closed by that. Without dial, connecting
// fails.
func Conn(dial func(ctx context.Context) (transport.Conn, error)) Transport {
	// The client remembers a server under the name of its transport, so two servers
	// must not have the same.
	name := "connection " + rand.Text()[:8]
	if dial == nil {
		return carrier{name: name, link: broken{errors.New("client.Conn needs a function that dials")}}
	}
	return carrier{name: name, link: link.OverConn("MaxMessage of the options of the transport.Conn", func(ctx context.Context) (transport.Conn, error) {
		conn, err := dial(ctx)
		if err == nil && conn == nil {
			err = errors.New("the function given to client.Conn returned neither a connection nor an error")
		}
		return conn, err
	})}
}

// Local returns the transport to a server in this process; serve is the
// ServeConn of its *mcp.Server. Each connection is served by a goroutine that the
// client's Close waits for, and whose context ends when that waits in vain.
func Local(serve func(ctx context.Context, conn transport.Conn) error) Transport {
	t := Conn(func(context.Context) (transport.Conn, error) {
		near, far := transport.Pipe()
		ctx, stop := context.WithCancel(context.Background())
		l := &local{Conn: near, stop: stop, served: make(chan struct{})}
		go func() {
			defer close(l.served)
			// How it ends is for the client to find out.
			_ = safely.Try(func() error { return serve(ctx, far) })
			_ = far.Close()
		}()
		return l, nil
	})
	return carrier{name: "local server " + rand.Text()[:8], link: t.transport()}
}

// local is the client's end of a connection to a server in this process.
type local struct {
	transport.Conn
	stop   context.CancelFunc
	served chan struct{} // closed when the server has ended
}

// Shutdown ends the connection and waits for the server, until ctx ends.
func (l *local) Shutdown(ctx context.Context) error {
	defer l.stop()
	err := l.Conn.Close()
	select {
	case <-l.served:
		return err
	case <-ctx.Done():
		return errors.Join(err, context.Cause(ctx))
	}
}

// Stream returns the transport over a pair of byte streams, one message a line.
// The client closes them if they can be closed. There is no second connection. opts may
// be nil.
func Stream(r io.Reader, w io.Writer, opts *transport.StreamOptions) Transport {
	used := make(chan *onlyStream, 1)
	used <- nil
	return Conn(func(context.Context) (transport.Conn, error) {
		before := <-used
		defer func() { used <- before }()
		if before != nil {
			return nil, fmt.Errorf("a byte stream cannot be connected again; it ended with: %w", before.cause())
		}
		before = &onlyStream{Conn: transport.NewStream(r, w, opts)}
		return before, nil
	})
}

// onlyStream is a Conn that remembers how it ended, for the error of an
// attempt to connect again.
type onlyStream struct {
	transport.Conn
	end atomic.Pointer[error]
}

// Read implements transport.Conn.
func (s *onlyStream) Read() ([]byte, error) {
	message, err := s.Conn.Read()
	if long, ok := errors.AsType[*transport.TooLongError](err); ok {
		long.Option = "transport.StreamOptions.MaxMessage"
	} else if err != nil {
		s.end.CompareAndSwap(nil, &err)
	}
	return message, err
}

// cause returns how the stream ended; transport.ErrClosed if it was closed on
// this side.
func (s *onlyStream) cause() error {
	if end := s.end.Load(); end != nil {
		return *end
	}
	return transport.ErrClosed
}

// broken is a transport that cannot be opened, because its arguments are wrong.
// Constructors return no error, so Connect does.
type broken struct{ err error }

// Open implements link.Transport.
func (b broken) Open(context.Context, link.Receiver) (link.Link, error) { return nil, b.err }

// publicName returns an address without its password and the values of its
// query.
func publicName(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "an address that is none"
	}
	return origin.Shown(u)
}

// Transport connects a client to one server: Command, HTTP, SSE, WebSocket,
// Dial, Stream and Conn make one. The interface is sealed, because it is bound
// to grow; a transport of your own is a transport.Conn, which Conn takes.
//
// String names the server: its URL or its command line. A client remembers
// facts about a server under that name.
type Transport interface {
	fmt.Stringer
	transport() link.Transport
}

// HTTPOptions shape the HTTP requests of a transport; nil means the defaults.
type HTTPOptions struct {
	// Client makes the requests: its Transport, Jar, Timeout and CheckRedirect
	// are used. Its Timeout bounds each exchange as a whole, also one that is a
	// stream; leave it 0 and give calls a timeout instead. nil means a client
	// that keeps 128 idle connections, for as many calls at the same time.
	//
	// Redirects are followed within the origin of the address, with method and
	// body; those that lead elsewhere are errors.
	//
	// A Transport with a method Extension() string, such as that of package
	// auth/oauth, names the extension that its logins belong to. The client then
	// declares it, in every revision. A Transport around such a one has to have the
	// method, too.
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
	// decompressed; 0 means 4 MiB.
	MaxMessage int
}

// extension returns the extension that logins of o.Client belong to, "" for none.
func (o *HTTPOptions) extension() string {
	if o == nil || o.Client == nil {
		return ""
	}
	if login, ok := o.Client.Transport.(interface{ Extension() string }); ok {
		return login.Extension()
	}
	return ""
}

// server returns the sender of requests to an address. A nil o has the
// defaults.
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
// as in 2024-11-05, is used as SSE does.
//
// In errors and logs the values of a query are replaced by marks, because many
// servers take their keys there.
func HTTP(address string, opts *HTTPOptions) Transport {
	server, err := opts.server(address)
	if err != nil {
		return carrier{name: publicName(address), link: broken{err}}
	}
	return carrier{server.String(), httplink.New(server, opts != nil && opts.NoStream), opts.extension()}
}

// SSE returns the transport to a server that speaks HTTP with server-sent
// events (basic/transports of 2024-11-05); address is that of its stream. NoStream
// means nothing here. The specification has deprecated this transport since
// 2025-03-26; HTTP falls back to it where a server has nothing newer.
func SSE(address string, opts *HTTPOptions) Transport {
	server, err := opts.server(address)
	if err != nil {
		return carrier{name: publicName(address), link: broken{err}}
	}
	return carrier{server.String(), sselink.New(server), opts.extension()}
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
			return errors.New("the server redirects to another origin, " + origin.Shown(r.URL))
		}
		if check != nil {
			return check(r, via)
		}
		if len(via) > 3 {
			return errors.New("the server redirects more than 3 times")
		}
		return nil
	}
	if o.HeaderFunc != nil {
		client.Transport = &headerTransport{to: client.Transport, change: o.HeaderFunc}
	}
	return carrier{publicName(address), link.OverConn(origin.LimitOption, func(ctx context.Context) (transport.Conn, error) {
		conn, err := websocket.Dial(ctx, address, client, header.Clone(), &transport.SocketOptions{MaxMessage: o.MaxMessage})
		if err != nil {
			if u, bad := url.Parse(address); bad == nil { // a server may repeat the address
				err = origin.Hidden(err, &http.Request{URL: u, Header: header})
			}
			return nil, err
		}
		return conn, nil
	}), opts.extension()}
}

// headerTransport is an http.RoundTripper that calls HTTPOptions.HeaderFunc.
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
