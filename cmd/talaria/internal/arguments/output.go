package arguments

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/talaria-go/mcp/schema/raw"
)

// CheckOutput returns why the structured content of a result is not what the output
// schema of its tool promises; nil if it is, or if there is no such schema.
func CheckOutput(schema, structured json.RawMessage) error {
	if len(schema) == 0 {
		return nil
	}
	if len(structured) == 0 {
		return errors.New("the tool has an output schema, and its result has no structured content")
	}
	if _, err := raw.Compile(schema); err != nil {
		return fmt.Errorf("the output schema of the tool is broken: %w", err)
	}
	if err := check(schema, structured); err != nil {
		return fmt.Errorf("the structured content does not fit the output schema of the tool:\n%w", err)
	}
	return nil
}
