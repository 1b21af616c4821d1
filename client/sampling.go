package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/protocol"
)

// answerSample answers sampling/createMessage.
func (c *Client) answerSample(ctx context.Context, params json.RawMessage) ([]byte, error) {
	if c.Capabilities().Sampling == nil {
		return nil, &protocol.Error{Code: codeRefused, Message: "sampling is not enabled in this client"}
	}
	if c.opts.Sample == nil {
		return nil, &protocol.Error{Code: codeRefused, Message: "No sampling callback registered"}
	}
	q, err := parseSample(params)
	if err != nil {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "the params of %s do not decode: %w", protocol.MethodSample, err)
	}
	answer, err := c.opts.Sample(ctx, q)
	if err != nil {
		return nil, err
	}
	if answer == nil {
		return nil, errors.New("the client's handler gave no answer")
	}
	return appendSample(nil, answer)
}

// parseSample reads the params of sampling/createMessage.
func parseSample(raw json.RawMessage) (*protocol.SampleParams, error) {
	var wire struct {
		protocol.SampleParams
		Messages []struct {
			Role    protocol.Role   `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(raw, &wire); err != nil {
		return nil, err
	}
	q := wire.SampleParams
	for i, m := range wire.Messages {
		items, err := protocol.ParseContents(m.Content)
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
		q.Messages = append(q.Messages, protocol.SampleMessage{Role: m.Role, Content: items})
	}
	return &q, nil
}

// appendSample appends the answer to sampling/createMessage. Zero fields of it
// are filled in: the role is that of the assistant, the end that of its turn.
func appendSample(dst []byte, r *protocol.SampleResult) ([]byte, error) {
	role, stop, model := r.Role, r.StopReason, r.Model
	if role == "" {
		role = protocol.RoleAssistant
	}
	if stop == "" {
		stop = "endTurn"
	}
	if model == "" {
		model = "unknown"
	}
	if len(r.Content) == 0 {
		return nil, errors.New("the client's handler gave an answer without content")
	}
	message, err := protocol.SampleMessage{Role: role, Content: r.Content}.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("the answer of the client's handler does not encode: %w", err)
	}
	dst = append(dst, message[:len(message)-1]...)
	dst = jsonx.AppendString(append(dst, `,"model":`...), model)
	dst = jsonx.AppendString(append(dst, `,"stopReason":`...), stop)
	return append(dst, '}'), nil
}
