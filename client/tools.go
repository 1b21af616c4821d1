package client

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/schema"
)

// toolInfo is what the client knows of a tool.
type toolInfo struct {
	tool    protocol.Tool
	headers []protocol.HeaderParam

	input, output lazySchema
}

// lazySchema is a schema that is compiled when it is first needed.
type lazySchema struct {
	once sync.Once
	raw  *schema.Raw
	err  error
}

func (l *lazySchema) get(text []byte) (*schema.Raw, error) {
	l.once.Do(func() { l.raw, l.err = schema.CompileRaw(text) })
	return l.raw, l.err
}

// toolIndex is what the client has learnt of the server's tools.
type toolIndex struct {
	mu     sync.RWMutex
	byName map[string]*toolInfo
	past   bool       // something has changed since they were listed
	load   sync.Mutex // held while all pages are read
}

// maxTools is how many tools are kept.
const maxTools = 20000

func (t *toolIndex) get(name string) *toolInfo {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.byName[name]
}

// learn keeps the tools of a page, and takes out those that must not be used
// if strict.
func (t *toolIndex) learn(c *Client, page *Page[protocol.Tool], strict bool) {
	kept := page.Items[:0]
	infos := make([]*toolInfo, 0, len(page.Items))
	for _, tool := range page.Items {
		headers, err := headerParams(tool.InputSchema)
		if err != nil && strict {
			page.Rejected = append(page.Rejected, tool.Name)
			c.opts.Logger.Warn().Str("server", c.server).Str("tool", tool.Name).Err(err).Msg("tool left out: its x-mcp-header is not valid")
			continue
		}
		kept = append(kept, tool)
		infos = append(infos, &toolInfo{tool: tool, headers: headers})
	}
	page.Items = kept
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byName == nil {
		t.byName = map[string]*toolInfo{}
	}
	for _, name := range page.Rejected {
		delete(t.byName, name)
	}
	for _, info := range infos {
		if old := t.byName[info.tool.Name]; old != nil && same(&old.tool, &info.tool) {
			continue // its schemas may be compiled
		}
		if len(t.byName) < maxTools {
			t.byName[info.tool.Name] = info
		}
	}
}

// same tells whether two definitions make the same calls.
func same(a, b *protocol.Tool) bool {
	return string(a.InputSchema) == string(b.InputSchema) && string(a.OutputSchema) == string(b.OutputSchema) &&
		hints(a) == hints(b)
}

// hints returns whether the tool says that calling it twice is harmless.
func hints(t *protocol.Tool) bool {
	a := t.Annotations
	return a != nil && (a.ReadOnlyHint != nil && *a.ReadOnlyHint || a.IdempotentHint != nil && *a.IdempotentHint)
}

func (t *toolInfo) harmless() bool { return hints(&t.tool) }

// stale says that what is known may be past.
func (t *toolIndex) stale() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.past = true
}

// fresh returns a tool unless what is known of it may be past.
func (t *toolIndex) fresh(name string) *toolInfo {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.past {
		return nil
	}
	return t.byName[name]
}

// need returns a tool, after listing them if it is not known.
func (t *toolIndex) need(ctx context.Context, c *Client, name string) (*toolInfo, error) {
	if tool := t.fresh(name); tool != nil {
		return tool, nil
	}
	t.load.Lock()
	defer t.load.Unlock()
	if tool := t.fresh(name); tool != nil {
		return tool, nil // somebody else listed them meanwhile
	}
	if err := t.readAll(ctx, c); err != nil {
		return nil, fmt.Errorf("the tools could not be listed: %w", err)
	}
	tool := t.get(name)
	return tool, known(tool, name)
}

func known(tool *toolInfo, name string) error {
	if tool == nil {
		return &Error{kind: ErrNotFound, Err: fmt.Errorf("the server lists no tool %q", name)}
	}
	return nil
}

// readAll lists every page anew. t.load is held.
func (t *toolIndex) readAll(ctx context.Context, c *Client) error {
	t.mu.Lock()
	t.past = false // a notice that comes meanwhile undoes it
	t.mu.Unlock()
	count := 0
	names := map[string]bool{}
	for tool, err := range c.Tools(ctx) {
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
			delete(t.byName, name)
		}
	}
	return nil
}

// refresh lists the tools again, because the server refused a call.
func (t *toolIndex) refresh(ctx context.Context, c *Client, name string) (*toolInfo, error) {
	t.load.Lock()
	defer t.load.Unlock()
	c.opts.Cache.drop(c.server, protocol.MethodToolsList, "")
	if err := t.readAll(ctx, c); err != nil {
		return nil, err
	}
	return t.get(name), nil
}

// checkArguments checks arguments before they are sent.
func (t *toolInfo) checkArguments(args []byte) error {
	if args == nil {
		args = []byte("{}")
	}
	input, err := t.input.get(t.tool.InputSchema)
	if err != nil {
		return fmt.Errorf("the arguments cannot be checked: the tool's inputSchema: %w", err)
	}
	if err := input.Check(args); err != nil {
		return fmt.Errorf("the arguments do not fit the tool's inputSchema: %w", err)
	}
	return nil
}

// checkOutput checks structured content against the tool's output schema
// (server/tools of the revisions from 2025-06-18 on).
func (c *Client) checkOutput(ctx context.Context, name string, result *CallToolResult) error {
	conn := c.conn.Load()
	if conn == nil || !conn.revision().Has(protocol.StructuredContent) {
		return nil
	}
	tool, err := c.tools.need(ctx, c, name)
	if err != nil {
		if errors.Is(err, ErrNotFound) {
			return nil // a tool that is not listed has no schema
		}
		return err
	}
	if len(tool.tool.OutputSchema) == 0 {
		return nil
	}
	output, err := tool.output.get(tool.tool.OutputSchema)
	if err != nil {
		return fmt.Errorf("the result cannot be checked: the tool's outputSchema: %w", err)
	}
	if result.Structured == nil {
		return errors.New("the tool has an outputSchema, but its result has no structuredContent")
	}
	if err := output.Check(result.Structured); err != nil {
		return fmt.Errorf("the result does not fit the tool's outputSchema: %w", err)
	}
	return nil
}

// Tool returns the definition of a tool, from the list if it was read before.
// A tool that the server does not list is ErrNotFound.
func (c *Client) Tool(ctx context.Context, name string) (protocol.Tool, error) {
	tool, err := c.tools.need(ctx, c, name)
	if err != nil {
		return protocol.Tool{}, wrap("tool "+name, protocol.MethodToolsList, "", err)
	}
	return tool.tool, nil
}
