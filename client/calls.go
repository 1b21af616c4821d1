package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// request returns a request with the caller's options. members is the JSON text
// of the params without braces and _meta.
func (c *Client) request(op, method, name string, members []byte, options []CallOption) (*request, error) {
	r := &request{client: c, op: op, method: method, name: name, members: members, options: newCallOptions(options)}
	var err error
	if r.meta, err = c.encoders.metaMembers(r.options.meta); err != nil {
		return nil, &Error{Op: op, Method: method, Err: err}
	}
	return r, nil
}

// rawRequest returns a request whose params were given by the caller as a
// value.
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

// ask sends a request that may safely be sent twice.
func (c *Client) ask(ctx context.Context, op, method, name string, members []byte, options []CallOption) (json.RawMessage, error) {
	r, err := c.request(op, method, name, members, options)
	if err != nil {
		return nil, err
	}
	r.safe = true
	return r.do(ctx)
}

// Ping checks that the server responds. Modern revisions have no ping: there it is
// server/discover.
func (c *Client) Ping(ctx context.Context, options ...CallOption) error {
	conn, err := c.life.current(ctx)
	if err != nil {
		return wrap("ping", protocol.MethodPing, err)
	}
	method := protocol.MethodPing
	if conn.revision().Modern() {
		method = protocol.MethodDiscover
	}
	_, err = c.ask(ctx, "ping", method, "", nil, options)
	return err
}

// Request sends a request of any method and reads its result into result, a
// pointer; a *json.RawMessage takes it as it came, nil leaves it. params encode
// to an object, or are nil. Of their _meta the client replaces what the protocol
// puts there; a progressToken stays if nothing else asks for progress, which then
// comes only as notifications: see Options.Trace. In modern revisions the result
// is that of the last round.
func (c *Client) Request(ctx context.Context, method string, params, result any, options ...CallOption) error {
	r, err := c.rawRequest(method, method, params, options)
	if err != nil {
		return err
	}
	r.name, r.safe = nameIn(method, r.members), reads(method)
	if method == protocol.MethodToolsCall {
		r.args = jsonx.Lookup(braces(r.members), []string{"arguments"})
	}
	raw, err := r.do(ctx)
	if err != nil || result == nil {
		return err
	}
	if dst, ok := result.(*json.RawMessage); ok {
		*dst = raw
		return nil
	}
	if err := jsonx.Unmarshal(raw, result); err != nil {
		return wrap(method, method, invalid(fmt.Errorf("it does not fit %T: %w", result, err)))
	}
	return nil
}

// Notify sends a notification. params encode to an object, or are nil.
func (c *Client) Notify(ctx context.Context, method string, params any) error {
	var text []byte
	var err error
	if params != nil {
		if text, err = c.encoders.object(nil, "params", params); err != nil {
			return &Error{Op: "notify", Method: method, Err: err}
		}
	}
	err = c.inSession(ctx, func(conn *connection) error {
		return conn.send(ctx, method, wire.AppendNotification(nil, method, text))
	})
	return wrap("notify", method, err)
}

// inSession sends something on the current connection, and once more if the
// server does not know the session any more, and so has not processed it.
func (c *Client) inSession(ctx context.Context, send func(conn *connection) error) error {
	conn, err := c.life.current(ctx)
	if err != nil {
		return err
	}
	if err = send(conn); !errors.Is(err, link.ErrUnprocessed) || c.life.renew(ctx, conn) != nil {
		return err
	}
	if conn, err = c.life.current(ctx); err != nil {
		return err
	}
	return send(conn)
}

// Tools iterates over all tools, page by page. It ends after an error. Over
// modern HTTP, tools whose x-mcp-header is not valid are left out, which is
// logged.
func (c *Client) Tools(ctx context.Context, options ...CallOption) iter.Seq2[Tool, error] {
	return func(yield func(Tool, error) bool) {
		differ := map[string]bool{} // tools that the pin refuses on some page
		list(ctx, c, protocol.MethodToolsList, "tools", options, func(p *page[Tool]) {
			c.pin.page(p.fresh)
			p.items = c.tools.learn(p.items, differ)
		})(yield)
	}
}

// Prompts iterates over all prompts, page by page. It ends after an error.
func (c *Client) Prompts(ctx context.Context, options ...CallOption) iter.Seq2[Prompt, error] {
	return list[Prompt](ctx, c, protocol.MethodPromptsList, "prompts", options, nil)
}

// Resources iterates over all resources, page by page. It ends after an error.
func (c *Client) Resources(ctx context.Context, options ...CallOption) iter.Seq2[Resource, error] {
	return list[Resource](ctx, c, protocol.MethodResourcesList, "resources", options, nil)
}

// Templates iterates over all resource templates, page by page. It ends after
// an error.
func (c *Client) Templates(ctx context.Context, options ...CallOption) iter.Seq2[ResourceTemplate, error] {
	return list[ResourceTemplate](ctx, c, protocol.MethodResourceTemplates, "resourceTemplates", options, nil)
}

// Events iterates over all event types, page by page. It ends after an error.
func (c *Client) Events(ctx context.Context, options ...CallOption) iter.Seq2[EventType, error] {
	return list[EventType](ctx, c, wire.MethodEventsList, "events", options, nil)
}

// Watch yields the events of a type that match arguments, which encode to a JSON object
// or are nil, until ctx ends, the loop ends or an error cannot be retried. The error is the
// last that it yields: ErrNotFound if there is no such event type, ErrUnauthorized,
// ErrUnsupported, ErrInvalidParams or ErrBusy.
//
// From a server of 2026-07-28 with streams, events come by one, which counts as lost after
// 60 s without a message. If none opens within 10 s, or the server has none, the loop polls
// at the interval that the server names, but at most once a second and at
// least every 5 minutes. At a server without room for a stream it polls, and tries one
// again after 5 minutes. Only behind an event that it has yielded does it poll at once, if
// the server has more. After a lost connection it continues where it was, and waits as
// Options.Reconnect says; when the attempts of that are used up, it ends. Repetitions among
// the last 1,024 events are left out. A nil o begins now.
func (c *Client) Watch(ctx context.Context, name string, arguments any, o *WatchOptions) iter.Seq2[Occurrence, error] {
	return func(yield func(Occurrence, error) bool) { newWatch(c, name, o).run(ctx, arguments, yield) }
}

// List iterates over the entries of a list, page by page, each as it came. It is
// for methods of extensions, and for entries that a caller decodes. method takes no
// params but cursor, such as skills/list, and member is the member of its result
// that has the entries, such as "skills". The sequence ends after an error: that a
// cursor occurs twice is one, because such a list does not end.
func (c *Client) List(ctx context.Context, method, member string, options ...CallOption) iter.Seq2[json.RawMessage, error] {
	return list[json.RawMessage](ctx, c, method, member, options, nil)
}

// Tool returns the definition of a tool, from the list if it was read before.
// A tool that the server does not list is ErrNotFound.
func (c *Client) Tool(ctx context.Context, name string) (Tool, error) {
	tool, err := c.tools.need(ctx, name)
	if err != nil {
		return Tool{}, wrap("tool "+name, protocol.MethodToolsList, err)
	}
	return tool.tool, nil
}

// Call calls a tool. args encode to a JSON object, or are nil. A tool that
// fails is a result with IsError, not an error. A tool that the server refuses
// and does not list is ErrNotFound.
func (c *Client) Call(ctx context.Context, tool string, args any, options ...CallOption) (result *CallToolResult, err error) {
	err = c.within(ctx, protocol.MethodToolsCall, tool, func(ctx context.Context) error {
		if result, err = c.call(ctx, tool, args, options); err == nil && result.IsError {
			c.note(ctx, func(info *CallInfo) { info.ToolFailed = true })
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return result, nil
}

// call is Call within Options.Around.
func (c *Client) call(ctx context.Context, tool string, args any, options []CallOption) (*CallToolResult, error) {
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
		if r.tool, err = c.tools.need(ctx, tool); err == nil {
			err = c.tools.checkArguments(r.tool, r.args)
		}
		if err != nil {
			return nil, wrap(op, protocol.MethodToolsCall, err)
		}
	}
	began := time.Now()
	raw, err := c.doCall(ctx, r)
	if err != nil {
		return nil, unlisted(ctx, err, func() bool {
			_, missing := c.tools.need(ctx, tool)
			return errors.Is(missing, ErrNotFound)
		})
	}
	result, err := c.called(ctx, r, raw, began.Add(r.asked))
	if err == nil && r.options.checkOutput && !result.IsError && result.Task == nil {
		err = c.checkOutput(ctx, tool, result)
	}
	if err != nil {
		err = wrap(op, protocol.MethodToolsCall, err)
		if own, ok := err.(*Error); ok && own.kind == ErrInvalidResult && !r.task {
			own.Result = raw
		}
		return nil, err
	}
	return result, nil
}

// called decodes the result of a tools/call that began at the given time. If
// the call has become a task, it waits for the task first, unless the options
// say otherwise.
func (c *Client) called(ctx context.Context, r *request, raw json.RawMessage, began time.Time) (*CallToolResult, error) {
	if r.task {
		task, err := parseTask(raw)
		if err != nil {
			abandonUnread(c, raw, aboutTask(r.options))
			return nil, invalid(err)
		}
		if !r.legacy { // no early polls of tasks of 2025-11-25
			task.born = task.seen
		}
		if r.options.detached || c.opts.Tasks != TasksWait {
			return &CallToolResult{Task: task, Raw: raw}, nil
		}
		return newTaskWait(c, r.options, newTaskClock(c.most(), began)).run(ctx, task)
	}
	result, err := decodeCall(raw)
	return result, invalid(err)
}

// checkOutput checks structured content against the tool's output schema
// (server/tools of the revisions since 2025-06-18). A tool that is not listed
// has no schema.
func (c *Client) checkOutput(ctx context.Context, name string, result *CallToolResult) error {
	conn := c.life.conn.Load()
	if conn == nil || !conn.revision().Has(protocol.FeatureStructuredContent) {
		return nil
	}
	tool, err := c.tools.need(ctx, name)
	if err != nil {
		if errors.Is(err, ErrNotFound) {
			return nil // a tool that is not listed has no schema
		}
		return err
	}
	if len(tool.tool.OutputSchema) == 0 {
		return nil
	}
	output, err := c.tools.schema(tool, tool.tool.OutputSchema, &tool.output)
	if err != nil {
		return fmt.Errorf("the result cannot be checked: the tool's outputSchema: %w", err)
	}
	if result.Structured == nil {
		return invalid(errors.New("the tool has an outputSchema, but its result has no structuredContent"))
	}
	if err := output.Check(result.Structured); err != nil {
		return invalid(fmt.Errorf("it does not fit the tool's outputSchema: %w", err))
	}
	return nil
}

// Read reads a resource. One that does not exist is ErrNotFound; ErrInvalidParams is
// the error for values that its template does not take.
func (c *Client) Read(ctx context.Context, uri string, options ...CallOption) (*protocol.ReadResourceResult, error) {
	r, err := c.request("read "+uri, protocol.MethodResourcesRead, uri, named("uri", uri), options)
	if err != nil {
		return nil, err
	}
	r.safe, r.cache = true, r.options.answers == nil
	raw, err := r.do(ctx)
	if err != nil {
		return nil, err
	}
	result, err := decodeRead(raw)
	if err != nil {
		c.opts.Cache.drop(c.server, r.method, string(named("uri", uri))) // the server may do better the next time
	}
	return result, wrap(r.op, r.method, invalid(err))
}

// GetPrompt gets a prompt with its arguments filled in. A prompt that the server
// refuses and does not list is ErrNotFound.
func (c *Client) GetPrompt(ctx context.Context, name string, args map[string]string, options ...CallOption) (*protocol.GetPromptResult, error) {
	members := named("name", name)
	if args != nil {
		members = stringMap(append(members, `,"arguments":`...), args)
	}
	op := "get prompt " + name
	raw, err := c.ask(ctx, op, protocol.MethodPromptsGet, name, members, options)
	if err != nil {
		return nil, unlisted(ctx, err, func() bool { return lacks(c.Prompts(ctx), func(p Prompt) bool { return p.Name == name }) })
	}
	result, err := decodePrompt(raw)
	return result, wrap(op, protocol.MethodPromptsGet, invalid(err))
}

// Complete asks what an argument can be. A prompt or a template that the server
// refuses and does not list is ErrNotFound.
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
	if conn := c.life.conn.Load(); len(q.Context) > 0 && (conn == nil || conn.revision().Has(protocol.FeatureStructuredContent)) {
		members = append(stringMap(append(members, `,"context":{"arguments":`...), q.Context), '}')
	}
	op := "complete " + q.Argument
	raw, err := c.ask(ctx, op, protocol.MethodComplete, "", members, options)
	if err != nil {
		return nil, unlisted(ctx, err, func() bool {
			if q.Template == "" {
				return lacks(c.Prompts(ctx), func(p Prompt) bool { return p.Name == q.Prompt })
			}
			// A URI without variables may fit a template of any text.
			return strings.Contains(q.Template, "{") && lacks(c.Templates(ctx), func(t ResourceTemplate) bool { return t.URITemplate == q.Template })
		})
	}
	var result wire.CompleteResult
	if err := jsonx.Unmarshal(raw, &result); err != nil {
		return nil, wrap(op, protocol.MethodComplete, invalid(fmt.Errorf("it is not that of completion/complete: %w", err)))
	}
	return &result.Completion, nil
}

// levelRequest returns the request that sets the level of the server's log. It
// is sent by SetLevel and after each handshake of a legacy session, because the
// level belongs to the session.
func levelRequest(c *Client, level protocol.Level) *request {
	return &request{client: c, op: "set level", method: protocol.MethodSetLevel, safe: true, options: &callOptions{},
		members: named("level", level.String())}
}

// SetLevel sets the least severe level that the server logs from now on. In
// modern revisions every later request carries it.
func (c *Client) SetLevel(ctx context.Context, level protocol.Level, options ...CallOption) error {
	if level.String() == "" {
		return &Error{Op: "set level", Method: protocol.MethodSetLevel, Err: fmt.Errorf("%d is not a level", level)}
	}
	conn, err := c.life.current(ctx)
	if err != nil {
		return wrap("set level", protocol.MethodSetLevel, err)
	}
	if !conn.revision().Modern() {
		r := levelRequest(c, level)
		r.options = newCallOptions(options)
		if _, err := r.do(ctx); err != nil {
			return err
		}
	}
	c.level.Store(int32(level)) // for a later session, too
	return nil
}

// Task asks for the state of a task. One that does not exist is ErrNotFound.
func (c *Client) Task(ctx context.Context, id string, options ...CallOption) (*Task, error) {
	raw, err := taskRequest(ctx, c, protocol.MethodTasksGet, id, nil, options)
	if err != nil {
		return nil, err
	}
	task, err := parseTask(raw)
	return task, wrap("tasks/get "+id, protocol.MethodTasksGet, invalid(err))
}

// UpdateTask gives a task answers to its questions, by their keys. A task that does
// not exist is ErrNotFound.
func (c *Client) UpdateTask(ctx context.Context, id string, answers map[string]any, options ...CallOption) error {
	text, err := c.encoders.object([]byte(`"inputResponses":`), "answers", answers)
	if err != nil {
		return &Error{Op: "tasks/update " + id, Method: protocol.MethodTasksUpdate, Err: err}
	}
	_, err = taskRequest(ctx, c, protocol.MethodTasksUpdate, id, text, options)
	return err
}

// CancelTask requests the end of a task, which may still complete or fail. A task that
// does not exist is ErrNotFound.
func (c *Client) CancelTask(ctx context.Context, id string, options ...CallOption) error {
	_, err := taskRequest(ctx, c, protocol.MethodTasksCancel, id, nil, options)
	return err
}

// WaitTask waits for the result of a task and answers what it asks, for as long
// as ctx and the task last. It requests the state as often as the PollInterval of
// the task allows, and receives notifications/tasks where the server offers them.
// A call that has just become a task is examined a few times sooner. When ctx
// ends the task is cancelled; after any other error it continues. Timeout bounds
// each request, not the waiting. OnProgress receives the task's status messages,
// with their numbers where the server reports those.
func (c *Client) WaitTask(ctx context.Context, task *Task, options ...CallOption) (*CallToolResult, error) {
	result, err := newTaskWait(c, newCallOptions(options), taskClock{}).run(ctx, task)
	return result, wrap("wait for task "+task.ID, protocol.MethodTasksGet, err)
}

// Listen subscribes to the changes of filter, and returns when the server has
// agreed. fn receives the notifications, and so does Options.OnNotification;
// fn may be nil. In legacy revisions changes of lists are announced without a
// subscription and resources are subscribed to one by one, so that the same
// code works with every server.
//
// Only the agreeing is bounded by ctx and the client's timeout.
func (c *Client) Listen(ctx context.Context, filter Filter, fn func(Notification)) (*Subscription, error) {
	filter.ResourceSubscriptions = slices.Clone(filter.ResourceSubscriptions)
	filter.TaskIDs = slices.Clone(filter.TaskIDs)
	s := &Subscription{client: c, wanted: filter, fn: fn, done: make(chan struct{}), acked: make(chan struct{})}
	conn, err := c.life.current(ctx)
	if err != nil {
		return nil, wrap("listen", protocol.MethodListen, err)
	}
	if !c.subs.add(s) {
		return nil, &Error{Op: "listen", Method: protocol.MethodListen, kind: ErrClosed, Err: errClientClosed}
	}
	if err := s.start(ctx, conn); err != nil {
		s.finish(err)
		if first := s.Err(); first != nil { // the client was closed in the meantime
			err = first
		}
		return nil, wrap("listen", protocol.MethodListen, err)
	}
	if link.IsResumed(ctx) {
		c.subs.forget()
		s.resumed()
	}
	return s, nil
}

// resourceRequest sends resources/subscribe or resources/unsubscribe to a
// legacy server.
func (c *Client) resourceRequest(ctx context.Context, method, uri string) error {
	_, err := c.ask(ctx, method+" "+uri, method, "", named("uri", uri), nil)
	return err
}

// Batch sends several requests at once and returns their results in the same
// order; each fails by itself. Only revision 2025-03-26 has batches: in others
// it is ErrUnsupported, and nothing is sent.
func (c *Client) Batch(ctx context.Context, operations ...Operation) ([]BatchResult, error) {
	if len(operations) == 0 {
		return nil, &Error{Op: "batch", Err: errors.New("a batch must not be empty")}
	}
	requests := make([]*request, len(operations))
	var err error
	for i, o := range operations {
		if requests[i], err = c.rawRequest("batch: "+o.Method, o.Method, o.Params, o.Options); err != nil {
			return nil, err
		}
		if c.pin.lock != nil && o.Method == protocol.MethodToolsCall {
			if _, err = c.pin.use(ctx, nameIn(o.Method, requests[i].members)); err != nil {
				return nil, wrap(requests[i].op, o.Method, err)
			}
		}
	}
	var results []BatchResult
	err = c.inSession(ctx, func(conn *connection) (err error) {
		if !conn.revision().Has(protocol.FeatureBatches) {
			return unsupported("batch", "", "revision %s has no batches", conn.revision())
		}
		results, err = sendBatch(ctx, c, conn, requests)
		return err
	})
	if results == nil {
		return nil, wrap("batch", "", err)
	}
	return results, nil
}

// unlisted turns ErrInvalidParams into ErrNotFound if the server does not list what the
// request was about: the codes of the protocol do not distinguish that from bad
// arguments. missing asks the server for its list.
func unlisted(ctx context.Context, err error, missing func() bool) error {
	own, ok := err.(*Error)
	if !ok || own.kind != ErrInvalidParams || own.Code != protocol.CodeInvalidParams || ctx.Err() != nil || !missing() {
		return err
	}
	found := *own
	found.kind = ErrNotFound
	return &found
}

// lacks reports whether a list has no such entry; false if it cannot be read.
func lacks[T any](list iter.Seq2[T, error], is func(T) bool) bool {
	for entry, err := range list {
		if err != nil || is(entry) {
			return false
		}
	}
	return true
}

// braces returns the object with these members.
func braces(members []byte) []byte {
	return append(append([]byte{'{'}, members...), '}')
}

// join returns the members of two objects as those of one.
func join(a, b []byte) []byte {
	if len(a) == 0 {
		return b
	}
	if len(b) == 0 {
		return a
	}
	return append(append(a, ','), b...)
}

// nameIn returns what the header Mcp-Name says for a request of a method, "" if
// nothing.
func nameIn(method string, members []byte) string {
	member := ""
	switch method {
	case protocol.MethodToolsCall, protocol.MethodPromptsGet:
		member = "name"
	case protocol.MethodResourcesRead:
		member = "uri"
	case protocol.MethodTasksGet, protocol.MethodTasksUpdate, protocol.MethodTasksCancel:
		member = "taskId"
	default:
		return ""
	}
	var name string
	// The server rejects an invalid name.
	_ = jsonx.Unmarshal(jsonx.Lookup(braces(members), []string{member}), &name)
	return name
}

// reads reports whether a method only reads, so that sending it twice is
// harmless.
func reads(method string) bool {
	switch method {
	case protocol.MethodPing, protocol.MethodDiscover, protocol.MethodToolsList, protocol.MethodPromptsList,
		protocol.MethodResourcesList, protocol.MethodResourceTemplates, protocol.MethodResourcesRead,
		protocol.MethodPromptsGet, protocol.MethodComplete, protocol.MethodSetLevel,
		protocol.MethodSubscribe, protocol.MethodUnsubscribe, protocol.MethodTasksGet, protocol.MethodTasksCancel,
		wire.MethodEventsList, wire.MethodEventsPoll:
		return true
	}
	return false
}
