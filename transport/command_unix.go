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
// process that is gone is not an error.
func signalGroup(process *os.Process, kill bool) {
	signal := syscall.SIGTERM
	if kill {
		signal = syscall.SIGKILL
	}
	_ = syscall.Kill(-process.Pid, signal)
}

// unread takes what is in a pipe that no process reads any more, and returns how many
// bytes it was; -1 if the pipe is closed.
func unread(pipe *os.File) int {
	n := -1
	raw, err := pipe.SyscallConn()
	if err != nil {
		return n
	}
	_ = raw.Control(func(fd uintptr) {
		if syscall.SetNonblock(int(fd), true) != nil {
			return
		}
		n = 0
		for buf := make([]byte, 4<<10); ; {
			k, err := syscall.Read(int(fd), buf)
			if k <= 0 || err != nil {
				return
			}
			n += k
		}
	}) // an error means closed
	return n
}
