package editor

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	getMode = unix.TCGETS
	setMode = unix.TCSETS
)

// openKeys returns what is typed, as a file of which a deadline ends the reading;
// nil if there is none.
func openKeys() *os.File {
	f, err := os.OpenFile("/proc/self/fd/0", os.O_RDONLY|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil
	}
	if f.SetReadDeadline(time.Time{}) != nil { // it blocks
		_ = f.Close()
		return nil
	}
	return f
}
