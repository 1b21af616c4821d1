package main

import (
	"context"
	"io"
	"os"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/pflag"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/editor"
	"github.com/talaria-go/mcp/cmd/talaria/internal/form"
	"github.com/talaria-go/mcp/cmd/talaria/internal/shell"
	"github.com/talaria-go/mcp/cmd/talaria/internal/terminal"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// connector connects to servers, and behaves towards them, as its flags say.
type connector struct {
	dialer
	noTask         bool // only of call
	roots, answers []string
	revision       string
	timeout        time.Duration
	sample, save   string
}

const defaultTimeout = 30 * time.Second

func (f *connector) add(flags *pflag.FlagSet) {
	f.dialer.add(flags)
	flags.DurationVar(&f.timeout, "timeout", defaultTimeout, "how long to wait for an answer, or for the next progress; 0 waits for ever")
	flags.StringVar(&f.revision, "revision", "", "speak this `revision` of the protocol alone, such as 2025-06-18")
}

// addAnswers adds the flags that answer a server's questions in place of a person.
func (f *connector) addAnswers(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.roots, "root", nil, "let the server work in this `directory`; again for more")
	flags.StringArrayVar(&f.answers, "answer", nil, "answer the server's forms with this `NAME=value`, without asking; again for more")
	flags.StringVar(&f.sample, "sample", "", "answer in the place of a model: with this `text`, or with ask, by asking you (default: refuse)")
}

// addSave adds the flag for what results have of images and the like.
func (f *connector) addSave(flags *pflag.FlagSet) {
	flags.StringVar(&f.save, "save", "", "save images, sounds and other data in this `directory`, which is made if it is missing (default: a new one for temporary files); a name that a system would run ends with .bin")
}

// link is the way to a server, and the terminal that works with it.
type link struct {
	kind      kind
	terminal  *terminal.Terminal
	transport client.Transport
	options   *client.Options
}

// link prepares the way to a target.
func (f *connector) link(c *console.Console, ed *editor.Editor, k kind, target []string) (*link, error) {
	opts, notices, err := f.prepare(c, ed)
	if err != nil {
		return nil, err
	}
	t, err := f.transport(k, target, notices)
	if err != nil {
		return nil, err
	}
	return &link{k, f.terminal, t, opts}, nil
}

// prepare makes the terminal that works with servers, the options of their clients,
// and what takes their notices.
func (f *connector) prepare(c *console.Console, ed *editor.Editor) (*client.Options, io.Writer, error) {
	if f.timeout < 0 {
		return nil, nil, usage("--timeout %v: must not be less than 0", f.timeout)
	}
	for _, pair := range f.answers {
		if strings.Index(pair, "=") < 1 {
			return nil, nil, usage("--answer %q: want NAME=value", pair)
		}
	}
	f.terminal = terminal.New(terminal.Options{Console: c, Editor: ed, Limit: f.timeout, Answers: form.Answers(f.answers), Sample: f.sample, Verbose: f.verbose})
	notices := console.Lines(func(line string) { f.terminal.Notice("%s", line) }) // above the prompt
	opts, err := f.options(notices)
	if err != nil {
		return nil, nil, err
	}
	f.terminal.Configure(opts)
	return opts, notices, nil
}

func (l *link) connect(ctx context.Context) (*client.Client, error) {
	c, err := terminal.Get(ctx, l.terminal, func(ctx context.Context, _ ...client.CallOption) (*client.Client, error) {
		return client.Connect(ctx, l.transport, l.options)
	})
	if err != nil {
		return nil, unreachable(l.kind, l.transport, err)
	}
	return c, nil
}

// options makes the options of a client that logs to a writer.
func (f *connector) options(log io.Writer) (*client.Options, error) {
	opts := &client.Options{Info: protocol.Implementation{Name: "talaria", Title: "Talaria", Version: version()}, Roots: []protocol.Root{}}
	if f.noTask {
		opts.Tasks = client.TasksOff
	}
	if err := f.pin(opts); err != nil {
		return nil, err
	}
	for _, dir := range f.roots {
		root, err := shell.Root(dir)
		if err != nil {
			return nil, usage("--root: %w", err)
		}
		opts.Roots = append(opts.Roots, root)
	}
	if f.save != "" { // now, not when a tool has run whose result is lost then
		if err := os.MkdirAll(f.save, 0o755); err != nil {
			return nil, usage("--save: %w", err)
		}
	}
	if f.verbose > 0 {
		logger := zerolog.New(zerolog.ConsoleWriter{Out: log, NoColor: true, PartsExclude: []string{zerolog.TimestampFieldName}}).Level(f.level())
		opts.Logger = &logger
	}
	return opts, nil
}

// level is that from which log lines are shown: errors, or with each -v one more.
func (f *connector) level() zerolog.Level {
	return zerolog.ErrorLevel - zerolog.Level(min(f.verbose, 3))
}

// pin makes the client speak only the named revision, if there is one.
func (f *connector) pin(opts *client.Options) error {
	if f.revision == "" {
		return nil
	}
	rev, ok := protocol.ParseRevision(f.revision)
	if !ok {
		return usage("--revision %s: there is no such revision", f.revision).
			with("there are " + strings.Join(wire.RevisionNames(protocol.Revisions()), ", "))
	}
	opts.Revisions = []protocol.Revision{rev}
	return nil
}
