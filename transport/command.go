package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/internal/visible"
)

// defaultGrace is how long a child process may take to end, first after its
// standard input was closed and once more after SIGTERM, if options name no
// time.
const defaultGrace = 5 * time.Second

// lastData is how long what a process has left in its pipes may take to be
// read, and reapTime how long the system may take to end a killed process.
const (
	lastData = time.Second     // for what a process that is gone has left in its pipes
	reapTime = 5 * time.Second // for the system to end a killed process
)

// CommandOptions are the options of a child process; nil has the defaults.
type CommandOptions struct {
	// Env are variables, each "NAME=value", in addition to, and in place of, those
	// that every child gets of this process's environment, on Windows the
	// corresponding ones:
	//
	//   - HOME, LOGNAME, PATH, SHELL, TERM, USER, TMPDIR and XDG_*;
	//   - HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY, in lower case too;
	//   - SSL_CERT_FILE, SSL_CERT_DIR, NODE_EXTRA_CA_CERTS, REQUESTS_CA_BUNDLE and
	//     CURL_CA_BUNDLE;
	//   - npm_config_*, in upper case too; LANG, LANGUAGE, LC_* and TZ.
	//
	// The rest is kept from it, because secrets may be there. So is one of these
	// whose name speaks of a secret (npm_config__authToken), or whose value is a URL
	// with a user or a password, such as that of a proxy: put it here, if the
	// child may know it.
	Env []string
	// Dir is the working directory; "" means that of this process.
	Dir string
	// Stderr gets a copy of what the process writes to standard error, which
	// otherwise shows only in errors. Each Write has whole lines, except for lines
	// of more than 64 KiB and an end without a newline, so that several processes
	// can share a writer. One goroutine at a time writes to it. nil means nowhere.
	Stderr io.Writer
	// Grace is how long Close waits for the process to end, first after closing
	// its standard input and once more after SIGTERM. 0 means 5 s, less
	// than 0 not at all.
	Grace time.Duration
	// MaxMessage is the longest message in bytes; 0 means 4 MiB.
	MaxMessage int
}

// Command is a Conn to a child process over its standard input and output
// (basic/transports/stdio of 2026-07-28 and of every earlier revision). When
// the process ends, Read and Write return an *ExitError.
//
// The process runs until it ends by itself, until its input is closed and it
// follows that, or until Shutdown ends it; exited is closed then. One goroutine
// waits for that. Closing the pipes is left to Shutdown, which does so in the
// order that the specification gives.
type Command struct {
	name   string
	cmd    *exec.Cmd
	stream Conn
	stdin  *os.File
	input  *os.File // the end of the process, until it has written a message
	sent   counting // to stdin
	stdout *os.File
	stderr *tail
	grace  time.Duration
	// withheld are variables of this process that the child may miss.
	withheld []string

	exited   chan struct{} // closed when the process is gone and reaped
	unread   bool          // then: it has read nothing
	closed   atomic.Bool
	closing  sync.Once
	answered sync.Once
	ended    chan struct{} // closed when Close is done
	err      error         // of Close
}

var _ Conn = (*Command)(nil)

// ExitError is the error of a Command whose process has ended or has closed its
// standard output. It is an ErrPeerGone, by errors.Is.
type ExitError struct {
	Name   string           // of the command
	State  *os.ProcessState // nil if the process still runs
	Stderr string           // the end of what it wrote to standard error
	// Withheld are variables that are set here and that it did not get; see
	// Command.Withheld.
	Withheld []string
	// Unread means that it ended before it had read anything of its input: no
	// message was the reason. It is known only on Unix.
	Unread bool
}

// Error names the command, how it ended and what it said last.
func (e *ExitError) Error() string {
	text := fmt.Sprintf("transport: command %q closed its standard output", e.Name)
	if e.State != nil {
		text = fmt.Sprintf("transport: command %q ended: %s", e.Name, e.State)
	}
	if e.Stderr == "" {
		return text + "; it wrote nothing to standard error"
	}
	return text + "; it wrote to standard error:\n" + visible.Text(e.Stderr, tailSize)
}

// Unwrap returns ErrPeerGone.
func (*ExitError) Unwrap() error { return ErrPeerGone }

// StartCommand starts a program that speaks over its standard input and output.
// A name without a path separator is looked up in PATH.
//
// On Unix the process leads a group of its own, so that an interrupt from the
// terminal leaves it to Close, and Close reaches the processes that it started.
func StartCommand(name string, args []string, opts *CommandOptions) (*Command, error) {
	var o CommandOptions
	if opts != nil {
		o = *opts
	}
	if o.Grace == 0 {
		o.Grace = defaultGrace
	}
	env, withheld := commandEnv(o.Env)
	path, err := findCommand(name, o.Dir, env)
	if err != nil {
		return nil, err
	}
	c := &Command{name: name, grace: o.Grace, withheld: withheld, stderr: &tail{to: o.Stderr}, exited: make(chan struct{}), ended: make(chan struct{})}
	c.cmd = exec.Command(path, args...)
	c.cmd.Env, c.cmd.Dir, c.cmd.Stderr = env, o.Dir, c.stderr
	c.cmd.WaitDelay = lastData // a grandchild may hold standard error open
	ownGroup(c.cmd)
	if err := c.start(); err != nil {
		return nil, fmt.Errorf("transport: cannot start command %q: %w", name, err)
	}
	c.sent.to = c.stdin
	c.stream = NewStream(onlyReader{c.stdout}, &c.sent, &StreamOptions{MaxMessage: o.MaxMessage})
	go c.wait()
	return c, nil
}

// onlyReader and counting hide that the pipes can be closed: Shutdown closes
// them in order, and the Stream must not. counting counts what is written.
type (
	onlyReader struct{ io.Reader }
	counting   struct {
		to      io.Writer
		writing sync.Mutex // held during a Write
		bytes   int
	}
)

// Write implements io.Writer.
func (c *counting) Write(p []byte) (n int, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	n, err = c.to.Write(p)
	c.bytes += n
	return n, err
}

// findCommand returns the path of a program. A name without a separator is
// looked up in the PATH of this process, then in that of the child.
func findCommand(name, dir string, env []string) (string, error) {
	if dir != "" {
		if info, err := os.Stat(dir); err != nil {
			return "", fmt.Errorf("transport: working directory of command %q: %w", name, err)
		} else if !info.IsDir() {
			return "", fmt.Errorf("transport: working directory of command %q: %s is not a directory", name, dir)
		}
	}
	if name == "" {
		return "", errors.New("transport: the command has no name")
	}
	if filepath.Base(name) != name && !filepath.IsAbs(name) {
		full, err := filepath.Abs(filepath.Join(dir, name))
		if err != nil {
			return "", fmt.Errorf("transport: command %q: %w", name, err)
		}
		name = full
	}
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	if filepath.Base(name) != name {
		return "", fmt.Errorf("transport: command %q cannot be run: %w", name, err)
	}
	for _, in := range filepath.SplitList(envValue(env, "PATH")) { // which may not be this process's
		if path, err := exec.LookPath(filepath.Join(in, name)); err == nil && filepath.IsAbs(path) {
			return path, nil
		}
	}
	return "", fmt.Errorf("transport: command %q not found in PATH; install it, or give its full path: %w", name, err)
}

// start makes the pipes and the process. The pipes are not those of exec.Cmd,
// because its Wait would close them while they are being read.
func (c *Command) start() (err error) {
	var theirOut *os.File
	if c.input, c.stdin, err = os.Pipe(); err != nil {
		return err
	}
	if c.stdout, theirOut, err = os.Pipe(); err != nil {
		_, _ = c.input.Close(), c.stdin.Close()
		return err
	}
	defer theirOut.Close()
	c.cmd.Stdin, c.cmd.Stdout = c.input, theirOut
	if err = c.cmd.Start(); err != nil {
		_, _, _ = c.input.Close(), c.stdin.Close(), c.stdout.Close()
	}
	return err
}

// wait reaps the process as soon as it ends, and then signals what is left of
// its group. It is the goroutine of a Command.
func (c *Command) wait() {
	_ = c.cmd.Wait() // ProcessState says how it ended
	c.stderr.flush()
	c.unread = c.hasReadNothing()
	_ = c.input.Close()
	signalGroup(c.cmd.Process, false) // its descendants; later its number may be reused
	// A grandchild may hold standard output open: only the data in the pipe is read.
	if err := c.stdout.SetReadDeadline(time.Now().Add(lastData)); err != nil {
		time.AfterFunc(lastData, func() { _ = c.stdout.Close() })
	}
	close(c.exited)
}

// hasReadNothing reports whether all that was written to the process, which has ended,
// is still there. It is false for a process that has written a message, and on a system
// that cannot say.
func (c *Command) hasReadNothing() bool {
	left := 0
	for {
		last := c.sent.writing.TryLock()
		n := unread(c.input) // which makes room for a Write that waits for it
		left += n
		switch {
		case last:
			defer c.sent.writing.Unlock()
			return n >= 0 && left == c.sent.bytes
		case n < 0:
			return false
		}
		runtime.Gosched()
	}
}

// Read implements Conn.
func (c *Command) Read() ([]byte, error) {
	message, err := c.stream.Read()
	if c.closed.Load() {
		return nil, ErrClosed
	}
	if _, long := errors.AsType[*TooLongError](err); err == nil || long {
		c.answered.Do(func() { _ = c.input.Close() }) // now a write fails that it does not read
		return message, err
	}
	return nil, c.gone()
}

// Write implements Conn.
func (c *Command) Write(message []byte) error { return c.written(c.stream.Write(message)) }

// Flush implements Conn.
func (c *Command) Flush() error { return c.written(c.stream.Flush()) }

// written returns the error of a write as this Conn reports it.
func (c *Command) written(err error) error {
	switch {
	case c.closed.Load():
		return ErrClosed
	case err != nil:
		return c.gone()
	}
	return nil
}

// gone returns the error of a process that has ended or is about to. It waits
// for the end for a limited time, so that the error can say how the process
// ended.
func (c *Command) gone() error {
	timer := time.NewTimer(lastData)
	defer timer.Stop()
	select {
	case <-c.exited:
	case <-timer.C:
	}
	if c.closed.Load() {
		return ErrClosed
	}
	state := c.State()
	return &ExitError{Name: c.name, State: state, Stderr: c.stderr.String(), Withheld: c.Withheld(), Unread: state != nil && c.unread}
}

// State returns how the process ended, nil while it runs.
func (c *Command) State() *os.ProcessState {
	select {
	case <-c.exited:
		return c.cmd.ProcessState
	default:
		return nil
	}
}

// Stderr returns the end of what the process has written to standard error, at
// most 8 KiB.
func (c *Command) Stderr() string { return c.stderr.String() }

// Withheld returns the names of variables that are set here and that the process
// did not get although servers often need such: secrets, proxies with a password,
// and what else is widely known. CommandOptions.Env passes them on.
func (c *Command) Withheld() []string { return slices.Clone(c.withheld) }

// Pid returns the id of the process.
func (c *Command) Pid() int { return c.cmd.Process.Pid }

// Close implements Conn: it is Shutdown with no time limit except that of the
// options.
func (c *Command) Close() error { return c.Shutdown(context.Background()) }

// Shutdown closes standard input and waits for the process to end. One that
// does not is terminated and, after waiting again, killed, with its process
// group where the system has such. The end of ctx ends all waiting. It returns
// an error only if the process could not be ended.
func (c *Command) Shutdown(ctx context.Context) error {
	c.closing.Do(func() {
		defer close(c.ended)
		c.closed.Store(true)
		_ = c.stdin.Close()
		_ = c.stream.Close()
		// A process that cannot write does not end.
		drained := make(chan struct{})
		go func() {
			defer close(drained)
			_, _ = io.Copy(io.Discard, c.stdout)
		}()
		c.err = c.end(ctx)
		_ = c.stdout.Close()
		<-drained
	})
	<-c.ended
	return c.err
}

// end waits for the process to end, terminates it, and kills it, with a grace
// period after each step.
func (c *Command) end(ctx context.Context) error {
	if c.waitFor(ctx, c.grace) {
		return nil
	}
	if ctx.Err() == nil {
		signalGroup(c.cmd.Process, false)
		if c.waitFor(ctx, c.grace) {
			return nil
		}
	}
	signalGroup(c.cmd.Process, true)
	if c.waitFor(context.Background(), reapTime) {
		return nil
	}
	return fmt.Errorf("transport: command %q, process %d, does not end though it was killed", c.name, c.Pid())
}

// waitFor reports whether the process ends in time and before ctx ends.
func (c *Command) waitFor(ctx context.Context, patience time.Duration) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-c.exited:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	select {
	case <-c.exited:
		return true
	default:
		return false
	}
}

// tailSize is how many bytes of standard error are kept.
const tailSize = 8 << 10

// maxLine is how many bytes of a line of standard error are passed on at once.
const maxLine = 64 << 10

// tail is an io.Writer that keeps the end of what is written, and passes
// everything on to another writer, if there is one, in whole lines.
type tail struct {
	to io.Writer

	mu   sync.Mutex
	kept []byte
	cut  bool

	passing sync.Mutex // held while to is written to
	line    []byte     // the beginning of a line that has no end yet
}

// Write implements io.Writer. It never fails, because a process must not be
// stopped by its observer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	t.kept = append(t.kept, p[max(0, len(p)-tailSize):]...)
	if over := len(t.kept) - tailSize; over > 0 || len(p) > tailSize {
		t.cut = true
		t.kept = append(t.kept[:0], t.kept[max(0, over):]...)
	}
	t.mu.Unlock()
	if t.to != nil {
		t.pass(p)
	}
	return len(p), nil
}

// pass writes the lines that end in p, and keeps what follows them.
func (t *tail) pass(p []byte) {
	t.passing.Lock()
	defer t.passing.Unlock()
	t.line = append(t.line, p...)
	end := bytes.LastIndexByte(t.line, '\n') + 1
	if len(t.line)-end > maxLine {
		end = len(t.line)
	}
	if end > 0 {
		_, _ = t.to.Write(t.line[:end])
		t.line = append(t.line[:0], t.line[end:]...)
	}
}

// flush passes on a last line without an end.
func (t *tail) flush() {
	t.passing.Lock()
	defer t.passing.Unlock()
	if len(t.line) > 0 {
		_, _ = t.to.Write(t.line)
	}
	t.line = nil
}

// String returns what is kept, beginning with a whole line if there is one.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := string(t.kept)
	if _, rest, ok := strings.Cut(text, "\n"); t.cut && ok {
		text = rest
	}
	return strings.ToValidUTF8(strings.TrimRight(strings.TrimLeft(text, "\r\n"), " \t\r\n"), "\uFFFD") // the first line may be indented
}
