package inspector

import (
	"fmt"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/protocol"
)

// errRefused is the answer to a sample that the person gives none for; the code is
// that of the protocol for it.
var errRefused = &protocol.Error{Code: -1, Message: "the user refused"}

// sampleTemplate is what an answer in the place of a model begins with.
const sampleTemplate = `{
  "role": "assistant",
  "content": {
    "type": "text",
    "text": ""
  },
  "model": "a person",
  "stopReason": "endTurn"
}`

// sampleRead reads an answer in the place of a model.
func sampleRead(content string) (*client.SampleResult, error) {
	r := &client.SampleResult{}
	if err := jsonx.Unmarshal([]byte(content), r); err != nil {
		return nil, fmt.Errorf("this is not an answer to sampling/createMessage: %w", err)
	}
	return r, nil
}
