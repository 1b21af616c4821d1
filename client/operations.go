package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/protocol"
)

// request starts a request with the caller's options.
func (c *Client) request(op, method, name string, members []byte, options []CallOption) (*request, error) {
	r := &request{op: op, method: method, name: name, members: members, options: newCallOptions(options)}
	var err error
	if r.meta, err = c.encoders.metaMembers(r.options.meta); err != nil {
		return nil, &Error{Op: op, Method: method, Err: err}
	}
	return r, nil
}

// rawRequest starts a request whose params are the caller's.
func (c *Client) rawRequest(op, method string, params any, options []CallOption) (*request, error) {
	r, err := c.request(op, method, "", nil, options)
	if err != nil {
		return nil, err
	}
	var meta []byte
	if r.members, meta, r.token, err = c.encoders.params(params); err != nil {
		return nil, &Error{Op: op, Method: method, Err: err}
	}
	r.meta = join(r.meta, meta)
	return r, nil
}

// Ping asks for a sign of life. Modern revisions have no ping: there it is
// server/discover.
func (c *Client) Ping(ctx context.Context, options ...CallOption) error {
	conn, err := c.current(ctx)
	if err != nil {
		return wrap("ping", protocol.MethodPing, "", err)
	}
	method := protocol.MethodPing
	if conn.revision().Modern() {
		method = protocol.MethodDiscover
	}
	_, err = c.ask(ctx, "ping", method, "", nil, options)
	return err
}

// ask sends a request that may be sent twice.
func (c *Client) ask(ctx context.Context, op, method, name string, members []byte, options []CallOption) (json.RawMessage, error) {
	r, err := c.request(op, method, name, members, options)
	if err != nil {
		return nil, err
	}
	r.safe = true
	return c.do(ctx, r)
}

// Request sends a request of any method and reads its result into result, a
// pointer; a *json.RawMessage takes it as it came, nil leaves it. params encode
// to an object, or are nil. Of their _meta the client replaces what the protocol
// puts there; a progressToken stays if nothing else asks for progress, which then
// comes as notifications alone: see Options.Trace. In modern revisions the result
// is that of the last round.
func (c *Client) Request(ctx context.Context, method string, params, result any, options ...CallOption) error {
	r, err := c.rawRequest(method, method, params, options)
	if err != nil {
		return err
	}
	r.name, r.safe = nameIn(method, r.members), reads(method)
	if method == protocol.MethodToolsCall {
		r.args = protocol.Lookup(braces(r.members), []string{"arguments"})
	}
	raw, err := c.do(ctx, r)
	if err != nil || result == nil {
		return err
	}
	if dst, ok := result.(*json.RawMessage); ok {
		*dst = raw
		return nil
	}
	if err := json.Unmarshal(raw, result); err != nil {
		return &Error{Op: method, Method: method, Err: fmt.Errorf("the result does not fit %T: %w", result, err)}
	}
	return nil
}

// Notify sends a notification. params encode to an object, or are nil.
func (c *Client) Notify(ctx context.Context, method string, params any) error {
	conn, err := c.current(ctx)
	if err != nil {
		return wrap("notify", method, "", err)
	}
	var text []byte
	if params != nil {
		if text, err = c.encoders.object(nil, "params", params); err != nil {
			return &Error{Op: "notify", Method: method, Err: err}
		}
	}
	return wrap("notify", method, "", conn.send(ctx, method, protocol.AppendNotification(nil, method, text)))
}

// SendProgress tells the server how far this side has come with a question of
// the server that carried the token.
func (c *Client) SendProgress(ctx context.Context, token json.RawMessage, p Progress) error {
	conn, err := c.current(ctx)
	if err != nil {
		return wrap("progress", protocol.MethodProgress, "", err)
	}
	body := protocol.Progress{Token: token, Progress: p.Progress, Total: p.Total, Message: p.Message}.Append(nil, conn.revision())
	return wrap("progress", protocol.MethodProgress, "", conn.send(ctx, protocol.MethodProgress, body))
}

func braces(members []byte) []byte {
	return append(append([]byte{'{'}, members...), '}')
}

func join(a, b []byte) []byte {
	if len(a) == 0 {
		return b
	}
	if len(b) == 0 {
		return a
	}
	return append(append(a, ','), b...)
}

// nameIn finds what the header Mcp-Name says of a method.
func nameIn(method string, members []byte) string {
	member := ""
	switch method {
	case protocol.MethodToolsCall, protocol.MethodPromptsGet:
		member = "name"
	case protocol.MethodResourcesRead:
		member = "uri"
	case "tasks/get", "tasks/update", "tasks/cancel":
		member = "taskId"
	default:
		return ""
	}
	var name string
	// A name that is none is for the server to refuse.
	_ = json.Unmarshal(protocol.Lookup(braces(members), []string{member}), &name)
	return name
}

// reads tells whether a method only reads, so that sending it twice is
// harmless.
func reads(method string) bool {
	switch method {
	case protocol.MethodPing, protocol.MethodDiscover, protocol.MethodToolsList, protocol.MethodPromptsList,
		protocol.MethodResourcesList, protocol.MethodResourceTemplates, protocol.MethodResourcesRead,
		protocol.MethodPromptsGet, protocol.MethodComplete, protocol.MethodSetLevel,
		protocol.MethodSubscribe, protocol.MethodUnsubscribe, "tasks/get", "tasks/cancel":
		return true
	}
	return false
}

// listOf gets one page of a list. A cursor that the server refuses drops the
// pages of that list which are cached (server/utilities/caching of 2026-07-28,
// pagination).
func listOf[T any](ctx context.Context, c *Client, method, member, cursor string, options []CallOption) (*Page[T], error) {
	var members []byte
	if cursor != "" {
		members = named("cursor", cursor)
	}
	r, err := c.request("list "+member, method, "", members, options)
	if err != nil {
		return nil, err
	}
	r.safe, r.cache = true, true
	raw, err := c.do(ctx, r)
	if err != nil {
		if _, refused := errors.AsType[*protocol.Error](err); refused && cursor != "" {
			c.opts.Cache.drop(c.server, method, "") // the pages before are of another list
		}
		return nil, err
	}
	page, err := decodePage[T](raw, member)
	if err != nil {
		return nil, &Error{Op: r.op, Method: method, Err: err}
	}
	return page, nil
}

// ListTools returns one page of the tools; cursor "" is the first. Over modern
// HTTP, tools whose x-mcp-header is not valid are left out, which is logged and
// told in Page.Rejected.
func (c *Client) ListTools(ctx context.Context, cursor string, options ...CallOption) (*Page[protocol.Tool], error) {
	page, err := listOf[protocol.Tool](ctx, c, protocol.MethodToolsList, "tools", cursor, options)
	if err != nil {
		return nil, err
	}
	conn := c.conn.Load()
	c.tools.learn(c, page, conn != nil && conn.sync && conn.revision().Modern())
	return page, nil
}

// ListPrompts returns one page of the prompts; cursor "" is the first.
func (c *Client) ListPrompts(ctx context.Context, cursor string, options ...CallOption) (*Page[protocol.Prompt], error) {
	return listOf[protocol.Prompt](ctx, c, protocol.MethodPromptsList, "prompts", cursor, options)
}

// ListResources returns one page of the resources; cursor "" is the first.
func (c *Client) ListResources(ctx context.Context, cursor string, options ...CallOption) (*Page[protocol.Resource], error) {
	return listOf[protocol.Resource](ctx, c, protocol.MethodResourcesList, "resources", cursor, options)
}

// ListTemplates returns one page of the resource templates; cursor "" is the
// first.
func (c *Client) ListTemplates(ctx context.Context, cursor string, options ...CallOption) (*Page[protocol.ResourceTemplate], error) {
	return listOf[protocol.ResourceTemplate](ctx, c, protocol.MethodResourceTemplates, "resourceTemplates", cursor, options)
}

// Tools iterates over all tools, page by page. It ends after an error.
func (c *Client) Tools(ctx context.Context, options ...CallOption) iter.Seq2[protocol.Tool, error] {
	return all(func(cursor string) (*Page[protocol.Tool], error) { return c.ListTools(ctx, cursor, options...) })
}

// Prompts iterates over all prompts, page by page. It ends after an error.
func (c *Client) Prompts(ctx context.Context, options ...CallOption) iter.Seq2[protocol.Prompt, error] {
	return all(func(cursor string) (*Page[protocol.Prompt], error) { return c.ListPrompts(ctx, cursor, options...) })
}

// Resources iterates over all resources, page by page. It ends after an error.
func (c *Client) Resources(ctx context.Context, options ...CallOption) iter.Seq2[protocol.Resource, error] {
	return all(func(cursor string) (*Page[protocol.Resource], error) { return c.ListResources(ctx, cursor, options...) })
}

// Templates iterates over all resource templates, page by page. It ends after
// an error.
func (c *Client) Templates(ctx context.Context, options ...CallOption) iter.Seq2[protocol.ResourceTemplate, error] {
	return all(func(cursor string) (*Page[protocol.ResourceTemplate], error) {
		return c.ListTemplates(ctx, cursor, options...)
	})
}

// Call calls a tool. args encode to a JSON object, or are nil. A tool that
// fails is a result with IsError, not an error.
func (c *Client) Call(ctx context.Context, tool string, args any, options ...CallOption) (*CallToolResult, error) {
	members := named("name", tool)
	op := "call " + tool
	start := 0
	if args != nil {
		members = append(members, `,"arguments":`...)
		start = len(members)
		var err error
		if members, err = c.encoders.object(members, "arguments", args); err != nil {
			return nil, &Error{Op: op, Method: protocol.MethodToolsCall, Err: err}
		}
	}
	r, err := c.request(op, protocol.MethodToolsCall, tool, members, options)
	if err != nil {
		return nil, err
	}
	if start > 0 {
		r.args = members[start:]
	}
	if c.opts.CheckArguments {
		if r.tool, err = c.tools.need(ctx, c, tool); err == nil {
			err = r.tool.checkArguments(r.args)
		}
		if err != nil {
			return nil, wrap(op, protocol.MethodToolsCall, tool, err)
		}
	}
	began := time.Now()
	raw, err := c.do(ctx, r)
	if err != nil {
		return nil, err
	}
	result, err := c.called(ctx, r, raw, began.Add(r.asked))
	if err == nil && r.options.checkOutput && !result.IsError && result.Task == nil {
		err = c.checkOutput(ctx, tool, result)
	}
	if err != nil {
		return nil, wrap(op, protocol.MethodToolsCall, tool, err)
	}
	return result, nil
}

// called reads the result of a call that began then, after the task that it may
// have become.
func (c *Client) called(ctx context.Context, r *request, raw json.RawMessage, began time.Time) (*CallToolResult, error) {
	if r.task {
		task, err := parseTask(raw)
		if err != nil {
			return nil, err
		}
		if r.options.detached || c.opts.Tasks != TasksDriven {
			return &CallToolResult{Task: task, Raw: raw}, nil
		}
		return c.drive(ctx, task, r.options, c.clock(r.options, began))
	}
	return decodeCall(raw)
}

// Read reads a resource.
func (c *Client) Read(ctx context.Context, uri string, options ...CallOption) (*protocol.ReadResourceResult, error) {
	r, err := c.request("read "+uri, protocol.MethodResourcesRead, uri, named("uri", uri), options)
	if err != nil {
		return nil, err
	}
	r.safe, r.cache = true, r.options.answers == nil
	raw, err := c.do(ctx, r)
	if err != nil {
		return nil, err
	}
	result, err := decodeRead(raw)
	return result, wrap(r.op, r.method, uri, err)
}

// GetPrompt gets a prompt with its arguments filled in.
func (c *Client) GetPrompt(ctx context.Context, name string, args map[string]string, options ...CallOption) (*protocol.GetPromptResult, error) {
	members := named("name", name)
	if args != nil {
		members = stringMap(append(members, `,"arguments":`...), args)
	}
	op := "get prompt " + name
	raw, err := c.ask(ctx, op, protocol.MethodPromptsGet, name, members, options)
	if err != nil {
		return nil, err
	}
	result, err := decodePrompt(raw)
	return result, wrap(op, protocol.MethodPromptsGet, name, err)
}

// Complete asks what an argument can be.
func (c *Client) Complete(ctx context.Context, q Completion, options ...CallOption) (*protocol.Completion, error) {
	members := []byte(`"ref":{"type":"ref/prompt",`)
	if q.Template != "" {
		members = append([]byte(`"ref":{"type":"ref/resource",`), named("uri", q.Template)...)
	} else {
		members = append(members, named("name", q.Prompt)...)
	}
	members = append(append(members, `},"argument":{`...), named("name", q.Argument)...)
	members = jsonx.AppendString(append(members, `,"value":`...), q.Value)
	members = append(members, '}')
	if conn := c.conn.Load(); len(q.Context) > 0 && (conn == nil || conn.revision().Has(protocol.StructuredContent)) {
		members = append(stringMap(append(members, `,"context":{"arguments":`...), q.Context), '}')
	}
	op := "complete " + q.Argument
	raw, err := c.ask(ctx, op, protocol.MethodComplete, "", members, options)
	if err != nil {
		return nil, err
	}
	var result protocol.CompleteResult
	if err := json.Unmarshal(raw, &result); err != nil {
		return nil, &Error{Op: op, Method: protocol.MethodComplete, Err: fmt.Errorf("the server's result is not that of completion/complete: %w", err)}
	}
	return &result.Completion, nil
}

func levelRequest(level protocol.Level) *request {
	return &request{op: "set level", method: protocol.MethodSetLevel, safe: true, options: &callOptions{},
		members: named("level", level.String())}
}

// SetLevel sets the least severe level that the server logs from now on. In
// modern revisions every later request carries it.
func (c *Client) SetLevel(ctx context.Context, level protocol.Level, options ...CallOption) error {
	if level.String() == "" {
		return &Error{Op: "set level", Method: protocol.MethodSetLevel, Err: fmt.Errorf("%d is no level", level)}
	}
	conn, err := c.current(ctx)
	if err != nil {
		return wrap("set level", protocol.MethodSetLevel, "", err)
	}
	if !conn.revision().Modern() {
		r := levelRequest(level)
		r.options = newCallOptions(options)
		if _, err := c.do(ctx, r); err != nil {
			return err
		}
	}
	c.mu.Lock()
	c.level = level // for a later session, too
	c.mu.Unlock()
	return nil
}
