//go:build unix

package files

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Whatever is not a regular file is refused without waiting for anything.
func TestIrregular(t *testing.T) {
	dir := t.TempDir()
	pipe, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	if err := os.Symlink(pipe, link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{pipe, link, dir, "/dev/zero", "/dev/null"} {
		for what, do := range map[string]func() error{
			"Open":     func() error { _, err := Open(name); return err },
			"Append":   func() error { _, err := Append(name, 0o600); return err },
			"Read":     func() error { _, err := Read(name, 10); return err },
			"Existing": func() error { _, err := Existing(name); return err },
			"Replace":  func() error { return Replace(name, 0o600, func(io.Writer) error { return nil }) },
		} {
			want := "it is not a regular file"
			if name == dir {
				want = "it is a directory"
			}
			if err := do(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s of %s: got %v, want %q", what, name, err, want)
			}
		}
	}
}
