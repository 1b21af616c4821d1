package inspector

import (
	"errors"
	"time"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
)

// The bounds of completion: how many may be asked for at a time, how long the
// server has for one, and what is shown of it.
const (
	maxCompletions = 8
	completionTime = 10 * time.Second
	maxValues      = 100
	maxValue       = 4 << 10 // bytes
)

// errNoConnection is the answer to what needs one.
var errNoConnection = errors.New("not connected")

// suggestions are values that an argument can have.
type suggestions struct {
	Values []option `json:"values"`
	More   bool     `json:"more,omitempty"`
}

// completes reports whether a server completes arguments. Before it could say so,
// it is asked.
func completes(c *client.Client) bool {
	return c != nil && (c.Server().Capabilities.Completions != nil || !c.Revision().Has(protocol.FeatureCompletionsCapability))
}
