package main

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/internal/test/testexec"
)

// readmeBlock returns the first block of a language in the README.
func readmeBlock(t *testing.T, language string) string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(strings.ReplaceAll(string(text), "\r\n", "\n"), "```"+language+"\n")
	if !ok {
		t.Fatalf("the README has no block of %s", language)
	}
	code, _, _ := strings.Cut(rest, "```\n")
	return code
}

// The program in the README is examples/bills, and says to a model what the README
// shows.
func TestReadme(t *testing.T) {
	tool := testdep.LookPath(t, "go")
	code := readmeBlock(t, "go")
	if text, err := os.ReadFile("../../examples/bills/main.go"); err != nil || string(text) != code {
		t.Errorf("the program of the README is not that of examples/bills: %v", err)
	}
	dir, address := t.TempDir(), testexec.FreeAddr(t)
	source, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "bills.exe")
	if err := os.WriteFile(source, []byte(strings.Replace(code, "127.0.0.1:8080", address, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"vet", source}, {"build", "-o", program, source}} {
		if out, err := exec.CommandContext(t.Context(), tool, args...).CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", args[0], err, out)
		}
	}
	testexec.Start(t, program, address)
	call := func(arguments string) (r result) {
		t.Helper()
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"split_bill","arguments":` + arguments + `,"_meta":{` +
			`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "split_bill",
		} {
			request.Header.Set(name, value)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var m message
		if err := json.NewDecoder(response.Body).Decode(&m); err != nil {
			t.Fatal(err)
		}
		return m.Result
	}
	bad, good := call(`{"total":"a lot","peple":3,"tip":60}`), call(`{"total":100,"people":4}`)
	if want := readmeBlock(t, "text"); !bad.IsError || bad.Content[0].Text+"\n" != want {
		t.Errorf("the README shows\n%sbut it is\n%+v", want, bad)
	}
	if string(good.Structured) != `{"each":27.5}` {
		t.Errorf("got %s", good.Structured)
	}
}
