package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/pflag"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/client/config"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/editor"
	"github.com/talaria-go/mcp/cmd/talaria/internal/form"
	"github.com/talaria-go/mcp/cmd/talaria/internal/login"
	"github.com/talaria-go/mcp/cmd/talaria/internal/render"
	"github.com/talaria-go/mcp/cmd/talaria/internal/shellwords"
	"github.com/talaria-go/mcp/cmd/talaria/internal/terminal"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// connectFlags say how to connect to a server and how to behave towards it.
type connectFlags struct {
	noTask            bool // of call alone
	header, headerEnv []string
	env, roots        []string
	cwd, revision     string
	config            string
	timeout           time.Duration
	answers           []string
	sample            string
	save              string
	verbose           int
	access
}

const (
	defaultTimeout = 30 * time.Second
	maxMessage     = 64 << 20 // bytes of a message; images are large
)

func (f *connectFlags) add(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&f.header, "header", "H", nil, "send an HTTP header, `NAME=value`; again for more")
	flags.StringArrayVar(&f.headerEnv, "header-env", nil, "send an HTTP header with the value of an environment variable, `NAME=VARIABLE`; again for more")
	f.access.add(flags)
	flags.StringArrayVar(&f.env, "env", nil, "set an environment variable of the command, `NAME=value`; NAME alone passes it on")
	flags.StringVar(&f.cwd, "cwd", "", "start the command in this `directory`")
	flags.StringVar(&f.config, "config", "", "take the server of that name from this `file` of a desktop client")
	flags.DurationVar(&f.timeout, "timeout", defaultTimeout, "how long to wait for an answer, or for the next progress; 0 waits for ever")
	flags.StringVar(&f.revision, "revision", "", "speak this `revision` of the protocol alone, such as 2025-06-18")
	flags.StringArrayVar(&f.roots, "root", nil, "let the server work in this `directory`; again for more")
	flags.StringArrayVar(&f.answers, "answer", nil, "answer the server's forms with this `NAME=value`, without asking; again for more")
	flags.StringVar(&f.sample, "sample", "", "answer in the place of a model: with this `text`, or with ask, by asking you (default: refuse)")
	flags.StringVar(&f.save, "save", "", "save images, sounds and other data in this `directory`, which is made if it is missing (default: the current one); a name that a system would run ends with .bin")
	flags.CountVarP(&f.verbose, "verbose", "v", "show warnings; -vv information, -vvv everything")
}

// kind says how to reach a server; "" finds out from the target.
type kind string

const (
	kindAny     kind = ""
	kindCommand kind = "stdio"
	kindHTTP    kind = "http"
	kindSSE     kind = "sse"
	kindSocket  kind = "ws"
)

// transport makes the transport to a target: a URL, or a command as words.
func (f *connectFlags) transport(k kind, target []string, stderr io.Writer) (client.Transport, error) {
	if f.config != "" {
		return f.configured(target, stderr)
	}
	text := target[0]
	if k == kindCommand || k == kindAny && !isURL(text) {
		return f.command(k, target, stderr)
	}
	if len(f.env) > 0 || f.cwd != "" {
		return nil, usage("--env and --cwd are for commands, and %s is a URL", login.Shown(text))
	}
	if address, ok := strings.CutPrefix(text, "unix:"); ok {
		return client.Dial("unix", strings.TrimPrefix(address, "//")), nil
	}
	rest, isSSE := strings.CutPrefix(text, "sse+")
	u, err := url.Parse(rest)
	if err != nil || u.Host == "" {
		return nil, usage("%q is no URL", login.Shown(text)).with("write a URL such as http://127.0.0.1:8080/mcp")
	}
	if u.Scheme == "tcp" {
		return client.Dial("tcp", u.Host), nil
	}
	o, err := f.httpOptions(rest)
	if err != nil {
		return nil, err
	}
	web, socket := u.Scheme == "http" || u.Scheme == "https", u.Scheme == "ws" || u.Scheme == "wss"
	switch {
	case k == kindSSE && web, isSSE && web && k == kindAny:
		return client.SSE(rest, o), nil
	case k == kindSocket && (web || socket), socket && k == kindAny:
		return client.WebSocket(rest, o), nil
	case k == kindHTTP && web, web && k == kindAny:
		return client.HTTP(rest, o), nil
	}
	return nil, usage("%s is no URL for this: the scheme is %q", login.Shown(text), u.Scheme).with("schemes: http, https, ws, wss, sse+http, sse+https, tcp, unix")
}

func (f *connectFlags) httpOptions(address string) (*client.HTTPOptions, error) {
	headers, err := pairs("--header", f.header)
	if err != nil {
		return nil, err
	}
	variables, err := pairs("--header-env", f.headerEnv)
	if err != nil {
		return nil, err
	}
	for name, variable := range variables {
		value, ok := os.LookupEnv(variable)
		if !ok {
			return nil, usage("--header-env %s=%s: there is no such variable", name, variable)
		}
		headers[name] = value
	}
	o := &client.HTTPOptions{Header: http.Header{}, MaxMessage: maxMessage}
	for name, value := range headers {
		o.Header.Set(name, value)
	}
	o.Client, err = f.authorize(address, o.Header)
	return o, err
}

// command makes the transport to a child process. One word is split as a shell
// does; several are taken as they are.
func (f *connectFlags) command(k kind, target []string, stderr io.Writer) (client.Transport, error) {
	if len(target) == 1 {
		list, err := shellwords.Split(target[0])
		if err != nil || len(list) == 0 {
			return nil, usage("%q is no command: %v", target[0], errors.Join(err, errEmpty(list)))
		}
		if _, err := exec.LookPath(target[0]); err != nil || !strings.ContainsAny(target[0], " \t") {
			target = shellwords.Texts(list)
		}
	}
	if len(f.header)+len(f.headerEnv) > 0 || f.given() {
		return nil, usage("--header and --token are for URLs, and %s is a command", target[0])
	}
	if k == kindCommand && isURL(target[0]) {
		return nil, usage("%s is a URL, not a command", login.Shown(target[0])).with("talaria http, sse or ws connect to URLs")
	}
	return f.run(target, stderr)
}

// run makes the transport to a program and its arguments.
func (f *connectFlags) run(target []string, stderr io.Writer) (client.Transport, error) {
	t := client.Command(target[0], target[1:]...)
	for _, text := range f.env {
		if !strings.Contains(text, "=") {
			value, ok := os.LookupEnv(text)
			if !ok {
				return nil, usage("--env %s: there is no such variable here; write --env %s=value", text, text)
			}
			text += "=" + value
		}
		t.Env = append(t.Env, text)
	}
	t.Dir = f.cwd
	t.Grace = 2 * time.Second // scripts wait for it
	t.MaxMessage = maxMessage
	if f.verbose > 0 {
		t.Stderr = stderr
	}
	return t, nil
}

func errEmpty(list []shellwords.Word) error {
	if len(list) == 0 {
		return errors.New("it is empty")
	}
	return nil
}

// configured takes the server from a configuration file.
func (f *connectFlags) configured(target []string, stderr io.Writer) (client.Transport, error) {
	config, err := config.Read(f.config, nil)
	if err != nil {
		return nil, usage("--config: %w", err)
	}
	server, ok := config.Server(target[0])
	if !ok {
		var names []string
		for _, s := range config.Servers {
			names = append(names, s.Name)
		}
		return nil, usage("%s has no server %q", f.config, target[0]).with("it has: " + strings.Join(names, ", "))
	}
	if len(target) > 1 {
		return nil, usage("unexpected argument %q after the server's name", target[1])
	}
	if server.Err != nil {
		return nil, usage("%w", server.Err)
	}
	plain := *f
	plain.config = ""
	for _, name := range sortedKeys(server.Headers) {
		plain.header = append([]string{name + "=" + server.Headers[name]}, plain.header...)
	}
	if server.URL != "" {
		t, err := plain.transport(kind(server.Type), []string{server.URL}, stderr)
		f.authorized = plain.authorized
		return t, err
	}
	for _, name := range sortedKeys(server.Env) {
		plain.env = append([]string{name + "=" + server.Env[name]}, plain.env...)
	}
	if plain.cwd == "" {
		plain.cwd = server.Dir
	}
	return plain.run(append([]string{server.Command}, server.Args...), stderr)
}

// session is a connection with a person or a script behind it.
type session struct {
	*client.Client
	app      *app
	terminal *terminal.Terminal
	editor   *editor.Editor
	render   *render.Renderer
	call     []client.CallOption // for requests that may take a while
	// authorized says that requests have a token, which may decide about what is
	// listed.
	authorized bool
}

// terminal makes the place where a person, or a script, works with a server.
func (a *app) terminal(f *connectFlags, ed *editor.Editor) (*terminal.Terminal, error) {
	if f.timeout < 0 {
		return nil, usage("--timeout %v: must not be less than 0", f.timeout)
	}
	return terminal.New(terminal.Options{Console: a.console, Editor: ed, Limit: f.timeout, Answers: form.Answers(f.answers), Sample: f.sample, Verbose: f.verbose}), nil
}

// unfit warns of answers that fitted nothing that was asked.
func (a *app) unfit(d *terminal.Terminal) {
	for _, name := range d.Unfit() {
		a.console.Warnf("--answer %s: no form that the server asked has such a field", name)
	}
}

// open connects to a target. The caller closes the session.
func (a *app) open(ctx context.Context, f *connectFlags, target []string, ed *editor.Editor) (*session, error) {
	d, err := a.terminal(f, ed)
	if err != nil {
		return nil, err
	}
	opts, err := f.options(d)
	if err != nil {
		return nil, err
	}
	opts.NoReconnect, f.terminal = true, d
	t, err := f.transport(kindAny, target, notices(d))
	if err != nil {
		return nil, err
	}
	c, err := connect(ctx, d, t, opts)
	if err != nil {
		return nil, err
	}
	return &session{Client: c, app: a, terminal: d, editor: ed, render: &render.Renderer{Console: a.console, Dir: f.save}, authorized: f.authorized}, nil
}

func connect(ctx context.Context, d *terminal.Terminal, t client.Transport, opts *client.Options) (c *client.Client, err error) {
	err = d.Run(ctx, func(ctx context.Context, _ ...client.CallOption) (err error) {
		c, err = client.Connect(ctx, t, opts)
		return err
	})
	if err != nil {
		return nil, unreachable(t, err)
	}
	return c, nil
}

// options makes the options of a client.
func (f *connectFlags) options(d *terminal.Terminal) (*client.Options, error) {
	opts := &client.Options{Info: protocol.Implementation{Name: "talaria", Title: "Talaria", Version: version()}, Roots: []protocol.Root{}}
	if f.noTask {
		opts.Tasks = client.TasksOff
	}
	if err := f.pin(opts); err != nil {
		return nil, err
	}
	for _, dir := range f.roots {
		root, err := rootOf(dir)
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
	levels := []zerolog.Level{zerolog.ErrorLevel, zerolog.WarnLevel, zerolog.InfoLevel, zerolog.DebugLevel}
	if f.verbose > 0 {
		logger := zerolog.New(zerolog.ConsoleWriter{Out: notices(d), NoColor: true, PartsExclude: []string{zerolog.TimestampFieldName}}).
			Level(levels[min(f.verbose, 3)])
		opts.Logger = &logger
	}
	d.Configure(opts)
	return opts, nil
}

// pin makes the client speak one revision alone, if one was named.
func (f *connectFlags) pin(opts *client.Options) error {
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

// rootOf makes a root of a directory or a file URI.
func rootOf(dir string) (protocol.Root, error) {
	if strings.HasPrefix(dir, "file://") {
		return protocol.Root{URI: dir, Name: filepath.Base(dir)}, nil
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return protocol.Root{}, err
	}
	if info, err := os.Stat(abs); err != nil || !info.IsDir() {
		return protocol.Root{}, fmt.Errorf("%s is not a directory", dir)
	}
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(abs)}
	return protocol.Root{URI: u.String(), Name: filepath.Base(abs)}, nil
}

// notices shows lines that come at any time, above the prompt.
func notices(d *terminal.Terminal) io.Writer {
	return console.Lines(func(line string) { d.Notice("%s", line) })
}

func isCommand(t client.Transport) bool {
	_, ok := t.(*client.CommandTransport)
	return ok
}

// unreachable is the error of a connection that did not come about.
func unreachable(t client.Transport, err error) error {
	if errors.Is(err, terminal.ErrInterrupted) {
		return err
	}
	if f := refused(err); f != nil {
		return f
	}
	f := failed(exitConnect, fmt.Errorf("cannot connect to %s: %w", t, reason(err)))
	var dns *net.DNSError
	var plain tls.RecordHeaderError
	var silent *client.SilentError
	status := client.StatusCode(err)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		f.hint = "nothing listens there: is the server running, and is the port right?"
	case errors.Is(err, fs.ErrNotExist) && strings.HasPrefix(t.String(), "unix:"):
		f.hint = "there is no such socket: is the server running, and is the path right?"
	case errors.As(err, &dns):
		f.hint = "check the name of the host"
	case status == http.StatusForbidden:
		f.code, f.hint = exitAuth, "the server refuses whoever asks so: check the host in the URL, and who may use it"
	case status == http.StatusUnauthorized:
		f.code, f.hint = exitAuth, "the server wants to know who you are: --header \"Authorization=…\", or what else it takes"
	case errors.As(err, &plain):
		f.hint = "it does not speak TLS there: try http:// (or ws://) instead"
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed, status == http.StatusNotImplemented,
		status/100 == 2: // which is a page for people
		f.hint = "check the path of the URL; many servers have /mcp"
	case errors.As(err, &silent):
		f.err = fmt.Errorf("%w\n%s", f.err, said(silent))
		f.hint = "--timeout sets how long to wait" + keptBack(silent.Withheld)
	case isCommand(t) && missed(err) != "":
		f.hint = "a command does not inherit " + missed(err) + ": --env " + missed(err) + " passes it on"
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		f.hint = "a TARGET is a URL that begins with http:// or the like, or a command in quotes, such as \"npx -y some-server\""
	case errors.Is(err, client.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		f.hint = "it does not answer; --timeout sets how long to wait, -v shows what it writes to standard error"
	case errors.Is(err, client.ErrUnsupported):
		f.hint = "leave --revision out to speak what the server speaks"
	}
	return f
}

// said tells what a command that does not answer has written.
func said(silent *client.SilentError) string {
	if silent.Stderr == "" {
		return "it has written nothing to standard error"
	}
	lines := strings.Split(silent.Stderr, "\n")
	return "its last lines on standard error:\n  " + strings.Join(lines[max(0, len(lines)-lastLines):], "\n  ")
}

const (
	lastLines = 10 // of standard error
	mostNames = 12 // of variables
)

// keptBack names variables that a command did not get.
func keptBack(names []string) string {
	if len(names) == 0 {
		return ""
	}
	text := strings.Join(names[:min(len(names), mostNames)], ", ")
	if len(names) > mostNames {
		text += fmt.Sprintf(" and %d more", len(names)-mostNames)
	}
	return "; set here, and not passed to the command (--env NAME does): " + text
}

// missed returns a variable that is set here, that the command did not get, and
// that its last words name; "" if there is none.
func missed(err error) string {
	exit, ok := errors.AsType[*transport.ExitError](err)
	if !ok {
		return ""
	}
	for _, name := range exit.Withheld {
		if strings.Contains(exit.Stderr, name) {
			return name
		}
	}
	return ""
}
