package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/dev"
	"github.com/talaria-go/mcp/cmd/talaria/internal/proxy"
	"github.com/talaria-go/mcp/cmd/talaria/internal/terminal"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

const devHelp = `Dev builds the server in PACKAGE and serves it, and does so again after each change of
its sources. Clients stay connected: put it into the configuration of a host in place of
the server while you work. The server must speak over standard input and output, as with
ServeStdio. Dev does so, too, or serves http://ADDRESS/mcp.

If a build fails, or the new program does not start, the old one continues; the errors go to
standard error and to the log of the clients. Requests in progress at a change have 10 s to
end. What the program has in memory is lost: tasks, values of sessions, and questions of
2026-07-28 without Options.StateKeys. Connected clients keep the capabilities and
instructions that they received when they connected.`

// devCommand serves a program that is worked on.
type devCommand struct {
	console *console.Console
	http    string
	verbose int

	args     []string // of the program
	tool     *dev.Tool
	listener net.Listener
	input    *os.File // standard input
	logger   zerolog.Logger
	end      context.CancelFunc

	served chan error
	hello  atomic.Pointer[client.Server] // of the last program that was connected to

	mu      sync.Mutex
	offered *proxy.Proxy // nil before the first program runs
	failing bool         // there was no program yet that could be started
	gone    bool         // standard input has ended
}

func (d *devCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use: "dev [--http ADDRESS] PACKAGE [-- ARGS…]", Short: "Serve a Go program, and each new version of it, while you work on it", GroupID: groupMore,
		Long:    devHelp,
		Example: "  talaria dev .\n  talaria dev ./cmd/weather -- -verbose\n  talaria dev --http 127.0.0.1:8080 .\n  talaria install --host claude-desktop --name weather -- talaria dev /home/you/src/weather",
		Args: func(cmd *cobra.Command, args []string) error {
			dash := cmd.ArgsLenAtDash()
			if dash < 0 {
				dash = len(args)
			}
			if dash > 1 {
				return usage("unexpected argument %q", args[1]).with("arguments of the program stand behind --: talaria dev " + args[0] + " -- ARGS")
			}
			return exactly("PACKAGE")(cmd, args[:dash])
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			d.args = args[1:]
			return d.run(cmd.Context(), args[0])
		},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return usage("%v", err).with("arguments of the program stand behind --: talaria dev PACKAGE -- ARGS; talaria dev -h lists the flags")
	})
	cmd.Flags().StringVar(&d.http, "http", "", "serve HTTP on this `address` of this machine, such as 127.0.0.1:8080; port 0 takes a free one")
	cmd.Flags().CountVarP(&d.verbose, "verbose", "v", "show information; -vv everything")
	return cmd
}

func (d *devCommand) run(ctx context.Context, pkg string) (err error) {
	ctx, d.end = terminal.UntilSignal(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer d.end()
	d.logger = zerolog.New(zerolog.ConsoleWriter{Out: d.console.ErrLines(), NoColor: true}).Level(zerolog.WarnLevel - zerolog.Level(min(d.verbose, 2))).With().Timestamp().Logger()
	if d.http != "" {
		if err := checkAddress(d.http); err != nil {
			return err
		}
		if d.listener, err = net.Listen("tcp", d.http); err != nil {
			return usage("--http: %w", err)
		}
		defer d.listener.Close() // again, unless it was never served
		if !onlyHere(d.listener) {
			return usage("--http %s: others could reach it; take 127.0.0.1", d.http)
		}
	} else if err := d.readInput(); err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "talaria-dev-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	d.served = make(chan error, 1)
	d.tool = &dev.Tool{Package: pkg, Temp: temp}
	build := func(ctx context.Context) (dev.Sources, string, error) {
		d.console.Notef("building %s", pkg)
		return d.tool.Make(ctx)
	}
	loop := dev.Loop{Make: build, Start: func(turn context.Context, file string) error { return d.start(turn, ctx, file) }, Scan: dev.Scan, Failed: d.failed}
	if err := loop.Run(ctx); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return failed(exitTool, err)
		}
		return usage("%w", err).with("PACKAGE is a directory, such as . or ./cmd/weather, or an import path")
	}
	if d.offered == nil {
		if d.gone && d.failing {
			return failed(exitTool, nil)
		}
		return nil
	}
	d.end()
	return errors.Join(<-d.served, d.offered.Close())
}

// readInput passes standard input on through a pipe, which holds what a host sends before
// there is a program. A host that leaves before that ends the wait for a change.
func (d *devCommand) readInput() error {
	in, to, err := os.Pipe()
	if err != nil {
		return err
	}
	d.input = in
	go func() { // it ends with standard input
		_, _ = io.Copy(to, d.console.In)
		_ = to.Close()
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.gone = true; d.failing {
			d.end()
		}
	}()
	return nil
}

// failed says that a program could not be built or started.
func (d *devCommand) failed(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	text := lines(reason(err).Error())
	if d.offered != nil {
		d.console.Failf("%s", text)
		d.console.Notef("the program before continues")
		d.offered.Log(protocol.LevelError, "talaria dev", text)
		return
	}
	d.console.Failf("%s", text)
	d.console.Notef("waiting for a change")
	if d.failing = true; d.gone {
		d.end()
	}
}

// startTime is how long a program may take to start and to list its tools.
const startTime = 30 * time.Second

// start puts the program at file in the place of the one before. serving is the context of
// what the first one begins.
func (d *devCommand) start(ctx, serving context.Context, file string) error {
	limited, stop := context.WithTimeoutCause(ctx, startTime, fmt.Errorf("it does not answer within %s: does it serve standard input and output?", startTime))
	defer stop()
	name := filepath.Base(file)
	before := d.hello.Load()
	var err error
	if d.offered == nil {
		err = d.first(limited, serving, file)
	} else if err = d.offered.Swap(limited, d.connect(file)); err == nil {
		d.console.Notef("%s is built and serves", name)
	}
	switch exit, hasEnded := errors.AsType[*transport.ExitError](err); {
	case hasEnded && exit.State != nil: // what it wrote was shown
		return fmt.Errorf("%s does not start: %v", name, exit.State)
	case limited.Err() != nil && ctx.Err() == nil:
		return fmt.Errorf("%s does not start: %w", name, context.Cause(limited))
	case err != nil:
		return fmt.Errorf("%s does not start: %w", name, err)
	}
	if now := d.hello.Load(); before != nil && (before.Instructions != now.Instructions || !reflect.DeepEqual(before.Capabilities, now.Capabilities)) {
		d.console.Warnf("clients that are connected keep the capabilities and instructions from before: connect again to have the new ones")
	}
	d.tool.Keep(file)
	return nil
}

// first starts the first program, and begins to serve it.
func (d *devCommand) first(ctx, serving context.Context, file string) error {
	offered, err := proxy.New(ctx, proxy.Options{One: d.listener == nil, Once: true, Logs: true, Logger: &d.logger, Connect: d.connect(file)})
	if err != nil {
		return err
	}
	d.mu.Lock()
	d.offered, d.failing = offered, false
	d.mu.Unlock()
	go func() {
		defer d.end()
		if d.listener != nil {
			d.served <- serveHTTP(serving, d.console, d.listener, "/mcp", offered.Server())
			return
		}
		err := offered.Server().ServeConn(serving, offered.Conn(transport.NewStream(d.input, d.console, &transport.StreamOptions{MaxMessage: maxMessage})))
		if serving.Err() != nil {
			err = nil // told to stop
		}
		d.served <- err
	}()
	return nil
}

// connect starts the program at file for each connection.
func (d *devCommand) connect(file string) proxy.Connect {
	return func(ctx context.Context, o *client.Options) (*client.Client, error) {
		p := &devProgram{file: file, args: d.args, stderr: d.console.ErrLines()}
		o.Info.Name, o.Info.Version = "talaria-dev", version()
		o.Reconnect = &client.Backoff{Base: 100 * time.Millisecond, Max: 500 * time.Millisecond, Attempts: maxEnds}
		c, err := client.Connect(ctx, client.Conn(p.start), o)
		if err == nil {
			hello := c.Server()
			d.hello.Store(&hello)
		}
		return c, err
	}
}

// devProgram is a program that is started again when it has ended by itself, unless that
// happens maxEnds times within endsTime.
type devProgram struct {
	file   string
	args   []string
	stderr io.Writer

	mu     sync.Mutex
	starts []time.Time // the last ones
}

const (
	maxEnds  = 3
	endsTime = 5 * time.Second
)

func (p *devProgram) start(context.Context) (transport.Conn, error) {
	p.mu.Lock()
	p.starts = append(p.starts, time.Now())
	ends := len(p.starts) - 1 // each start but the first follows an end
	var within time.Duration
	if ends >= maxEnds {
		within = p.starts[ends].Sub(p.starts[ends-maxEnds+1])
		p.starts = p.starts[1:]
	}
	p.mu.Unlock()
	if ends >= maxEnds && within < endsTime {
		return nil, fmt.Errorf("the program has ended %d times within %s: the next change starts it again", maxEnds, endsTime)
	}
	conn, err := transport.StartCommand(p.file, p.args, &transport.CommandOptions{Env: os.Environ(), Stderr: p.stderr, Grace: 2 * time.Second, MaxMessage: maxMessage})
	if err != nil {
		return nil, err
	}
	return conn, nil
}
