//go:build unix

package main

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/internal/test/testproc"
)

// timeLimit is the longest wait of a test.
const timeLimit = 20 * time.Second

// build builds the program.
func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "service")
	if out, err := exec.CommandContext(t.Context(), testdep.LookPath(t, "go"), "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return program
}

// systemd is what the test has of it: a socket that stays open, and an ear.
type systemd struct {
	program string
	socket  *os.File
	address string
	ear     *net.UnixConn
}

func newSystemd(t *testing.T) *systemd {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	socket, err := listener.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	ear, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: filepath.Join(t.TempDir(), "notify"), Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close(); _ = ear.Close() })
	return &systemd{build(t), socket, listener.Addr().String(), ear}
}

// start starts the program with the socket, as systemd does, and waits until it
// says that it is ready.
func (s *systemd) start(t *testing.T, grace string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sh", "-c", `LISTEN_FDS=1 LISTEN_PID=$$ exec "$0" "$@"`, s.program, "-http", "127.0.0.1:1", "-grace", grace)
	cmd.ExtraFiles, cmd.Stderr = []*os.File{s.socket}, t.Output()
	cmd.Env = append(os.Environ(), "NOTIFY_SOCKET="+s.ear.LocalAddr().String())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
	s.hears(t, "READY=1")
	return cmd
}

func (s *systemd) hears(t *testing.T, want string) {
	t.Helper()
	buf := make([]byte, 100)
	if err := s.ear.SetReadDeadline(time.Now().Add(timeLimit)); err != nil {
		t.Fatal(err)
	}
	if n, err := s.ear.Read(buf); err != nil || string(buf[:n]) != want {
		t.Fatalf("heard %q, %v; want %q", buf[:n], err, want)
	}
}

const hello = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hello","arguments":{"name":"Ada"},` +
	`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`

// get returns the status and the text of an answer, to a call if there is a body.
func (s *systemd) get(path, body string) (int, string, error) {
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	req, err := http.NewRequest(method, "http://"+s.address+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"hello"}}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return res.StatusCode, string(text), err
}

func (s *systemd) greets(t *testing.T) {
	t.Helper()
	if status, text, err := s.get("/mcp", hello); err != nil || status != http.StatusOK || !strings.Contains(text, "Hello, Ada!") {
		t.Errorf("hello: %d, %s, %v", status, text, err)
	}
}

// From one process to the next: calls are served until the first is not ready any
// more and after that, and whoever comes between the two waits for the second.
func TestRestart(t *testing.T) {
	s := newSystemd(t)
	first := s.start(t, "2s")
	s.greets(t)
	for _, path := range []string{"/livez", "/readyz"} {
		if status, text, err := s.get(path, ""); err != nil || status != http.StatusOK {
			t.Errorf("%s: %d, %s, %v", path, status, text, err)
		}
	}
	if err := first.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.hears(t, "STOPPING=1")
	for late := time.Now().Add(timeLimit); ; time.Sleep(time.Millisecond) {
		status, text, err := s.get("/readyz", "")
		if status == http.StatusServiceUnavailable {
			break
		}
		if err != nil || time.Now().After(late) {
			t.Fatalf("/readyz: %d, %s, %v", status, text, err)
		}
	}
	s.greets(t)
	if err := first.Wait(); err != nil {
		t.Errorf("the first process: %v", err)
	}

	waited := make(chan error, 1)
	conn, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	go func() {
		text, err := io.ReadAll(conn)
		if !bytes.HasPrefix(text, []byte("HTTP/1.1 200 ")) {
			err = errors.Join(err, errors.New(string(text)))
		}
		waited <- err
	}()
	second := s.start(t, "1m")
	if err := <-waited; err != nil {
		t.Errorf("who came between two processes: %v", err)
	}
	s.greets(t)

	// The second signal ends the process, also when both come at once.
	if err := second.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	s.hears(t, "STOPPING=1")
	if err := second.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err = second.Wait(); second.ProcessState.ExitCode() != 1 {
		t.Errorf("after a second signal: %v", err)
	}
	third := s.start(t, "1m")
	testproc.SignalTwice(t, third.Process)
	if err := third.Wait(); !testproc.Killed(third.ProcessState, 1) {
		t.Errorf("after two signals: %v", err)
	}
}
