package frame

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// Question is something to ask the client for: what SampleQuestion,
// RootsQuestion, mcp.ElicitQuestion and mcp.URLQuestion return.
type Question struct{ parts core.Question }

// ask asks the client several questions at once; see mcp.Ask.
func ask(f *Frame, questions ...*Question) error {
	if err := (internals{}).Check(f, "Ask"); err != nil {
		return err
	}
	if err := f.detachToAsk(); err != nil {
		return err
	}
	asker := f.asker()
	if asker == nil {
		return fmt.Errorf("mcp: %s has no client to ask", f.request.Method)
	}
	keys := make([]string, len(questions))
	for i, question := range questions {
		q := &question.parts
		keys[i] = f.keyed(q.Key)
		if err := f.claim(keys[i]); err != nil {
			return err
		}
		if fault := q.Needs(f.ClientCapabilities()); fault != nil {
			if f.session != nil {
				// Legacy revisions have no such code; the model may read this.
				return errors.New(fault.Message)
			}
			return fault
		}
	}
	requests := make([]protocol.InputRequest, len(questions))
	for i, question := range questions {
		params, err := question.parts.Params(f)
		if err != nil {
			return err
		}
		requests[i] = protocol.InputRequest{Key: keys[i], Method: question.parts.Method, Params: params}
	}
	answers, err := asker.Ask(f, requests)
	if err != nil {
		return err
	}
	for i, question := range questions {
		if err := question.parts.Take(answers[i]); err != nil {
			return protocol.Errorf(protocol.CodeInvalidParams, "the client's answer to %q is not valid: %w", question.parts.Key, err)
		}
	}
	return nil
}

// SampleQuestion asks the client's model to continue with a conversation; the
// answer goes to into.
//
// Revision 2026-07-28 deprecates sampling; it works in every revision.
func SampleQuestion(key string, params protocol.SampleParams, into *protocol.SampleResult) *Question {
	return &Question{core.Question{
		Key: key, Method: protocol.MethodSample,
		Params: func(f core.QuestionRequest) (json.RawMessage, error) {
			if len(params.Messages) == 0 || params.MaxTokens <= 0 {
				return nil, errors.New("frame: sampling needs messages and a positive MaxTokens")
			}
			for i, m := range params.Messages {
				if err := checkSample(m); err != nil {
					return nil, fmt.Errorf("frame: sampling message %d: %w", i, err)
				}
			}
			p := wire.SampleParamsFor(params, f.Revision())
			if f.Revision().Has(protocol.FeatureSamplingTools) && f.ClientCapabilities().Sampling.Context == nil {
				p.IncludeContext = "" // such a client has none to include
			}
			return json.Marshal(p)
		},
		Needs: func(c *protocol.ClientCapabilities) *protocol.Error {
			switch {
			case c.Sampling == nil:
				return wire.MissingCapability("sampling")
			case (len(params.Tools) > 0 || params.ToolChoice != nil) && c.Sampling.Tools == nil:
				return wire.MissingCapability("sampling", "tools")
			}
			return nil
		},
		Take: func(raw json.RawMessage) error { return jsonx.Unmarshal(raw, into) },
	}}
}

// checkSample returns what clients refuse in a message of a conversation
// (client/sampling of every revision).
func checkSample(m protocol.SampleMessage) error {
	switch {
	case m.Role != protocol.RoleUser && m.Role != protocol.RoleAssistant:
		return fmt.Errorf("it has role %q; it must be %q or %q", m.Role, protocol.RoleUser, protocol.RoleAssistant)
	case len(m.Content) == 0:
		return errors.New("it has no content")
	}
	for i, item := range m.Content {
		switch item.(type) {
		case protocol.ResourceLink, *protocol.ResourceLink, protocol.EmbeddedResource, *protocol.EmbeddedResource:
			return fmt.Errorf("content item %d is a %T, which a model cannot read: send its text", i, item)
		}
		if err := protocol.Internal(facts.Private{}).CheckContent(i, item); err != nil {
			return err
		}
	}
	return nil
}

// Sample asks the client's model; see SampleQuestion and mcp.Ask.
func Sample(f *Frame, key string, params protocol.SampleParams) (*protocol.SampleResult, error) {
	result := &protocol.SampleResult{}
	if err := ask(f, SampleQuestion(key, params, result)); err != nil {
		return nil, err
	}
	return result, nil
}

// RootsQuestion asks for the places that the client lets the server work in;
// the answer goes to into.
//
// Revision 2026-07-28 deprecates roots; they work in every revision.
func RootsQuestion(key string, into *[]protocol.Root) *Question {
	return &Question{core.Question{
		Key: key, Method: protocol.MethodRoots,
		Params: func(core.QuestionRequest) (json.RawMessage, error) { return json.RawMessage("{}"), nil },
		Needs: func(c *protocol.ClientCapabilities) *protocol.Error {
			if c.Roots == nil {
				return wire.MissingCapability("roots")
			}
			return nil
		},
		Take: func(raw json.RawMessage) error {
			var result struct {
				Roots *[]protocol.Root `json:"roots"`
			}
			if err := jsonx.Unmarshal(raw, &result); err != nil {
				return err
			}
			if result.Roots == nil {
				return errors.New("member roots is missing")
			}
			for i, root := range *result.Roots {
				if root.URI == "" {
					return fmt.Errorf("roots/%d has no uri", i)
				}
			}
			*into = *result.Roots
			return nil
		},
	}}
}

// Roots asks for the client's roots; see RootsQuestion and mcp.Ask.
func Roots(f *Frame, key string) ([]protocol.Root, error) {
	var roots []protocol.Root
	err := ask(f, RootsQuestion(key, &roots))
	return roots, err
}

// Elicited is what a user did with a form, and what is in it if it was
// accepted.
type Elicited[T any] struct {
	Action protocol.ElicitAction
	Value  T // the zero value unless accepted
}

// Accepted reports whether the user sent the form.
func (e Elicited[T]) Accepted() bool { return e.Action == protocol.ElicitAccept }
