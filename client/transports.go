package client

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/client/internal/connlink"
	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/transport"
)

// carrier is a Transport made here.
type carrier struct {
	name string
	link link.Transport
}

// String implements Transport.
func (c carrier) String() string { return c.name }

func (c carrier) transport() link.Transport { return c.link }

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
	// Env are variables, each "NAME=value", beside and over the few that every
	// server gets: HOME, LOGNAME, PATH, SHELL, TERM and USER, on Windows their
	// likes. The rest of this process's environment is kept from it, because
	// secrets may be in there.
	Env []string
	// Dir is the working directory; "" means that of this process.
	Dir string
	// Stderr gets a copy of what the server writes to standard error, whose end
	// is in the error of a server that exits. nil means nowhere.
	Stderr io.Writer
	// Grace is how long Close waits for the server to exit, after closing its
	// standard input and again after SIGTERM, before it is killed. 0 means
	// transport.DefaultGrace, less than 0 not at all.
	Grace time.Duration
	// MaxMessage is the longest message in bytes; 0 means
	// transport.DefaultMaxMessage.
	MaxMessage int
}

// Command returns the transport to a server that is a program.
func Command(name string, args ...string) *CommandTransport {
	return &CommandTransport{Name: name, Args: args}
}

// String returns the command line.
func (t *CommandTransport) String() string {
	return strings.Join(append([]string{t.Name}, t.Args...), " ")
}

func (t *CommandTransport) transport() link.Transport {
	name, args := t.Name, append([]string(nil), t.Args...)
	opts := transport.CommandOptions{
		Env: append([]string(nil), t.Env...), Dir: t.Dir, Stderr: t.Stderr, Grace: t.Grace, MaxMessage: t.MaxMessage,
	}
	return connlink.New(func(context.Context) (transport.Conn, error) {
		conn, err := transport.StartCommand(name, args, &opts)
		if err != nil {
			return nil, err
		}
		return conn, nil
	})
}

// Dial returns the transport to a server behind a socket that speaks as over
// standard input and output, one message a line: network and address are those
// of net.Dial, such as "tcp" or "unix".
func Dial(network, address string) Transport {
	return carrier{network + ":" + address, connlink.New(func(ctx context.Context) (transport.Conn, error) {
		var d net.Dialer
		conn, err := d.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return transport.NewSocket(conn, nil), nil
	})}
}

// Conn returns the transport over connections of your own making. dial is
// called for each connection, again to reconnect; its ctx bounds the dialling
// alone. The client closes what it returns. A connection with a method
// Shutdown(context.Context) error is closed by that. Without dial, connecting
// fails.
func Conn(dial func(ctx context.Context) (transport.Conn, error)) Transport {
	// What is remembered of a server goes by the name of its transport, so that
	// two must not have the same.
	name := "connection " + rand.Text()[:8]
	if dial == nil {
		return carrier{name, broken{errors.New("mcp: client.Conn needs a function that dials, got nil")}}
	}
	return carrier{name, connlink.New(func(ctx context.Context) (transport.Conn, error) {
		conn, err := dial(ctx)
		if err == nil && conn == nil {
			err = errors.New("mcp: the function given to client.Conn returned neither a connection nor an error")
		}
		return conn, err
	})}
}

// Stream returns the transport over a pair of byte streams, one message a line.
// The client closes them if they can be closed. There is no second connection.
func Stream(r io.Reader, w io.Writer) Transport {
	used := make(chan *onlyStream, 1)
	used <- nil
	return Conn(func(context.Context) (transport.Conn, error) {
		before := <-used
		defer func() { used <- before }()
		if before != nil {
			return nil, fmt.Errorf("mcp: a byte stream cannot be connected again; it ended with: %w", before.cause())
		}
		before = &onlyStream{Stream: transport.NewStream(r, w, nil)}
		return before, nil
	})
}

// onlyStream is a Stream that remembers how it ended.
type onlyStream struct {
	*transport.Stream
	end atomic.Pointer[error]
}

// Read implements transport.Conn.
func (s *onlyStream) Read() ([]byte, error) {
	message, err := s.Stream.Read()
	if _, long := errors.AsType[*transport.TooLongError](err); err != nil && !long {
		s.end.CompareAndSwap(nil, &err)
	}
	return message, err
}

func (s *onlyStream) cause() error {
	if end := s.end.Load(); end != nil {
		return *end
	}
	return transport.ErrClosed
}

// broken is a transport that cannot be opened.
type broken struct{ err error }

// Open implements link.Transport.
func (b broken) Open(context.Context, link.Receiver) (link.Link, error) { return nil, b.err }

// publicName returns an address without its password.
func publicName(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "an address that is none"
	}
	return u.Redacted()
}
