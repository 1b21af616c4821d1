//go:build !(linux || darwin || freebsd || netbsd || openbsd)

package editor

import "os"

// ctrlCIsKey does nothing: the library that edits lines knows how.
func ctrlCIsKey() (restore func()) { return func() {} }

func openKeys() *os.File { return nil }

// redraw does nothing: what was typed so far comes back with the next key.
func redraw() {}
