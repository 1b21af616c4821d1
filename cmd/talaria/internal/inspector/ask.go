package inspector

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/visible"
)

// The bounds of what waits for a person: how many, and how long all but the first may
// be together, in bytes, as the page gets them.
const (
	maxQuestions = 64
	maxAsked     = 8 << 20
)

// question is what the server asks.
type question struct {
	ID       int64     `json:"id"`
	Kind     string    `json:"kind"` // form, url, sample
	Message  string    `json:"message,omitempty"`
	Calls    []asker   `json:"calls,omitempty"` // the call that asks; several if one of these does
	URL      string    `json:"url,omitempty"`
	Since    time.Time `json:"since"`
	Form     *control  `json:"form,omitempty"`
	Params   string    `json:"params,omitempty"`   // of a sample, as JSON
	Template string    `json:"template,omitempty"` // the answer to begin with
	schema   json.RawMessage
	answer   chan answer
	text     json.RawMessage // all of it, as the page gets it
}

// asker is a call during which the server asks something.
type asker struct {
	ID    int64  `json:"id"`
	Label string `json:"label"` // of its tool or the like
}

// answer is what a person says.
type answer struct {
	ID      int64  `json:"id"`
	Action  string `json:"action"`  // accept, decline, cancel
	Content string `json:"content"` // JSON
}

// questions are those that wait. mu guards all but the functions.
type questions struct {
	mu   sync.Mutex
	next int64
	list []*question
	text json.RawMessage // all of it, as the page gets it; nil after a change
	beat func()
	// running returns the calls that wait for their results. Before 2026-07-28 a question
	// does not say which of them it belongs to.
	running func() []asker
}

// askerKey is the context key of the asker that a request of the client belongs to.
type askerKey struct{}

// ask puts a question and waits for its answer.
func (q *questions) ask(ctx context.Context, one *question) (answer, error) {
	one.answer, one.Since = make(chan answer, 1), time.Now()
	if by, ok := ctx.Value(askerKey{}).(asker); ok {
		one.Calls = []asker{by}
	} else if q.running != nil {
		one.Calls = q.running()
	}
	q.mu.Lock()
	one.ID = q.next + 1
	one.text, _ = json.Marshal(one) // texts always encode
	size := len(one.text)
	for _, other := range q.list {
		size += len(other.text)
	}
	if len(q.list) >= maxQuestions || len(q.list) > 0 && size > maxAsked {
		q.mu.Unlock()
		return answer{}, errors.New("too many open questions (limit 64)")
	}
	q.next++
	q.list, q.text = append(q.list, one), nil
	q.mu.Unlock()
	q.beat()
	defer func() {
		q.mu.Lock()
		q.list, q.text = slices.DeleteFunc(q.list, func(other *question) bool { return other == one }), nil
		q.mu.Unlock()
		q.beat()
	}()
	select {
	case a := <-one.answer:
		return a, nil
	case <-ctx.Done():
		return answer{}, context.Cause(ctx)
	}
}

// waiting returns those that wait.
func (q *questions) waiting() []*question {
	q.mu.Lock()
	defer q.mu.Unlock()
	return append([]*question{}, q.list...)
}

// schema returns what the answer to a question has to fit; ok is false if it does not
// wait.
func (q *questions) schema(id int64) (schema json.RawMessage, ok bool) {
	for _, one := range q.waiting() {
		if one.ID == id {
			return one.schema, true
		}
	}
	return nil, false
}

// encoded returns those that wait as the page gets them, the same text until they
// change: streams look often.
func (q *questions) encoded() json.RawMessage {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.text == nil {
		list := make([]json.RawMessage, len(q.list))
		for n, one := range q.list {
			list[n] = one.text
		}
		q.text, _ = json.Marshal(list) // they were encoded before
	}
	return q.text
}

// errNobody is the error of an answer that no caller waits for.
var errNobody = errors.New("this question is no longer open")

// reply gives an answer. One that does not fit is an error, and the question waits on.
func (q *questions) reply(a answer) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, one := range q.list {
		if one.ID != a.ID {
			continue
		}
		if a.Action == "accept" && one.Kind == "sample" {
			if _, err := sampleRead(a.Content); err != nil {
				return err
			}
		}
		select {
		case one.answer <- a:
			return nil
		default: // another answer was faster, which is an error
		}
	}
	return errNobody
}

// elicit is for client.Options.
func (q *questions) elicit(ctx context.Context, p *client.ElicitParams) (*client.ElicitResult, error) {
	one := &question{Kind: "form", Message: visible.Text(p.Message, visible.Sentence), schema: p.RequestedSchema}
	if p.Mode == "url" {
		one.Kind, one.URL = "url", p.URL // of the web, which the client checks
	} else {
		form, _, err := draw(p.RequestedSchema)
		if err != nil {
			return nil, err
		}
		one.Form = &form
	}
	a, err := q.ask(ctx, one)
	switch {
	case err != nil:
		return nil, err
	case a.Action == "decline":
		return client.Decline()
	case a.Action == "cancel":
		return client.Cancel()
	case one.Kind == "url":
		return client.Accept(nil)
	}
	return client.Accept(json.RawMessage(a.Content))
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
