//go:build unix

package dev

import (
	"os/exec"
	"syscall"
)

// killable makes the end of the command's context kill the processes that it has started,
// too.
func killable(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
