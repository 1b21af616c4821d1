package mcptest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/mcptest"
)

type goldenIn struct {
	Query string `json:"query" validate:"required" jsonschema_description:"what to look for"`
}

type goldenMore struct {
	Query string `json:"query" validate:"required" jsonschema_description:"what to look for"`
	Limit int    `json:"limit" validate:"required"`
}

// goldenT is a testing.TB that notes how it failed, at its end or before.
type goldenT struct{ fakeT }

func (g *goldenT) Errorf(format string, args ...any) { g.failed = fmt.Sprintf(format, args...) }

// golden compares a server with a tool of arguments In, and returns how that failed.
func golden[In any](t *testing.T, text, instructions, file string) (failed string) {
	t.Helper()
	s := mcp.NewServer(mcp.Info{Name: "library", Version: "1"}, &mcp.Options{Instructions: instructions})
	s.MustAdd(mcp.Tool("search", func(*mcp.Frame, In) (string, error) { return "", nil }, mcp.Doc(text)))
	fake := &goldenT{fakeT{TB: t}}
	c := mcptest.New(fake, s)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Golden(file)
	}()
	<-done
	return fake.failed
}

func TestGolden(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mcp.lock")
	t.Setenv("MCPTEST_UPDATE", "")
	if got, want := golden[goldenIn](t, "Searches", "", file), "there is no "+file+"; MCPTEST_UPDATE=1 go test writes it"; !strings.Contains(got, want) {
		t.Errorf("without the file: %q, want %q", got, want)
	}
	t.Setenv("MCPTEST_UPDATE", "1")
	if got := golden[goldenIn](t, "Searches", "", file); got != "" {
		t.Error(got)
	}
	if _, err := client.ReadLock(file); err != nil {
		t.Error(err)
	}
	t.Setenv("MCPTEST_UPDATE", "")
	for name, test := range map[string]struct{ got, want string }{
		"the same":     {golden[goldenIn](t, "Searches", "", file), ""},
		"arguments":    {golden[goldenMore](t, "Searches", "", file), ":\nbreaking: search: /limit is required now\nMCPTEST_UPDATE=1 go test accepts it"},
		"a text":       {golden[goldenIn](t, "Finds", "", file), ":\nwords: search: its description differs\nMCPTEST_UPDATE=1 go test accepts it"},
		"instructions": {golden[goldenIn](t, "Searches", "Be quick.", file), ":\nwords: the server: its instructions differ\nMCPTEST_UPDATE=1 go test accepts it"},
	} {
		if (test.got == "") != (test.want == "") || !strings.HasSuffix(test.got, test.want) {
			t.Errorf("%s: %q, want %q", name, test.got, test.want)
		}
	}
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := golden[goldenIn](t, "Searches", "", file); !strings.Contains(got, "it is not a lock") {
		t.Errorf("%q", got)
	}
}
