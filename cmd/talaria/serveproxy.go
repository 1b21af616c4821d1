package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/login"
	"github.com/talaria-go/mcp/cmd/talaria/internal/proxy"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

type proxyFlags struct {
	connectFlags
	http   string
	path   string
	urlEnv string
	stdio  bool
}

func (a *app) proxyCommand() *cobra.Command {
	var f proxyFlags
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
			if f.urlEnv != "" {
				return between(0, 0, "URL beside --url-env")(cmd, args)
			}
			return between(1, -1, "URL or COMMAND")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.serveProxy(cmd.Context(), &f, args) },
	}
	flags := cmd.Flags()
	f.add(flags)
	for _, name := range []string{"answer", "sample", "save", "root"} {
		must(flags.MarkHidden(name)) // they are for a person at this end
	}
	flags.StringVar(&f.http, "http", "", "serve HTTP on this `address`, such as 127.0.0.1:8080; port 0 takes a free one")
	flags.StringVar(&f.path, "path", "/mcp", "the `path` of the HTTP endpoint")
	flags.StringVar(&f.urlEnv, "url-env", "", "take the URL from this environment `variable`, because it has a key in it")
	flags.BoolVar(&f.stdio, "stdio", false, "serve standard input and output")
	return cmd
}

func (a *app) serveProxy(ctx context.Context, f *proxyFlags, target []string) error {
	if f.stdio == (f.http != "") {
		return usage("give either --http ADDRESS or --stdio").with("talaria serve-proxy -h has examples")
	}
	if f.http != "" {
		if _, _, err := net.SplitHostPort(f.http); err != nil {
			return usage("--http %q is no address; write host:port, such as 127.0.0.1:8080", f.http)
		}
	}
	if f.urlEnv != "" {
		address, ok := os.LookupEnv(f.urlEnv)
		if !ok || !isURL(address) {
			return usage("--url-env %s: there is no such variable, or it has no URL", f.urlEnv)
		}
		target = []string{address}
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	levels := []zerolog.Level{zerolog.ErrorLevel, zerolog.WarnLevel, zerolog.InfoLevel, zerolog.DebugLevel}
	logger := zerolog.New(zerolog.ConsoleWriter{Out: a.console.ErrLines(), NoColor: true}).Level(levels[min(f.verbose, 3)]).With().Timestamp().Logger()
	t, err := f.transport(kindAny, target, a.console.ErrLines())
	if err != nil {
		return err
	}
	p, err := proxy.New(ctx, proxy.Options{
		One: f.stdio, Logger: &logger, Refused: wanting,
		Connect: func(ctx context.Context, o *client.Options) (*client.Client, error) {
			o.Info.Name, o.Info.Version = "talaria-proxy", version()
			if err := f.pin(o); err != nil {
				return nil, err
			}
			o.Timeout = -1
			if f.timeout > 0 {
				o.Timeout = f.timeout
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, f.timeout)
				defer cancel()
			}
			return client.Connect(ctx, t, o)
		},
	})
	if err != nil {
		return unreachable(t, err)
	}
	if f.stdio {
		err = p.Server().ServeConn(ctx, p.Conn(transport.NewStream(os.Stdin, os.Stdout, &transport.StreamOptions{MaxMessage: maxMessage})))
	} else {
		err = a.serveHTTP(ctx, f, p)
	}
	closed := p.Close()
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

// grace is how long requests may go on after the proxy was told to stop.
const grace = 5 * time.Second

func (a *app) serveHTTP(ctx context.Context, f *proxyFlags, p *proxy.Proxy) error {
	listener, err := net.Listen("tcp", f.http)
	if err != nil {
		return usage("--http: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle(f.path, p.Server().Handler())
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- web.Serve(listener) }()
	a.console.Notef("serving http://%s%s; Ctrl-C stops", listener.Addr(), f.path)
	if host, _, err := net.SplitHostPort(listener.Addr().String()); err == nil && !net.ParseIP(host).IsLoopback() {
		a.console.Warnf("others can reach %s, and there is no authentication", listener.Addr())
	}
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err = errors.Join(p.Server().Shutdown(last), web.Shutdown(last))
	if served := <-served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
