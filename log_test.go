package mcp_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/mcptest"
)

// On a terminal the stack of a panic is lines that people can read, and what
// stands in it cannot do anything to the terminal.
func TestLogForPeople(t *testing.T) {
	var out bytes.Buffer
	logger := zerolog.New(mcp.LogForPeople(&out)).With().Timestamp().Logger()
	s := fixture(t, &mcp.Options{Logger: &logger})
	s.MustAdd(mcp.Tool("broken", func(*mcp.Frame, empty) (empty, error) { panic("out of ideas \x1b[2J") }))
	_, _ = mcptest.New(t, s).TryCall("broken", nil)
	text := out.String()
	if !strings.Contains(text, "handler panicked") || !strings.Contains(text, "out of ideas") {
		t.Errorf("the log does not say what happened: %s", text)
	}
	if !strings.Contains(text, "\ngoroutine ") || !strings.Contains(text, "\n\t") || strings.Contains(text, `\n`) {
		t.Errorf("the stack is not in lines: %s", text)
	}
	if strings.Contains(text, "\x1b") {
		t.Errorf("the terminal is sent control characters: %q", text)
	}
}
