//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// stubborn is what a server says that answers no call.
func stubborn(m *wireMessage) string {
	switch m.Method {
	case "initialize":
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}`, m.ID)
	case "server/discover":
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, m.ID)
	case "tools/list":
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}}`, m.ID)
	}
	return ""
}

// stubbornServer is a command that ignores SIGTERM and the end of its input. Its number is
// in the file pid; a call makes the file pid.called. A silent one answers nothing.
func stubbornServer(silent bool, pid string) {
	signal.Ignore(syscall.SIGTERM)
	signs := func(name string) { _ = os.WriteFile(name, []byte(strconv.Itoa(os.Getpid())), 0o600) }
	signs(pid)
	for in := bufio.NewScanner(os.Stdin); in.Scan() && !silent; {
		var m wireMessage
		if json.Unmarshal(in.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		if answer := stubborn(&m); answer != "" {
			fmt.Println(answer)
		} else {
			signs(pid + ".called")
		}
	}
	time.Sleep(10 * time.Minute)
}

// Every command ends when it is told to, whatever its server does, and leaves no process
// behind.
func TestStopped(t *testing.T) {
	t.Parallel()
	release, dir := make(chan struct{}), t.TempDir()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m wireMessage
		_ = json.NewDecoder(r.Body).Decode(&m)
		w.Header().Set("Content-Type", "application/json")
		switch answer := stubborn(&m); {
		case r.Method == http.MethodGet:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case answer != "":
			_ = os.WriteFile(filepath.Join(dir, filepath.Base(r.URL.Path)+".called"), nil, 0o600)
			w.Header().Set("Mcp-Session-Id", "1")
			_, _ = io.WriteString(w, answer)
		case m.ID == nil && r.Method == http.MethodPost:
			w.WriteHeader(http.StatusAccepted)
		default: // also the DELETE of the session
			<-release
		}
	}))
	t.Cleanup(web.Close)
	t.Cleanup(func() { close(release) }) // before web.Close
	const call = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","arguments":{}}}
`
	commands := map[string]struct {
		args  func(target []string) []string
		stdin string
		calls bool // the server gets a call before the command is told to stop
	}{
		"call":              {args: func(to []string) []string { return []string{"call", quoted(to), "t"} }, calls: true},
		"watch":             {args: func(to []string) []string { return []string{"watch", quoted(to)} }},
		"shell":             {args: func(to []string) []string { return append([]string{"stdio"}, to...) }},
		"shell with a call": {args: func(to []string) []string { return append([]string{"stdio"}, to...) }, stdin: "call t\n", calls: true},
		"inspect -b":        {args: func(to []string) []string { return []string{"inspect", "-b", "--no-open", quoted(to)} }},
		"serve-proxy --http": {args: func(to []string) []string {
			return append([]string{"serve-proxy", "--http", "127.0.0.1:0", "--"}, to...)
		}},
		"serve-proxy --stdio": {args: func(to []string) []string { return append([]string{"serve-proxy", "--stdio", "--"}, to...) }, stdin: call, calls: true},
		"tap": {args: func(to []string) []string {
			return append([]string{"tap", "-o", filepath.Join(dir, filepath.Base(to[len(to)-1])+".tap"), "--"}, to...)
		}},
	}
	var all sync.WaitGroup
	defer all.Wait()
	n := 0
	for name, c := range commands {
		for _, server := range []string{"stubborn", "silent", "http"} {
			for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
				n++
				pid := filepath.Join(dir, strconv.Itoa(n))
				target := []string{os.Args[0], server, pid}
				isShell := strings.HasPrefix(name, "shell")
				switch {
				case server == "http" && name == "tap", sig == syscall.SIGINT && (server != "stubborn" || name == "shell" || name == "tap"):
					continue // tap passes SIGINT on, and its server does not ignore that
				case server == "http":
					target = []string{web.URL + "/" + strconv.Itoa(n)}
				}
				args := c.args(target)
				if server == "http" && isShell {
					args[0] = "http"
				}
				all.Go(func() {
					stopped(t, fmt.Sprintf("%s, %s, %v", name, server, sig), args, c.stdin, sig, func() bool {
						at := pid
						if c.calls && server == "stubborn" || server == "http" {
							at += ".called"
						}
						_, err := os.Stat(at)
						return err == nil
					}, pid)
				})
			}
		}
	}
}

// stopped runs the command until begun, sends it a signal, and waits for its end, and for that of its server.
func stopped(t *testing.T, name string, args []string, stdin string, sig syscall.Signal, begun func() bool, pid string) {
	var stderr syncBuffer
	in, keep := io.Pipe() // stays open
	defer keep.Close()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), "TALARIA_COMMAND=1")
	cmd.Stderr = &stderr
	cmd.WaitDelay = time.Second
	pipe, err := cmd.StdinPipe()
	if err != nil {
		t.Error(err)
		return
	}
	go func() {
		_, _ = io.WriteString(pipe, stdin)
		_, _ = io.Copy(pipe, in)
	}()
	if err := cmd.Start(); err != nil {
		t.Error(err)
		return
	}
	for until := time.Now().Add(time.Minute); !begun(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Errorf("%s: it does not begin: %s", name, stderr.String())
			break
		}
	}
	if err := cmd.Process.Signal(sig); err != nil {
		t.Errorf("%s: %v, %s", name, err, stderr.String())
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Errorf("%s: it does not end: %s", name, stderr.String())
		_ = cmd.Process.Kill()
		<-ended
	}
	if number, err := os.ReadFile(pid); err == nil {
		server, _ := strconv.Atoi(string(number))
		for until := time.Now().Add(10 * time.Second); !errors.Is(syscall.Kill(server, 0), syscall.ESRCH); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(until) {
				t.Errorf("%s: its server lives on", name)
				_ = syscall.Kill(server, syscall.SIGKILL)
				break
			}
		}
	}
}
