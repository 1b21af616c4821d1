//go:build unix

package main

import (
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// The keys that tests press.
const (
	ctrlC = "\x03"
	ctrlD = "\x04"
	tab   = "\t"
	enter = "\r"
	up    = "\x1b[A"
)

// person is a user before a terminal in which the command runs.
type person struct {
	t    *testing.T
	cmd  *exec.Cmd
	file *os.File
	// drained is closed when all that the command wrote has been read.
	drained *os.File

	mu      sync.Mutex
	screen  screen
	seen    string        // everything that was on the screen, for what is gone again
	changed chan struct{} // closed at the next change
	ended   bool
}

// open starts the command in a terminal of 100 columns, with a home of its own.
func startPerson(t *testing.T, home string, args ...string) *person {
	t.Helper()
	return startPersonOf(t, 100, home, args...)
}

func startPersonOf(t *testing.T, columns uint16, home string, args ...string) *person {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), "TALARIA_COMMAND=terminal", "TERM=xterm", "NO_COLOR=1", "HOME="+home, "XDG_STATE_HOME="+filepath.Join(home, "state"))
	held, drained, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	cmd.ExtraFiles = []*os.File{held}
	file, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: columns})
	if err != nil {
		drained.Close()
		t.Fatal(err)
	}
	x := &person{t: t, cmd: cmd, file: file, drained: drained, changed: make(chan struct{})}
	go x.read()
	t.Cleanup(func() { file.Close() })
	return x
}

func init() { leadTerminal = leadSession }

// leadSession runs the command as a shell would, and stays until all that the command
// wrote has been read, since the system drops the rest when the leader of a session ends.
func leadSession() {
	const held = 3
	syscall.CloseOnExec(held)
	// Signals of the terminal are for the command. They are caught, and not ignored, so that
	// the command begins with none of them ignored.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt, syscall.SIGQUIT, syscall.SIGTERM)
	cmd := exec.Command(os.Args[0], os.Args[1:]...)
	cmd.Env = append(os.Environ(), "TALARIA_COMMAND=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	_ = cmd.Run() // the state says how it ended
	for _, file := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
		file.Close()
	}
	_, _ = io.Copy(io.Discard, os.NewFile(held, "held")) // it ends, and has nothing
	code := cmd.ProcessState.ExitCode()
	if code < 0 {
		code = 255 // a signal ended it
	}
	os.Exit(code)
}

// signal sends a signal to the command, as the terminal does.
func (x *person) signal(number syscall.Signal) {
	x.t.Helper()
	if err := syscall.Kill(-x.cmd.Process.Pid, number); err != nil {
		x.t.Fatal(err)
	}
}

func (x *person) read() {
	buffer := make([]byte, 4096)
	for {
		n, err := x.file.Read(buffer)
		x.mu.Lock()
		x.screen.Write(buffer[:n])
		x.seen += string(buffer[:n])
		x.ended = err != nil
		close(x.changed)
		x.changed = make(chan struct{})
		x.mu.Unlock()
		if err != nil {
			x.drained.Close()
			return
		}
	}
}

// wait waits until done says that the screen is right.
func (x *person) wait(what string, done func() bool) {
	x.t.Helper()
	limit := time.After(20 * time.Second)
	for {
		x.mu.Lock()
		ok, ended, changed := done(), x.ended, x.changed
		text := x.screen.String()
		x.mu.Unlock()
		if ok {
			return
		}
		if ended {
			x.t.Fatalf("it ended before %s:\n%s", what, text)
		}
		select {
		case <-changed:
		case <-limit:
			x.t.Fatalf("it does not come to %s:\n%s", what, text)
		}
	}
}

// expect waits until the last line of the screen is text.
func (x *person) expect(text string) {
	x.t.Helper()
	x.wait(`the line "`+text+`"`, func() bool {
		list := strings.Split(strings.TrimRight(x.screen.String(), "\n"), "\n")
		return strings.TrimRight(list[len(list)-1], " ") == strings.TrimRight(text, " ")
	})
}

// glimpse waits until text was on the screen at any time since the last one.
func (x *person) glimpse(text string) {
	x.t.Helper()
	x.wait(`"`+text+`"`, func() bool {
		_, rest, ok := strings.Cut(x.seen, text)
		if ok {
			x.seen = rest
		}
		return ok
	})
}

func (x *person) press(keys string) {
	x.t.Helper()
	if _, err := x.file.WriteString(keys); err != nil {
		x.t.Fatal(err)
	}
}

// enters types a line, and waits for the prompt that comes after it.
func (x *person) enters(line, prompt string) {
	x.t.Helper()
	x.press(line)
	x.wait("the echo of "+line, func() bool { return strings.Contains(x.screen.String(), line) })
	x.press(enter)
	x.wait("a new line", func() bool { return !strings.HasSuffix(strings.TrimRight(x.screen.String(), "\n "), line) })
	x.expect(prompt)
}

// exit waits for the end of the command and returns its exit code.
func (x *person) exit() int {
	x.t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = x.cmd.Wait() // the state says how it ended
	}()
	select {
	case <-done:
		return x.cmd.ProcessState.ExitCode()
	case <-time.After(20 * time.Second):
		x.t.Fatalf("it does not end:\n%s", x.text())
		return -1
	}
}

func (x *person) text() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.screen.String()
}

// TestShell is a person's session, from the first prompt to Ctrl-D. Its screen
// is in testdata/shell.txt.
func TestShell(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	server := stdioExample(t, t.TempDir())
	x := startPerson(t, home, append([]string{"stdio"}, server...)...)
	x.expect("mcp>")
	x.enters("ping", "mcp>")

	// Completion: of commands, tools, names of arguments and values.
	x.press("call_t" + tab)
	x.expect("mcp> call_tool")
	x.press("calc" + tab)
	x.expect("mcp> call_tool calculate")
	x.press("op" + tab)
	x.expect("mcp> call_tool calculate operation=")
	x.press("mu" + tab)
	x.expect("mcp> call_tool calculate operation=multiply")
	x.press("a=6" + enter)
	x.expect("  b:") // it is required, so it is asked for
	x.enters("seven", "  b:")
	x.enters("7", "mcp>")

	// A tool without arguments, none of which is required.
	x.enters("call_tool search_notes", "fill them in, too? [y/N]")
	x.enters("n", "mcp>")
	x.enters("call_tool add_note text='to be deleted' tags=old", "mcp>")

	// Elicitation: declined, then corrected and accepted.
	x.enters("call_tool delete_note id=1", "  delete [false]:")
	x.press(ctrlD)
	x.expect("mcp>")
	x.enters("call_tool delete_note id=1", "  delete [false]:")
	x.enters("perhaps", "  delete [false]:")
	x.enters("yes", "send this? [y]es, [e]dit, [d]ecline, [c]ancel:")
	x.enters("y", "mcp>")

	// A change of a resource shows above the prompt.
	x.enters("subscribe notes://all", "mcp>")
	x.enters("call_tool add_note text=new", "mcp>")
	x.glimpse("[resource changed: notes://all]")

	// What is wrong is said, and the shell goes on.
	x.enters("pign", "mcp>")
	x.enters("call_tool nothing", "mcp>")
	x.enters("call_tool calculate operation=divide a=1 b=0", "mcp>")
	x.enters("call_tool add_note text='open", "mcp>")
	x.enters("read_resource notes://99", "mcp>")
	x.enters("set_level loud", "mcp>")

	// Ctrl-C at the prompt drops the line and no more.
	x.press("half a line")
	x.expect("mcp> half a line")
	x.press(ctrlC)
	x.expect("mcp>")
	x.press(up)
	x.expect("mcp> set_level loud")
	x.press(ctrlC)
	x.expect("mcp>")
	x.press(ctrlD)
	if code := x.exit(); code != 0 {
		t.Errorf("got the exit code %d", code)
	}
	// When the notice comes is up to the server.
	compare(t, filepath.Join("testdata", "shell.txt"), stable(x.text(), "[resource changed: notes://all]\n", ""))

	// The history is there the next time.
	x = startPerson(t, home, append([]string{"stdio"}, server...)...)
	x.expect("mcp>")
	x.press(up)
	x.expect("mcp> set_level loud")
	x.press(ctrlC)
	x.expect("mcp>")
	x.press("exit" + enter)
	if code := x.exit(); code != 0 {
		t.Errorf("got the exit code %d", code)
	}
	info, err := os.Stat(filepath.Join(home, "state", "talaria", "history"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v, want a history for its owner alone", info, err)
	}
}

// Ctrl-C ends a call that shows its progress, and not the shell.
func TestShellInterrupt(t *testing.T) {
	t.Parallel()
	for _, revision := range []string{"2025-06-18", "2026-07-28"} { // an ordinary call, and a task
		x := startPerson(t, t.TempDir(), append([]string{"stdio", "--revision", revision}, stdioExample(t, t.TempDir())...)...)
		x.expect("mcp>")
		x.press("call_tool import_events path=events.csv pace=500ms" + enter)
		x.glimpse("rows read: ")
		x.press(ctrlC)
		x.glimpse("error: interrupted")
		x.expect("mcp>")
		x.enters("ping", "mcp>")
		x.press(ctrlD)
		if code := x.exit(); code != 0 || !strings.Contains(x.text(), "pong (") || strings.Contains(x.text(), "rows read") {
			t.Errorf("%s: got %d and\n%s", revision, code, x.text())
		}
	}
}

// Ctrl-C ends the command that was typed before it, even if both come at once. What
// stands before a Ctrl-C goes with it, and what comes after it stays.
func TestShellTypedAhead(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("what is typed ahead is not seen here")
	}
	x := startPerson(t, t.TempDir(), append([]string{"stdio"}, stdioExample(t, t.TempDir())...)...)
	x.expect("mcp>")
	x.press("call_tool import_events path=events.csv pace=500ms" + enter + "pi" + ctrlC + "timeout 7s" + enter)
	x.glimpse("error: interrupted")
	x.glimpse("must come within 7s")
	x.expect("mcp>") // before it the terminal would make a signal of Ctrl-C, which may be late
	x.press("half a line" + ctrlC + "ping" + enter + "exit" + enter)
	x.glimpse("pong (")
	if code := x.exit(); code != 0 || strings.Contains(x.text(), "unknown command") {
		t.Errorf("got %d and\n%s", code, x.text())
	}
}

// The same for a one-shot command, which it ends.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	x := startPerson(t, t.TempDir(), "call", quoted(stdioExample(t, t.TempDir())), "import_events", "path=events.csv", "pace=500ms")
	x.glimpse("rows read: ")
	x.press(ctrlC)
	if code := x.exit(); code != exitInterrupted {
		t.Errorf("got %d", code)
	}
	x.glimpse("error: interrupted")
}

// Before the first prompt Ctrl-C ends the shell, wherever the connecting is.
func TestShellInterruptedConnecting(t *testing.T) {
	t.Parallel()
	const ready = "it waits" // for standard error, which -v shows
	silent := `echo ` + ready + ` >&2; exec sleep 100`
	deaf := `echo ` + ready + ` >&2; trap "" INT; exec sleep 100`
	listening := `read -r line
echo '{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"ttlMs":0,"cacheScope":"private"}}'
read -r line; echo ` + ready + ` >&2; exec sleep 100`
	for name, script := range map[string]string{"before the handshake": silent, "it does not listen to Ctrl-C": deaf, "before it listens": listening} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := startPerson(t, t.TempDir(), "stdio", "-v", "sh", "-c", script)
			x.glimpse(ready)
			x.press(ctrlC)
			if code := x.exit(); code != exitInterrupted {
				t.Errorf("got %d and\n%s", code, x.text())
			}
			x.glimpse("error: interrupted")
			if strings.Contains(x.text(), "mcp>") {
				t.Errorf("there is a prompt:\n%s", x.text())
			}
		})
	}
}

// A Ctrl-C that the terminal has made a signal ends the question that is there,
// with the call.
func TestShellInterruptedByTheWay(t *testing.T) {
	t.Parallel()
	x := startPerson(t, t.TempDir(), "stdio", os.Args[0], "cunning")
	x.expect("mcp>")
	x.enters("call_tool nag", "  more [@]:")
	x.signal(syscall.SIGINT)
	x.glimpse("error: interrupted")
	x.expect("mcp>")
	x.press(up) // the editor is as it was
	x.expect("mcp> call_tool nag")
	x.press(ctrlC)
	x.expect("mcp>")
	x.press(ctrlD)
	if code := x.exit(); code != 0 {
		t.Errorf("got the exit code %d", code)
	}
}

// A terminal may have no columns, from the beginning or all at once.
func TestShellWithoutColumns(t *testing.T) {
	t.Parallel()
	x := startPersonOf(t, 0, t.TempDir(), "stdio", os.Args[0], "cunning")
	x.expect("mcp>")
	x.enters("list_tools", "mcp>")
	x.glimpse("greet")
	x.enters("call_tool nag", "  more [@]:")
	x.press(ctrlC) // a signal here, since nothing is edited
	x.glimpse("error: interrupted")
	x.glimpse("mcp>") // perhaps twice, if the server's next question comes with it
	x.press("exit" + enter)
	if code := x.exit(); code != 0 {
		t.Errorf("got the exit code %d", code)
	}

	x = startPerson(t, t.TempDir(), "stdio", os.Args[0], "cunning")
	x.expect("mcp>")
	x.glimpse("mcp>")
	if err := pty.Setsize(x.file, &pty.Winsize{Rows: 50}); err != nil {
		t.Fatal(err)
	}
	x.glimpse("mcp>") // another one
	x.enters("list_tools", "mcp>")
	x.press("exit" + enter)
	if code := x.exit(); code != 0 {
		t.Errorf("got the exit code %d", code)
	}
}

// A one-shot command asks, too, if somebody is there.
func TestAskedOnce(t *testing.T) {
	t.Parallel()
	server := quoted(stdioExample(t, t.TempDir()))
	if got := talaria(t, "", "call", server, "add_note", "text=x"); got.code != 0 {
		t.Fatalf("got %+v", got)
	}
	x := startPerson(t, t.TempDir(), "call", server, "delete_note", "id=1")
	x.expect("  delete [false]:")
	x.press("y")
	x.expect("  delete [false]: y")
	x.press(ctrlC)
	if code := x.exit(); code != exitTool {
		t.Errorf("got %d", code)
	}
	x.glimpse("note 1 is kept")
}

// A server that is gone is started again for the next command.
func TestShellServerDies(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := filepath.Join(dir, "server")
	text := "#!/bin/sh\necho $$ >" + filepath.Join(dir, "pid") + "\nexec " + quoted(stdioExample(t, dir)) + "\n"
	if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	x := startPerson(t, t.TempDir(), "stdio", script)
	x.expect("mcp>")
	pid, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("kill", "-9", strings.TrimSpace(string(pid))).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	x.glimpse("[disconnected: ")
	x.enters("call_tool calculate operation=add a=20 b=22", "mcp>")
	x.wait("the new server's answer", func() bool {
		return strings.Contains(x.screen.String(), `"result": 42`) && strings.Contains(x.screen.String(), "[connected again]")
	})
	x.press(ctrlD)
	if code := x.exit(); code != 0 {
		t.Errorf("got %d", code)
	}
}

// SIGTERM at the prompt gives the terminal back.
func TestShellTerminated(t *testing.T) {
	t.Parallel()
	x := startPerson(t, t.TempDir(), append([]string{"stdio"}, stdioExample(t, t.TempDir())...)...)
	x.expect("mcp>")
	x.signal(syscall.SIGTERM)
	if code := x.exit(); code != 128+15 {
		t.Errorf("got %d", code)
	}
}

func TestShellCannotConnect(t *testing.T) {
	t.Parallel()
	x := startPerson(t, t.TempDir(), "http", "http://127.0.0.1:1/mcp")
	x.glimpse("is the server running")
	x.expect("mcp>")
	x.enters("list_tools", "mcp>")
	x.glimpse("not connected")
	x.enters("initialize", "mcp>")
	x.glimpse("cannot connect")
	x.press(ctrlD)
	if code := x.exit(); code != 0 {
		t.Errorf("got %d", code)
	}
}
