package transport_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/talaria-go/mcp/transport"
	"github.com/talaria-go/mcp/transport/transporttest"
)

// childVariable makes this test binary the child process of a test; it says
// what kind of child.
const childVariable = "TRANSPORT_TEST_CHILD"

func TestMain(m *testing.M) {
	if kind, ok := os.LookupEnv(childVariable); ok {
		child(kind)
		return
	}
	os.Exit(m.Run())
}

// child is what the child processes do.
func child(kind string) {
	switch kind {
	case "echo":
		_, _ = io.Copy(os.Stdout, os.Stdin)
	case "relay": // between standard input and output and a socket
		conn, err := net.Dial("tcp", os.Args[1])
		if err != nil {
			panic(err)
		}
		go func() {
			_, _ = io.Copy(conn, os.Stdin)
			_ = conn.(*net.TCPConn).CloseWrite()
		}()
		_, _ = io.Copy(os.Stdout, conn)
	case "fail": // after one line
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		fmt.Fprint(os.Stderr, strings.Repeat("noise ", 4000)+"\nno such database\n")
		os.Exit(3)
	case "gone": // before it reads anything
		os.Exit(4)
	case "stubborn": // knows of no end but SIGTERM
		ended := make(chan os.Signal, 1)
		signal.Notify(ended, syscall.SIGTERM)
		fmt.Println("ready")
		<-ended
		os.Exit(0)
	case "immortal": // ends of SIGKILL alone
		signal.Ignore(syscall.SIGTERM)
		fmt.Println("ready")
		select {}
	case "flood": // writes without end, and reads nothing
		for {
			if _, err := fmt.Println(strings.Repeat("x", 1000)); err != nil {
				os.Exit(0)
			}
		}
	case "mute": // closes standard output and stays
		_ = os.Stdout.Close()
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "parent": // leaves a child of its own behind that holds the pipes
		fmt.Println(startChild("immortal").Pid)
		os.Exit(0)
	case "environment":
		fmt.Println(strings.Join(os.Environ(), " "))
		dir, _ := os.Getwd()
		fmt.Println(dir)
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
}

// startChild starts a child of a child, on the same pipes.
func startChild(kind string) *os.Process {
	process, err := os.StartProcess(os.Args[0], os.Args[:1], &os.ProcAttr{
		Env: []string{childVariable + "=" + kind}, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
	})
	if err != nil {
		panic(err)
	}
	return process
}

// start starts a child process.
func start(t *testing.T, kind string, opts transport.CommandOptions, args ...string) *transport.Command {
	t.Helper()
	// The race detector would have the child sleep for a second at its end.
	opts.Env = append(opts.Env, childVariable+"="+kind, "GORACE=atexit_sleep_ms=0")
	c, err := transport.StartCommand(os.Args[0], args, &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestCommand(t *testing.T) {
	transporttest.Run(t, func(t *testing.T) transporttest.Link {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		a := start(t, "relay", transport.CommandOptions{MaxMessage: limit, Grace: 100 * time.Millisecond}, listener.Addr().String())
		b, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		return transporttest.Link{A: a, B: transport.NewSocket(b, &transport.SocketOptions{MaxMessage: limit}), MaxMessage: limit}
	})
}

func TestCommandNotFound(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ name, dir, want string }{
		{"no-such-command-anywhere", "", "not found in PATH"},
		{"./no-such-command", t.TempDir(), "cannot be run"},
		{file, "", "cannot be run"},
		{"", "", "no name"},
		{"true", filepath.Join(t.TempDir(), "gone"), "working directory"},
		{"true", file, "is not a directory"},
	}
	for _, tt := range tests {
		c, err := transport.StartCommand(tt.name, nil, &transport.CommandOptions{Dir: tt.dir})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q in %q: %v, want an error with %q", tt.name, tt.dir, err, tt.want)
		}
		if c != nil {
			_ = c.Close()
		}
	}
}

// A command is found in the PATH that it is given, and one with a separator
// from its working directory.
func TestCommandFound(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs symbolic links")
	}
	dir := t.TempDir()
	self, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(dir, "a-server")); err != nil {
		t.Fatal(err)
	}
	for name, opts := range map[string]transport.CommandOptions{
		"a-server":   {Env: []string{"PATH=/nowhere" + string(os.PathListSeparator) + dir}},
		"./a-server": {Dir: dir},
	} {
		opts.Env = append(opts.Env, childVariable+"=echo")
		c, err := transport.StartCommand(name, nil, &opts)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := c.Close(); err != nil || !c.State().Success() {
			t.Errorf("%s: %v, %v", name, err, c.State())
		}
	}
}

func TestCommandEnvironment(t *testing.T) {
	t.Setenv("SECRET_TOKEN", "hunter2")
	t.Setenv("TERM", "() { :; }; echo")
	t.Setenv("USER", "somebody")
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := start(t, "environment", transport.CommandOptions{Dir: dir, Env: []string{"EXTRA=1", "USER=else"}})
	line, _ := c.Read()
	where, _ := c.Read()
	variables := strings.Split(string(line), " ")
	for _, want := range []string{"EXTRA=1", "USER=else", "PATH=" + os.Getenv("PATH")} {
		if !slices.Contains(variables, want) {
			t.Errorf("no %s in %s", want, line)
		}
	}
	for _, v := range variables {
		for _, not := range []string{"SECRET_TOKEN=", "TERM=", "USER=somebody"} {
			if strings.HasPrefix(v, not) {
				t.Errorf("%s in %s", v, line)
			}
		}
	}
	if string(where) != dir {
		t.Errorf("working directory %s, want %s", where, dir)
	}
}

// Children reach the network, know whom to trust there and speak the user's
// language, and get no secret by that. What they may miss has a name.
func TestCommandInherits(t *testing.T) {
	for _, tt := range []struct {
		name, value string
		passes      bool
		withheld    bool // and named
	}{
		{"HTTPS_PROXY", "http://proxy.example:3128", true, false},
		{"https_proxy", "proxy.example:3128", true, false},
		{"HTTP_PROXY", "http://ann:hunter2@proxy.example:3128", false, true},
		{"http_proxy", "ann:hunter2@proxy.example:3128", false, true},
		{"ALL_PROXY", "socks5://%zz@proxy.example", false, true},
		{"no_proxy", "localhost,.example.com", true, false},
		{"SSL_CERT_FILE", "/etc/ca.pem", true, false},
		{"SSL_CERT_DIR", "/etc/ca", true, false},
		{"NODE_EXTRA_CA_CERTS", "/etc/ca.pem", true, false},
		{"REQUESTS_CA_BUNDLE", "/etc/ca.pem", true, false},
		{"CURL_CA_BUNDLE", "/etc/ca.pem", true, false},
		{"npm_config_registry", "https://npm.example/", true, false},
		{"npm_config_cafile", "/etc/ca.pem", true, false},
		{"NPM_CONFIG_PROXY", "http://proxy.example:3128", true, false},
		{"npm_config_proxy", "http://ann:hunter2@proxy.example:3128", false, true},
		{"npm_config__auth", "hunter2", false, true},
		{"npm_config_//npm.example/:_authToken", "hunter2", false, true},
		{"npm_config__password", "hunter2", false, true},
		{"npm_config_key", "hunter2", false, true},
		{"npm_config_cert", "hunter2", false, true},
		{"npm_config_otp", "hunter2", false, true},
		{"npm_config_//npm.example/", "1", true, false},
		{"LANG", "fr_FR.UTF-8", true, false},
		{"LC_TIME", "fr_FR.UTF-8", true, false},
		{"LANGUAGE", "fr", true, false},
		{"TZ", "Europe/Paris", true, false},
		{"TMPDIR", "/var/tmp", true, false},
		{"XDG_CONFIG_HOME", "/home/ann/.config", true, false},
		{"XDG_SESSION_COOKIE", "hunter2", false, true},
		{"GITHUB_TOKEN", "hunter2", false, true},
		{"OPENAI_API_KEY", "hunter2", false, true},
		{"CLIENT_SECRET", "hunter2", false, true},
		{"PGPASSWORD", "hunter2", false, true},
		{"NODE_OPTIONS", "--require=x", false, true},
		{"GIT_AUTHOR_NAME", "ann", false, false},
		{"SOMETHING_ELSE", "x", false, false},
		{"EMPTY_TOKEN", "", false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv(tt.name, tt.value)
			c := start(t, "environment", transport.CommandOptions{})
			line, _ := c.Read()
			if got := strings.Contains(" "+string(line)+" ", " "+tt.name+"="+tt.value+" "); got != tt.passes {
				t.Errorf("passes is %v; the child has %s", got, line)
			}
			if got := slices.Contains(c.Withheld(), tt.name); got != tt.withheld {
				t.Errorf("withheld are %q", c.Withheld())
			}
			given := start(t, "environment", transport.CommandOptions{Env: []string{tt.name + "=given"}})
			if line, _ := given.Read(); !strings.Contains(string(line), tt.name+"=given") || slices.Contains(given.Withheld(), tt.name) {
				t.Errorf("given, the child has %s without %q", line, given.Withheld())
			}
		})
	}
}

// What a child wrote is fit for a terminal in the error; the field has all.
func TestExitErrorShown(t *testing.T) {
	err := &transport.ExitError{Name: "x", Stderr: "one\x1b[2J\u202e\ntwo"}
	if text := err.Error(); !strings.HasSuffix(text, "one␛[2J\ufffd\ntwo") {
		t.Errorf("%q", text)
	}
}

// Who reads and who writes hears how the process ended and what it said last,
// all of which was copied too.
func TestCommandExit(t *testing.T) {
	var copied bytes.Buffer
	c := start(t, "fail", transport.CommandOptions{Stderr: &copied})
	if err := c.Write([]byte("{}")); err != nil {
		t.Fatal(err)
	}
	_, err := c.Read()
	exit, ok := errors.AsType[*transport.ExitError](err)
	if !ok || !errors.Is(err, transport.ErrPeerGone) || !errors.Is(err, io.EOF) || exit.State.ExitCode() != 3 {
		t.Fatalf("Read: %v", err)
	}
	if exit.Stderr != "no such database" || !strings.Contains(err.Error(), "exit status 3") || !strings.Contains(err.Error(), "no such database") {
		t.Errorf("%q", err)
	}
	for err = nil; err == nil; { // until the system says so
		err = c.Write(make([]byte, 1<<20))
	}
	if _, ok := errors.AsType[*transport.ExitError](err); !ok {
		t.Errorf("Write: %v", err)
	}
	if copied.Len() < 4000*6 {
		t.Errorf("copied %d bytes of standard error", copied.Len())
	}
}

// The end of standard output is the end of the link though the process stays.
func TestCommandMute(t *testing.T) {
	t.Parallel()
	c := start(t, "mute", transport.CommandOptions{})
	_, err := c.Read()
	if exit, ok := errors.AsType[*transport.ExitError](err); !ok || exit.State != nil || !strings.Contains(err.Error(), "closed its standard output") {
		t.Errorf("Read: %v", err)
	}
}

// Close takes no longer than it says, whatever the process does, and leaves no
// process behind.
func TestCommandClose(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs signals")
	}
	tests := []struct {
		kind  string
		grace time.Duration
		want  string // how it ended
	}{
		{"echo", time.Minute, "exit status 0"},
		{"stubborn", 500 * time.Millisecond, "exit status 0"},
		{"immortal", 200 * time.Millisecond, "signal: killed"},
		{"flood", 200 * time.Millisecond, "signal: terminated"}, // while its output is read on
	}
	for _, tt := range tests {
		t.Run(tt.kind, func(t *testing.T) {
			t.Parallel()
			c := start(t, tt.kind, transport.CommandOptions{Grace: tt.grace})
			if tt.kind == "echo" {
				_ = c.Write([]byte("ready"))
			}
			if _, err := c.Read(); err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			wg.Go(func() {
				for {
					if _, err := c.Read(); err != nil {
						if !errors.Is(err, transport.ErrClosed) {
							t.Errorf("Read: %v, want ErrClosed", err)
						}
						return
					}
				}
			})
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			wg.Wait()
			if got := c.State().String(); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
			if err := c.Write([]byte("{}")); !errors.Is(err, transport.ErrClosed) {
				t.Errorf("Write: %v, want ErrClosed", err)
			}
		})
	}
}

// The end of a context ends the patience of Shutdown.
func TestCommandShutdown(t *testing.T) {
	c := start(t, "immortal", transport.CommandOptions{Grace: time.Hour})
	if _, err := c.Read(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := c.Shutdown(ctx); err != nil || c.State() == nil {
		t.Errorf("%v, %v", err, c.State())
	}
}

// A process that a server leaves behind, and that holds its pipes open, keeps
// nobody waiting. It is asked to end, as the server would have been.
func TestCommandLeavesBehind(t *testing.T) {
	t.Parallel()
	c := start(t, "parent", transport.CommandOptions{Grace: 300 * time.Millisecond})
	line, err := c.Read()
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(string(line), &pid); err != nil {
		t.Fatal(err)
	}
	for err == nil { // the grandchild may say something yet
		_, err = c.Read()
	}
	if _, ok := errors.AsType[*transport.ExitError](err); !ok {
		t.Errorf("Read: %v", err)
	}
	if process, err := os.FindProcess(pid); err == nil {
		_ = process.Kill()
	}
}

// An error says whether the process can have ended because of a message.
func TestUnread(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("it is known on Unix alone")
	}
	for kind, want := range map[string]bool{"gone": true, "fail": false} {
		c := start(t, kind, transport.CommandOptions{})
		_ = errors.Join(c.Write([]byte(`{"a":1}`)), c.Flush()) // it may have ended
		_, err := c.Read()
		exit, ok := errors.AsType[*transport.ExitError](err)
		if !ok || exit.Unread != want {
			t.Errorf("%s: got %+v, want %v", kind, exit, want)
		}
	}
}
