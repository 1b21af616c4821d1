//go:build darwin || freebsd || netbsd || openbsd

package editor

import (
	"os"

	"golang.org/x/sys/unix"
)

const (
	getMode = unix.TIOCGETA
	setMode = unix.TIOCSETA
)

// openKeys returns what is typed. Not every one of these systems can wait for a
// terminal and for something else.
func openKeys() *os.File { return nil }
