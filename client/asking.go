package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/protocol"
)

// codeRefused is the code of a question that the user or the client refuses
// (client/sampling of every revision).
const codeRefused protocol.Code = -1

// question takes a request of the server.
func (conn *connection) question(m *protocol.Message) {
	c := conn.client
	if conn.revision().Modern() {
		// Clients send no responses in modern revisions.
		c.opts.Logger.Warn().Str("server", c.server).Str("method", m.Method).Msg("the server sent a request, which its revision does not have")
		return
	}
	id, method, params := m.ID, m.Method, clone(m.Params)
	if conn.answering.Load() >= maxAsked {
		c.opts.Logger.Warn().Str("server", c.server).Str("method", method).Msg("the server asks too much at a time; not answered")
		return
	}
	ctx, done, ok := conn.asked.Start(c.ctx, id)
	if !ok {
		c.opts.Logger.Warn().Str("server", c.server).Str("id", id.String()).Msg("the server asks twice under one id; not answered")
		return
	}
	conn.answering.Add(1)
	if !c.spawn(func() {
		defer conn.answering.Add(-1)
		conn.respond(ctx, done, id, method, params)
	}) {
		conn.answering.Add(-1)
		done()
	}
}

// respond answers a request of the server. done is called before the answer
// leaves, since the server may use the id again once it has that.
func (conn *connection) respond(ctx context.Context, done func(), id protocol.ID, method string, params json.RawMessage) {
	result, err := conn.answerTo(ctx, method, params)
	gone := ctx.Err() != nil
	done()
	if gone {
		return // nobody waits for it any more
	}
	var body []byte
	if err != nil {
		body = protocol.AppendErrorResponse(nil, id, asFault(err), conn.revision())
	} else {
		body = id.Append([]byte(`{"jsonrpc":"2.0","id":`))
		body = append(append(append(body, `,"result":`...), result...), '}')
	}
	sending, stop := context.WithTimeout(conn.client.ctx, notifyTimeout)
	defer stop()
	if err := conn.carry(sending, &link.Message{Body: body, Revision: conn.revision()}); err != nil {
		conn.client.opts.Logger.Debug().Err(err).Str("method", method).Msg("an answer was not sent")
	}
}

// asFault makes err an error to answer with.
func asFault(err error) *protocol.Error {
	var fault *protocol.Error
	if errors.As(err, &fault) {
		return fault
	}
	return &protocol.Error{Code: codeRefused, Message: err.Error(), Err: err}
}

// answerTo asks the handler for the answer to a question of the server. It is
// the same in both eras.
func (conn *connection) answerTo(ctx context.Context, method string, params json.RawMessage) (result []byte, err error) {
	conn.asking.Add(1)
	defer func() {
		conn.askedAt.Store(time.Now().UnixNano())
		conn.asking.Add(-1)
	}()
	defer func() {
		if p := recover(); p != nil {
			conn.client.opts.Logger.Error().Str("method", method).Interface("panic", p).Msg("a handler panicked")
			result, err = nil, fmt.Errorf("the client's handler failed: %v", p)
		}
	}()
	c := conn.client
	switch {
	case method == protocol.MethodPing:
		return []byte("{}"), nil
	case c.opts.OnRequest != nil:
		return c.answerRaw(ctx, method, params)
	}
	switch method {
	case protocol.MethodRoots:
		return c.answerRoots()
	case protocol.MethodSample:
		return c.answerSample(ctx, params)
	case protocol.MethodElicit:
		return c.answerElicit(ctx, params)
	}
	return nil, protocol.MethodNotFound(method)
}

// answerRaw answers a request of any method.
func (c *Client) answerRaw(ctx context.Context, method string, params json.RawMessage) ([]byte, error) {
	result, err := c.opts.OnRequest(ctx, method, params)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(result)
	if err != nil {
		return nil, fmt.Errorf("the answer of the client's handler does not encode: %w", err)
	}
	return text, nil
}

// InputRequiredError is the cause of the error of a request for which the
// server wants more input, when the client does not answer by itself
// (basic/patterns/mrtr of 2026-07-28). Make the request again with Answers to
// go on.
type InputRequiredError struct {
	Requests []protocol.InputRequest // in the order of the server
	State    string                  // to be sent back as it is

	stated bool // there is a state, though it may be empty
}

// Error says what the server wants.
func (e *InputRequiredError) Error() string {
	return fmt.Sprintf("the server wants %d answers before it gives a result", len(e.Requests))
}

// parseInputRequired reads a result that wants more input.
func parseInputRequired(method string, raw []byte) (*InputRequiredError, error) {
	switch method {
	case protocol.MethodToolsCall, protocol.MethodPromptsGet, protocol.MethodResourcesRead:
	default:
		return nil, fmt.Errorf("the server wants input for %s, which must not need any", method)
	}
	e := &InputRequiredError{}
	found := false
	err := members(raw, func(name []byte, s *jsonx.Scanner) (err error) {
		switch string(name) {
		case "requestState":
			found = true
			text := value(s)
			e.stated = len(text) > 0 && text[0] == '"'
			return json.Unmarshal(text, &e.State)
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

// parseInputRequests reads a map of questions.
func parseInputRequests(raw []byte) ([]protocol.InputRequest, error) {
	var list []protocol.InputRequest
	err := members(raw, func(name []byte, s *jsonx.Scanner) error {
		q := protocol.InputRequest{Key: string(name)}
		var wire struct {
			Method string          `json:"method"`
			Params json.RawMessage `json:"params"`
		}
		if err := json.Unmarshal(value(s), &wire); err != nil {
			return err
		}
		q.Method, q.Params = wire.Method, wire.Params
		list = append(list, q)
		return nil
	})
	return list, err
}

// answerRound asks the handlers for what the server wants, one question after
// the other in its order.
func (c *Client) answerRound(ctx context.Context, conn *connection, asks *InputRequiredError) (round, error) {
	more := round{state: asks.State, stated: asks.stated}
	if asks.Requests == nil {
		return more, nil
	}
	answers, err := c.answerAll(ctx, conn, asks.Requests)
	more.responses = answers
	return more, err
}

// answerAll returns the object of the answers to questions.
func (c *Client) answerAll(ctx context.Context, conn *connection, questions []protocol.InputRequest) ([]byte, error) {
	answers := []byte{'{'}
	for _, q := range questions {
		var answer []byte
		var err error
		if q.Method == protocol.MethodPing {
			err = protocol.MethodNotFound(q.Method) // it is not among those that a result may ask
		} else {
			answer, err = conn.answerTo(ctx, q.Method, q.Params)
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

// askKind finds the sentinel for a question without an answer.
func askKind(err error) error {
	var fault *protocol.Error
	if errors.As(err, &fault) && fault.Code == protocol.CodeMethodNotFound {
		return ErrUnsupported
	}
	return nil
}
