package gateway

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/registry"
	"github.com/talaria-go/mcp/transport"
)

// Upstream says how a server is reached, and what of it clients get.
type Upstream struct {
	// Transport is that of the list connection, and of callers if For is nil. Without it
	// only what the connections of callers list counts, and nothing is there before.
	Transport client.Transport
	// For returns the transport with the credentials of the caller behind f, and a text
	// that names all that the credentials depend on, such as f.Principal(). Callers with
	// different texts never share a connection; "" is an error. It runs for each request,
	// and its error is that of the request. It may be called by several goroutines at once.
	For func(f *mcp.Frame) (caller string, t client.Transport, err error)
	// Shared says that a legacy upstream keeps nothing for a session: all callers use one
	// connection, and no user is asked.
	Shared bool
	// NoQuestions declares to the upstream that no user, model or root can be asked for.
	NoQuestions bool
	// Only and Hide are patterns of path.Match over the upstream's own names of tools,
	// prompts, resources and templates, where * does not match a slash. A nil Only means
	// all.
	Only, Hide []string
	// Rules change tools. All that match apply, in their order.
	Rules []Rule
}

// Rule changes what clients see of tools.
type Rule struct {
	Tool        string                     `json:"tool"`                  // a pattern, as in Upstream.Only
	Name        string                     `json:"name,omitempty"`        // in place of its name; "" keeps that. Tool has no wildcard then
	Description *string                    `json:"description,omitempty"` // nil keeps it
	Hints       *protocol.ToolAnnotations  `json:"hints,omitempty"`       // nil keeps them
	Fixed       map[string]json.RawMessage `json:"fixed,omitempty"`       // arguments that callers neither see nor give
}

// check returns what is wrong with an Upstream.
func (u *Upstream) check() error {
	if u.Transport == nil && u.For == nil {
		return errors.New("it needs a Transport, or For, or both")
	}
	patterns := slices.Concat(u.Only, u.Hide)
	for i, r := range u.Rules {
		patterns = append(patterns, r.Tool)
		if r.Tool == "" {
			return fmt.Errorf("rule %d has no Tool", i+1)
		}
		if r.Name != "" && strings.ContainsAny(r.Tool, `*?[\`) {
			return fmt.Errorf("rule %d: Name is for one tool, and %q may be several", i+1, r.Tool)
		}
		for name, value := range r.Fixed {
			if !json.Valid(value) {
				return fmt.Errorf("rule %d: Fixed: the value of %q is not JSON", i+1, name)
			}
		}
	}
	for _, pattern := range patterns {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("invalid pattern %q", pattern)
		}
	}
	return nil
}

// allows reports whether clients get what has a name.
func (u *Upstream) allows(name string) bool {
	matches := func(pattern string) bool { ok, _ := path.Match(pattern, name); return ok }
	return (u.Only == nil || slices.ContainsFunc(u.Only, matches)) && !slices.ContainsFunc(u.Hide, matches)
}

// The eras of an upstream: whether it has sessions.
const (
	eraUnknown = iota
	eraLegacy
	eraModern
)

// maxCalls is the number of requests of clients that an upstream has at a time.
const maxCalls = 256

// upstream is one server. It does not change: Set makes another one.
type upstream struct {
	Upstream
	gateway *Gateway
	name    string
	prefix  string // the name and "_"; "" without a name
	list    *connection
	ctx     context.Context // ends with close
	cancel  context.CancelFunc
	calls   chan struct{} // has a value for each request in progress
	era     atomic.Int32
	listed  chan struct{} // closed when the first connection has listed
	first   sync.Once     // closes listed
	placed  chan struct{} // closed when it is one of those of the Gateway

	next *upstream // will replace it; guarded by the mu of the Gateway

	mu    sync.Mutex
	known map[place]*known // what some connection lists, or has listed
	notes []string         // of the last catalog
}

// newUpstream returns an upstream that start connects.
func newUpstream(g *Gateway, name string, u Upstream) *upstream {
	up := &upstream{Upstream: u, gateway: g, name: name, calls: make(chan struct{}, maxCalls), listed: make(chan struct{}), placed: make(chan struct{}), known: map[place]*known{}}
	if name != "" {
		up.prefix = name + "_"
	}
	up.ctx, up.cancel = context.WithCancel(g.ctx)
	return up
}

// start opens the list connection.
func (u *upstream) start() {
	if u.Transport == nil {
		u.first.Do(func() { close(u.listed) })
		return
	}
	key := connKey{list: true}
	caps := protocol.ClientCapabilities{Elicitation: &protocol.ElicitationCapability{Form: &struct{}{}, URL: &struct{}{}},
		Sampling: &protocol.SamplingCapability{Tools: &struct{}{}, Context: &struct{}{}}, Roots: &protocol.ListCapability{}}
	if u.NoQuestions || u.Shared {
		caps = protocol.ClientCapabilities{}
	}
	u.list = newConnection(u, key, u.Transport, caps, 0)
}

// single reports whether all callers use the list connection.
func (u *upstream) single() bool {
	return u.For == nil && u.list != nil && (u.Shared || u.NoQuestions && u.era.Load() == eraModern)
}

// open returns the connection for the client of f. The caller gives it back with
// pool.release. It waits for the code of For, and for the list connection as long as that
// opens, which has to say which era the upstream is of.
func (u *upstream) open(f *mcp.Frame) (*connection, error) {
	if u.list != nil && u.era.Load() == eraUnknown && !u.Shared {
		u.list.waitOpening(f)
		if u.For == nil && u.era.Load() == eraUnknown { // more connections would not help
			return nil, cmp.Or(u.list.listFault(), errOpening)
		}
	}
	if u.single() {
		u.gateway.pool.hold(u.list)
		return u.list, nil
	}
	key, t, err := u.key(f)
	if err != nil {
		return nil, err
	}
	return u.gateway.pool.get(f, u, key, t)
}

// key returns which connection the client of f uses, and the transport to open it with.
func (u *upstream) key(f *mcp.Frame) (connKey, client.Transport, error) {
	key, t := connKey{modern: u.era.Load() == eraModern}, u.Transport
	if u.For != nil {
		err := safely.Try(func() (err error) {
			key.caller, t, err = u.For(f)
			return err
		})
		switch {
		case err != nil:
			return key, nil, &refusal{err}
		case key.caller == "":
			return key, nil, &refusal{fmt.Errorf("gateway: For of %q named no caller", u.name)}
		case t == nil:
			return key, nil, &refusal{fmt.Errorf("gateway: For of %q returned no transport", u.name)}
		}
	}
	switch {
	case u.Shared:
		return key, t, nil
	case !key.modern:
		key.session = f.SessionID()
		if u.For == nil {
			key.caller = f.Principal()
		}
		key.stdio = f.Transport() == frame.Stdio
		if key.caller == "" && !key.person() {
			return key, t, nil // it may be anyone, so that no user is asked
		}
	}
	if !u.NoQuestions {
		key.caps = capabilitiesOf(f)
	}
	return key, t, nil
}

// refusal is an error of For, or of the gateway itself: it is not that the upstream cannot
// be reached.
type refusal struct{ error }

// refused returns a refusal with a sentence for the model.
func refused(format string, args ...any) error { return &refusal{fmt.Errorf(format, args...)} }

// Unwrap returns the cause.
func (r *refusal) Unwrap() error { return r.error }

// connection returns what v has found for the client of f, or what is open already.
func (u *upstream) connection(f *mcp.Frame, patient bool) (*connection, error) {
	if v := u.gateway.visitOf(f); v != nil {
		return v.connection(f, u, patient)
	}
	if u.single() {
		return u.list, nil
	}
	key, _, err := u.key(f)
	if err != nil {
		return nil, err
	}
	if c := u.gateway.pool.find(u, key); c != nil {
		return c, nil
	}
	if u.list != nil { // there is no request: the answer is that for the upstream's subscribers
		return u.list, nil
	}
	return nil, errOpening
}

// ready returns the connection for the client of f, which has listed.
func (u *upstream) ready(f *mcp.Frame) (*connection, error) {
	for {
		c, err := u.connection(f, true)
		if err == nil {
			err = c.wait(f)
		}
		if !u.gateway.visitOf(f).renew(u, err) {
			return c, err
		}
	}
}

// find returns what the client of f sees at a place; nil if there is nothing.
func (u *upstream) find(f *mcp.Frame, at place, patient bool) (*item, *connection, error) {
	var c *connection
	var err error
	if patient {
		c, err = u.ready(f)
	} else {
		c, err = u.connection(f, false)
	}
	if err != nil {
		return nil, c, err
	}
	all := c.catalog.Load()
	if all == nil && !patient && u.For == nil && u.list != nil { // of an upstream that is down, and is the same to all
		all = u.list.catalog.Load()
	}
	if all == nil {
		return nil, c, errOpening
	}
	return all.items[at], c, nil
}

// visible reports whether the client of f sees something. A list has nothing of what
// cannot be known, while a request that names it says why.
func (u *upstream) visible(f *mcp.Frame, at place) bool {
	named := f.Request().Params.Name == at.key
	it, _, err := u.find(f, at, named)
	if err != nil {
		return named
	}
	return it != nil
}

// serve serves a request for what the upstream has at a place. uri is that of a resource.
func (u *upstream) serve(f *mcp.Frame, at place, uri string) (protocol.Result, error) {
	u = u.gateway.current(u)
	for {
		it, c, err := u.find(f, at, true)
		var result protocol.Result
		if err == nil && it == nil {
			return nil, fmt.Errorf("%w: %v", mcp.ErrNotFound, at)
		}
		if err == nil {
			result, err = u.exchange(f, c, at, it, uri)
		}
		if u.gateway.visitOf(f).renew(u, err) {
			continue
		}
		if err != nil && result == nil {
			return u.failed(f, err)
		}
		return result, err
	}
}

// exchange makes the request of the client of f by a connection.
func (u *upstream) exchange(f *mcp.Frame, c *connection, at place, it *item, uri string) (protocol.Result, error) {
	was, err := travelled(f)
	if err != nil {
		return nil, err
	}
	if was.Parked != "" {
		r := u.gateway.parking.take(was.Parked)
		if r == nil {
			return nil, errOver
		}
		return r.requests(f)
	}
	switch at.kind {
	case registry.KindTool:
		if err := it.checkHeaders(f); err != nil {
			return nil, err
		}
		args, err := it.argumentsOf(bytes.Clone(f.Request().Params.Arguments))
		if err != nil {
			return nil, err
		}
		return c.pass(f, func(ctx context.Context, cl *client.Client, options ...client.CallOption) (protocol.Result, error) {
			var given any
			if len(args) > 0 {
				given = args
			}
			return toolResult(cl.Call(ctx, it.name, given, options...))
		})
	case registry.KindPrompt:
		var args map[string]string
		if raw := f.Request().Params.Arguments; len(raw) > 0 {
			if err := jsonx.Unmarshal(raw, &args); err != nil {
				return nil, protocol.Errorf(protocol.CodeInvalidParams, "params.arguments: %w", err)
			}
		}
		return c.pass(f, func(ctx context.Context, cl *client.Client, options ...client.CallOption) (protocol.Result, error) {
			r, err := cl.GetPrompt(ctx, it.name, args, options...)
			if err != nil {
				return nil, err
			}
			passed(r.Meta)
			return r, nil
		})
	}
	uri = strings.Clone(uri) // the run may outlive the request
	return c.pass(f, func(ctx context.Context, cl *client.Client, options ...client.CallOption) (protocol.Result, error) {
		r, err := cl.Read(ctx, uri, options...)
		if err != nil {
			return nil, err
		}
		passed(r.Meta)
		return r, nil
	})
}

// toolResult returns the result of a call for the server, which sends it in the revision
// of its client.
func toolResult(r *client.CallToolResult, err error) (protocol.Result, error) {
	if r == nil {
		return nil, err
	}
	out := &protocol.CallToolResult{Content: r.Content, IsError: r.IsError}
	if r.Structured != nil {
		out.AppendStructured = func(dst []byte) ([]byte, error) { return append(dst, r.Structured...), nil }
	}
	if r.Meta != nil && jsonx.Unmarshal(r.Meta, &out.Meta) == nil {
		passed(out.Meta)
	}
	return out, nil
}

// passed takes out of the _meta of a result what the server has of its own.
func passed(meta map[string]any) {
	maps.DeleteFunc(meta, func(key string, _ any) bool { return strings.HasPrefix(key, "io.modelcontextprotocol/") })
}

// failed returns what a client gets for an error: that of the upstream as it is, and in a
// call a failed result that says what the model can do.
func (u *upstream) failed(f *mcp.Frame, err error) (protocol.Result, error) {
	unauthorized := errors.Is(err, client.ErrUnauthorized)
	own, isRefusal := errors.AsType[*refusal](err)
	fault, isFault := errors.AsType[*protocol.Error](err)
	_, far := errors.AsType[*client.Error](err) // else the fault is one of the gateway
	between := far && isFault && !unauthorized && ofConnection(fault.Code)
	if isFault && !unauthorized && !between {
		if r := f.Request(); r.Method == protocol.MethodResourcesRead {
			fault = wire.PassReadError(fault, f.Revision(), r.Params.Name, errors.Is(err, client.ErrNotFound))
		}
		return nil, fault
	}
	if errors.Is(err, mcp.ErrInputRequired) || errors.Is(err, mcp.ErrNotFound) {
		return nil, err
	}
	if errors.Is(err, client.ErrNotFound) {
		return nil, fmt.Errorf("%w: %w", mcp.ErrNotFound, visible.Error(err))
	}
	if f.Err() != nil {
		return nil, context.Cause(f)
	}
	text := ""
	if _, asks := errors.AsType[*client.InputRequiredError](err); asks {
		text = fmt.Sprintf("Server %q asks the user something, and the client cannot ask.", u.name)
	} else if isRefusal {
		text = visible.Error(own.error).Error()
	} else if between {
		text = fmt.Sprintf("Server %q refuses the request: %v", u.name, visible.Error(fault))
	} else if errors.Is(err, errFull) {
		text = errFull.Error()
	} else {
		text = fmt.Sprintf("Server %q cannot be reached: %v; try again later, or do without it.", u.name, u.reason(err))
	}
	if f.Request().Method != protocol.MethodToolsCall {
		return nil, &protocol.Error{Code: protocol.CodeInternal, Message: text, Err: err}
	}
	return &protocol.CallToolResult{IsError: true, Content: []protocol.Content{protocol.TextContent{Text: text}}, Err: err}, nil
}

// ofConnection reports whether an error is about messages between the gateway and an upstream.
// The client of a request would take it for one about its own, and may send that again.
func ofConnection(code protocol.Code) bool {
	switch code {
	case protocol.CodeParseError, protocol.CodeInvalidRequest, protocol.CodeMethodNotFound, protocol.CodeSessionNotFound,
		protocol.CodeHeaderMismatch, protocol.CodeMissingCapability, protocol.CodeUnsupportedVersion:
		return true
	}
	return false
}

// reason returns the part of an error for clients. The standard error of a command, and the
// variables that it may lack, are for the log only.
func (u *upstream) reason(err error) error {
	silent, isSilent := errors.AsType[*client.SilentError](err)
	exit, hasEnded := errors.AsType[*transport.ExitError](err)
	switch {
	case errors.Is(err, client.ErrUnauthorized):
		safely.Log(u.gateway.log.Warn().Str("server", u.name).Err(visible.Error(err)), "an upstream does not accept the credentials")
		return errors.New("it does not accept the credentials")
	case isSilent:
		safely.Log(u.gateway.log.Warn().Str("server", u.name).Err(visible.Error(silent)), "an upstream does not answer")
		return errors.New("it does not answer")
	case hasEnded:
		return fmt.Errorf("its process has ended: %v", exit.State)
	}
	for {
		inner, ok := errors.AsType[*client.Error](err)
		if !ok || inner.Err == nil {
			return visible.Error(err)
		}
		err = inner.Err
	}
}

// completer returns what completes an argument of a prompt or template.
func (u *upstream) completer(at place, argument string) completer {
	return func(f *frame.Frame, value string, arguments map[string]string) (none protocol.Completion, err error) {
		u := u.gateway.current(u)
		it, c, err := u.find(f, at, true)
		if err == nil && it == nil {
			return none, fmt.Errorf("%w: %v", mcp.ErrNotFound, at)
		}
		var cl *client.Client
		if err == nil {
			cl, err = c.ready(f)
		}
		if err == nil {
			q := client.Completion{Argument: argument, Value: value, Context: arguments}
			if at.kind == registry.KindPrompt {
				q.Prompt = it.name
			} else {
				q.Template = it.name
			}
			var found *protocol.Completion
			if found, err = cl.Complete(f, q); err == nil {
				return *found, nil
			}
		}
		if errors.Is(err, client.ErrUnsupported) {
			return none, nil // it completes nothing
		}
		_, err = u.failed(f, err)
		return none, err
	}
}

// status returns the state of the upstream.
func (u *upstream) status() Status {
	var s Status
	if u.list != nil {
		s.Status = u.list.group.Status()[0]
		if err := u.list.listFault(); err != nil && s.Err == nil {
			s.Err = err
		}
	}
	s.Name = u.name
	s.Tools, s.LeftOut = u.gateway.publisher.tools(u)
	u.mu.Lock()
	defer u.mu.Unlock()
	s.LeftOut = slices.Concat(u.notes, s.LeftOut)
	return s
}

// offered takes what a connection lists. before is what it listed the last time; nil if
// that is nothing. late means that a client has seen a list without it.
func (u *upstream) offered(c *connection, now, before *catalog, late bool) {
	fresh := map[place]bool{}
	u.mu.Lock()
	for at, it := range now.items {
		k := u.known[at]
		if k == nil && len(u.known) >= maxKnown {
			continue
		}
		if k == nil || !k.covers(it) {
			u.known[at] = k.with(it)
			fresh[at] = true
		}
		if late || before != nil && (before.items[at] == nil || before.items[at].sum != it.sum) {
			fresh[at] = true
		}
	}
	if before != nil {
		for at := range before.items {
			if now.items[at] == nil {
				fresh[at] = true
			}
		}
	}
	if c.key().list || u.list == nil {
		u.notes = now.notes
		if c.key().list { // what only callers have listed comes again with their next list
			for at := range before.places() {
				if now.items[at] == nil && !u.gateway.pool.lists(u, at) {
					delete(u.known, at)
				}
			}
		}
	}
	u.mu.Unlock()
	u.first.Do(func() { close(u.listed) })
	if len(fresh) > 0 {
		u.gateway.publisher.publish(map[*upstream]map[place]bool{u: fresh})
	}
}

// retire closes the upstream when its requests have ended, or their time is over.
func (u *upstream) retire() {
	late := time.NewTimer(changeTime)
	defer late.Stop()
	for range maxCalls { // each free place is one request less
		select {
		case u.calls <- struct{}{}:
			continue
		case <-late.C:
		case <-u.ctx.Done():
		}
		break
	}
	u.close()
}

// close ends all connections of the upstream.
func (u *upstream) close() {
	u.cancel()
	u.gateway.pool.leave(u)
	if u.list != nil {
		u.list.close()
	}
}

// capabilitiesOf returns the questions that the client of f can answer, as upstreams receive
// them, as JSON.
func capabilitiesOf(f *mcp.Frame) string {
	c := f.ClientCapabilities()
	if c.Elicitation == nil && c.Sampling == nil && c.Roots == nil {
		return ""
	}
	can := protocol.ClientCapabilities{Elicitation: c.Elicitation, Sampling: c.Sampling, Roots: c.Roots}
	if c.Roots != nil && f.SessionID() == "" {
		can.Roots = &protocol.ListCapability{} // a client without a session does not tell of changes
	}
	text, _ := json.Marshal(can) // it always encodes
	return string(text)
}

// internal gives the seams of package frame.
var internal = frame.Internal(facts.Private{})
