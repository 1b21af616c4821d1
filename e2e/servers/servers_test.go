package servers

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/protocol"
)

// connect connects a client, of these revisions if any are given, and closes it
// at the end of the test.
func connect(t *testing.T, transport client.Transport, u *user, revisions ...protocol.Revision) session {
	t.Helper()
	opts := u.options()
	opts.Revisions = revisions
	return connectWith(t, transport, u, opts)
}

// connectWith is connect with options for the client.
func connectWith(t *testing.T, transport client.Transport, u *user, opts *client.Options) session {
	t.Helper()
	gated := os.Getenv("E2E_GATEWAY") != ""
	if gated {
		transport = throughGateway(t, transport, opts.Revisions)
	}
	if gated && opts.Revisions == nil {
		opts.Revisions = []protocol.Revision{protocol.V20251125} // the tests expect what most servers speak
	}
	c, err := client.Connect(within(t), transport, opts)
	if err != nil {
		t.Fatal(err)
	}
	if gated {
		// A list has nothing of a server that starts slowly. A call waits for it.
		_, _ = c.Call(within(t), "no_such_tool", nil) // the error is expected
	}
	t.Cleanup(func() {
		start := time.Now()
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if took := time.Since(start); took > 4*time.Second {
			t.Errorf("close took %v", took)
		}
		s := c.Stats()
		// Only what was given up may be answered too late.
		if s.Unmatched > s.Cancelled+s.TimedOut || s.InvalidMessages+s.Dropped+s.Reconnects+int64(s.Pending) != 0 {
			t.Errorf("the client counts %+v", s)
		}
	})
	return session{c, u, gated}
}

// program is a server that can be started.
type program struct {
	name string
	args []string
}

// npm returns a server from npm.
func npm(t *testing.T, name string) program {
	t.Helper()
	const from = "e2e/run servers installs Node, and servers from npm"
	node, modules := testdep.Env(t, "E2E_NODE", from), testdep.Env(t, "E2E_MODULES", from)
	return program{node, []string{filepath.Join(modules, "@modelcontextprotocol", name, "dist", "index.js")}}
}

// stdio returns the transport that starts the program. Some servers of the
// TypeScript SDK do not exit when their input ends, but on a signal: they get it
// soon.
func (p program) stdio(args ...string) *client.CommandTransport {
	c := client.Command(p.name, append(p.args[:len(p.args):len(p.args)], args...)...)
	c.Grace = time.Second
	return c
}

// web starts the everything server from npm over HTTP and returns the transport
// to it.
func (p program) web(t *testing.T, kind string) client.Transport {
	t.Helper()
	port := freePort(t)
	p.start(t, port, []string{"PORT=" + strconv.Itoa(port)}, kind)
	if kind == "sse" {
		return client.SSE(fmt.Sprintf("http://127.0.0.1:%d/sse", port), nil)
	}
	return client.HTTP(fmt.Sprintf("http://127.0.0.1:%d/mcp", port), nil)
}

// freePort returns a port that is free for now.
func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}

// start runs the program, which is to listen on port, until the test ends.
func (p program) start(t *testing.T, port int, env []string, args ...string) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(p.name, append(p.args[:len(p.args):len(p.args)], args...)...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-ended:
		case <-time.After(5 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
		if t.Failed() {
			if text, err := os.ReadFile(log.Name()); err == nil {
				fmt.Fprintf(os.Stderr, "%s: the server wrote:\n%.4000s\n", t.Name(), text) // it is no check's
			}
		}
		log.Close()
	})
	deadline := time.Now().Add(timeLimit)
	for {
		conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Second)
		if err == nil {
			conn.Close()
			return
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("%s ended: %v", p.name, err)
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not listen on port %d", p.name, port)
		}
	}
}

// build builds a command, which go.mod lists as a tool.
func build(t *testing.T, path string) program {
	t.Helper()
	name := filepath.Join(t.TempDir(), "server")
	if out, err := exec.Command("go", "build", "-o", name, path).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program{name: name}
}

// TestUnusableServers sees that a server that cannot be used is a clear error
// at once.
func TestUnusableServers(t *testing.T) {
	for name, transport := range map[string]client.Transport{
		"no such program": client.Command("no-such-program-anywhere"),
		"one that exits":  client.Command("sh", "-c", "echo this is why >&2; exit 3"),
		"nobody listens":  client.HTTP(fmt.Sprintf("http://127.0.0.1:%d/mcp", freePort(t)), nil),
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), timeLimit)
			defer cancel()
			c, err := client.Connect(ctx, transport, nil)
			if err == nil {
				c.Close()
				t.Fatal("connected")
			}
			if ctx.Err() != nil {
				t.Errorf("it took until the end of timeLimit: %v", err)
			}
			if name == "one that exits" {
				contains(t, "error", err.Error(), "this is why")
			}
		})
	}
}
