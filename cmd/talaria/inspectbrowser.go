package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/client/config"
	web "github.com/talaria-go/mcp/cmd/talaria/internal/browser"
	"github.com/talaria-go/mcp/cmd/talaria/internal/editor"
	"github.com/talaria-go/mcp/cmd/talaria/internal/inspector"
	"github.com/talaria-go/mcp/cmd/talaria/internal/login"
	"github.com/talaria-go/mcp/cmd/talaria/internal/shellwords"
	"github.com/talaria-go/mcp/cmd/talaria/internal/statedir"
	"github.com/talaria-go/mcp/cmd/talaria/internal/terminal"
)

// inBrowser are the flags of inspect that show a server in the browser.
type inBrowser struct {
	*once
	browser, noOpen bool
	file            string // a recording
	watch           bool   // the target is a Go package, which is built after each change
	origins         []string
}

// add adds the flags for the browser to a command.
func (b *inBrowser) add(cmd *cobra.Command) *cobra.Command {
	flags := cmd.Flags()
	flags.BoolVarP(&b.browser, "browser", "b", false, "see and try the server in a page, which opens in the browser; the link is on standard error")
	flags.BoolVar(&b.noOpen, "no-open", false, "with -b: show the link and open nothing")
	flags.StringArrayVar(&b.origins, "origin", nil, "with -b: let the page be opened at this `origin`, too, such as that of a tunnel; again for more")
	flags.StringVar(&b.file, "file", "", "with -b: show this recording, a `file` of talaria tap or mcptest.Record, and what is appended to it; with TARGET, its calls can be replayed there")
	flags.BoolVar(&b.watch, "watch", false, "with -b: TARGET is a Go package; build it after each change, connect again, and run the last call again")
	wanted, show := cmd.Args, cmd.RunE
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if b.watch && (b.file != "" || b.config != "") {
			return usage("--watch is for a Go package, without --file and --config")
		}
		if b.watch && len(args) > 1 { // of the program
			args = args[:1]
		}
		if b.file != "" && len(args) == 0 || b.browser && b.config != "" && len(args) == 0 {
			return exactly()(cmd, args)
		}
		return wanted(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case b.browser && b.json:
			return usage("-b and --json exclude each other")
		case b.browser:
			return b.run(cmd.Context(), args)
		case b.noOpen || b.watch || b.file != "" || len(b.origins) > 0:
			return usage("--no-open, --file, --watch and --origin are for -b")
		}
		return show(cmd, args)
	}
	return cmd
}

// run serves the page until ctx ends.
func (b *inBrowser) run(ctx context.Context, args []string) error {
	targets := [][]string{args}
	if b.config != "" && b.file == "" {
		var err error
		if targets, err = b.configured(args); err != nil {
			return err
		}
	}
	ctx, stop := terminal.UntilSignal(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	var all []*inspector.Inspector
	if b.file != "" {
		seen := inspector.New(inspector.Options{Target: filepath.Base(b.file), Version: version()})
		defer seen.Close()
		if err := seen.Follow(b.file); err != nil {
			return usage("--file: %w", err)
		}
		if all = append(all, seen); len(args) == 0 {
			return b.serve(ctx, all, b.file)
		}
		b.several = true
	}
	ed := editor.New(b.console, "")
	defer ed.Close()
	options, notices, err := b.prepare(b.console, ed)
	if err != nil {
		return err
	}
	if len(args) > 0 && !b.watch {
		if _, err := b.transport(kindAny, args, notices); err != nil { // which says what is wrong with the flags
			return err
		}
	}
	options.Timeout, options.MaxTimeout = b.timeout, 0
	if b.timeout == 0 {
		options.Timeout = -1
	}
	if b.watch {
		return b.watched(ctx, args, *options)
	}
	for _, target := range targets {
		all = append(all, b.inspector(target, *options))
	}
	defer func() {
		var closing sync.WaitGroup
		for _, seen := range all {
			closing.Go(seen.Close)
		}
		closing.Wait()
	}()
	all[min(1, len(all)-len(targets))].Connect(0) // behind a recording
	return b.serve(ctx, all, append([]string{b.config + b.file}, args...)...)
}

// configured are the targets of the configuration file: the named one, or all
// enabled ones. Inputs of the file are asked for once, here.
func (b *inBrowser) configured(args []string) ([][]string, error) {
	asked := &inputs{console: b.console}
	b.input = asked.ask
	file, err := config.Read(b.config, &config.Options{Input: b.input})
	switch left := asked.close(); {
	case left:
		return nil, terminal.ErrInterrupted
	case err != nil:
		return nil, usage("--config: %w", err)
	case len(args) > 0:
		return [][]string{args}, nil
	case len(b.header)+len(b.headerEnv)+len(b.env) > 0 || b.cwd != "" || b.given():
		return nil, usage("--header, --token, --env and --cwd are for one server; name it, or write them into %s", b.config)
	}
	var targets [][]string
	for _, s := range file.Servers {
		same := func(target []string) bool { return target[0] == s.Name }
		if !s.Disabled && !slices.ContainsFunc(targets, same) {
			targets = append(targets, []string{s.Name})
		}
	}
	if len(targets) == 0 {
		return nil, usage("%s has no server that is not disabled", b.config)
	}
	b.several = len(targets) > 1
	return targets, nil
}

// inspector is one server in the page.
func (b *inBrowser) inspector(target []string, options client.Options) *inspector.Inspector {
	return b.inspectorOf(target[0], target, func() []string { return target }, options)
}

// inspectorOf is one server, whose command is asked for before each connection.
func (b *inBrowser) inspectorOf(name string, target []string, command func() []string, options client.Options) *inspector.Inspector {
	history, unkept := b.history(target)
	return inspector.New(inspector.Options{
		Target: name, Version: version(), Client: options, History: history, Unkept: unkept, Words: b.words(target),
		Transport: func(stderr io.Writer, around func(http.RoundTripper) http.RoundTripper) (client.Transport, error) {
			d := b.dialer
			d.around = around
			t, err := d.transport(kindAny, command(), stderr)
			if command, ok := t.(*client.CommandTransport); ok {
				command.Stderr = stderr // whatever -v says
			}
			return t, err
		},
		Explain: func(t client.Transport, err error) (cause, hint string) {
			if t != nil && !errors.Is(err, client.ErrClosed) {
				err = unreachable(kindAny, t, err)
			}
			_, cause, hint = explain(err)
			return cause, strings.TrimSuffix(hint, verboseHint) // the page shows it
		},
	})
}

// words are the flags and the target of the same server for other commands.
func (b *inBrowser) words(target []string) (words []string) {
	flag := func(name string, values ...string) {
		for _, value := range values {
			if value != "" {
				words = append(words, "--"+name, value)
			}
		}
	}
	flag("config", b.config)
	flag("header", b.header...)
	flag("header-env", b.headerEnv...)
	flag("env", b.env...)
	flag("cwd", b.cwd)
	flag("token", b.token)
	flag("token-file", b.tokenFile)
	if len(target) > 1 { // the other commands take it as one
		list := make([]string, len(target))
		for i, word := range target {
			list[i] = shellwords.Quote(word)
		}
		return append(words, strings.Join(list, " "))
	}
	return append(words, target...)
}

// history is the file that keeps the calls of a server in this folder, or the
// reason why there is none. Its name reveals nothing, as a command line may have
// secrets.
func (b *inBrowser) history(args []string) (file, unkept string) {
	dir, err := statedir.Make("inspector")
	if err != nil {
		return "", "calls are not kept: " + err.Error()
	}
	folder, _ := os.Getwd()
	sum := sha256.Sum256([]byte(strings.Join(append([]string{folder, b.config}, args...), "\x00")))
	return filepath.Join(dir, hex.EncodeToString(sum[:12])+".json"), ""
}

// serve serves the page, on a port that is derived from its targets.
func (b *inBrowser) serve(ctx context.Context, seen []*inspector.Inspector, about ...string) error {
	folder, _ := os.Getwd() // without one the port depends only on the target
	about = append([]string{folder}, about...)
	page, err := web.Listen(web.Options{
		Port: web.PortFor(about...), FramesPort: web.PortFor(append(about, "views")...), Origins: b.origins,
		Page: inspector.Page, Frames: inspector.Frames, API: inspector.API(seen...),
		Tell: func(text string) { fmt.Fprintln(b.console.Err, "talaria:", text) },
	})
	if err != nil {
		return usage("%w", err)
	}
	links := page.Links()
	b.console.Notef("the inspector is at\n  %s\nCtrl-C stops", strings.Join(links, "\n  "))
	if !b.noOpen {
		if err := login.Browse(ctx, links[0]); err != nil {
			b.console.Notef("no browser could be opened (%v): open the link yourself", err)
		}
	}
	return page.Serve(ctx)
}
