//go:build unix

package transport

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup makes the process the leader of a process group of its own.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// signalGroup terminates or kills a process and those that it has started. A
// process that is gone is no error.
func signalGroup(process *os.Process, kill bool) {
	signal := syscall.SIGTERM
	if kill {
		signal = syscall.SIGKILL
	}
	_ = syscall.Kill(-process.Pid, signal)
}
