//go:build linux || darwin || freebsd || netbsd || openbsd

package editor

import (
	"os"
	"syscall"

	"github.com/peterh/liner"
	"golang.org/x/sys/unix"
)

// ctrlCIsKey makes Ctrl-C a key like any other until restore is called, where
// lines can be edited.
func ctrlCIsKey() (restore func()) {
	if !liner.TerminalSupported() {
		return func() {}
	}
	fd := int(os.Stdin.Fd())
	mode, err := unix.IoctlGetTermios(fd, getMode)
	if err != nil || mode.Lflag&unix.ISIG == 0 {
		return func() {}
	}
	mode.Lflag &^= unix.ISIG
	_ = unix.IoctlSetTermios(fd, setMode, mode) // what cannot be changed stays
	return func() {
		if mode, err := unix.IoctlGetTermios(fd, getMode); err == nil {
			mode.Lflag |= unix.ISIG
			_ = unix.IoctlSetTermios(fd, setMode, mode) // the same
		}
	}
}

// redraw makes the library that edits lines show its line again: it does so when
// the window has another size.
func redraw() { _ = syscall.Kill(os.Getpid(), syscall.SIGWINCH) }
