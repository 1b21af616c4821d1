package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A program with two tools links nothing that it does not use. What would be
// noticed here is a reference to go-playground's validator.New: that calls methods
// by their names, so that the linker keeps every method of every type.
func TestSize(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "server")
	build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", binary, "./talaria")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	info, err := os.Stat(binary)
	if err != nil {
		t.Fatal(err)
	}
	if limit := int64(9 << 20); info.Size() > limit {
		t.Errorf("the server has %d bytes, more than %d", info.Size(), limit)
	}
}
