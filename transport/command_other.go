//go:build !unix

package transport

import (
	"os"
	"os/exec"
)

// ownGroup does nothing: the system has no process groups.
func ownGroup(*exec.Cmd) {}

// signalGroup ends a process. The system has no way to ask a process to end, so
// both ways are the same.
func signalGroup(process *os.Process, _ bool) { _ = process.Kill() }

// unread would return what a process has left in a pipe. Here it cannot be known.
func unread(*os.File) int { return -1 }
