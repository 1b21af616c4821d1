package ask

import (
	"encoding/json"
	"fmt"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/facts"
)

// All asks the client several questions at once; see mcp.Ask.
func All(f *frame.Frame, questions ...*frame.Question) error {
	return frame.Internal(facts.Private{}).Ask(f, questions)
}

// Once runs fn once per request; see mcp.Once. If the handler may run again, for
// the next round, the value is kept as JSON and decoded there. Where the request
// has no Asker it runs only once, and so does fn.
func Once[T any](f *frame.Frame, key string, fn func() (T, error)) (value T, err error) {
	if err := frame.Internal(facts.Private{}).Check(f, "Once"); err != nil {
		return value, err
	}
	asker := frame.Internal(facts.Private{}).Asker(f)
	if asker == nil {
		return fn()
	}
	kept := frame.Internal(facts.Private{}).Keyed(f, key)
	raw, ok, err := asker.Recall(kept)
	if err != nil {
		return value, err
	}
	if ok {
		if err := json.Unmarshal(raw, &value); err != nil {
			return value, fmt.Errorf("mcp: what Once kept under %q does not decode into %T: %w", key, value, err)
		}
		return value, nil
	}
	if value, err = fn(); err != nil {
		return value, err
	}
	if raw, err = json.Marshal(value); err != nil {
		return value, fmt.Errorf("mcp: what Once got for %q does not encode: %w", key, err)
	}
	if err := frame.Internal(facts.Private{}).Keep(f, kept, raw); err != nil {
		var none T
		return none, fmt.Errorf("mcp: what Once got for %q could not be kept: %w", key, err)
	}
	return value, nil
}
