package statedir

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestMake(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", dir)
	got, err := Make("a", "b")
	if err != nil || got != filepath.Join(dir, "talaria", "a", "b") {
		t.Errorf("got %s, %v", got, err)
	}
	if info, err := os.Stat(got); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info, err)
	}
	t.Setenv("XDG_STATE_HOME", "relative")
	t.Setenv("HOME", dir)
	if got, err := Make(); err != nil || !strings.HasPrefix(got, dir) {
		t.Errorf("got %s, %v, want it in the home directory", got, err)
	}
}

func TestReplace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Replace(path, []byte("new")); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	info, bad := os.Stat(path)
	if err != nil || bad != nil || string(text) != "new" || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%q %v %v %v", text, info.Mode(), err, bad)
	}
	if err := Replace(filepath.Join(path, "x"), nil); err == nil {
		t.Error("a file in a file")
	}
	if left, err := filepath.Glob(path + ".*"); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
