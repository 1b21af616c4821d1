//go:build unix

package oauth

import (
	"path/filepath"
	"syscall"
	"testing"
)

// A pipe in the place of the file keeps nobody waiting.
func TestFileStoreIsNoPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "oauth.json")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewFileStore(path).Load(t.Context(), "k"); err == nil {
		t.Error("no error")
	}
}
