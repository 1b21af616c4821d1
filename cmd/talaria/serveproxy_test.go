package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/login"
	"github.com/talaria-go/mcp/protocol"
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
	bridge := quoted([]string{os.Args[0], "serve-proxy", "--stdio", url})
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

// Where only a login helps, a client of the proxy gets the code of the server,
// and reads what to run.
func TestServeProxyStepUp(t *testing.T) {
	t.Parallel()
	target := httpExample(t, "-auth")
	alice := newUser(t)
	alice.wants(exitOK, "for notes:read\n", "login", target)
	bridge := quoted([]string{os.Args[0], "serve-proxy", "--stdio", target})
	env := []string{"--env", "TALARIA_COMMAND=1", "--env", "XDG_CONFIG_HOME", "--env", "HOME", "--env", "AppData"}
	got := alice.wants(exitProtocol, protocol.CodeInsufficientScope.String(), append([]string{"call", bridge, "add_note", "text=milk", "--no-check"}, env...)...)
	if !strings.Contains(got.stderr, "run: talaria login "+target+" --scope 'notes:read notes:write'") {
		t.Errorf("got %+v", got)
	}
}

// A command does not inherit the token; what it says about that goes with what to do.
func TestServeProxyToken(t *testing.T) {
	t.Parallel()
	known := newUser(t, tokenVariable+"=open-sesame")
	bridge := quoted([]string{os.Args[0], "serve-proxy", "--stdio", guarded(t)})
	env := []string{"--env", "TALARIA_COMMAND=1", "--env", "XDG_CONFIG_HOME"}
	known.wants(exitConnect, "--env TALARIA_TOKEN passes it on", append([]string{"ping", bridge}, env...)...)
	known.wants(exitOK, "pong", append([]string{"ping", bridge, "--env", tokenVariable}, env...)...)
}

func TestWanting(t *testing.T) {
	t.Parallel()
	said := &protocol.Error{Code: -32077, Message: "not yours", Data: 5}
	for _, test := range []struct {
		err  error
		code protocol.Code
		want string
	}{
		{&login.Needed{URL: "https://x.example"}, protocol.CodeUnauthorized, "wants a login; run: talaria login https://x.example"},
		{&login.Needed{URL: "https://x.example", Scopes: []string{"a"}}, protocol.CodeInsufficientScope, "run: talaria login https://x.example --scope a"},
		{fmt.Errorf("call: %w", &login.Needed{URL: "https://x.example", Answer: said}), -32077, "not yours; run: talaria login https://x.example"},
	} {
		got := wanting(test.err)
		if got == nil || got.Code != test.code || !strings.Contains(got.Message, test.want) {
			t.Errorf("%v: got %+v", test.err, got)
		}
	}
	if got := wanting(os.ErrNotExist); got != nil || said.Message != "not yours" {
		t.Errorf("got %v, %v", got, said)
	}
}
