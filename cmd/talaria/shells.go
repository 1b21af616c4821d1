package main

import (
	"context"
	"net/url"
	"os"
	"os/signal"
	"path"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/editor"
	"github.com/talaria-go/mcp/cmd/talaria/internal/render"
	"github.com/talaria-go/mcp/cmd/talaria/internal/shell"
)

const shellHelp = `

Inside, help lists the commands, Tab completes them, Ctrl-C cancels a call and
Ctrl-D leaves. Commands may also come from a file or a pipe; the exit code is then
that of the last one that failed.`

func (a *app) shellCommands() []*cobra.Command {
	return []*cobra.Command{
		a.stdioCommand(),
		a.webCommand(kindHTTP, "http", "http://127.0.0.1:8080", "/mcp", "mcp-path",
			"Shell on a server that speaks streamable HTTP", "Older servers, which speak HTTP with server-sent events, are recognized."),
		a.webCommand(kindSSE, "sse", "http://127.0.0.1:8000", "/sse", "sse-path",
			"Shell on a server that speaks HTTP with server-sent events", "That is the transport of 2024-11-05."),
		a.webCommand(kindSocket, "ws", "ws://127.0.0.1:8081", "/ws", "ws-path",
			"Shell on a server that speaks WebSocket", ""),
	}
}

func (a *app) stdioCommand() *cobra.Command {
	var f connectFlags
	cmd := &cobra.Command{
		Use: "stdio [flags] COMMAND [ARGS…]", Short: "Shell on a server that a command starts", GroupID: groupShell,
		Long:    "Stdio starts a server and opens a shell on it. Flags stand before the command; what\nfollows belongs to it." + shellHelp,
		Example: "  talaria stdio npx -y @modelcontextprotocol/server-everything\n  talaria stdio -v --env API_KEY --cwd /srv ./server -x",
		Args:    between(1, -1, "COMMAND"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.shell(cmd.Context(), &f, kindCommand, args) },
	}
	cmd.Flags().SetInterspersed(false)
	f.add(cmd.Flags())
	return cmd
}

// webCommand makes the command for a transport over HTTP. The address may be
// given whole, or in parts.
func (a *app) webCommand(k kind, name, base, endpoint, endpointFlag, short, long string) *cobra.Command {
	var f connectFlags
	var baseURL, basePath, endpointPath string
	cmd := &cobra.Command{
		Use: name + " [URL]", Short: short, GroupID: groupShell, Args: between(0, 1),
		Long: strings.TrimSpace(short + ". Without a URL it is " + base + endpoint + ".\n" + long + shellHelp),
		RunE: func(cmd *cobra.Command, args []string) error {
			target := ""
			if len(args) > 0 {
				target = args[0]
				if cmd.Flags().Changed("base-url") || cmd.Flags().Changed("base-path") || cmd.Flags().Changed(endpointFlag) {
					return usage("there is a URL already; leave --base-url, --base-path and --%s out", endpointFlag)
				}
			} else {
				u, err := url.Parse(baseURL)
				if err != nil || u.Host == "" {
					return usage("--base-url %q is no URL; write one such as %s", baseURL, base)
				}
				u.Path = path.Join("/", u.Path, basePath, endpointPath)
				target = u.String()
			}
			return a.shell(cmd.Context(), &f, k, []string{target})
		},
	}
	f.add(cmd.Flags())
	cmd.Flags().StringVar(&baseURL, "base-url", base, "the server's `URL` without a path")
	cmd.Flags().StringVar(&basePath, "base-path", "/", "the `path` that everything of the server is below")
	cmd.Flags().StringVar(&endpointPath, endpointFlag, endpoint, "the `path` of the endpoint below that")
	return cmd
}

// shell runs the interactive shell.
func (a *app) shell(ctx context.Context, f *connectFlags, k kind, target []string) error {
	history := ""
	if a.console.Interactive() {
		var err error
		if history, err = editor.HistoryFile(); err != nil {
			a.console.Warnf("%v", err)
		}
	}
	ed := editor.New(a.console, history)
	defer ed.Close()
	d, err := a.terminal(f, ed)
	if err != nil {
		return err
	}
	opts, err := f.options(d)
	if err != nil {
		return err
	}
	f.terminal = d
	t, err := f.transport(k, target, notices(d))
	if err != nil {
		return err
	}
	s := &shell.Shell{Console: a.console, Editor: ed, Terminal: d, Render: &render.Renderer{Console: a.console, Dir: f.save},
		Connect: func(ctx context.Context) (*client.Client, error) { return connect(ctx, d, t, opts) },
		Explain: func(err error) (string, string) {
			_, text, hint := explain(err)
			return text, hint
		},
		Facts: facts(f, t), Authorized: f.authorized,
	}
	opts.OnNotification, opts.OnState = s.Told, s.State
	stop := onTerminate(func() { _ = ed.Close() })
	defer stop()
	err = s.Run(ctx)
	a.unfit(d)
	switch {
	case shell.Wrong(err):
		return &failure{code: exitUsage}
	case shell.ToolFailed(err):
		return &failure{code: exitTool}
	case shell.Seen(err):
		code, _, _ := explain(err)
		return &failure{code: code}
	}
	return err
}

// facts are what the shell shows of a connection.
func facts(f *connectFlags, t client.Transport) [][2]string {
	list := [][2]string{{"target", t.String()}}
	for _, h := range f.header {
		name, _, _ := strings.Cut(h, "=") // values may be secrets
		list = append(list, [2]string{"header", name})
	}
	if f.cwd != "" {
		list = append(list, [2]string{"directory", f.cwd})
	}
	return list
}

// onTerminate gives the terminal back when the process is told to end while a
// line is read, which nothing else can interrupt. A Ctrl-C that comes between a
// call and the prompt must not end the process, either.
func onTerminate(restore func()) (stop func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGHUP, os.Interrupt)
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case sig := <-signals:
				if sig == os.Interrupt {
					continue
				}
				restore()
				code := 128
				if number, ok := sig.(syscall.Signal); ok {
					code += int(number)
				}
				os.Exit(code)
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(done)
		<-ended
	}
}
