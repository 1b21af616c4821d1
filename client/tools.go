package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/schema/raw"
)

// toolInfo is what the client knows about a tool. Apart from the compiled
// schemas it does not change.
type toolInfo struct {
	tool    protocol.Tool
	headers []facts.Header
	size    int // about what it takes, in bytes

	input, output *raw.Schema // nil until they are first needed, and again when others need their room; toolIndex.mu guards them
}

// toolIndex is what the client has learned about the server's tools. mu guards
// everything but load.
type toolIndex struct {
	client   *Client
	mu       sync.RWMutex
	byName   map[string]*toolInfo
	size     int  // of all, in bytes
	left     bool // some were left out, because there was no room
	past     bool // something has changed since they were listed
	walked   bool // they are being listed, so that the pages that are left may change any of them
	compiled int  // length of the schemas that are compiled
	load     turn // held while all pages are read
}

// maxTools is how many tools are kept, and maxToolsSize how much memory they
// may take, in bytes. maxCompiled is how long the schemas may be that are
// compiled at a time: a compiled schema can take 250 times its length.
const (
	maxTools     = 20000
	maxToolsSize = 32 << 20
	maxCompiled  = 512 << 10
)

// get returns what is known about a tool, even if it may be outdated; nil if
// nothing is.
func (t *toolIndex) get(name string) *toolInfo {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.byName[name]
}

// learn stores the tools of a page. Over modern HTTP it returns them without
// those whose x-mcp-header is not valid, which must not be used. differ are the names that
// the pin has refused on earlier pages, to which learn adds.
func (t *toolIndex) learn(tools []Tool, differ map[string]bool) []Tool {
	c := t.client
	conn := c.life.conn.Load()
	strict := conn != nil && conn.sync && conn.revision().Modern()
	kept := tools[:0]
	var headers [][]facts.Header // of those that are kept
	var left []string            // names of the others
	for _, tool := range tools { // before the lock is held, as the log is code of users
		of, err := wire.HeaderParams(tool.InputSchema)
		switch {
		case differ[tool.Name], !c.pin.allows(&tool):
			differ[tool.Name] = true
			left = append(left, tool.Name)
		case err != nil && strict:
			left = append(left, tool.Name)
			safely.Log(c.opts.Logger.Warn().Str("server", c.server).Str("tool", visible.Line(tool.Name, visible.Name)).Err(visible.Error(err)), "tool left out: its x-mcp-header is not valid")
		default:
			kept, headers = append(kept, tool), append(headers, of)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byName == nil {
		t.byName = map[string]*toolInfo{}
	}
	for i, tool := range kept {
		if old := t.byName[tool.Name]; old != nil && same(&old.tool, &tool) {
			continue // its schemas may be compiled
		}
		t.keep(&toolInfo{tool: tool, headers: headers[i], size: toolSize(&tool, headers[i])})
	}
	for _, name := range left { // last, so that one that is listed twice is left out
		t.forget(name)
	}
	return kept
}

// keep stores a tool if there is room. t.mu is held.
func (t *toolIndex) keep(info *toolInfo) {
	t.forget(info.tool.Name)
	if len(t.byName) >= maxTools || t.size+info.size > maxToolsSize {
		t.left = true
		return
	}
	t.byName[info.tool.Name] = info
	t.size += info.size
}

// forget removes a tool. t.mu is held.
func (t *toolIndex) forget(name string) {
	if info := t.byName[name]; info != nil {
		t.release(info)
		t.size -= info.size
		delete(t.byName, name)
	}
}

// release drops the compiled schemas of a tool. t.mu is held.
func (t *toolIndex) release(info *toolInfo) {
	if info.input != nil {
		t.compiled -= len(info.tool.InputSchema)
	}
	if info.output != nil {
		t.compiled -= len(info.tool.OutputSchema)
	}
	info.input, info.output = nil, nil
}

// schema returns a compiled schema of a tool. kept is the field for it.
// Compiled schemas of other tools are dropped if there is no room.
func (t *toolIndex) schema(info *toolInfo, text []byte, kept **raw.Schema) (*raw.Schema, error) {
	t.mu.RLock()
	compiled := *kept
	t.mu.RUnlock()
	if compiled != nil {
		return compiled, nil
	}
	if len(text) > maxCompiled {
		return nil, fmt.Errorf("it is longer than %d bytes", maxCompiled)
	}
	compiled, err := raw.Compile(text)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byName[info.tool.Name] != info || *kept != nil {
		return compiled, nil // it was replaced, or it was compiled twice
	}
	if t.compiled+len(text) > maxCompiled {
		for _, other := range t.byName {
			t.release(other)
		}
	}
	*kept = compiled
	t.compiled += len(text)
	return compiled, nil
}

// toolSize estimates the memory that a tool takes, in bytes.
func toolSize(t *Tool, headers []facts.Header) int {
	const entry, text, icon = 512, 20, 96 // of the index; of a string in a list; of an Icon
	n := entry + len(t.Name) + len(t.Title) + len(t.Description) + len(t.InputSchema) + len(t.OutputSchema)
	for _, i := range t.Icons {
		n += icon + len(i.Src) + len(i.MIMEType) + len(i.Theme)
		for _, size := range i.Sizes {
			n += text + len(size)
		}
	}
	if t.Annotations != nil {
		n += len(t.Annotations.Title)
	}
	if t.Execution != nil {
		n += len(t.Execution.TaskSupport)
	}
	for _, h := range headers {
		n += 3*text + len(h.Name)
		for _, name := range h.Path {
			n += text + len(name)
		}
	}
	return n + valueSize(map[string]any(t.Meta))
}

// valueSize estimates the memory that a decoded JSON value takes, in bytes.
func valueSize(v any) int {
	const one = 64 // a value and its place
	n := one
	switch v := v.(type) {
	case string:
		n += len(v)
	case json.RawMessage:
		n += len(v)
	case []any:
		for _, item := range v {
			n += valueSize(item)
		}
	case map[string]any:
		if len(v) > 0 {
			n += 3 * one // of a map that is not empty
		}
		for name, item := range v {
			n += one + len(name) + valueSize(item)
		}
	}
	return n
}

// same reports whether calls are made in the same way for two definitions.
func same(a, b *protocol.Tool) bool {
	return string(a.InputSchema) == string(b.InputSchema) && string(a.OutputSchema) == string(b.OutputSchema) &&
		hints(a) == hints(b)
}

// hints reports whether a tool declares that calling it twice is harmless.
func hints(t *protocol.Tool) bool {
	a := t.Annotations
	return a != nil && (a.ReadOnlyHint != nil && *a.ReadOnlyHint || a.IdempotentHint != nil && *a.IdempotentHint)
}

// harmless reports whether the tool declares that calling it twice is harmless.
func (t *toolInfo) harmless() bool { return hints(&t.tool) }

// stale marks everything as possibly outdated.
func (t *toolIndex) stale() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.past = true
}

// fresh returns a tool unless what is known may be outdated.
func (t *toolIndex) fresh(name string) *toolInfo {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.past || t.walked || t.client.pin.over() {
		return nil
	}
	return t.byName[name]
}

// need returns a tool, and lists all tools first if it is not known.
func (t *toolIndex) need(ctx context.Context, name string) (*toolInfo, error) {
	if tool := t.fresh(name); tool != nil {
		return tool, nil
	}
	if err := t.load.take(ctx); err != nil {
		return nil, err
	}
	defer t.load.give()
	if tool := t.fresh(name); tool != nil {
		return tool, nil // another goroutine listed them in the meantime
	}
	if err := t.readAll(ctx); err != nil {
		return nil, fmt.Errorf("the tools could not be listed: %w", err)
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	switch tool := t.byName[name]; {
	case tool != nil:
		return tool, nil
	case t.left:
		return nil, invalid(fmt.Errorf("the server lists more tools than are kept, and %q is not among those", name))
	}
	return nil, &Error{kind: ErrNotFound, Err: fmt.Errorf("the server lists no tool %q", name)}
}

// readAll lists all pages again. t.load is held.
func (t *toolIndex) readAll(ctx context.Context) error {
	t.mu.Lock()
	t.past, t.left, t.walked = false, false, true // a notice sets past again
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.walked = false
	}()
	var options []CallOption
	if t.client.pin.lock != nil {
		options = append(options, NoCache())
		t.client.pin.begin()
	}
	count := 0
	names := map[string]bool{}
	for tool, err := range t.client.Tools(ctx, options...) {
		if _, broken := errors.AsType[*brokenError](err); broken {
			break // the others are known
		}
		if err != nil {
			t.stale()
			return err
		}
		names[tool.Name] = true
		if count++; count > maxTools {
			break
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for name := range t.byName {
		if !names[name] {
			t.forget(name)
		}
	}
	return nil
}

// refresh lists the tools again after the server refused a call, and returns
// the tool; nil if it is gone.
func (t *toolIndex) refresh(ctx context.Context, name string) (*toolInfo, error) {
	if err := t.load.take(ctx); err != nil {
		return nil, err
	}
	defer t.load.give()
	t.client.opts.Cache.drop(t.client.server, protocol.MethodToolsList, "")
	if err := t.readAll(ctx); err != nil {
		return nil, err
	}
	return t.get(name), nil
}

// checkArguments checks arguments against the tool's input schema.
func (t *toolIndex) checkArguments(info *toolInfo, args []byte) error {
	if args == nil {
		args = []byte("{}")
	}
	input, err := t.schema(info, info.tool.InputSchema, &info.input)
	if err != nil {
		return fmt.Errorf("the arguments cannot be checked: the tool's inputSchema: %w", err)
	}
	if err := input.Check(args); err != nil {
		return &Error{kind: ErrInvalidParams, Err: fmt.Errorf("the arguments do not fit the tool's inputSchema: %w", err)}
	}
	return nil
}
