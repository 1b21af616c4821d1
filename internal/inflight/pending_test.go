package inflight

import (
	"context"
	"testing"

	"github.com/talaria-go/mcp/protocol"
)

// An answer finds its request by the value of its id.
func TestAnswerInAnotherSpelling(t *testing.T) {
	for _, tt := range []struct{ name, id string }{{"", "1"}, {"", "1.0"}, {"", "10e-1"}, {"a/b", `"a/b-1"`}, {"a/b", `"a\/b-1"`}, {"a/b", `"\u0061/b-1"`}} {
		var p Pending
		if tt.name != "" {
			p.Name(tt.name)
		}
		answer := protocol.Message{Result: []byte(`{}`)}
		if err := answer.ID.UnmarshalJSON([]byte(tt.id)); err != nil {
			t.Fatal(err)
		}
		found := false
		result, err := p.Call(context.Background(), func([]byte) error {
			found = p.Answer(&answer)
			if !found {
				p.Close(context.Canceled)
			}
			return nil
		}, protocol.MethodPing, nil)
		if !found || err != nil || string(result) != "{}" {
			t.Errorf("%s: found %v, %s, %v", tt.id, found, result, err)
		}
	}
}
