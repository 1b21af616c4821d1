package hostile_test

import (
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
)

// A handler that drops the error of a question is named in the log, once: in 2026-07-28
// the user is never asked.
func TestDroppedQuestion(t *testing.T) {
	type confirm struct {
		Yes bool `json:"yes"`
	}
	drop := func(f *mcp.Frame, _ struct{}) (string, error) {
		if _, err := mcp.Elicit[confirm](f, "sure", "Sure?"); err != nil {
			return "could not ask: " + err.Error(), nil
		}
		return "asked", nil
	}
	for _, tr := range harness.TransportsOf(protocol.Latest) {
		t.Run(tr.Name, func(t *testing.T) {
			var log harness.LogText
			s := mcp.NewServer(mcp.Info{Name: "dropped", Version: "1"}, &mcp.Options{Logger: new(zerolog.New(&log))})
			replace := func(f *mcp.Frame, _ struct{}) (string, error) {
				_, err := mcp.Elicit[confirm](f, "sure", "Sure?")
				return "", mcp.Errorf(mcp.CodeInternal, "could not ask: %v", err)
			}
			s.MustAdd(mcp.Tool("drop", drop), mcp.Prompt("drop", drop), mcp.Tool("replace", replace), mcp.Prompt("replace", replace), mcp.Tool("ask", func(f *mcp.Frame, _ struct{}) (string, error) {
				_, err := mcp.Elicit[confirm](f, "sure", "Sure?")
				return "asked", err
			}))
			p := harness.Join(t, tr, protocol.Latest, s)
			const can = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}`
			ask := func(method, name string) string {
				return strings.Join(p.C.Say(`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{"name":"`+name+`"`+can+`}}`), "")
			}
			for range 2 {
				p.Want(ask("tools/call", "drop"), "could not ask")
				p.Want(ask("prompts/get", "drop"), "could not ask")
				p.Want(ask("tools/call", "replace"), "could not ask")
				p.Want(ask("prompts/get", "replace"), "could not ask")
				p.Want(ask("tools/call", "ask"), "input_required")
			}
			if n := strings.Count(log.String(), "the user is not asked"); n != 4 || strings.Count(log.String(), `"method":"tools/call","name":"drop","questions":["sure"]`) != 1 {
				t.Errorf("%d lines, want 4: %s", n, log.String())
			}
		})
	}
}
