package frame

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/talaria-go/mcp/protocol"
)

// ErrInputRequired is the error of a question that the client has not answered
// yet, in modern revisions. A handler returns it, as it is or wrapped: the
// client is then told the question, and sends the request again with the
// answer; the handler runs again from its top and this time gets it.
var ErrInputRequired = errors.New("frame: the client has to answer first")

// Question is something to ask the client for: what ElicitQuestion,
// URLQuestion, SampleQuestion and RootsQuestion return.
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

// Askers makes the Asker of a request; the server brings one for each era.
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

// Ask asks the client several questions at once; each puts its answer where it
// was told to. In legacy revisions it sends them and waits for the answers; in
// the modern one it returns ErrInputRequired until the client has sent them
// (basic/patterns/mrtr of 2026-07-28).
//
// Keys must differ within a request and stay the same from round to round: a
// key that is used for a second time is an error, since the answer of the first
// would be taken for that of the second. A client that did not declare the
// capability is not asked: that is an error.
func Ask(f *Frame, questions ...*Question) error {
	asker := f.asker()
	if asker == nil {
		return fmt.Errorf("frame: %s has no client to ask", f.root.request.Method)
	}
	for _, q := range questions {
		if err := f.root.claim(q.key); err != nil {
			return err
		}
		if fault := q.needs(f.ClientCapabilities()); fault != nil {
			if f.root.session != nil {
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

// claim takes a key for one question of this run of the handler. root is the
// Frame that all others of the request come from.
func (root *Frame) claim(key string) error {
	if key == "" {
		return errors.New("frame: a question needs a key, which tells it from the others of its request")
	}
	root.mu.Lock()
	defer root.mu.Unlock()
	if root.keys[key] {
		return fmt.Errorf("frame: the key %q is that of an earlier question of this request; give each a key of its own, such as %q", key, key+"2")
	}
	if root.keys == nil {
		root.keys = make(map[string]bool)
	}
	root.keys[key] = true
	return nil
}

// Once runs fn once per request, however often its handler runs again for
// answers, and returns what it returned. In legacy revisions, where handlers
// do not run again, it simply runs fn. T must survive encoding/json. An error
// is not kept: fn runs again then.
//
// What fn returned travels with the client's next round, so it is known from
// then on, and not in the round in which fn ran: a client that sends one round
// twice, on purpose or because the answer was lost, has fn run twice. What must
// never happen twice also needs a record of the server's own, for instance one
// by the id of an order that an earlier round has made (Security Considerations
// in basic/patterns/mrtr of 2026-07-28).
func Once[T any](f *Frame, key string, fn func() (T, error)) (value T, err error) {
	asker := f.asker()
	if asker == nil {
		return fn()
	}
	raw, ok, err := asker.Recall(f, key)
	if err != nil {
		return value, err
	}
	if ok {
		if err := json.Unmarshal(raw, &value); err != nil {
			return value, fmt.Errorf("frame: what Once kept under %q does not decode into %T: %w", key, value, err)
		}
		return value, nil
	}
	if value, err = fn(); err != nil {
		return value, err
	}
	if raw, err = json.Marshal(value); err != nil {
		return value, fmt.Errorf("frame: what Once got for %q does not encode: %w", key, err)
	}
	asker.Keep(f, key, raw)
	return value, nil
}

// InputRequired returns the result that tells the client what the handler
// asked; the dispatcher answers with it when a handler returns
// ErrInputRequired.
func (f *Frame) InputRequired() (protocol.Result, error) {
	asker := f.asker()
	if asker == nil {
		return nil, ErrInputRequired
	}
	return asker.Required(f)
}

// asker returns the Asker of f, made when it is first needed; nil if the
// client cannot be asked.
func (f *Frame) asker() Asker {
	root := f.root
	root.mu.Lock()
	defer root.mu.Unlock()
	if root.asking == nil && root.askers != nil && root.peer != nil {
		root.asking = root.askers.Asker(root, root.peer.Send)
	}
	return root.asking
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
			p := params.For(f.Revision())
			if f.Revision().Has(protocol.SamplingTools) && f.ClientCapabilities().Sampling.Context == nil {
				p.IncludeContext = "" // such a client has none to include
			}
			return json.Marshal(p)
		},
		needs: func(c *protocol.ClientCapabilities) *protocol.Error {
			switch {
			case c.Sampling == nil:
				return protocol.MissingCapability("sampling")
			case (len(params.Tools) > 0 || params.ToolChoice != nil) && c.Sampling.Tools == nil:
				return protocol.MissingCapability("sampling", "tools")
			}
			return nil
		},
		take: func(raw json.RawMessage) error { return json.Unmarshal(raw, into) },
	}
}

// Sample asks the client's model; see SampleQuestion and Ask.
func Sample(f *Frame, key string, params protocol.SampleParams) (*protocol.SampleResult, error) {
	result := &protocol.SampleResult{}
	if err := Ask(f, SampleQuestion(key, params, result)); err != nil {
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
				return protocol.MissingCapability("roots")
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

// Roots asks for the client's roots; see RootsQuestion and Ask.
func Roots(f *Frame, key string) ([]protocol.Root, error) {
	var roots []protocol.Root
	err := Ask(f, RootsQuestion(key, &roots))
	return roots, err
}
