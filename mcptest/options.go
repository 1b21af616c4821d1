package mcptest

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// defaultTimeout is how long a Client waits for an answer.
const defaultTimeout = 10 * time.Second

// Option shapes a Client.
type Option func(*config)

// config is the sum of the options of a Client.
type config struct {
	revision     protocol.Revision
	http         bool
	timeout      time.Duration
	info         protocol.Implementation
	level        protocol.Level
	capabilities *protocol.ClientCapabilities
	headers      map[string]string
	answers      map[string]answerer
	traces       []func(fromServer bool, message []byte)
	answered     []func(message []byte, status int) // over HTTP
	identity     *mcp.Identity
}

// answerer answers a request of the server. Its error is a *protocol.Error or
// becomes -32603.
type answerer func(ctx context.Context, params json.RawMessage) (result any, err error)

// scripted is the option for the answers to a method.
func scripted(method string, fn answerer) Option {
	return func(c *config) { c.answers[method] = fn }
}

// newConfig applies options to the defaults.
func newConfig(options []Option) *config {
	c := &config{
		revision: protocol.Latest, timeout: defaultTimeout, level: protocol.LevelDebug,
		info:    protocol.Implementation{Name: "mcptest", Version: "1"},
		answers: map[string]answerer{}, headers: map[string]string{},
	}
	for _, o := range options {
		o(c)
	}
	if c.capabilities == nil {
		c.capabilities = c.able()
	}
	return c
}

// able returns the capabilities for which there is a script, in the form of the
// revision: a server asks for nothing that the client did not declare.
func (c *config) able() *protocol.ClientCapabilities {
	can := &protocol.ClientCapabilities{}
	modes := c.revision.Has(protocol.FeatureElicitModes)
	if c.answers[protocol.MethodElicit] != nil {
		can.Elicitation = &protocol.ElicitationCapability{}
		if modes {
			can.Elicitation.Form, can.Elicitation.URL = &struct{}{}, &struct{}{}
		}
	}
	if c.answers[protocol.MethodSample] != nil {
		can.Sampling = &protocol.SamplingCapability{}
		if modes {
			can.Sampling.Tools = &struct{}{}
		}
	}
	if c.answers[protocol.MethodRoots] != nil {
		can.Roots = &protocol.ListCapability{}
	}
	return can
}

// Revision makes the client speak that revision, such as protocol.V20250618;
// the default is the latest. protocol.Revisions lists them for a loop.
func Revision(rev protocol.Revision) Option { return func(c *config) { c.revision = rev } }

// OverHTTP makes the client talk to Server.Handler through a loopback socket;
// the default is a pipe. A call that is refused for want of headers which mirror
// arguments is made again with them, after listing the tools.
func OverHTTP() Option { return func(c *config) { c.http = true } }

// Header adds a header to each HTTP request of the client.
func Header(name, value string) Option { return func(c *config) { c.headers[name] = value } }

// As gives the client an identity, as authorization does: Frame.Identity returns id, and components
// with Scopes exist if id has the scopes. Without it the client is anonymous, and has no scopes.
func As(id mcp.Identity) Option { return func(c *config) { c.identity = &id } }

// Timeout says how long to wait for an answer; the default is 10
// seconds.
func Timeout(d time.Duration) Option { return func(c *config) { c.timeout = d } }

// Info says who the client is.
func Info(info protocol.Implementation) Option { return func(c *config) { c.info = info } }

// LogLevel says which log messages the client wants; the default is debug.
func LogLevel(level protocol.Level) Option { return func(c *config) { c.level = level } }

// Capabilities declares what the client can do, in place of what its scripts
// can.
func Capabilities(can protocol.ClientCapabilities) Option {
	return func(c *config) { c.capabilities = &can }
}

// OnElicit answers elicitation/create, forms and URLs alike, as
// client.Options.Elicit does; [client.Accept], [client.Decline] and
// [client.Cancel] make answers.
func OnElicit(fn func(context.Context, *client.ElicitParams) (*client.ElicitResult, error)) Option {
	return scripted(protocol.MethodElicit, func(ctx context.Context, params json.RawMessage) (any, error) {
		var q client.ElicitParams
		if err := jsonx.Unmarshal(params, &q); err != nil {
			return nil, err
		}
		return fn(ctx, &q)
	})
}

// Accepting answers every form with content, a struct or map, and accepts every
// URL.
func Accepting(content any) Option {
	return OnElicit(func(_ context.Context, q *client.ElicitParams) (*client.ElicitResult, error) {
		if q.Mode == "url" {
			return client.Accept(nil)
		}
		return client.Accept(content)
	})
}

// OnSample answers sampling/createMessage, as client.Options.Sample does. An
// answer needs no more than Content.
func OnSample(fn func(context.Context, *client.SampleParams) (*client.SampleResult, error)) Option {
	return scripted(protocol.MethodSample, func(ctx context.Context, params json.RawMessage) (any, error) {
		q := &client.SampleParams{}
		if err := jsonx.Unmarshal(params, q); err != nil {
			return nil, err
		}
		answer, err := fn(ctx, q)
		if err != nil {
			return nil, err
		}
		return sampled(answer)
	})
}

// sampled returns the answer of a model as it is sent.
func sampled(r *client.SampleResult) (any, error) {
	text, err := client.SampleMessage{Role: cmp.Or(r.Role, protocol.RoleAssistant), Content: r.Content}.MarshalJSON()
	if err != nil {
		return nil, err
	}
	members := map[string]any{"model": cmp.Or(r.Model, "test"), "stopReason": cmp.Or(r.StopReason, "endTurn")}
	return members, jsonx.Unmarshal(text, &members)
}

// Roots answers roots/list.
func Roots(roots ...protocol.Root) Option {
	if roots == nil {
		roots = []protocol.Root{}
	}
	return OnRequest(protocol.MethodRoots, func(json.RawMessage) (any, error) {
		return wire.RootsResult{Roots: roots}, nil
	})
}

// OnRequest answers requests of the server of any method: with a value that
// encodes as the result, or with an error, which goes out as it is if it is a
// *protocol.Error. fn runs on a goroutine of its own.
func OnRequest(method string, fn func(params json.RawMessage) (result any, err error)) Option {
	return scripted(method, func(_ context.Context, params json.RawMessage) (any, error) { return fn(params) })
}

// Trace calls fn with each message that goes back or forth. It may be called
// by several goroutines at once.
func Trace(fn func(fromServer bool, message []byte)) Option {
	return func(c *config) {
		if fn != nil {
			c.traces = append(c.traces, fn)
		}
	}
}
