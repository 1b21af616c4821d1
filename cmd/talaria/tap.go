package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/login"
	"github.com/talaria-go/mcp/cmd/talaria/internal/record"
	"github.com/talaria-go/mcp/cmd/talaria/internal/terminal"
	"github.com/talaria-go/mcp/internal/tooling/recording"
)

// tapCommand records what goes between a client and its server.
type tapCommand struct {
	console *console.Console
	out     string
	http    string
}

func (t *tapCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use: "tap [-o FILE] (-- COMMAND [ARGS…] | --http ADDRESS URL)", Short: "Record the messages between a client and its server", GroupID: groupMore,
		Long: `Tap stands between a client and a server, and records all messages and what the
server writes to standard error. What passes is not changed, not even by a byte.

Put it before the command in the configuration of a client. For a server behind a
URL, --http listens on an address of this machine, which the client gets in place of
the URL's host; headers are passed on and not recorded.

The file has one JSON object on each line: at, dir (out to the server, in, err, note),
conn and text. What is recorded may have secrets in it: only you can read the file.`,
		Example: "  talaria tap -o calls.jsonl -- npx -y @modelcontextprotocol/server-everything\n  talaria tap --http 127.0.0.1:8090 https://example.com/mcp",
		Args:    between(1, -1, "COMMAND or URL"),
		RunE:    func(cmd *cobra.Command, args []string) error { return t.run(cmd.Context(), args) },
	}
	cmd.Flags().SetInterspersed(false) // those of the command are not ours
	cmd.Flags().StringVarP(&t.out, "out", "o", "", "append to this `file` (default: a new one in your state folder, which is named at the start)")
	cmd.Flags().StringVar(&t.http, "http", "", "listen on this `address`, such as 127.0.0.1:8090, and pass requests on to the URL; port 0 takes a free one")
	return cmd
}

func (t *tapCommand) run(ctx context.Context, target []string) error {
	if err := named("out", t.out, "recording"); err != nil {
		return err
	}
	var to *url.URL
	what := target[0]
	switch {
	case t.http != "":
		if len(target) > 1 {
			return usage("unexpected argument %q after the URL", target[1])
		}
		var err error
		if to, err = url.Parse(target[0]); err != nil || to.Host == "" || to.Scheme != "http" && to.Scheme != "https" {
			return usage("%q is no URL", login.Shown(target[0])).with("--http stands before a server behind an http or https URL")
		}
		what = to.Hostname()
	case isURL(what):
		return usage("%s is a URL: which address shall the client get in its place?", login.Shown(what)).with("talaria tap --http 127.0.0.1:8090 URL")
	default: // before a file is made for it
		if _, err := exec.LookPath(what); err != nil {
			return failed(exitConnect, err).with("usage: talaria tap [-o FILE] -- COMMAND [ARGS…]; COMMAND and each of ARGS are words of their own")
		}
	}
	name := t.out
	if name == "" {
		var err error
		if name, err = record.Fresh(what, time.Now()); err != nil {
			return err
		}
		t.console.Notef("recording to %s", name)
	}
	file, err := record.Open(name)
	if err != nil {
		return usage("--out: %w", err)
	}
	defer file.Close()
	w := recording.NewWriter(file, record.MaxFile)
	if to != nil {
		return t.serve(ctx, w, to)
	}
	signals := make(chan os.Signal, 4)
	if t.console.InTerminal { // which tells the command of Ctrl-C, too
		signal.Notify(make(chan os.Signal, 1), os.Interrupt)
		signal.Notify(signals, syscall.SIGTERM)
	} else {
		signal.Notify(signals, syscall.SIGTERM, os.Interrupt)
	}
	defer signal.Stop(signals)
	code, err := record.Command(ctx, w, target, record.Streams{In: t.console.In, Out: t.console, Err: t.console.Err, Signals: signals})
	if broken := w.Close(); broken != nil {
		t.console.Warnf("the recording broke off: %v", broken)
	} else if err != nil {
		return failed(exitConnect, err)
	}
	if code != 0 {
		return failed(code, nil)
	}
	return nil
}

// serve passes HTTP requests on until ctx ends.
func (t *tapCommand) serve(ctx context.Context, w *recording.Writer, to *url.URL) error {
	ctx, stop := terminal.UntilSignal(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	listener, err := listenHere(t.http)
	if err != nil {
		return err
	}
	at := listener.Addr().String()
	web := &http.Server{Handler: record.Proxy(w, to, at), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- web.Serve(listener) }()
	path := to.EscapedPath()
	t.console.Notef("give your client http://%s%s; Ctrl-C stops", at, path)
	select {
	case err = <-served:
	case <-ctx.Done():
		err = web.Close()
		<-served
	}
	if broken := w.Close(); broken != nil {
		t.console.Warnf("the recording broke off: %v", broken)
	}
	if err != nil {
		return fmt.Errorf("serving %s: %w", at, err)
	}
	return nil
}
