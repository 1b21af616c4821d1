package mcptest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// Client is connected to a server for the length of a test. Methods that return
// no error end the test on failure, so they belong on its goroutine;
// those that begin with Try, Notifications and Logs may be called from any. mu guards
// the fields below it.
type Client struct {
	t      testing.TB
	conf   *config
	client *client.Client
	end    func() error // of the server's side

	// Server is what the server says of itself.
	Server client.Server

	mu            sync.Mutex
	tokens        int // of progress, that calls have had
	notifications []client.Notification
	waited        map[int]bool // indexes of those that WaitFor has returned
	logs          []client.LogEntry
	progress      map[string][]client.Progress // by token
	another       chan struct{}                // closed when a notification comes
	closed        sync.Once
}

// New connects a client to the server and ends the test if that fails.
func New(t testing.TB, server *mcp.Server, options ...Option) *Client {
	t.Helper()
	c, err := Connect(t, server, options...)
	if err != nil {
		t.Fatalf("mcptest: %v", err)
	}
	return c
}

// Connect is New for tests that expect the connection to fail.
func Connect(t testing.TB, server *mcp.Server, options ...Option) (*Client, error) {
	t.Helper()
	c := &Client{t: t, conf: newConfig(options), waited: map[int]bool{}, progress: map[string][]client.Progress{}, another: make(chan struct{})}
	var to client.Transport
	if c.conf.http {
		to, c.end = overHTTP(c.conf, server)
	} else {
		to, c.end = overPipe(c.conf, server)
	}
	t.Cleanup(c.Close)
	if err := c.open(to); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// open connects, with a client that does nothing by itself: a test is to see
// every request that the server gets, and each failure.
func (c *Client) open(to client.Transport) (err error) {
	ctx, cancel := c.within("not connected")
	defer cancel()
	c.client, err = client.Connect(ctx, to, &client.Options{
		Info: c.conf.info, Revisions: []protocol.Revision{c.conf.revision}, Capabilities: *c.conf.capabilities,
		OnRequest: c.answer, MaxRounds: maxRounds, LogLevel: c.conf.level, Trace: c.traced,
		Timeout: -1, MaxTimeout: -1, // the contexts have them
		LaxCapabilities: true, NoCache: true, Tasks: client.TasksOff, NoReconnect: true,
		CloseTimeout: max(c.conf.timeout, defaultTimeout),
	})
	if err != nil {
		return plain(ctx, err)
	}
	c.Server = c.client.Server()
	return nil
}

// Close ends the connection, as the end of the test does.
func (c *Client) Close() {
	c.closed.Do(func() {
		var err error
		if c.client != nil {
			err = c.client.Close()
		}
		if err = errors.Join(err, c.end()); err != nil {
			c.t.Errorf("mcptest: the server ended the connection with: %v", err)
		}
	})
}

// Revision returns what the client speaks.
func (c *Client) Revision() protocol.Revision { return c.conf.revision }

// Request sends a request of any method and returns its result. params encode
// to an object, or are nil.
func (c *Client) Request(method string, params any) json.RawMessage {
	c.t.Helper()
	result, err := c.TryRequest(method, params)
	if err != nil {
		c.t.Fatalf("mcptest: %s: %v", method, err)
	}
	return result
}

// maxRounds is how often the questions of one request are answered.
const maxRounds = 20

// TryRequest is Request for tests that expect an error: that of a JSON-RPC answer is a
// *protocol.Error.
func (c *Client) TryRequest(method string, params any) (json.RawMessage, error) {
	ctx, cancel := c.within("no answer to " + method)
	defer cancel()
	return c.RequestContext(ctx, method, params)
}

// within returns a context with the client's timeout, whose cause says what is
// missing.
func (c *Client) within(missing string) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(context.Background(), c.conf.timeout, fmt.Errorf("%s within %v", missing, c.conf.timeout))
}

// RequestContext is TryRequest without the client's timeout: when ctx ends, the request is
// cancelled and the cause of ctx returned.
func (c *Client) RequestContext(ctx context.Context, method string, params any) (json.RawMessage, error) {
	object, err := objectOf(params)
	if err != nil {
		return nil, err
	}
	options := []client.CallOption{client.Retry(1)}
	if c.conf.http && c.conf.revision.Modern() && method == protocol.MethodToolsCall {
		options = nil // that a tool wants arguments in headers shows when it refuses a call
	}
	var result json.RawMessage
	if err := c.client.Request(ctx, method, object, &result, options...); err != nil {
		return nil, plain(ctx, err)
	}
	return result, nil
}

// Supports reports whether the client, in the revision that it speaks, declares a
// capability, by the names on the way to it: Supports("elicitation"),
// Supports("elicitation", "url"), Supports("sampling"), Supports("roots"). A server may ask for
// that; where it is false, Capabilities or the lack of a script says no, or the
// revision has no such thing.
func (c *Client) Supports(path ...string) bool {
	text, err := json.Marshal(wire.ClientCapabilitiesFor(*c.conf.capabilities, c.conf.revision))
	if err != nil {
		c.t.Errorf("mcptest: the capabilities do not encode: %v", err)
	}
	return len(path) > 0 && jsonx.Lookup(text, path) != nil
}

// Notify sends a notification.
func (c *Client) Notify(method string, params any) {
	c.t.Helper()
	object, err := objectOf(params)
	if err == nil {
		ctx, cancel := c.within("not sent")
		defer cancel()
		err = plain(ctx, c.client.Notify(ctx, method, object))
	}
	if err != nil {
		c.t.Fatalf("mcptest: %s: %v", method, err)
	}
}

// objectOf encodes params, which may be nil and must otherwise become an
// object.
func objectOf(params any) (any, error) {
	text, err := jsonx.Append(nil, params)
	switch {
	case err != nil:
		return nil, err
	case string(text) == "null":
		return nil, nil
	case text[0] != '{':
		return nil, fmt.Errorf("params must encode to an object, got %s", text)
	}
	return json.RawMessage(text), nil
}

// plain returns, in place of the error of package client, the error that the
// server answered with, or the cause of ctx if that has ended.
func plain(ctx context.Context, err error) error {
	own, ok := errors.AsType[*client.Error](err)
	if !ok {
		return err
	}
	if fault, ok := errors.AsType[*protocol.Error](err); ok && own.Code != 0 {
		return fault
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// traced receives every message of both sides, before the client handles it. text
// is copied, as it is valid during the call only. What the server sends and is
// not a message fails the test, though a client would continue.
func (c *Client) traced(fromServer bool, text []byte) {
	text = bytes.Clone(text)
	for _, trace := range c.conf.traces {
		trace(fromServer, text)
	}
	if !fromServer {
		return
	}
	var m protocol.Message
	if fault := wire.Scan(text, &m); fault != nil {
		c.t.Errorf("mcptest: the server sent %q: %v", text, fault)
	} else if m.Kind() == protocol.KindNotification {
		c.note(&m)
	}
}

// Listen watches what filter names, in the way of the revision, and returns
// when the server has agreed; WaitFor then waits for what it tells:
//
//	c.Listen(client.Filter{ResourceSubscriptions: []string{"config://app"}})
//	c.WaitFor(protocol.MethodResourceUpdated)
//
// Legacy revisions subscribe to the resources; changes of lists are announced
// without a subscription. The server agrees to what it declares and leaves the
// rest out. It lasts until the client is closed.
func (c *Client) Listen(filter client.Filter) {
	c.t.Helper()
	ctx, cancel := c.within("no notifications/subscriptions/acknowledged")
	defer cancel()
	if _, err := c.client.Listen(ctx, filter, nil); err != nil {
		c.t.Fatalf("mcptest: the server does not let the client listen: %v", plain(ctx, err))
	}
}

// Call calls a tool; nil arguments are left out. An error in place of a result
// ends the test; one that the tool returned is in Result.IsError.
func (c *Client) Call(name string, arguments any) *Result {
	c.t.Helper()
	r, err := c.TryCall(name, arguments)
	if err != nil {
		c.t.Fatalf("mcptest: calling %s: %v", name, err)
	}
	return r
}

// TryCall is Call for tests that expect an error; see TryRequest. It may be called
// from any goroutine.
func (c *Client) TryCall(name string, arguments any) (*Result, error) {
	c.mu.Lock()
	c.tokens++
	token := fmt.Sprintf("call %d", c.tokens) // no number, as those are the client's own
	c.mu.Unlock()
	params := map[string]any{"name": name, "_meta": map[string]any{"progressToken": token}}
	if arguments != nil {
		params["arguments"] = arguments
	}
	raw, err := c.TryRequest(protocol.MethodToolsCall, params)
	if err != nil {
		return nil, err
	}
	r, err := parseResult(c.t, raw)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r.Progress = c.progress[token]
	delete(c.progress, token)
	return r, nil
}

// GetPrompt gets a prompt.
func (c *Client) GetPrompt(name string, arguments map[string]string) *protocol.GetPromptResult {
	c.t.Helper()
	p, err := c.TryGetPrompt(name, arguments)
	if err != nil {
		c.t.Fatalf("mcptest: the prompt %s: %v", name, err)
	}
	return p
}

// TryGetPrompt is GetPrompt for tests that expect an error; see TryRequest.
func (c *Client) TryGetPrompt(name string, arguments map[string]string) (*protocol.GetPromptResult, error) {
	params := map[string]any{"name": name}
	if arguments != nil {
		params["arguments"] = arguments
	}
	var wire struct {
		Description string
		Messages    []struct {
			Role    protocol.Role
			Content json.RawMessage
		}
		Meta map[string]any `json:"_meta"`
	}
	if err := c.into(&wire, protocol.MethodPromptsGet, params); err != nil {
		return nil, err
	}
	p := &protocol.GetPromptResult{Description: wire.Description, Meta: wire.Meta}
	for _, m := range wire.Messages {
		content, err := protocol.ParseContent(m.Content)
		if err != nil {
			return nil, err
		}
		p.Messages = append(p.Messages, protocol.PromptMessage{Role: m.Role, Content: content})
	}
	return p, nil
}

// Read reads a resource.
func (c *Client) Read(uri string) []protocol.ResourceContents {
	c.t.Helper()
	contents, err := c.TryRead(uri)
	if err != nil {
		c.t.Fatalf("mcptest: reading %s: %v", uri, err)
	}
	return contents
}

// TryRead is Read for tests that expect an error; see TryRequest.
func (c *Client) TryRead(uri string) ([]protocol.ResourceContents, error) {
	var wire struct {
		Contents []struct {
			URI      string         `json:"uri"`
			MIMEType string         `json:"mimeType"`
			Text     string         `json:"text"`
			Blob     []byte         `json:"blob"`
			Meta     map[string]any `json:"_meta"`
		}
	}
	if err := c.into(&wire, protocol.MethodResourcesRead, map[string]any{"uri": uri}); err != nil {
		return nil, err
	}
	var contents []protocol.ResourceContents
	for _, item := range wire.Contents {
		contents = append(contents, protocol.ResourceContents(item))
	}
	return contents, nil
}

// into sends a request and decodes its result into out, a pointer.
func (c *Client) into(out any, method string, params any) error {
	raw, err := c.TryRequest(method, params)
	if err != nil {
		return err
	}
	if err := jsonx.Unmarshal(raw, out); err != nil {
		return fmt.Errorf("the result of %s: %w\n%s", method, err, raw)
	}
	return nil
}

// Tools lists the tools, all pages of them.
func (c *Client) Tools() []protocol.Tool {
	c.t.Helper()
	return list[protocol.Tool](c, protocol.MethodToolsList, "tools")
}

// Resources lists the resources, all pages of them.
func (c *Client) Resources() []protocol.Resource {
	c.t.Helper()
	return list[protocol.Resource](c, protocol.MethodResourcesList, "resources")
}

// Templates lists the resource templates, all pages of them.
func (c *Client) Templates() []protocol.ResourceTemplate {
	c.t.Helper()
	return list[protocol.ResourceTemplate](c, protocol.MethodResourceTemplates, "resourceTemplates")
}

// Prompts lists the prompts, all pages of them.
func (c *Client) Prompts() []protocol.Prompt {
	c.t.Helper()
	return list[protocol.Prompt](c, protocol.MethodPromptsList, "prompts")
}

// Events lists the event types, all pages of them.
func (c *Client) Events() []protocol.EventType {
	c.t.Helper()
	return list[protocol.EventType](c, wire.MethodEventsList, "events")
}

// Watch watches an event type from now on: Next returns what the server emits afterwards
// and matches arguments; nil arguments are left out. An error ends the test.
//
//	w := c.Watch("comment.created", map[string]any{"document": "doc_1"})
//	err := server.Emit(ctx, mcp.Occurrence{Name: "comment.created", Data: comment})
//	event := w.Next()
func (c *Client) Watch(name string, arguments any) *Watch {
	c.t.Helper()
	w, err := c.TryWatch(name, arguments)
	if err != nil {
		c.t.Fatalf("mcptest: watching %s: %v", name, err)
	}
	return w
}

// TryWatch is Watch for tests that expect an error; see TryRequest.
func (c *Client) TryWatch(name string, arguments any) (*Watch, error) {
	w := &Watch{client: c, params: map[string]any{"name": name, "cursor": nil}}
	if arguments != nil {
		w.params["arguments"] = arguments
	}
	ctx, cancel := c.within("no answer to " + wire.MethodEventsPoll)
	defer cancel()
	_, err := w.poll(ctx)
	return w, err
}

// Complete asks for values of a prompt's argument, or of a resource template's
// variable: of is the name of the prompt, or the template, which has braces.
// before are the arguments that are filled in already.
func (c *Client) Complete(of, argument, value string, before map[string]string) []string {
	c.t.Helper()
	values, err := c.TryComplete(of, argument, value, before)
	if err != nil {
		c.t.Fatalf("mcptest: completing %s of %s: %v", argument, of, err)
	}
	return values
}

// TryComplete is Complete for tests that expect an error; see TryRequest.
func (c *Client) TryComplete(of, argument, value string, before map[string]string) ([]string, error) {
	ref := map[string]string{"type": wire.RefPrompt, "name": of}
	if strings.Contains(of, "{") {
		ref = map[string]string{"type": wire.RefResource, "uri": of}
	}
	params := map[string]any{"ref": ref, "argument": map[string]string{"name": argument, "value": value}}
	if before != nil {
		params["context"] = map[string]any{"arguments": before}
	}
	var result struct {
		Completion struct{ Values []string }
	}
	err := c.into(&result, protocol.MethodComplete, params)
	return result.Completion.Values, err
}

// WaitFor waits until the server has sent a notification of that method that
// was not waited for before, and returns its params.
func (c *Client) WaitFor(method string) json.RawMessage {
	c.t.Helper()
	timer := time.NewTimer(c.conf.timeout)
	defer timer.Stop()
	for {
		params, ok, another := c.take(method)
		if ok {
			return params
		}
		select {
		case <-another:
		case <-timer.C:
			c.t.Fatalf("mcptest: no %s within %v", method, c.conf.timeout)
		}
	}
}

// note records a notification, and what those of logs and of progress say, and
// wakes WaitFor. The client waits for it, so that what came ahead of an answer
// on the same stream is recorded when the answer is returned.
func (c *Client) note(m *protocol.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch m.Method {
	case protocol.MethodLog:
		var log struct {
			Level  protocol.Level  `json:"level"`
			Logger string          `json:"logger"`
			Data   json.RawMessage `json:"data"`
		}
		if err := jsonx.Unmarshal(m.Params, &log); err != nil {
			c.t.Errorf("mcptest: the server logged %s: %v", m.Params, err)
		}
		c.logs = append(c.logs, client.LogEntry(log))
	case protocol.MethodProgress:
		var p struct {
			Token    any     `json:"progressToken"`
			Progress float64 `json:"progress"`
			Total    float64 `json:"total"`
			Message  string  `json:"message"`
		}
		if err := jsonx.Unmarshal(m.Params, &p); err != nil {
			c.t.Errorf("mcptest: the server told %s: %v", m.Params, err)
		}
		if token, ok := p.Token.(string); ok { // else it is not one of TryCall
			c.progress[token] = append(c.progress[token], client.Progress{Progress: p.Progress, Total: p.Total, Message: p.Message})
		}
	}
	c.notifications = append(c.notifications, client.Notification{Method: m.Method, Params: m.Params})
	close(c.another)
	c.another = make(chan struct{})
}

// Logs returns the log messages that have come so far.
func (c *Client) Logs() []client.LogEntry {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.logs)
}

// Notifications returns every notification that has come so far.
func (c *Client) Notifications() []client.Notification {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.notifications)
}

// take returns the first notification of a method that has not been taken yet.
// If there is none, another is closed when the next one arrives.
func (c *Client) take(method string) (params json.RawMessage, ok bool, another <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, n := range c.notifications {
		if n.Method == method && !c.waited[i] {
			c.waited[i] = true
			return n.Params, true, nil
		}
	}
	return nil, false, c.another
}

// answer runs the script for a request of the server. A script that panics
// fails the test. A request without a script gets -32601, as from a client that
// does not know the method. The error is always a *protocol.Error, which goes
// out as it is.
func (c *Client) answer(ctx context.Context, method string, params json.RawMessage) (any, error) {
	script := c.conf.answers[method]
	if script == nil {
		return nil, wire.MethodNotFound(method)
	}
	defer func() {
		if p := recover(); p != nil { // the client would continue with an error
			c.t.Errorf("mcptest: the script for %s panics: %v\n%s", method, p, debug.Stack())
			panic(p)
		}
	}()
	result, err := script(ctx, params)
	if _, ok := errors.AsType[*protocol.Error](err); err != nil && !ok {
		err = protocol.Errorf(protocol.CodeInternal, "%w", err)
	}
	return result, err
}

// list returns all pages of a list, whose items are the given member of each
// result.
func list[T any](c *Client, method, member string) (all []T) {
	c.t.Helper()
	ctx, cancel := c.within("no end of " + method)
	defer cancel()
	for text, err := range c.client.List(ctx, method, member, client.Retry(1)) {
		var item T
		if err == nil {
			err = jsonx.Unmarshal(text, &item)
		}
		if err != nil {
			c.t.Fatalf("mcptest: %s: %v", method, plain(ctx, err))
		}
		all = append(all, item)
	}
	return all
}
