package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/login"
	"github.com/talaria-go/mcp/cmd/talaria/internal/proxy"
	"github.com/talaria-go/mcp/cmd/talaria/internal/terminal"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// proxyCommand offers a server over another transport.
type proxyCommand struct {
	console *console.Console
	connector
	http   string
	path   string
	urlEnv string
	stdio  bool

	sessions, calls int
	idle            time.Duration
}

func (p *proxyCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use: "serve-proxy (--http ADDRESS | --stdio) (URL | -- COMMAND [ARGS…])", Short: "Offer a server over another transport", GroupID: groupMore,
		Long: `Serve-proxy offers a server again: one that a command starts over HTTP, or one behind
a URL over standard input and output; any other pair works, too. Clients may speak
any revision, whatever the server speaks.

Over HTTP each session has a server process, or a connection, of its own; clients of
2026-07-28, which have no sessions, share one. Questions of the server to its client
pass with --stdio, and from and to 2026-07-28; elsewhere they are refused. There is
no authentication: leave the address on 127.0.0.1 unless something before it has.`,
		Example: "  talaria serve-proxy --http 127.0.0.1:8080 -- npx -y @modelcontextprotocol/server-everything\n  talaria serve-proxy --stdio https://example.com/mcp --header \"Authorization=Bearer TOKEN\"",
		Args: func(cmd *cobra.Command, args []string) error {
			if p.urlEnv != "" {
				return between(0, 0, "URL beside --url-env")(cmd, args)
			}
			return between(1, -1, "URL or COMMAND")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return p.run(cmd, args) },
	}
	flags := cmd.Flags()
	p.add(flags)
	flags.StringVar(&p.http, "http", "", "serve HTTP on this `address`, such as 127.0.0.1:8080; port 0 takes a free one")
	flags.StringVar(&p.path, "path", "/mcp", "the `path` of the HTTP endpoint")
	flags.StringVar(&p.urlEnv, "url-env", "", "take the URL from this environment `variable`, because it has a key in it")
	flags.IntVar(&p.sessions, "max-sessions", proxy.DefaultSessions, "over HTTP, the `number` of sessions at a time, each with a process or a connection of its own")
	flags.IntVar(&p.calls, "max-calls", proxy.DefaultCalls, "the `number` of requests that a session has at a time")
	flags.DurationVar(&p.idle, "session-idle", proxy.DefaultIdle, "end a session over HTTP, and its process, that is not used for so `long`")
	flags.BoolVar(&p.stdio, "stdio", false, "serve standard input and output")
	return cmd
}

func (p *proxyCommand) run(cmd *cobra.Command, target []string) error {
	ctx := cmd.Context()
	if p.stdio == (p.http != "") {
		return usage("give either --http ADDRESS or --stdio").with("talaria serve-proxy -h has examples")
	}
	if p.stdio {
		if err := unused(cmd.Flags(), "is for --http: over --stdio there is one client", "path", "max-sessions", "session-idle"); err != nil {
			return err
		}
	}
	if p.sessions < 1 || p.calls < 1 || p.idle <= 0 {
		return usage("--max-sessions, --max-calls and --session-idle must be more than 0")
	}
	if p.http != "" {
		if err := checkAddress(p.http); err != nil {
			return err
		}
	}
	if p.urlEnv != "" {
		address, ok := os.LookupEnv(p.urlEnv)
		if !ok || !isURL(address) {
			return usage("--url-env %s: there is no such variable, or it has no URL", p.urlEnv)
		}
		target = []string{address}
	}
	ctx, stop := terminal.UntilSignal(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	logger := logsOf(p.console, p.level())
	t, err := p.transport(kindAny, target, p.console.ErrLines())
	if err != nil {
		return err
	}
	offered, err := proxy.New(ctx, proxy.Options{
		One: p.stdio, Sessions: p.sessions, Calls: p.calls, Idle: p.idle, Logger: &logger, Refused: wanting,
		Connect: func(ctx context.Context, o *client.Options) (*client.Client, error) {
			o.Info.Name, o.Info.Version = "talaria-proxy", version()
			if err := p.pin(o); err != nil {
				return nil, err
			}
			o.Timeout = -1
			if p.timeout > 0 {
				o.Timeout = p.timeout
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, p.timeout)
				defer cancel()
			}
			return client.Connect(ctx, t, o)
		},
	})
	if err != nil {
		return unreachable(kindCommand, t, err)
	}
	if p.stdio {
		err = offered.Server().ServeConn(ctx, offered.Conn(transport.NewStream(os.Stdin, os.Stdout, &transport.StreamOptions{MaxMessage: maxMessage})))
	} else {
		err = p.serve(ctx, offered)
	}
	closed := offered.Close()
	if ctx.Err() != nil {
		return nil // told to stop
	}
	return errors.Join(err, closed)
}

// wanting is the answer to a client whose request only a login can help: the code
// that servers have for it, or the whole error if the server sent one, and what
// to run. nil if err is something else.
func wanting(err error) *protocol.Error {
	needed, ok := errors.AsType[*login.Needed](err)
	if !ok {
		return nil
	}
	fault := protocol.Error{Code: protocol.CodeUnauthorized, Message: needed.Error()}
	if len(needed.Scopes) > 0 {
		fault.Code = protocol.CodeInsufficientScope
	}
	if needed.Answer != nil {
		fault = *needed.Answer
		fault.Message = visible.Line(fault.Message, visible.Sentence)
	}
	fault.Message += "; " + strings.ReplaceAll(needed.Hint(), "\n", " ")
	return &fault
}

// grace is how long requests may continue after the proxy was asked to stop.
const grace = 5 * time.Second

// serve serves HTTP until ctx ends.
func (p *proxyCommand) serve(ctx context.Context, offered *proxy.Proxy) error {
	listener, err := net.Listen("tcp", p.http)
	if err != nil {
		return usage("--http: %w", err)
	}
	if !onlyHere(listener) {
		p.console.Warnf("others can reach %s, and there is no authentication", listener.Addr())
	}
	return serveHTTP(ctx, p.console, listener, p.path, offered.Server())
}

// checkAddress reports what is wrong with the value of --http.
func checkAddress(address string) error {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return usage("--http %q is not an address; write host:port, such as 127.0.0.1:8080", address)
	}
	return nil
}

// onlyHere reports whether only this machine can reach the listener.
func onlyHere(listener net.Listener) bool {
	host, _, err := net.SplitHostPort(listener.Addr().String())
	return err == nil && net.ParseIP(host).IsLoopback()
}

// listenHere listens at the value of --http, which only this machine must reach.
func listenHere(address string) (net.Listener, error) {
	if err := checkAddress(address); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, usage("--http: %w", err)
	}
	if !onlyHere(listener) {
		return nil, errors.Join(usage("--http %s: others could reach it; take 127.0.0.1", address), listener.Close())
	}
	return listener, nil
}

// logsOf is the logger of a server that writes to standard error.
func logsOf(c *console.Console, level zerolog.Level) zerolog.Logger {
	return zerolog.New(zerolog.ConsoleWriter{Out: c.ErrLines(), NoColor: true}).Level(level).With().Timestamp().Logger()
}

// serveHTTP serves a server at a listener until ctx ends.
func serveHTTP(ctx context.Context, c *console.Console, listener net.Listener, path string, server *mcp.Server) error {
	mux := http.NewServeMux()
	mux.Handle(path, server.Handler())
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- web.Serve(listener) }()
	c.Notef("serving http://%s%s; Ctrl-C stops", listener.Addr(), path)
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err := errors.Join(server.Shutdown(last), web.Shutdown(last))
	if served := <-served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
