package telemetry

import (
	"cmp"
	"strconv"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/talaria-go/mcp/protocol"
)

// maxSeries is how many sets of labels are kept with the names of their targets.
// SDKs take 2,000 of an instrument and count all others as one, which makes sums
// wrong in silence; here they lose their target instead.
const maxSeries = 1500

// mostSeries is how many there are at most. From maxSeries on there are some left for
// what has no target, and in the end all is one.
const mostSeries = 1900

// labels is what tells one series of a duration from another. All of it is of closed
// sets, except for the names that the program has registered.
type labels struct {
	method, target string
	revision       protocol.Revision // 0 if unknown
	network        network
	status         string        // "" for success, else a word such as those of Outcome.Status
	failed         bool          // status is an error
	code           protocol.Code // of an error that was answered, otherCode for one of a handler's own; else 0
	kind           string        // of an error without a code
	address        string        // of the server, for clients
	port           int
}

// otherCode stands for codes that the protocol does not have.
const otherCode protocol.Code = 1

// series keeps the attributes of each labels, and the option that records with them:
// making either takes longer than counting. It is safe for concurrent use.
type series struct {
	mu    sync.RWMutex
	known map[labels]*entry
	names map[[2]string]string // of spans, by method and target
}

// entry is what is kept for one labels. It does not change.
type entry struct {
	attributes []attribute.KeyValue
	record     []metric.RecordOption
}

// newSeries returns an empty series.
func newSeries() *series {
	return &series{known: make(map[labels]*entry), names: make(map[[2]string]string)}
}

// get returns the entry of l.
func (s *series) get(l labels) *entry {
	s.mu.RLock()
	e, n := s.known[l], len(s.known)
	s.mu.RUnlock()
	switch {
	case e != nil:
		return e
	case n >= maxSeries && l.target != "" && l.target != other:
		l.target = other
		return s.get(l)
	case n >= mostSeries && l != (labels{method: other}):
		return s.get(labels{method: other})
	}
	attributes := l.attributes()
	set := attribute.NewSet(attributes...)
	e = &entry{attributes, []metric.RecordOption{metric.WithAttributeSet(set)}}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known[l] = e
	return e
}

// name returns the name of a span.
func (s *series) name(method, target string) string {
	if target == "" || target == other || method == other {
		return method
	}
	key := [2]string{method, target}
	s.mu.RLock()
	name, full := s.names[key], len(s.names) >= maxSeries
	s.mu.RUnlock()
	if name != "" {
		return name
	}
	name = method + " " + target
	if !full {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.names[key] = name
	}
	return name
}

// attributes returns l as attributes.
func (l *labels) attributes() []attribute.KeyValue {
	as := []attribute.KeyValue{keyMethod.String(l.method)}
	switch l.method {
	case protocol.MethodToolsCall:
		as = append(as, keyOperation.String(executeTool), keyTool.String(l.target))
	case protocol.MethodPromptsGet:
		as = append(as, keyPrompt.String(l.target))
	}
	if l.revision != 0 {
		as = append(as, keyRevision.String(l.revision.String()))
	}
	as = l.network.append(as)
	if l.address != "" {
		as = append(as, keyServerAddress.String(l.address))
		if l.port != 0 {
			as = append(as, keyServerPort.Int(l.port))
		}
	}
	code := ""
	switch l.code {
	case 0:
	case otherCode:
		code = other
	default:
		code = strconv.Itoa(int(l.code))
	}
	if code != "" {
		as = append(as, keyStatusCode.String(code))
	}
	switch {
	case l.failed:
		as = append(as, keyErrorType.String(cmp.Or(code, l.kind)), keyFailure.String(l.status))
	case l.status == "input_required" || l.status == "task":
		as = append(as, keyResultType.String(l.status))
	case l.status != "":
		as = append(as, keyFailure.String(l.status)) // the client disconnected: this is not an error
	}
	return as
}

// codeLabel returns a code as a label.
func codeLabel(code protocol.Code) protocol.Code {
	switch code {
	case 0, protocol.CodeParseError, protocol.CodeInvalidRequest, protocol.CodeMethodNotFound, protocol.CodeInvalidParams,
		protocol.CodeInternal, protocol.CodeResourceNotFound, protocol.CodeHeaderMismatch, protocol.CodeMissingCapability,
		protocol.CodeUnsupportedVersion, protocol.CodeSessionNotFound, protocol.CodeBusy, protocol.CodeUnavailable,
		protocol.CodeInsufficientScope, protocol.CodeUnauthorized:
		return code
	}
	return otherCode
}
