package main

import (
	"context"
	"errors"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/client/config"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/proxy"
	"github.com/talaria-go/mcp/cmd/talaria/internal/terminal"
	"github.com/talaria-go/mcp/gateway"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/toolsearch"
)

// gatewayCommand offers all servers of a configuration file as one.
type gatewayCommand struct {
	console  *console.Console
	config   string
	http     string
	path     string
	stdio    bool
	check    bool
	search   bool
	insecure bool
	sessions int
	idle     time.Duration
	inputs   *inputs
}

func (g *gatewayCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use: "gateway --config FILE (--http ADDRESS | --stdio | --check) [--search]", Short: "Offer all servers of a configuration file as one", GroupID: groupMore,
		Long: `Gateway offers the servers of a configuration file, such as .mcp.json, as one server.
Names of tools and prompts begin with the name of their server, as in github_search.
The file is read again when it changes, and on SIGHUP; other servers stay connected.

The member "talaria" of a server chooses and changes its tools:

  "talaria": {"only": ["read_*"], "hide": ["read_secret"], "rules": [
    {"tool": "search", "name": "find", "description": "…", "fixed": {"org": "acme"}}]}

With --search, lists have only tools that search and call the others, for hosts that
cannot search themselves.

Over HTTP, all callers use the credentials of the file, without authentication. So the
address has to be one of this machine, unless --insecure is given.`,
		Example: "  talaria gateway --config .mcp.json --check\n  talaria gateway --config .mcp.json --stdio",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return g.run(cmd.Context(), cmd.Flags()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&g.config, "config", "", "the configuration `file`")
	flags.StringVar(&g.http, "http", "", "serve HTTP on this `address`, such as 127.0.0.1:8080; port 0 takes a free one")
	flags.StringVar(&g.path, "path", "/mcp", "the `path` of the HTTP endpoint")
	flags.BoolVar(&g.stdio, "stdio", false, "serve standard input and output")
	flags.BoolVar(&g.check, "check", false, "connect to all servers, print the tools and what is left out, and end")
	flags.BoolVar(&g.search, "search", false, "list only tools that search and call the others")
	flags.BoolVar(&g.insecure, "insecure", false, "serve an address that others can reach, without authentication")
	flags.IntVar(&g.sessions, "max-sessions", proxy.DefaultSessions, "over HTTP, the `number` of sessions at a time, each with processes or connections of its own")
	flags.DurationVar(&g.idle, "session-idle", proxy.DefaultIdle, "end a session over HTTP, and its processes, that is not used for so `long`")
	return cmd
}

// warmTime is how long --check waits for the servers.
const warmTime = time.Minute

func (g *gatewayCommand) run(ctx context.Context, flags *pflag.FlagSet) error {
	given := 0
	for _, one := range []bool{g.http != "", g.stdio, g.check} {
		if one {
			given++
		}
	}
	switch {
	case g.config == "":
		return usage("give --config FILE").with("talaria gateway -h has examples")
	case given != 1:
		return usage("give one of --http ADDRESS, --stdio and --check").with("talaria gateway -h has examples")
	case g.http != "":
		if err := checkAddress(g.http); err != nil {
			return err
		}
	default:
		if err := unused(flags, "is for --http", "path", "insecure", "max-sessions", "session-idle"); err != nil {
			return err
		}
	}
	if g.sessions < 1 || g.idle <= 0 {
		return usage("--max-sessions and --session-idle must be more than 0")
	}
	ctx, stop := terminal.UntilSignal(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	g.inputs = &inputs{console: g.console}
	file, err := g.read()
	if err != nil {
		return usage("--config: %w", err)
	}
	logger := logsOf(g.console, zerolog.WarnLevel)
	server := mcp.NewServer(mcp.Info{Name: "talaria-gateway", Version: version()}, &mcp.Options{
		Logger: &logger, Limits: mcp.Limits{Sessions: g.sessions}, Timeouts: mcp.Timeouts{Session: g.idle},
	})
	if g.search {
		if err := toolsearch.Add(server, nil); err != nil {
			return err
		}
	}
	gate := gateway.New(server, &gateway.Options{Idle: g.idle, Client: client.Options{Info: client.Info{Name: "talaria-gateway", Version: version()}}})
	defer func() { _ = gate.Close() }() // it returns no error
	applied := gate.Apply(file, nil)
	g.inputs.close()
	if g.check {
		return g.report(ctx, gate, applied)
	}
	if applied != nil {
		g.console.Warnf("%v", visible.Error(applied))
	}
	watching := make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer close(watching)
		g.watch(ctx, gate, &logger)
	}()
	defer func() { cancel(); <-watching }()
	if g.stdio {
		err = server.ServeStdio(ctx)
	} else {
		err = g.serve(ctx, server)
	}
	if ctx.Err() != nil {
		return nil // told to stop
	}
	return err
}

// read reads the file.
func (g *gatewayCommand) read() (*config.File, error) {
	return config.Read(g.config, &config.Options{Input: g.inputs.ask})
}

// serve serves HTTP until ctx ends.
func (g *gatewayCommand) serve(ctx context.Context, server *mcp.Server) error {
	listener, err := net.Listen("tcp", g.http)
	if err != nil {
		return usage("--http: %w", err)
	}
	if !onlyHere(listener) {
		if !g.insecure {
			return errors.Join(usage("others can reach %s, and would use the credentials of the file without authentication", listener.Addr()).
				with("serve 127.0.0.1, or give --insecure"), listener.Close())
		}
		g.console.Warnf("others can reach %s, and there is no authentication", listener.Addr())
	}
	return serveHTTP(ctx, g.console, listener, g.path, server)
}

// report prints what clients get, and fails if something is wrong.
func (g *gatewayCommand) report(ctx context.Context, gate *gateway.Gateway, applied error) error {
	ctx, stop := context.WithTimeout(ctx, warmTime)
	defer stop()
	_ = gate.Warm(ctx) // each status has its error
	wrong := applied != nil
	if wrong {
		g.console.Failf("%v", visible.Error(applied))
	}
	for _, s := range gate.Status() {
		if s.Err != nil {
			wrong = true
			g.console.Failf("%s: %v", s.Name, visible.Error(s.Err))
			continue
		}
		g.console.Printf("%s: %s", s.Name, console.Count(len(s.Tools), "tool"))
		for _, name := range s.Tools {
			g.console.Printf("  %s", name)
		}
		for _, note := range s.LeftOut {
			wrong = true
			g.console.Printf("  left out: %s", note)
		}
	}
	if wrong {
		return &failure{code: exitTool}
	}
	return nil
}

// look is what tells whether a file has changed.
type look struct {
	changed time.Time
	size    int64
}

// watch applies the file again when it has changed: two looks in a row are equal then, as
// it may be written just now. One that cannot be read changes nothing.
func (g *gatewayCommand) watch(ctx context.Context, gate *gateway.Gateway, logger *zerolog.Logger) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	see := func() (l look) {
		if info, err := os.Stat(g.config); err == nil {
			l = look{info.ModTime(), info.Size()}
		}
		return l
	}
	applied, last := see(), look{}
	for {
		now := look{}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			now = see()
			steady := now == last
			if last = now; !steady || now == applied || now == (look{}) {
				continue
			}
		case <-hup:
			now = see()
		}
		applied = now
		file, err := g.read()
		if err == nil {
			err = gate.Apply(file, nil)
		}
		if err != nil {
			logger.Error().Err(visible.Error(err)).Msg("the configuration file has an error")
		}
	}
}
