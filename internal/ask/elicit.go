// Package ask makes the questions to the user that are written as Go types, forms and
// visits of pages, and carries them to modern clients. Package mcp exports it.
//
// A question is a frame.Question with a key, which tells it from others of the
// same request. [ElicitQuestion] makes one of a struct type: its schema becomes
// the form, and the answer is decoded and checked against it. [URLQuestion]
// asks for a visit. [All] puts questions through the Asker of the request,
// whichever way the client is asked; Elicit and ElicitURL put one. [Once] keeps
// what a handler must not do again in the next round.
//
// Modern clients cannot be sent requests. [Askers] keeps what a handler has asked and
// learned in a sealed state that travels to the client and back (basic/patterns/mrtr of
// 2026-07-28). A request takes several rounds. In each, the handler runs from its start. A
// question that has no answer yet ends the round: the result names the questions and has
// the state, and the client sends the same request again, with its answers and that state.
// The server keeps nothing between the rounds, so that any process with the same keys can
// serve the next one. The state is bound to the principal, the method, the name and the
// arguments of the request. It does not stop a client from sending one round twice: what
// must happen once needs a guard of its own. [AskersConfig] bounds its expiry, its size
// and the number of rounds.
//
// Legacy clients, which can be sent requests, are asked by package session; clients of a
// task by internal/tasks. The package starts no goroutines. Whether the client can be
// asked at all is checked by package frame, with the Needs of the question.
//
// Specification: client/elicitation of 2025-06-18 and later. Visits of pages,
// lists in forms, and defaults of anything but booleans came with 2025-11-25.
package ask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/schema"
)

// Options finds the schema options of the server whose handler asks; nil means the
// defaults.
type Options func(f core.QuestionRequest) *schema.Options

// ElicitQuestion asks the user to fill in a form; see mcp.ElicitQuestion.
func ElicitQuestion[T any](options Options, key, message string, into *frame.Elicited[T]) *frame.Question {
	var form *form // which Params makes before Take needs it
	return frame.Internal(facts.Private{}).Question(core.Question{
		Key: key, Method: protocol.MethodElicit,
		Params: func(f core.QuestionRequest) (_ json.RawMessage, err error) {
			rev := f.Revision()
			form, err = formOf(reflect.TypeFor[T](), options(f))
			if err != nil {
				return nil, err
			}
			requested, err := form.requested(rev)
			if err != nil {
				return nil, err
			}
			params := protocol.ElicitParams{Message: message, RequestedSchema: requested}
			if rev.Has(protocol.FeatureElicitModes) {
				params.Mode = "form"
			}
			return json.Marshal(params)
		},
		Needs: needsForm,
		Take: func(raw json.RawMessage) error {
			result, err := elicitResult(raw)
			if err != nil {
				return err
			}
			*into = frame.Elicited[T]{Action: result.Action}
			if !into.Accepted() {
				return nil
			}
			if len(result.Content) == 0 {
				result.Content = json.RawMessage("{}")
			}
			return form.plan.Decode(context.Background(), result.Content, &into.Value)
		},
	})
}

// needsForm wants a client that can show forms. An empty capability means
// that it can, since forms came first.
func needsForm(c *protocol.ClientCapabilities) *protocol.Error {
	switch {
	case c.Elicitation == nil:
		return wire.MissingCapability("elicitation")
	case c.Elicitation.Form == nil && c.Elicitation.URL != nil:
		return wire.MissingCapability("elicitation", "form")
	}
	return nil
}

// elicitResult decodes the client's answer and checks its action. Other values
// are errors rather than a refusal: nothing tells what such a client meant.
func elicitResult(raw json.RawMessage) (result protocol.ElicitResult, err error) {
	if err = jsonx.Unmarshal(raw, &result); err != nil {
		return result, err
	}
	switch result.Action {
	case protocol.ElicitAccept, protocol.ElicitDecline, protocol.ElicitCancel:
		return result, nil
	}
	return result, fmt.Errorf("action must be accept, decline or cancel, got %q", result.Action)
}

// Elicit asks the user to fill in a form; see mcp.Elicit.
func Elicit[T any](options Options, f *frame.Frame, key, message string) (frame.Elicited[T], error) {
	var answer frame.Elicited[T]
	err := All(f, ElicitQuestion(options, key, message, &answer))
	return answer, err
}

// URLQuestion asks the user to visit a page; see mcp.URLQuestion.
func URLQuestion(key, message, address string, into *frame.Elicited[struct{}]) *frame.Question {
	return frame.Internal(facts.Private{}).Question(core.Question{
		Key: key, Method: protocol.MethodElicit,
		Params: func(f core.QuestionRequest) (json.RawMessage, error) {
			if err := wire.CheckWebURL(address); err != nil {
				return nil, fmt.Errorf("mcp: a user cannot be asked to visit %q: %w", address, err)
			}
			return json.Marshal(protocol.ElicitParams{Mode: "url", Message: message, URL: address, ElicitationID: f.ElicitationID(key)})
		},
		Needs: func(c *protocol.ClientCapabilities) *protocol.Error {
			if c.Elicitation == nil || c.Elicitation.URL == nil {
				return wire.MissingCapability("elicitation", "url")
			}
			return nil
		},
		Take: func(raw json.RawMessage) error {
			result, err := elicitResult(raw)
			*into = frame.Elicited[struct{}]{Action: result.Action}
			return err
		},
	})
}

// ElicitURL asks the user to visit a page; see mcp.ElicitURL.
func ElicitURL(f *frame.Frame, key, message, address string) (frame.Elicited[struct{}], error) {
	var answer frame.Elicited[struct{}]
	err := All(f, URLQuestion(key, message, address, &answer))
	return answer, err
}

// errNoForm is the error for a struct that forms cannot show.
var errNoForm = errors.New("a form is a struct of strings, numbers, booleans, enums and lists of enums")

// errNoList is the error for a list, where the client's revision has none in
// forms.
var errNoList = errors.New("the client's revision has no lists in forms, which came with 2025-11-25; ask for one value at a time")

// form is a struct as the client is shown it: the type, for errors, and its plan,
// which has the schema and decodes the answer.
type form struct {
	typ  reflect.Type
	plan *schema.Plan
}

// formOf compiles a struct type for a form. Whether a form can show the fields
// is found out by requested, for the revision of the client.
func formOf(t reflect.Type, of *schema.Options) (*form, error) {
	var options schema.Options
	if of != nil {
		options = *of
	}
	// An answer comes from a person, through a client that may write 5 as "5".
	options.Strict, options.RequiredNonZero, options.Output = false, false, false
	plan, err := schema.Compile(t, &options)
	if err != nil {
		return nil, fmt.Errorf("mcp: %v cannot be a form: %w", t, err)
	}
	return &form{t, plan}, nil
}
