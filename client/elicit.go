package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/schema"
)

// Accept answers a question with what the user filled in: it encodes to an
// object. nil is for a URL, or for a form that is all defaults.
func Accept(content any) (*protocol.ElicitResult, error) {
	r := &protocol.ElicitResult{Action: protocol.ElicitAccept}
	if content == nil {
		return r, nil
	}
	text, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("the user's answer does not encode: %w", err)
	}
	r.Content = text
	return r, nil
}

// Decline answers that the user refuses.
func Decline() (*protocol.ElicitResult, error) {
	return &protocol.ElicitResult{Action: protocol.ElicitDecline}, nil
}

// Dismiss answers that the user went away without an answer.
func Dismiss() (*protocol.ElicitResult, error) {
	return &protocol.ElicitResult{Action: protocol.ElicitCancel}, nil
}

// answerElicit answers elicitation/create.
func (c *Client) answerElicit(ctx context.Context, params json.RawMessage) ([]byte, error) {
	var q protocol.ElicitParams
	if err := json.Unmarshal(params, &q); err != nil {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "the params of %s do not decode: %w", protocol.MethodElicit, err)
	}
	handler := c.opts.Elicit
	switch q.Mode {
	case "", "form":
	case "url":
		handler = c.opts.ElicitURL
		if u, err := url.Parse(q.URL); err != nil || u.Scheme == "" || u.Host == "" {
			return nil, protocol.Errorf(protocol.CodeInvalidParams, "params.url is no absolute URL")
		}
	default:
		handler = nil
	}
	if handler == nil {
		if c.Capabilities().Elicitation == nil {
			return nil, &protocol.Error{Code: codeRefused, Message: "elicitation is not enabled in this client"}
		}
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "this client does not answer elicitation of mode %q", q.Mode)
	}
	answer, err := handler(ctx, &q)
	if err != nil {
		return nil, err
	}
	if answer == nil {
		return nil, errors.New("the client's handler gave no answer")
	}
	return checkedAnswer(&q, *answer)
}

// checkedAnswer encodes the answer to a question, with the form's defaults
// filled in, after checking it.
func checkedAnswer(q *protocol.ElicitParams, answer protocol.ElicitResult) ([]byte, error) {
	switch answer.Action {
	case protocol.ElicitAccept:
	case protocol.ElicitDecline, protocol.ElicitCancel:
		answer.Content = nil
	default:
		return nil, fmt.Errorf("the client's handler gave the answer %q; it must be accept, decline or cancel", answer.Action)
	}
	if answer.Action == protocol.ElicitAccept && q.Mode != "url" {
		var err error
		if answer.Content, err = fillForm(q.RequestedSchema, answer.Content); err != nil {
			return nil, err
		}
	}
	if q.Mode == "url" {
		answer.Content = nil
	}
	return json.Marshal(answer)
}

// fillForm adds the defaults of the form to what the user filled in, and checks
// the whole against the form's schema.
func fillForm(form, content json.RawMessage) (json.RawMessage, error) {
	if content = bytes.TrimSpace(content); len(content) == 0 || string(content) == "null" {
		content = json.RawMessage("{}")
	}
	if len(bytes.TrimSpace(form)) == 0 {
		return content, nil
	}
	content, err := withDefaults(form, content)
	if err != nil {
		return nil, err
	}
	raw, err := schema.CompileRaw(form)
	if err != nil {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "params.requestedSchema is not valid: %w", err)
	}
	if err := raw.Check(content); err != nil {
		return nil, fmt.Errorf("the client's answer does not fit the requested schema: %w", err)
	}
	return content, nil
}

// withDefaults adds the defaults of a form's properties that content lacks.
func withDefaults(form, content json.RawMessage) (json.RawMessage, error) {
	filled, err := jsonx.Compact(nil, content)
	if err != nil || filled[0] != '{' {
		return nil, fmt.Errorf("the client's answer must be a JSON object, got %.40s", content)
	}
	have := map[string]bool{}
	err = members(filled, func(name []byte, s *jsonx.Scanner) error {
		have[string(name)] = true
		s.SkipChecked()
		return nil
	})
	if err != nil {
		return nil, err
	}
	if _, err := jsonx.Compact(nil, form); err != nil {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "params.requestedSchema is not valid: %w", err)
	}
	properties := protocol.Lookup(form, []string{"properties"})
	if properties == nil {
		return filled, nil
	}
	filled = filled[:len(filled)-1]
	err = members(properties, func(name []byte, s *jsonx.Scanner) error {
		key := string(name)
		if fallback := protocol.Lookup(value(s), []string{"default"}); fallback != nil && !have[key] {
			filled = append(jsonx.AppendString(comma(filled), key), ':')
			filled = append(filled, fallback...)
		}
		return nil
	})
	return append(filled, '}'), err
}
