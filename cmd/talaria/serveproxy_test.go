package main

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/words"
)

// A server on standard input and output, offered over HTTP, and that again on
// standard input and output.
func TestServeProxy(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var stdout, stderr syncBuffer
	code := make(chan int, 1)
	args := append([]string{"serve-proxy", "--http", "127.0.0.1:0", "--"}, stdioExample(t, t.TempDir())...)
	go func() {
		code <- run(ctx, args, &console.Console{In: strings.NewReader(""), Out: &stdout, Err: &stderr})
	}()
	url := stderr.wait(t, `http://\S+/mcp`)
	bridge := words.Join([]string{os.Args[0], "serve-proxy", "--stdio", url})
	for _, call := range [][]string{
		{"call", url, "calculate", "operation=add", "a=40", "b=2"},
		{"call", url, "calculate", "operation=add", "a=40", "b=2", "--revision", "2024-11-05"},
		{"call", bridge, "--env", "TALARIA_COMMAND=1", "calculate", "operation=add", "a=40", "b=2"},
		{"call", bridge, "--env", "TALARIA_COMMAND=1", "calculate", "operation=add", "a=40", "b=2", "--revision", "2025-11-25"},
	} {
		if got := talaria(t, "", call...); got.code != 0 || !strings.Contains(got.stdout, "42") {
			t.Errorf("%q: got %+v", call, got)
		}
	}
	cancel()
	if c := <-code; c != 0 || stdout.String() != "" {
		t.Errorf("got %d and %q, %q", c, stdout.String(), stderr.String())
	}
	if got := talaria(t, "", "serve-proxy", "--stdio", "http://127.0.0.1:1/mcp"); got.code != exitConnect {
		t.Errorf("got %+v", got)
	}
	if got := talaria(t, "", "serve-proxy", "--http", "256.0.0.1:0", "--", "false"); got.code != exitConnect {
		t.Errorf("got %+v", got)
	}
}
