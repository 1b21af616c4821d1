//go:build !unix

package testproc

import (
	"os"
	"testing"
)

// SignalTwice skips the test: there are no such signals here.
func SignalTwice(t *testing.T, _ *os.Process) { t.Skip("needs the signals of Unix") }

// Killed reports whether a process has ended with an exit code.
func Killed(state *os.ProcessState, code int) bool { return state.ExitCode() == code }
