package frame

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"

	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/schema"
)

// Elicited is what a user did with a form, and what is in it if it was
// accepted.
type Elicited[T any] struct {
	Action protocol.ElicitAction
	Value  T // the zero value unless accepted
}

// Accepted tells whether the user sent the form.
func (e Elicited[T]) Accepted() bool { return e.Action == protocol.ElicitAccept }

// ElicitQuestion asks the user to fill in a form that is made from the struct
// T: its fields may be strings, numbers, booleans, enums and lists of enums,
// with the tags that arguments of tools have. The tag jsonschema_extras may name
// the values of an enum for people: enumTitles=One,enumTitles=Two. The answer is
// checked against the tags and goes to into.
func ElicitQuestion[T any](key, message string, into *Elicited[T]) *Question {
	return &Question{
		key: key, method: protocol.MethodElicit,
		params: func(f *Frame) (json.RawMessage, error) {
			rev := f.Revision()
			form, err := formOf(reflect.TypeFor[T]())
			if err != nil {
				return nil, err
			}
			requested, err := form.requested(rev)
			if err != nil {
				return nil, err
			}
			params := protocol.ElicitParams{Message: message, RequestedSchema: requested}
			if rev.Has(protocol.ElicitModes) {
				params.Mode = "form"
			}
			return json.Marshal(params)
		},
		needs: needsForm,
		take: func(raw json.RawMessage) error {
			form, err := formOf(reflect.TypeFor[T]())
			if err != nil {
				return err
			}
			result, err := elicitResult(raw)
			if err != nil {
				return err
			}
			*into = Elicited[T]{Action: result.Action}
			if !into.Accepted() {
				return nil
			}
			if len(result.Content) == 0 {
				result.Content = json.RawMessage("{}")
			}
			return form.plan.Decode(result.Content, &into.Value)
		},
	}
}

// needsForm wants a client that can show forms. An empty capability means
// that it can, since forms came first.
func needsForm(c *protocol.ClientCapabilities) *protocol.Error {
	switch {
	case c.Elicitation == nil:
		return protocol.MissingCapability("elicitation")
	case c.Elicitation.Form == nil && c.Elicitation.URL != nil:
		return protocol.MissingCapability("elicitation", "form")
	}
	return nil
}

func elicitResult(raw json.RawMessage) (result protocol.ElicitResult, err error) {
	if err = json.Unmarshal(raw, &result); err != nil {
		return result, err
	}
	switch result.Action {
	case protocol.ElicitAccept, protocol.ElicitDecline, protocol.ElicitCancel:
		return result, nil
	}
	return result, fmt.Errorf("action must be accept, decline or cancel, got %q", result.Action)
}

// Elicit asks the user to fill in a form; see ElicitQuestion and Ask.
//
//	confirm, err := frame.Elicit[Confirm](f, "confirm", "Delete 3 files?")
//	if err != nil {
//		return out, err
//	}
//	if !confirm.Accepted() { … }
func Elicit[T any](f *Frame, key, message string) (Elicited[T], error) {
	var answer Elicited[T]
	err := Ask(f, ElicitQuestion(key, message, &answer))
	return answer, err
}

// URLQuestion asks the user to visit a page, for what must not pass through
// the client, such as a password. Accepting means that the user agreed to go
// there, not that all is done; see ElicitationID for telling that. Revisions
// from 2025-11-25 on have it.
func URLQuestion(key, message, address string, into *protocol.ElicitAction) *Question {
	return &Question{
		key: key, method: protocol.MethodElicit,
		params: func(f *Frame) (json.RawMessage, error) {
			if u, err := url.Parse(address); err != nil || u.Scheme == "" {
				return nil, fmt.Errorf("frame: %q is not an absolute URL", address)
			}
			return json.Marshal(protocol.ElicitParams{Mode: "url", Message: message, URL: address, ElicitationID: ElicitationID(f, key)})
		},
		needs: func(c *protocol.ClientCapabilities) *protocol.Error {
			if c.Elicitation == nil || c.Elicitation.URL == nil {
				return protocol.MissingCapability("elicitation", "url")
			}
			return nil
		},
		take: func(raw json.RawMessage) error {
			result, err := elicitResult(raw)
			*into = result.Action
			return err
		},
	}
}

// ElicitationID returns the elicitationId of the URL question with that key in
// the request of f. It is the same whenever it is asked for, and no other
// request has it. Only revision 2025-11-25 has such ids; elsewhere it is "".
//
// Once what the page is for is done, the server may tell the client, with
// Server.Notify to f.SessionID, notifications/elicitation/complete and the id
// as the member elicitationId of its params.
func ElicitationID(f *Frame, key string) string {
	rev := f.Revision()
	if rev.Modern() || !rev.Has(protocol.ElicitModes) {
		return ""
	}
	root := f.root
	root.mu.Lock()
	defer root.mu.Unlock()
	if root.asked == "" {
		root.asked = rand.Text()
	}
	return root.asked + "-" + key
}

// ElicitURL asks the user to visit a page; see URLQuestion and Ask.
func ElicitURL(f *Frame, key, message, address string) (protocol.ElicitAction, error) {
	var action protocol.ElicitAction
	err := Ask(f, URLQuestion(key, message, address, &action))
	return action, err
}

var errNoForm = errors.New("a form is a struct of strings, numbers, booleans, enums and lists of enums")

// errNoList is the same where the client's revision has no lists.
var errNoList = errors.New("the client's revision has no lists in forms, which came with 2025-11-25; ask for one value at a time")

// form is a struct as the client is shown it.
type form struct {
	typ  reflect.Type
	plan *schema.Plan
}

func formOf(t reflect.Type) (*form, error) {
	plan, err := schema.Compile(t, nil)
	if err != nil {
		return nil, fmt.Errorf("frame: %v cannot be a form: %w", t, err)
	}
	return &form{t, plan}, nil
}
