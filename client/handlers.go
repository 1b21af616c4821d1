package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/schema/raw"
)

// handlers answer what the server asks, whether it arrives as a request or in a
// result that wants more input. They keep the roots, and the visits that are
// awaited.
type handlers struct {
	client   *Client
	roots    roots
	elicited elicited
}

// codeRefused is the code of a question that the user refuses, or whose handler
// fails ("User rejected sampling request: -1", client/sampling of 2025-11-25).
const codeRefused protocol.Code = -1

// asFault returns the error to answer a question with.
func asFault(err error) *protocol.Error {
	var fault *protocol.Error
	if errors.As(err, &fault) {
		return fault
	}
	return &protocol.Error{Code: codeRefused, Message: err.Error(), Err: err}
}

// answer returns the answer to a question of the server, of any revision. The
// handler runs in the guard; the server learns nothing about a panic.
func (h *handlers) answer(ctx context.Context, conn *connection, method string, params json.RawMessage) (result []byte, err error) {
	conn.asking.Add(1)
	defer func() {
		conn.askedAt.Store(time.Now().UnixNano())
		conn.asking.Add(-1)
	}()
	// The text of a panic is not sent to the server.
	if h.client.guard(visible.Line(method, visible.Name), func() { result, err = h.observed(ctx, method, params) }) != nil {
		return nil, errors.New("the client's handler failed")
	}
	return result, err
}

// observed is ask within Options.AroundServerRequest.
func (h *handlers) observed(ctx context.Context, method string, params json.RawMessage) (result []byte, err error) {
	around := h.client.opts.AroundServerRequest
	if around == nil || method == protocol.MethodPing {
		return h.ask(ctx, method, params)
	}
	err = errors.New("client: Options.AroundServerRequest has not called next")
	r := &ServerRequest{Method: method, Params: params}
	refused := around(ctx, r, func(ctx context.Context) error {
		result, err = h.ask(ctx, method, params)
		r.Result = result
		return err
	})
	if refused != nil {
		return nil, refused
	}
	return result, err
}

// ask calls the handler for a method. A ping is answered whatever the options
// say, as every revision with pings demands.
func (h *handlers) ask(ctx context.Context, method string, params json.RawMessage) ([]byte, error) {
	switch {
	case method == protocol.MethodPing:
		return []byte("{}"), nil
	case h.client.opts.OnRequest != nil:
		return h.answerRaw(ctx, method, params)
	}
	switch method {
	case protocol.MethodRoots:
		return h.answerRoots()
	case protocol.MethodSample:
		return h.answerSample(ctx, params)
	case protocol.MethodElicit:
		return h.answerElicit(ctx, params)
	}
	return nil, wire.MethodNotFound(method)
}

// answerRaw answers a request of any method with Options.OnRequest.
func (h *handlers) answerRaw(ctx context.Context, method string, params json.RawMessage) ([]byte, error) {
	result, err := h.client.opts.OnRequest(ctx, method, params)
	if err != nil {
		return nil, err
	}
	text, err := jsonx.Append(nil, result)
	if err != nil {
		return nil, fmt.Errorf("the answer of the client's handler does not encode: %w", err)
	}
	return text, nil
}

// InputRequiredError is the cause of the error of a request for which the
// server wants more input, when the client does not answer by itself
// (basic/patterns/mrtr of 2026-07-28). Make the request again with Answers to
// continue.
type InputRequiredError struct {
	Requests []protocol.InputRequest // in the order of the server
	State    string                  // to be sent back as it is

	stated bool // there is a state, though it may be empty
}

// Error says what the server wants.
func (e *InputRequiredError) Error() string {
	return fmt.Sprintf("the server wants %d answers before it gives a result", len(e.Requests))
}

// parseInputRequired decodes a result that wants more input.
func parseInputRequired(method string, raw []byte) (*InputRequiredError, error) {
	switch method {
	case protocol.MethodToolsCall, protocol.MethodPromptsGet, protocol.MethodResourcesRead:
	default:
		return nil, fmt.Errorf("the server wants input for %s, which must not need any", method)
	}
	e := &InputRequiredError{}
	found := false
	err := given(raw, func(name []byte, s *jsonx.Scanner) (err error) {
		switch string(name) {
		case "requestState":
			found = true
			text := value(s)
			e.stated = len(text) > 0 && text[0] == '"'
			return jsonx.Unmarshal(text, &e.State)
		case "inputRequests":
			found = true
			e.Requests, err = parseInputRequests(value(s))
			return err
		}
		s.SkipChecked()
		return nil
	})
	if err == nil && !found {
		err = errors.New("it has neither inputRequests nor requestState")
	}
	if err != nil {
		return nil, fmt.Errorf("the server wants input, but its result does not decode: %w", err)
	}
	return e, nil
}

// parseInputRequests decodes a map of questions. A server may not put more into
// it than a legacy server may ask at a time, because each question can cost a
// person's time or a model's.
func parseInputRequests(raw []byte) ([]protocol.InputRequest, error) {
	var list []protocol.InputRequest
	err := members(raw, func(name []byte, s *jsonx.Scanner) error {
		if len(list) == maxAsked {
			return fmt.Errorf("it asks more than %d questions at a time", maxAsked)
		}
		q := protocol.InputRequest{Key: string(name)}
		var wire struct {
			Method string          `json:"method"`
			Params json.RawMessage `json:"params,omitempty"`
		}
		if err := jsonx.Unmarshal(value(s), &wire); err != nil {
			return err
		}
		q.Method, q.Params = wire.Method, wire.Params
		list = append(list, q)
		return nil
	})
	return list, err
}

// answerRound asks the handlers for what the server wants, one question after
// the other in the order of the server, and returns what the request carries
// when it is sent again.
func (h *handlers) answerRound(ctx context.Context, conn *connection, asks *InputRequiredError) (round, error) {
	more := round{state: asks.State, stated: asks.stated}
	if asks.Requests == nil {
		return more, nil
	}
	answers, err := h.answerAll(ctx, conn, asks.Requests)
	more.responses = answers
	return more, err
}

// answerAll returns the object with the answers to questions, by their keys. It
// stops at the first question without an answer.
func (h *handlers) answerAll(ctx context.Context, conn *connection, questions []protocol.InputRequest) ([]byte, error) {
	begin, asked := time.Now(), context.WithValue(ctx, aroundKey{}, (*around)(nil)) // what handlers call is not a part of the call
	defer func() { h.client.note(ctx, func(info *CallInfo) { info.Waited += time.Since(begin) }) }()
	answers := []byte{'{'}
	for _, q := range questions {
		var answer []byte
		var err error
		if q.Method == protocol.MethodPing {
			err = wire.MethodNotFound(q.Method) // it is not among those that a result may ask
		} else {
			answer, err = h.answer(asked, conn, q.Method, q.Params)
		}
		if err != nil {
			return nil, &Error{kind: askKind(err), Err: fmt.Errorf("no answer to the server's question %q (%s): %w", q.Key, q.Method, err)}
		}
		if ctx.Err() != nil {
			return nil, stopped(ctx)
		}
		answers = append(jsonx.AppendString(comma(answers), q.Key), ':')
		answers = append(answers, answer...)
	}
	return append(answers, '}'), nil
}

// askKind returns the sentinel for a question without an answer, or nil.
func askKind(err error) error {
	var fault *protocol.Error
	if errors.As(err, &fault) && fault.Code == protocol.CodeMethodNotFound {
		return ErrUnsupported
	}
	return nil
}

// answerSample answers sampling/createMessage.
func (h *handlers) answerSample(ctx context.Context, params json.RawMessage) ([]byte, error) {
	if h.client.caps.Sampling == nil || h.client.opts.Sample == nil {
		return nil, protocol.Errorf(protocol.CodeMethodNotFound, "the client does not support sampling")
	}
	q := &protocol.SampleParams{}
	if err := jsonx.Unmarshal(params, q); err != nil {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "the params of %s do not decode: %w", protocol.MethodSample, err)
	}
	answer, err := h.client.opts.Sample(ctx, q)
	if err != nil {
		return nil, err
	}
	if answer == nil {
		return nil, errors.New("the client's handler gave no answer")
	}
	return appendSample(nil, answer)
}

// appendSample appends the answer to sampling/createMessage. Zero fields are
// filled in: the role of the assistant, and the end of its turn.
func appendSample(dst []byte, r *protocol.SampleResult) ([]byte, error) {
	role, stop, model := cmp.Or(r.Role, protocol.RoleAssistant), cmp.Or(r.StopReason, "endTurn"), cmp.Or(r.Model, "unknown")
	if len(r.Content) == 0 {
		return nil, errors.New("the client's handler gave an answer without content")
	}
	for i, item := range r.Content {
		if err := protocol.Internal(facts.Private{}).CheckContent(i, item); err != nil {
			return nil, fmt.Errorf("the answer of the client's handler: %w", err)
		}
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

// Accept answers a question with what the user filled in: it encodes to an
// object. nil is for a URL, or for a form that is all defaults.
func Accept(content any) (*ElicitResult, error) {
	r := &protocol.ElicitResult{Action: protocol.ElicitAccept}
	if content == nil {
		return r, nil
	}
	text, err := jsonx.Append(nil, content)
	if err != nil {
		return nil, fmt.Errorf("the user's answer does not encode: %w", err)
	}
	r.Content = text
	return r, nil
}

// Decline answers that the user refuses.
func Decline() (*ElicitResult, error) {
	return &protocol.ElicitResult{Action: protocol.ElicitDecline}, nil
}

// Cancel answers that the user went away without an answer.
func Cancel() (*ElicitResult, error) {
	return &protocol.ElicitResult{Action: protocol.ElicitCancel}, nil
}

// answerElicit answers elicitation/create.
func (h *handlers) answerElicit(ctx context.Context, params json.RawMessage) ([]byte, error) {
	var q protocol.ElicitParams
	if err := jsonx.Unmarshal(params, &q); err != nil {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "the params of %s do not decode: %w", protocol.MethodElicit, err)
	}
	handler := h.client.opts.Elicit
	switch q.Mode {
	case "", "form":
	case "url":
		handler = h.client.opts.ElicitURL
		if err := wire.CheckWebURL(q.URL); err != nil {
			return nil, protocol.Errorf(protocol.CodeInvalidParams, "params.url is not a page to visit: %w", err)
		}
	default:
		handler = nil
	}
	if handler == nil {
		if h.client.caps.Elicitation == nil {
			return nil, protocol.Errorf(protocol.CodeMethodNotFound, "the client does not support elicitation")
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

// checkedAnswer fills in the form's defaults, checks the answer to an
// elicitation, and encodes it.
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
	text, err := json.Marshal(answer)
	return jsonx.Paired(text), err
}

// fillForm adds the defaults of the form to what the user filled in, and checks
// the result against the form's schema.
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
	raw, err := raw.Compile(form)
	if err != nil {
		return nil, protocol.Errorf(protocol.CodeInvalidParams, "params.requestedSchema is not valid: %w", err)
	}
	if err := raw.Check(content); err != nil {
		return nil, fmt.Errorf("the client's answer does not fit the requested schema: %w", err)
	}
	return content, nil
}

// withDefaults adds the defaults of those properties of a form that content
// lacks.
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
	properties := jsonx.Lookup(form, []string{"properties"})
	if properties == nil {
		return filled, nil
	}
	filled = filled[:len(filled)-1]
	err = members(properties, func(name []byte, s *jsonx.Scanner) error {
		key := string(name)
		if fallback := jsonx.Lookup(value(s), []string{"default"}); fallback != nil && !have[key] {
			filled = append(jsonx.AppendString(comma(filled), key), ':')
			filled = append(filled, fallback...)
		}
		return nil
	})
	return append(filled, '}'), err
}

// ReportProgress sends the progress of the answer to a request of the server; ctx
// is that of Options.Sample, Elicit, ElicitURL or OnRequest. It does nothing if
// the server wants no progress: it gave no token, or its request came in a result,
// as from 2026-07-28 on, or is answered. p.Progress must grow from call to call
// (basic/utilities/progress); one that does not is an error and is not sent.
func ReportProgress(ctx context.Context, p Progress) error {
	r, _ := ctx.Value(reporterKey{}).(*reporter)
	if r == nil || r.token == nil {
		return nil
	}
	if math.IsNaN(p.Progress+p.Total) || math.IsInf(p.Progress+p.Total, 0) {
		return &Error{Op: "report progress", Err: fmt.Errorf("progress must be a number, got %v of %v", p.Progress, p.Total)}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.over:
		return nil
	case r.told && p.Progress <= r.last:
		return &Error{Op: "report progress", Err: fmt.Errorf("progress must grow, got %v after %v", p.Progress, r.last)}
	}
	r.told, r.last = true, p.Progress
	ctx, stop := context.WithTimeout(ctx, notifyTimeout)
	defer stop()
	body := wire.Progress{Token: r.token, Progress: p.Progress, Total: p.Total, Message: p.Message}.Append(nil, r.conn.revision())
	return wrap("report progress", protocol.MethodProgress, r.conn.send(ctx, protocol.MethodProgress, body))
}

// reporter sends the progress of one answer. mu guards the fields below it, and is
// held while one is sent, which keeps their order.
type reporter struct {
	conn  *connection
	token []byte // nil if the server wants no progress

	mu   sync.Mutex
	last float64
	told bool
	over bool // the answer is about to be sent
}

// reporterKey is the context key of the reporter of an answer.
type reporterKey struct{}

// end makes sure that no progress comes after the answer.
func (r *reporter) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = true
}

// progressToken returns the token in the params of a request; nil if there is none.
func progressToken(params []byte) []byte {
	token := jsonx.Lookup(params, []string{"_meta", "progressToken"})
	var id protocol.ID
	if token == nil || id.UnmarshalJSON(token) != nil || id.IsZero() {
		return nil
	}
	return token
}

// roots are the places that the server may work in. They are kept here and not
// in the options because they can change.
type roots struct {
	mu   sync.Mutex
	list []Root
}

// get returns a copy of the list.
func (r *roots) get() []Root {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

// set replaces the list and reports whether it has changed.
func (r *roots) set(list []Root) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	changed = !slices.EqualFunc(list, r.list, func(a, b Root) bool {
		return a.URI == b.URI && a.Name == b.Name && a.Meta == nil && b.Meta == nil
	})
	r.list = append([]Root{}, list...)
	return changed
}

// answerRoots answers roots/list.
func (h *handlers) answerRoots() ([]byte, error) {
	if h.client.caps.Roots == nil {
		return nil, protocol.Errorf(protocol.CodeMethodNotFound, "the client does not support roots")
	}
	list := h.client.Roots()
	if list == nil {
		list = []protocol.Root{}
	}
	return json.Marshal(wire.RootsResult{Roots: list})
}

// codeURLRequired is the code of a request that needs the user to visit a URL
// first (client/elicitation of 2025-11-25).
const codeURLRequired protocol.Code = -32042

// elicited has the visits that requests wait for, and the last ones that ended
// before a request waited for them: the notification can overtake the response
// that names the visit. mu guards everything.
type elicited struct {
	mu    sync.Mutex
	waits map[string]chan struct{} // by elicitation id
	over  []string
}

// maxOver is how many ended visits are kept, and maxOverID how long their ids
// may be, in bytes.
const (
	maxOver   = 64
	maxOverID = 1 << 10
)

// expect returns a channel that is closed when a visit has ended. forget must
// be called when no caller waits for it any more.
func (e *elicited) expect(id string) (over <-chan struct{}, forget func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ch := e.waits[id]
	if ch == nil {
		ch = make(chan struct{})
		if slices.Contains(e.over, id) {
			close(ch)
			return ch, func() {}
		}
		if e.waits == nil {
			e.waits = map[string]chan struct{}{}
		}
		e.waits[id] = ch
	}
	return ch, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.waits[id] == ch {
			delete(e.waits, id)
		}
	}
}

// complete handles notifications/elicitation/complete.
func (e *elicited) complete(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if ch := e.waits[id]; ch != nil {
		close(ch)
		delete(e.waits, id)
		return
	}
	if len(id) > maxOverID {
		return // no caller waits for it, and so it is not remembered
	}
	if e.over = append(e.over, id); len(e.over) > maxOver {
		e.over = slices.Clone(e.over[1:])
	}
}

// visit shows the user the URLs that a request needs and waits until the server
// says that they have been visited. It reports whether the request is worth
// another attempt.
func (h *handlers) visit(ctx context.Context, fault *protocol.Error) bool {
	raw, _ := fault.Data.(json.RawMessage)
	var data struct {
		Elicitations []protocol.ElicitParams `json:"elicitations"`
	}
	conn := h.client.life.conn.Load()
	if conn == nil || h.client.opts.ElicitURL == nil || jsonx.Unmarshal(raw, &data) != nil || len(data.Elicitations) == 0 || len(data.Elicitations) > maxAsked {
		return false
	}
	if most := h.client.most(); most > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, most)
		defer stop()
	}
	var visits []<-chan struct{}
	for i := range data.Elicitations {
		q := &data.Elicitations[i]
		q.Mode = "url"
		over, forget := h.elicited.expect(q.ElicitationID)
		defer forget()
		visits = append(visits, over)
		if err := h.askURL(ctx, conn, q); err != nil {
			safely.Log(h.client.opts.Logger.Info().Err(visible.Error(err)).Str("server", h.client.server), "a URL that a request needs was not visited")
			return false
		}
	}
	for _, over := range visits {
		select {
		case <-over:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// askURL asks the handler to show a URL. Anything but consent is an error.
func (h *handlers) askURL(ctx context.Context, conn *connection, q *protocol.ElicitParams) error {
	params, err := json.Marshal(q)
	if err != nil {
		return err
	}
	answer, err := h.answer(ctx, conn, protocol.MethodElicit, params)
	if err != nil {
		return err
	}
	var result protocol.ElicitResult
	if err := json.Unmarshal(answer, &result); err != nil || result.Action != protocol.ElicitAccept {
		return fmt.Errorf("the user answered %q", result.Action)
	}
	return nil
}
