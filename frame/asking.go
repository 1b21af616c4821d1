package frame

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// ErrInputRequired is the error of a question that the client has not answered
// yet, in modern revisions. A handler returns it, as it is or wrapped: the
// client is then told the question, and sends the request again with the
// answer; the handler runs again from its top and this time gets it.
var ErrInputRequired = errors.New("frame: the client has to answer first")

// Question is something to ask the client for: what SampleQuestion,
// RootsQuestion, mcp.ElicitQuestion and mcp.URLQuestion return.
type Question struct {
	key    string
	method string
	// params returns the params of the request to the client.
	params func(f *Frame) (json.RawMessage, error)
	// needs returns the error for a client without the capability, nil if it
	// is there.
	needs func(c *protocol.ClientCapabilities) *protocol.Error
	// take reads the answer.
	take func(raw json.RawMessage) error
}

// Key returns the key that tells the question from the others of its request.
func (q *Question) Key() string { return q.key }

// Method returns the method by which the client is asked.
func (q *Question) Method() string { return q.method }

// Params returns the params of the request to the client, for f that asks.
func (q *Question) Params(f *Frame) (json.RawMessage, error) { return q.params(f) }

// Askers makes the Asker of a request; the server has one for legacy
// revisions and one for modern ones.
// send sends a message to the client beside those of Progress and Log.
type Askers interface {
	Asker(f *Frame, send func(message []byte) error) Asker
}

// Asker carries the questions of one request to the client, and the answers
// back.
type Asker interface {
	// Ask returns the answers in the order of the questions, or
	// ErrInputRequired.
	Ask(f *Frame, questions []*Question) ([]json.RawMessage, error)
	// Recall returns what Keep kept under a key, in this round or before.
	Recall(f *Frame, key string) (value json.RawMessage, ok bool, err error)
	// Keep makes later rounds of the request recall a value.
	Keep(f *Frame, key string, value json.RawMessage)
	// Required returns the result that tells the client what was asked.
	Required(f *Frame) (protocol.Result, error)
}

// ask asks the client several questions at once; see mcp.Ask.
func ask(f *Frame, questions ...*Question) error {
	if err := f.detachToAsk(); err != nil {
		return err
	}
	asker := f.asker()
	if asker == nil {
		return fmt.Errorf("mcp: %s has no client to ask", f.request.Method)
	}
	for _, q := range questions {
		if err := f.claim(q.key); err != nil {
			return err
		}
		if fault := q.needs(f.ClientCapabilities()); fault != nil {
			if f.session != nil {
				// Legacy revisions have no such code; the model may read this.
				return errors.New(fault.Message)
			}
			return fault
		}
	}
	answers, err := asker.Ask(f, questions)
	if err != nil {
		return err
	}
	for i, q := range questions {
		if err := q.take(answers[i]); err != nil {
			return protocol.Errorf(protocol.CodeInvalidParams, "the client's answer to %q is not valid: %w", q.key, err)
		}
	}
	return nil
}

// SampleQuestion asks the client's model to go on with a conversation; the
// answer goes to into.
//
// Revision 2026-07-28 deprecates sampling; it works in every revision.
func SampleQuestion(key string, params protocol.SampleParams, into *protocol.SampleResult) *Question {
	return &Question{
		key: key, method: protocol.MethodSample,
		params: func(f *Frame) (json.RawMessage, error) {
			if len(params.Messages) == 0 || params.MaxTokens <= 0 {
				return nil, errors.New("frame: sampling needs messages and a positive MaxTokens")
			}
			p := wire.SampleParamsFor(params, f.Revision())
			if wire.SamplingTools.In(f.Revision()) && f.ClientCapabilities().Sampling.Context == nil {
				p.IncludeContext = "" // such a client has none to include
			}
			return json.Marshal(p)
		},
		needs: func(c *protocol.ClientCapabilities) *protocol.Error {
			switch {
			case c.Sampling == nil:
				return wire.MissingCapability("sampling")
			case (len(params.Tools) > 0 || params.ToolChoice != nil) && c.Sampling.Tools == nil:
				return wire.MissingCapability("sampling", "tools")
			}
			return nil
		},
		take: func(raw json.RawMessage) error { return json.Unmarshal(raw, into) },
	}
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
	return &Question{
		key: key, method: protocol.MethodRoots,
		params: func(*Frame) (json.RawMessage, error) { return json.RawMessage("{}"), nil },
		needs: func(c *protocol.ClientCapabilities) *protocol.Error {
			if c.Roots == nil {
				return wire.MissingCapability("roots")
			}
			return nil
		},
		take: func(raw json.RawMessage) error {
			var result struct {
				Roots *[]protocol.Root `json:"roots"`
			}
			if err := json.Unmarshal(raw, &result); err != nil {
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
	}
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

// Accepted tells whether the user sent the form.
func (e Elicited[T]) Accepted() bool { return e.Action == protocol.ElicitAccept }
