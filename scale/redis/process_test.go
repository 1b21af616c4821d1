//go:build unix

package redis

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/talaria-go/mcp/internal/test/testdep"
)

// build builds a program below this directory.
func build(t testing.TB, from string) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), filepath.Base(from))
	if out, err := exec.Command(testdep.LookPath(t, "go"), "build", "-o", program, from).CombinedOutput(); err != nil {
		t.Fatalf("go build %s: %v\n%s", from, err, out)
	}
	return program
}

// process is a program that a test has started.
type process struct {
	*exec.Cmd
	said  string // its first line
	ended chan error
}

// launch starts a program. If it says something at first, launch waits for that.
func launch(t testing.TB, says bool, env []string, program string, args ...string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(program, args...), ended: make(chan error, 1)}
	p.Env, p.Stderr = append(os.Environ(), env...), t.Output()
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if says {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("%s says nothing: %v, %v", program, err, p.Wait())
		}
		p.said = line[:len(line)-1]
	}
	go func() {
		_, _ = io.Copy(io.Discard, lines)
		p.ended <- p.Wait()
	}()
	t.Cleanup(p.kill)
	return p
}

// kill ends a process without notice, unless it has ended, and waits until it has.
func (p *process) kill() {
	_ = p.Process.Kill()
	<-p.ended
	p.ended <- nil
}

// end asks a process to end, and waits until it has.
func (p *process) end(t testing.TB) {
	t.Helper()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	select {
	case err := <-p.ended:
		if err != nil {
			t.Errorf("%s: %v", p.Path, err)
		}
		p.ended <- nil
	case <-time.After(20 * time.Second):
		t.Errorf("%s goes on after SIGTERM", p.Path)
	}
}
