package main

import (
	"context"
	"net/url"
	"os"
	"os/signal"
	"path"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/editor"
	"github.com/talaria-go/mcp/cmd/talaria/internal/render"
	"github.com/talaria-go/mcp/cmd/talaria/internal/shell"
)

const shellHelp = `

Inside, help lists the commands, Tab completes them, Ctrl-C cancels a call and
Ctrl-D leaves. Commands may also come from a file or a pipe; the exit code is then
that of the last one that failed.`

// shellCommand is a command that opens a shell.
type shellCommand struct {
	console *console.Console
	kind    kind
	connector
}

// addAll adds the flags of a connection, of answers and of results.
func (s *shellCommand) addAll(flags *pflag.FlagSet) {
	s.add(flags)
	s.addAnswers(flags)
	s.addSave(flags)
}

func shellCommands(c *console.Console) []*cobra.Command {
	return []*cobra.Command{
		(&shellCommand{console: c, kind: kindCommand}).stdio(),
		(&shellCommand{console: c, kind: kindHTTP}).web("http://127.0.0.1:8080", "/mcp",
			"Shell on a server that speaks streamable HTTP", "Older servers, which speak HTTP with server-sent events, are recognized."),
		(&shellCommand{console: c, kind: kindSSE}).web("http://127.0.0.1:8000", "/sse",
			"Shell on a server that speaks HTTP with server-sent events", "That is the transport of 2024-11-05."),
		(&shellCommand{console: c, kind: kindSocket}).web("ws://127.0.0.1:8081", "/ws",
			"Shell on a server that speaks WebSocket", ""),
	}
}

func (s *shellCommand) stdio() *cobra.Command {
	cmd := &cobra.Command{
		Use: "stdio [flags] COMMAND [ARGS…]", Short: "Shell on a server that a command starts", GroupID: groupShell,
		Long:    "Stdio starts a server and opens a shell on it. Flags stand before the command; what\nfollows belongs to it." + shellHelp,
		Example: "  talaria stdio npx -y @modelcontextprotocol/server-everything\n  talaria stdio -v --env API_KEY --cwd /srv ./server -x",
		Args:    between(1, -1, "COMMAND"),
		RunE:    func(cmd *cobra.Command, args []string) error { return s.run(cmd.Context(), args) },
	}
	cmd.Flags().SetInterspersed(false)
	s.addAll(cmd.Flags())
	return cmd
}

// web makes the command for a transport over HTTP. The address may be given
// whole, or in parts.
func (s *shellCommand) web(base, endpoint, short, long string) *cobra.Command {
	endpointFlag := endpoint[1:] + "-path"
	var baseURL, basePath, endpointPath string
	cmd := &cobra.Command{
		Use: string(s.kind) + " [URL]", Short: short, GroupID: groupShell, Args: between(0, 1),
		Long: strings.TrimSpace(short + ". Without a URL it is " + base + endpoint + ".\n" + long + shellHelp),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				if cmd.Flags().Changed("base-url") || cmd.Flags().Changed("base-path") || cmd.Flags().Changed(endpointFlag) {
					return usage("there is a URL already; leave --base-url, --base-path and --%s out", endpointFlag)
				}
				return s.run(cmd.Context(), args)
			}
			u, err := url.Parse(baseURL)
			if err != nil || u.Host == "" {
				return usage("--base-url %q is no URL; write one such as %s", baseURL, base)
			}
			u.Path = path.Join("/", u.Path, basePath, endpointPath)
			return s.run(cmd.Context(), []string{u.String()})
		},
	}
	s.addAll(cmd.Flags())
	cmd.Flags().StringVar(&baseURL, "base-url", base, "the server's `URL` without a path")
	cmd.Flags().StringVar(&basePath, "base-path", "/", "the `path` that everything of the server is below")
	cmd.Flags().StringVar(&endpointPath, endpointFlag, endpoint, "the `path` of the endpoint below that")
	return cmd
}

// run opens the shell.
func (s *shellCommand) run(ctx context.Context, target []string) error {
	history := ""
	if s.console.Interactive() {
		var err error
		if history, err = editor.HistoryFile(); err != nil {
			s.console.Warnf("%v", err)
		}
	}
	ed := editor.New(s.console, history)
	defer ed.Close()
	l, err := s.link(s.console, ed, s.kind, target)
	if err != nil {
		return err
	}
	sh := shell.New(shell.Options{Console: s.console, Editor: ed, Terminal: l.terminal, Render: &render.Renderer{Console: s.console, Dir: s.save},
		Connect: l.connect,
		Explain: func(err error) (string, string) {
			_, text, hint := explain(unseen(l.transport, err))
			return text, hint
		},
		Facts: s.facts(l.transport), Authorized: s.authorized,
	})
	l.options.OnNotification, l.options.OnState = sh.Told, sh.State
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	stop := onTerminate(func() {
		_ = ed.Close()
		leave()
		sh.End()
	}, s.console.InTerminal)
	defer stop()
	err = sh.Run(ctx)
	l.terminal.Unfit()
	switch {
	case shell.Wrong(err):
		return &failure{code: exitUsage}
	case shell.Seen(err):
		code, _, _ := explain(err)
		return &failure{code: code}
	}
	return err
}

// facts are what the shell shows of a connection.
func (s *shellCommand) facts(t client.Transport) [][2]string {
	list := [][2]string{{"target", t.String()}}
	for _, h := range s.header {
		name, _, _ := strings.Cut(h, "=") // values may be secrets
		list = append(list, [2]string{"header", name})
	}
	if s.cwd != "" {
		list = append(list, [2]string{"directory", s.cwd})
	}
	return list
}

// onTerminate calls end and ends the process on SIGTERM, also while a line is read, which
// nothing else can interrupt. end gives the terminal back and ends the connection; it has
// endTime, or until the next signal. Where a person types, a Ctrl-C that comes between a
// call and the prompt must not end the process.
func onTerminate(end func(), typed bool) (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGHUP)
	if typed {
		signal.Notify(signals, os.Interrupt)
	}
	var watching sync.WaitGroup
	watching.Go(func() {
		for sig := range signals {
			if number, ok := sig.(syscall.Signal); ok && sig != os.Interrupt {
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					end()
				}()
				select {
				case <-ended:
				case <-signals:
				case <-time.After(endTime):
				}
				os.Exit(128 + int(number))
			}
		}
	})
	return func() {
		signal.Stop(signals)
		close(signals)
		watching.Wait()
	}
}

// endTime is more than a client takes to close, whatever its server does.
const endTime = 20 * time.Second
