//go:build unix

package testproc

import (
	"os"
	"syscall"
	"testing"
)

// SignalTwice sends an interrupt and a termination to a process, which both have come
// before it sees the first.
func SignalTwice(t *testing.T, p *os.Process) {
	t.Helper()
	for _, s := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCONT} {
		if err := p.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
}

// Killed reports whether a second signal ended a process that has ended: by itself with an
// exit code, or as one of the signals does that is not caught any more.
func Killed(state *os.ProcessState, code int) bool {
	status, ok := state.Sys().(syscall.WaitStatus)
	return state.ExitCode() == code || ok && status.Signaled() && (status.Signal() == syscall.SIGTERM || status.Signal() == syscall.SIGINT)
}
