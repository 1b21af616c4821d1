package telemetry

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
)

// Client makes clients that connect with c tell OpenTelemetry of every call of their
// API: a span of the kind CLIENT and a duration each, of all that the call takes, its
// rounds, retries and looks at a task included. The trace goes out in _meta of every
// request and notification, so that the server's spans are below.
//
// It sets c.Around and c.Inject, around what is there. o may be nil. The error of an
// instrument that the MeterProvider refuses goes to otel.Handle.
//
// The duration is without what people took to answer; that is talaria.waited of the
// span.
func Client(c *client.Options, o *Options) {
	t := &caller{tracing: tracing{options: o.filled()}, series: newSeries()}
	var err error
	if t.took, err = duration(t.options.meter(), clientDuration, "How long a call took, without what people took to answer."); err != nil {
		otel.Handle(err)
		t.took = noop.Float64Histogram{}
	}
	t.kind = []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindClient)}
	around, inject := c.Around, c.Inject
	c.Around = t.around
	if around != nil {
		c.Around = func(ctx context.Context, call *client.CallInfo, next func(context.Context) error) error {
			return t.around(ctx, call, func(ctx context.Context) error { return around(ctx, call, next) })
		}
	}
	c.Inject = t.inject
	if inject != nil {
		c.Inject = func(ctx context.Context, set func(key, value string)) {
			inject(ctx, set)
			t.inject(ctx, set)
		}
	}
}

// caller is what clients of the same options share.
type caller struct {
	tracing
	series *series
	took   metric.Float64Histogram
	kind   []trace.SpanStartOption // of every span

	methods, targets, servers names
}

// maxNames is how many methods, and how many targets, of a client are exported by
// their names, and maxServers how many servers by their addresses. A model makes
// names of tools up, and a program may let it choose servers, too. maxName is how
// many bytes a name has.
const (
	maxNames   = 500
	maxServers = 50
	maxName    = 128
)

// names are the exported ones. The zero value is empty.
type names struct {
	mu   sync.Mutex
	told map[string]bool
}

// bounded returns name, or other if it is longer than maxName, no text, or one more
// than most.
func (n *names) bounded(name string, most int) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if name == "" || n.told[name] {
		return name
	}
	if len(n.told) >= most || len(name) > maxName || !utf8.ValidString(name) {
		return other
	}
	if n.told == nil {
		n.told = make(map[string]bool)
	}
	n.told[name] = true
	return name
}

// around is the Around of a client.
func (t *caller) around(ctx context.Context, call *client.CallInfo, next func(context.Context) error) error {
	t.resolve()
	counted := t.took.Enabled(ctx)
	if t.off() && !counted {
		return next(ctx)
	}
	l := labels{method: t.methods.bounded(call.Method, maxNames)}
	if l.method == protocol.MethodToolsCall || l.method == protocol.MethodPromptsGet {
		l.target = t.targets.bounded(call.Name, maxNames)
	}
	ctx, span := t.start(ctx, t.series.name(l.method, l.target), t.kind...)
	began := time.Now()
	err := next(ctx)
	took := time.Since(began) - call.Waited
	l.revision = call.Revision
	l.outcome(err, call.ToolFailed)
	if l.address, l.port = address(call.URL); t.servers.bounded(net.JoinHostPort(l.address, strconv.Itoa(l.port)), maxServers) == other {
		l.address, l.port = other, 0
	}
	e := t.series.get(l)
	if counted {
		t.took.Record(ctx, max(took, 0).Seconds(), e.record...)
	}
	if span == nil {
		return err
	}
	defer span.End()
	if span.IsRecording() {
		if l.failed {
			span.SetStatus(codes.Error, l.status)
		}
		attributes := append(make([]attribute.KeyValue, 0, len(e.attributes)+4), e.attributes...)
		attributes = append(attributes, keyRequests.Int(call.Sent))
		if !call.ID.IsZero() {
			attributes = append(attributes, keyRequestID.String(idText(call.ID)))
		}
		if call.Waited > 0 {
			attributes = append(attributes, keyWaited.Float64(call.Waited.Seconds()))
		}
		span.SetAttributes(attributes...)
	}
	return err
}

// inject is the Inject of a client.
func (t *caller) inject(ctx context.Context, set func(key, value string)) {
	t.resolve()
	t.propagator.Inject(ctx, setter(set))
}

// setter is a carrier for writing.
type setter func(key, value string)

// Get implements propagation.TextMapCarrier.
func (setter) Get(string) string { return "" }

// Set implements propagation.TextMapCarrier.
func (s setter) Set(key, value string) { s(key, value) }

// Keys implements propagation.TextMapCarrier.
func (setter) Keys() []string { return nil }

// failures are the errors of a call that have no code, the first that fits.
var failures = []struct {
	err  error
	word string
}{
	{client.ErrTimeout, "timeout"},
	{client.ErrUnauthorized, "unauthorized"},
	{client.ErrBusy, "busy"},
	{client.ErrSessionExpired, "session_expired"},
	{client.ErrConnection, "connection_lost"},
	{client.ErrUnsupported, "unsupported"},
	{client.ErrNotFound, "not_found"},
	{client.ErrInvalidResult, "invalid_result"},
	{client.ErrClosed, "closed"},
	{context.DeadlineExceeded, "timeout"},
}

// outcome sets what l says of how a call ended. toolFailed is a result with isError.
func (l *labels) outcome(err error, toolFailed bool) {
	if err == nil {
		if toolFailed {
			l.failed, l.status, l.kind = true, toolError, toolError
		}
		return
	}
	if _, ok := errors.AsType[*client.InputRequiredError](err); ok {
		l.status = "input_required"
		return
	}
	if errors.Is(err, client.ErrCancelled) || errors.Is(err, context.Canceled) {
		l.status = "cancelled"
		return
	}
	l.failed, l.status = true, other
	for _, failure := range failures {
		if errors.Is(err, failure.err) {
			l.status = failure.word
			break
		}
	}
	if status := client.StatusCode(err); l.status == other && http.StatusText(status) != "" && status >= 400 {
		l.status = "http_" + strconv.Itoa(status) // others are a server's own
	}
	l.kind = l.status
	if own, ok := errors.AsType[*client.Error](err); ok {
		l.code = codeLabel(own.Code)
	}
}

// address returns the host and the port of a server that has an address. The rest of
// a URL, and command lines, may hold secrets.
func address(server string) (host string, port int) {
	u, err := url.Parse(server)
	if err != nil || u.Host == "" {
		return "", 0
	}
	host = u.Hostname()
	if _, text, err := net.SplitHostPort(u.Host); err == nil {
		port, _ = strconv.Atoi(text)
	} else if u.Scheme == "https" || u.Scheme == "wss" {
		port = 443
	} else {
		port = 80
	}
	return host, port
}
