package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A flag that has no effect with the others is refused, and nothing is started.
func TestUnusedFlags(t *testing.T) {
	config := filepath.Join(t.TempDir(), "servers.json")
	if err := os.WriteFile(config, []byte(`{"mcpServers":{}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"serve-proxy", "--stdio", "--max-sessions", "3", "no-such-program-here"},
		{"serve-proxy", "--stdio", "--session-idle", "1m", "no-such-program-here"},
		{"serve-proxy", "--stdio", "--path", "/x", "no-such-program-here"},
		{"gateway", "--config", config, "--stdio", "--path", "/x"},
		{"gateway", "--config", config, "--check", "--insecure"},
		{"gateway", "--config", config, "--stdio", "--max-sessions", "3"},
		{"gateway", "--config", config, "--stdio", "--session-idle", "1m"},
		{"login", "--list", "--client-id", "x"},
		{"login", "--list", "--dpop"},
		{"login", "http://127.0.0.1:1/mcp", "--client-id", "x", "--register"},
		{"login", "http://127.0.0.1:1/mcp", "--metadata-url", "https://a.example/c.json", "--register"},
		{"login", "http://127.0.0.1:1/mcp", "--client-id", "x", "--client-credentials", "--manual"},
		{"login", "http://127.0.0.1:1/mcp", "--client-id", "x", "--client-credentials", "--redirect-port", "5"},
		{"serve-proxy", "--stdio", "--save", "x", "no-such-program-here"},
		{"serve-proxy", "--stdio", "--answer", "a=b", "no-such-program-here"},
		{"serve-proxy", "--stdio", "--sample", "x", "no-such-program-here"},
		{"serve-proxy", "--stdio", "--root", "x", "no-such-program-here"},
		{"call", "http://127.0.0.1:1/mcp", "tool", "--json", "--save", "x"},
		{"prompt", "http://127.0.0.1:1/mcp", "name", "--json", "--save", "x"},
		{"read", "http://127.0.0.1:1/mcp", "a:b", "--json", "--save", "x"},
		{"read", "http://127.0.0.1:1/mcp", "a:b", "--json", "--out", "x"},
		{"read", "http://127.0.0.1:1/mcp", "a:b", "--out", "y", "--save", "x"},
		{"tools", "http://127.0.0.1:1/mcp", "--save", "x"},
		{"lock", "http://127.0.0.1:1/mcp", "--save", "x"},
		{"lint", "http://127.0.0.1:1/mcp", "--save", "x"},
		{"ping", "http://127.0.0.1:1/mcp", "--save", "x"},
		{"watch", "http://127.0.0.1:1/mcp", "--save", "x"},
		{"install", "--host", "cursor", "--name", "x", "--remove", "--env", "A=b"},
		{"install", "--host", "cursor", "--name", "x", "--remove", "--header", "A=b"},
		{"install", "--host", "cursor", "--name", "x", "--remove", "--cwd", "/tmp"},
		{"events", "http://127.0.0.1:1/mcp", "--cursor", "x"},
		{"events", "http://127.0.0.1:1/mcp", "--max-age", "5s"},
		{"events", "http://127.0.0.1:1/mcp", "name", "--max-age", "5s"},
		{"events", "http://127.0.0.1:1/mcp", "name", "--cursor", "x", "--max-age", "-5s"},
	} {
		flag := ""
		for _, name := range []string{"max-sessions", "session-idle", "path", "insecure", "client-id", "dpop", "env", "header", "cwd", "cursor", "max-age", "register", "manual", "redirect-port", "answer", "sample", "root", "out", "save"} {
			for _, arg := range args {
				if arg == "--"+name {
					flag = arg
				}
			}
		}
		if got := talaria(t, "", args...); got.code != exitUsage || !strings.Contains(got.stderr+" ", flag) || flag == "" || got.stdout != "" {
			t.Errorf("%q: %+v, want an error about %s", args, got, flag)
		}
	}
}
