package arguments

import (
	"encoding/json"
	"errors"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/schema"
)

// ServerChecksMore reports whether the server of a tool checks arguments by more rules than
// the tool's schema has, before the tool runs: then the server has the whole list of faults.
// meta is the _meta of the tool.
func ServerChecksMore(meta map[string]any) bool {
	marked, _ := meta[wire.MetaChecks].(bool)
	return marked
}

// Refusal returns the faults of arguments that a server found, in the form of Arguments;
// nil if it found none. meta is the _meta of the result.
func Refusal(meta json.RawMessage) error {
	var members map[string]json.RawMessage
	var issues []schema.Issue
	if jsonx.Unmarshal(meta, &members) != nil || jsonx.Unmarshal(members[wire.MetaIssues], &issues) != nil {
		return nil
	}
	lines := make([]error, len(issues))
	for i, is := range issues {
		lines[i] = line(is)
	}
	return errors.Join(lines...)
}
