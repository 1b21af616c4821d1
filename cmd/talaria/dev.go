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

	args     []string // of the program
	tool     *dev.Tool
	listener net.Listener    // nil for standard input and output
	input    *os.File        // standard input
	left     context.Context // ends with standard input
	stay     func() bool     // lets the command outlive left again; nil before the wait for a first program
	end      context.CancelFunc

	offered *proxy.Proxy // nil before the first program runs
	served  chan error   // receives once offered is not served any more
}

func (d *devCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use: "dev [--http ADDRESS] PACKAGE [-- ARGS…]", Short: "Serve a Go program, and each new version of it, while you work on it", GroupID: groupMore,
		Long:    devHelp,
		Example: "  talaria dev .\n  talaria dev ./cmd/weather -- -verbose\n  talaria dev --http 127.0.0.1:8080 .\n  talaria install --host claude-desktop --name weather -- talaria dev /home/you/src/weather",
		Args: func(cmd *cobra.Command, args []string) error {
			if dash := cmd.ArgsLenAtDash(); dash >= 0 {
				args = args[:dash]
			}
			if len(args) > 1 {
				return usage("unexpected argument %q", args[1]).with("arguments of the program stand behind --: talaria dev " + args[0] + " -- ARGS")
			}
			return exactly("PACKAGE")(cmd, args)
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
	return cmd
}

func (d *devCommand) run(ctx context.Context, pkg string) (err error) {
	signalled, stop := terminal.UntilSignal(ctx, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	ctx, d.end = context.WithCancel(signalled)
	defer d.end()
	d.left, d.served = context.Background(), make(chan error, 1)
	if d.http == "" {
		err = d.readInput()
	} else if d.listener, err = listenHere(d.http); err == nil {
		defer d.listener.Close() // again, unless it was never served
	}
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "talaria-dev-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	d.tool = &dev.Tool{Package: pkg, Temp: temp}
	loop := dev.Loop{Scan: dev.Scan, Failed: d.failed,
		Make: func(turn context.Context) (dev.Sources, string, error) {
			d.console.Notef("building %s", pkg)
			return d.tool.Make(turn)
		},
		Start: func(turn context.Context, file string) error { return d.start(turn, ctx, file) },
	}
	err = loop.Run(ctx)
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return failed(exitTool, err)
	case err != nil:
		return usage("%w", err).with("PACKAGE is a directory, such as . or ./cmd/weather, or an import path")
	case d.offered != nil:
		d.end()
		return errors.Join(<-d.served, d.offered.Close())
	case d.stay != nil && d.left.Err() != nil && signalled.Err() == nil: // without a program
		return failed(exitTool, nil)
	}
	return nil
}

// readInput passes standard input on through a pipe, which holds what a host sends before
// there is a program.
func (d *devCommand) readInput() error {
	in, to, err := os.Pipe()
	if err != nil {
		return err
	}
	left, leave := context.WithCancel(context.Background())
	d.input, d.left = in, left
	go func() { // it ends with standard input
		_, _ = io.Copy(to, d.console.In)
		_ = to.Close()
		leave()
	}()
	return nil
}

// failed says that a program could not be built or started. A host that leaves ends the
// wait for the first one.
func (d *devCommand) failed(err error) {
	text := lines(reason(err).Error())
	d.console.Failf("%s", text)
	if d.offered != nil {
		d.console.Notef("the program before continues")
		d.offered.Log(protocol.LevelError, "talaria dev", text)
		return
	}
	d.console.Notef("waiting for a change")
	if d.stay == nil {
		d.stay = context.AfterFunc(d.left, d.end)
	}
}

// startTime is how long a program may take to start and to list its tools.
const startTime = 30 * time.Second

// start puts the program at file in the place of the one before. serving is the context of
// what the first one begins.
func (d *devCommand) start(ctx, serving context.Context, file string) (err error) {
	ctx, stop := context.WithTimeoutCause(ctx, startTime, fmt.Errorf("it does not answer within %s: does it serve standard input and output?", startTime))
	defer stop()
	name := filepath.Base(file)
	if d.offered == nil {
		err = d.first(ctx, serving, file)
	} else {
		before := d.offered.Behind()
		if err = d.offered.Swap(ctx, d.connect(file)); err == nil {
			d.console.Notef("%s is built and serves", name)
		}
		if now := d.offered.Behind(); before.Instructions != now.Instructions || !reflect.DeepEqual(before.Capabilities, now.Capabilities) {
			d.console.Warnf("clients that are connected keep the capabilities and instructions from before: connect again to have the new ones")
		}
	}
	if exit, ended := errors.AsType[*transport.ExitError](err); ended && exit.State != nil {
		err = errors.New(exit.State.String()) // what it wrote was shown
	} else if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s does not start: %w", name, err)
	}
	d.tool.Keep(file)
	return nil
}

// first starts the first program, and begins to serve it.
func (d *devCommand) first(ctx, serving context.Context, file string) error {
	logger := logsOf(d.console, zerolog.WarnLevel)
	offered, err := proxy.New(ctx, proxy.Options{One: d.listener == nil, Once: true, Logs: true, Logger: &logger, Connect: d.connect(file)})
	if err != nil {
		return err
	}
	d.offered = offered
	if d.stay != nil {
		d.stay()
	}
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

const (
	maxEnds  = 3               // of a program by itself, before it waits for a change
	endsTime = 5 * time.Second // within which they happen
)

// connect starts the program at file for each connection, and again when it has ended by
// itself.
func (d *devCommand) connect(file string) proxy.Connect {
	return func(ctx context.Context, o *client.Options) (*client.Client, error) {
		var starts []time.Time // the last ones; each but the first follows an end
		start := func(context.Context) (transport.Conn, error) {
			starts = append(starts, time.Now())
			if n := len(starts) - maxEnds; n > 0 {
				if starts = starts[n:]; starts[maxEnds-1].Sub(starts[0]) < endsTime {
					return nil, fmt.Errorf("the program has ended %d times within %s: the next change starts it again", maxEnds, endsTime)
				}
			}
			return transport.StartCommand(file, d.args, &transport.CommandOptions{Env: os.Environ(), Stderr: d.console.ErrLines(), Grace: 2 * time.Second, MaxMessage: maxMessage})
		}
		o.Info.Name, o.Info.Version = "talaria-dev", version()
		o.Reconnect = &client.Backoff{Base: 100 * time.Millisecond, Max: 500 * time.Millisecond, Attempts: maxEnds}
		return client.Connect(ctx, client.Conn(start), o)
	}
}
