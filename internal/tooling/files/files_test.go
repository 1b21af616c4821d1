package files

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// file writes a file into a new directory and returns its name.
func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestRead(t *testing.T) {
	name := file(t, "\xef\xbb\xbf12345")
	if text, err := Read(name, 8); err != nil || string(text) != "\xef\xbb\xbf12345" {
		t.Errorf("got %q, %v", text, err)
	}
	if text, err := Text(name, 8); err != nil || string(text) != "12345" {
		t.Errorf("got %q, %v, want no byte order mark", text, err)
	}
	if text, err := Read(name, 7); err == nil || !strings.Contains(err.Error(), "8 bytes, which exceeds the limit of 7") {
		t.Errorf("got %q, %v, want an error", text, err)
	}
	if runtime.GOOS == "linux" {
		if text, err := Read("/proc/self/stat", 4); err == nil { // whose size is 0
			t.Errorf("got %q, want an error", text)
		}
	}
	if _, err := Read(name+"x", 7); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestAppend(t *testing.T) {
	name := file(t, "a")
	for range 2 {
		f, err := Append(name, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString("b"); err != nil || f.Close() != nil {
			t.Fatal(err)
		}
	}
	if text, err := Read(name, 9); err != nil || string(text) != "abb" {
		t.Errorf("got %q, %v", text, err)
	}
}

// A file is replaced whole or not at all, keeps its mode, and links stay.
func TestReplace(t *testing.T) {
	name := file(t, "old")
	link := name + "-link"
	if err := os.Symlink(name, link); err != nil {
		t.Skip(err)
	}
	broken := errors.New("broken")
	write := func(text string, fault error) func(io.Writer) error {
		return func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return errors.Join(err, fault)
		}
	}
	if err := Replace(link, 0o600, write("half", broken)); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if text, err := Read(name, 9); err != nil || string(text) != "old" {
		t.Errorf("got %q, %v, want the old text", text, err)
	}
	if err := Replace(link, 0o600, write("new", nil)); err != nil {
		t.Error(err)
	}
	info, err := os.Lstat(link)
	if err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("got %v, %v, want a link", info, err)
	}
	info, err = os.Stat(name)
	if text, bad := Read(name, 9); err != nil || bad != nil || string(text) != "new" || runtime.GOOS != "windows" && info.Mode().Perm() != 0o640 {
		t.Errorf("got %q, %v, %v, %v", text, info.Mode(), err, bad)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(name), ".talaria-*")); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	if err := os.Symlink("nowhere", name+"-dangling"); err != nil {
		t.Fatal(err)
	}
	if err := Replace(name+"-dangling", 0o600, write("new", nil)); err == nil || !strings.Contains(err.Error(), "leads nowhere") {
		t.Errorf("got %v", err)
	}
}
