package inspector

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/visible"
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

// sample is for client.Options: a person takes the place of the model.
func (q *questions) sample(ctx context.Context, p *client.SampleParams) (*client.SampleResult, error) {
	text, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return nil, err
	}
	one := &question{Kind: "sample", Message: visible.Text(p.SystemPrompt, maxSent), Params: visible.Text(string(text), maxSent), Template: sampleTemplate}
	a, err := q.ask(ctx, one)
	switch {
	case err != nil:
		return nil, err
	case a.Action != "accept":
		return nil, errRefused
	}
	return sampleRead(a.Content)
}

// webAddress returns the URL that a person may be sent to, as it is opened; an
// invalid one is an error.
func webAddress(text string) (string, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
		return "", fmt.Errorf("%s is not an address of the web", visible.Line(text, visible.Sentence))
	case u.User != nil:
		return "", fmt.Errorf("%s has a name or a password in it, which can hide where it leads", visible.Line(u.Redacted(), visible.Sentence))
	}
	return u.String(), nil
}
