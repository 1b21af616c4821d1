package auth_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The program in the guide builds and passes go vet, and is as short as it
// says.
func TestGuide(t *testing.T) {
	tool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("the go command is not there to build the program with")
	}
	text, err := os.ReadFile("../docs/authorization.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(strings.ReplaceAll(string(text), "\r\n", "\n"), "```go\n")
	program, _, ok := strings.Cut(rest, "```\n")
	if !ok || !strings.HasPrefix(program, "package main\n") {
		t.Fatal("the guide has no program")
	}
	_, body, _ := strings.Cut(program, "func main() {\n")
	if lines := strings.Count(body, "\n"); lines > 30 {
		t.Errorf("the program has %d lines", lines)
	}
	source := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), tool, "vet", source).CombinedOutput(); err != nil {
		t.Fatalf("go vet: %v\n%s", err, out)
	}
}
