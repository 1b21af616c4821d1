package wire

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/protocol"
)

// OfTasks reports whether f names tasks and nothing else. A server that is
// shutting down still accepts such a subscription and refuses all others.
func OfTasks(f *protocol.SubscriptionFilter) bool {
	return len(f.TaskIDs) > 0 && len(f.ResourceSubscriptions) == 0 &&
		!f.ToolsListChanged && !f.PromptsListChanged && !f.ResourcesListChanged && !f.EventsListChanged
}

// ListChanges returns the subscription to changes of all lists that a server announces changes of, and whether
// there are any. A server with event types announces those of their list (SEP-3415).
func ListChanges(have protocol.ServerCapabilities) (f protocol.SubscriptionFilter, some bool) {
	f.ToolsListChanged = have.Tools != nil && have.Tools.ListChanged
	f.PromptsListChanged = have.Prompts != nil && have.Prompts.ListChanged
	f.ResourcesListChanged = have.Resources != nil && have.Resources.ListChanged
	f.EventsListChanged = have.Events != nil || have.Extensions[EventsExtension] != nil
	return f, f.ToolsListChanged || f.PromptsListChanged || f.ResourcesListChanged || f.EventsListChanged
}

// filterNames are the members of a filter on the wire; index 0 stands for all
// other names. text relies on the order of the first four.
var filterNames = [...]string{"", "toolsListChanged", "promptsListChanged", "resourcesListChanged", "eventsListChanged", "resourceSubscriptions", "taskIds"}

// Limits of what a client may name, in bytes.
const (
	MaxURI        = 8 << 10   // one URI
	MaxSubscribed = 256 << 10 // bytes of all topics of a subscription or a session
)

// ScanFilter reads the filter from raw, the params of a subscriptions/listen
// request, which Scan has accepted. maxURIs limits the entries of each list;
// MaxURI and MaxSubscribed limit their lengths. A name that occurs twice counts
// twice towards the limits and is kept once. Members that no revision defines
// are ignored.
func ScanFilter(raw []byte, maxURIs int, f *protocol.SubscriptionFilter) *protocol.Error {
	*f = protocol.SubscriptionFilter{}
	s := jsonx.Scanner{Buf: raw, MaxDepth: len(raw)}
	found := false
	more, err := s.ObjectStart()
	for more && err == nil {
		var name []byte
		if name, err = s.Name(); err != nil {
			break
		}
		if string(name) != "notifications" || s.Peek() == jsonx.Null {
			s.SkipChecked()
		} else {
			if found {
				return duplicate("params", "notifications")
			}
			if kind := s.Peek(); kind != jsonx.Object {
				return protocol.Errorf(protocol.CodeInvalidParams, "params.notifications must be an object, got %s", kind)
			}
			found = true
			if fault := scanFilter(f, &s, maxURIs); fault != nil {
				return fault
			}
		}
		more, err = s.ObjectNext()
	}
	if err == nil && !found {
		return protocol.Errorf(protocol.CodeInvalidParams, "params.notifications is missing: it has the changes to be notified of")
	}
	return asError(err)
}

// scanFilter reads the object of the filter, before which s stands. Members that
// are not known are passed over, as often as they come; a known one that comes
// twice is a fault.
func scanFilter(f *protocol.SubscriptionFilter, s *jsonx.Scanner, maxURIs int) *protocol.Error {
	var seen uint
	more, err := s.ObjectStart()
	for more && err == nil {
		var name []byte
		if name, err = s.Name(); err != nil {
			break
		}
		at := max(slices.Index(filterNames[:], string(name)), 0)
		bit := uint(1) << at
		if seen&bit&^1 != 0 {
			return duplicate("params.notifications", filterNames[at])
		}
		seen |= bit
		if fault := scanFilterMember(f, s, filterNames[at], maxURIs); fault != nil {
			return fault
		}
		more, err = s.ObjectNext()
	}
	return asError(err)
}

// scanFilterMember reads the value of the member of that name in filterNames,
// before which s stands, and passes it. The value null counts as none.
func scanFilterMember(f *protocol.SubscriptionFilter, s *jsonx.Scanner, name string, maxURIs int) *protocol.Error {
	if s.Peek() == jsonx.Null {
		name = ""
	}
	var flag *bool
	switch name {
	case "":
		s.SkipChecked()
		return nil
	case "toolsListChanged":
		flag = &f.ToolsListChanged
	case "promptsListChanged":
		flag = &f.PromptsListChanged
	case "resourcesListChanged":
		flag = &f.ResourcesListChanged
	case "eventsListChanged":
		flag = &f.EventsListChanged
	case "taskIds":
		return scanNames(s, name, maxURIs, &f.TaskIDs)
	default:
		return scanNames(s, name, maxURIs, &f.ResourceSubscriptions)
	}
	if kind := s.Peek(); kind != jsonx.Bool {
		return protocol.Errorf(protocol.CodeInvalidParams, "params.notifications.%s must be a boolean, got %s", name, kind)
	}
	var err error
	*flag, err = s.Bool()
	return asError(err)
}

// scanNames reads a list of URIs or ids.
func scanNames(s *jsonx.Scanner, member string, limit int, names *[]string) *protocol.Error {
	where := "params.notifications." + member
	if kind := s.Peek(); kind != jsonx.Array {
		return protocol.Errorf(protocol.CodeInvalidParams, "%s must be an array, got %s", where, kind)
	}
	known := map[string]bool{}
	size := 0
	more, err := s.ArrayStart()
	for i := 0; more && err == nil; i++ {
		if i == limit {
			return protocol.Errorf(protocol.CodeInvalidParams, "%s has more than %d entries, the limit", where, limit)
		}
		if kind := s.Peek(); kind != jsonx.String {
			return protocol.Errorf(protocol.CodeInvalidParams, "%s/%d must be a string, got %s", where, i, kind)
		}
		var uri []byte
		if uri, err = s.Str(); err != nil {
			break
		}
		if len(uri) == 0 {
			return protocol.Errorf(protocol.CodeInvalidParams, "%s/%d is empty; name the changes to be notified of", where, i)
		}
		if len(uri) > MaxURI {
			return protocol.Errorf(protocol.CodeInvalidParams, "%s/%d is longer than %d bytes", where, i, MaxURI)
		}
		if size += len(uri); size > MaxSubscribed {
			return protocol.Errorf(protocol.CodeInvalidParams, "%s is longer than %d bytes; open several subscriptions", where, MaxSubscribed)
		}
		if !known[string(uri)] {
			known[string(uri)] = true
			*names = append(*names, string(uri))
		}
		more, err = s.ArrayNext()
	}
	return asError(err)
}

// Change is a notification that belongs to no request, such as
// tools/list_changed. It is encoded once and sent to every client: legacy
// sessions get it as it is, subscriptions with their id in _meta, which is
// inserted between head and tail. A Change never changes and is safe for
// concurrent use.
type Change struct {
	plain []byte // whole, for legacy sessions
	head  []byte // up to the subscription's id
	tail  []byte // what follows that
}

// NewChange returns the notification of that method. members are the members of
// its params, encoded, without the braces and without _meta; nil for none.
func NewChange(method string, members []byte) *Change { return NewChangeMeta(method, members, nil) }

// NewChangeMeta is NewChange with further members for the _meta that
// subscriptions get, encoded and without braces. Legacy sessions do not get
// them.
func NewChangeMeta(method string, members, meta []byte) *Change {
	var params, tail []byte
	if len(meta) > 0 {
		tail = append([]byte{','}, meta...)
	}
	tail = append(tail, '}')
	if len(members) > 0 {
		params = append(append([]byte{'{'}, members...), '}')
		tail = append(append(tail, ','), members...)
	}
	tail = append(tail, "}}"...)
	head := AppendNotification(nil, method, []byte(`{"_meta":{"`+facts.MetaSubscription+`":`))
	return &Change{
		plain: AppendNotification(nil, method, params),
		head:  head[:len(head)-1], // without the brace that would end it
		tail:  tail,
	}
}

// ChangeOf returns the notification of that method with params, an encoded object or nil.
// further tells whether these have more than the URI of a resource.
func ChangeOf(method string, params []byte) (c *Change, further bool) {
	var members map[string]json.RawMessage
	_ = jsonx.Unmarshal(params, &members) // without params there are none
	var rest, meta []byte
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if name == "_meta" {
			meta = members[name]
			continue
		}
		further = further || name != "uri"
		rest = append(append(jsonx.AppendString(separated(rest), name), ':'), members[name]...)
	}
	meta = bytes.TrimSpace(meta)
	if len(meta) < 2 || meta[0] != '{' {
		meta = []byte("{}")
	}
	meta = bytes.TrimSpace(meta[1 : len(meta)-1])
	c = NewChangeMeta(method, rest, meta)
	if len(meta) > 0 { // which legacy sessions get as it is
		c.plain = AppendNotification(nil, method, params)
	}
	return c, further || len(meta) > 0
}

// separated appends a comma unless the list of members is empty.
func separated(members []byte) []byte {
	if len(members) == 0 {
		return members
	}
	return append(members, ',')
}

// Plain returns the notification for a legacy session. The caller must not
// change it: all sessions share the bytes.
func (c *Change) Plain() []byte { return c.plain }

// Append appends the notification for a subscription. The id of a subscription
// is that of the request that opened it, a string or a number as the client
// wrote it.
func (c *Change) Append(dst []byte, subscription protocol.ID) []byte {
	return append(AppendID(append(dst, c.head...), subscription), c.tail...)
}

// AppendSubscribed appends a notification of a subscription. members are those of its
// params, encoded, without the braces and without _meta.
func AppendSubscribed(dst []byte, method string, members []byte, subscription protocol.ID) []byte {
	dst = jsonx.AppendString(append(dst, `{"jsonrpc":"2.0","method":`...), method)
	dst = append(append(dst, `,"params":{`...), members...)
	dst = AppendID(append(dst, `,"_meta":{"`+facts.MetaSubscription+`":`...), subscription)
	return append(dst, "}}}"...)
}

// IsSubscription reports whether a method opens a subscription, in the revisions that
// have it.
func IsSubscription(method string) bool {
	return method == protocol.MethodListen || method == MethodEventsStream
}

// ResourceUpdated returns the notification that the contents of the resource at
// uri have changed.
func ResourceUpdated(uri string) *Change {
	return NewChange(protocol.MethodResourceUpdated, jsonx.AppendString([]byte(`"uri":`), uri))
}

// AppendAcknowledged appends the notification that opens a subscription.
// honoured is the part of its filter that the server will act on.
func AppendAcknowledged(dst []byte, subscription protocol.ID, honoured protocol.SubscriptionFilter) []byte {
	members := append([]byte(`"notifications":`), filterText(honoured)...)
	return NewChange(protocol.MethodAcknowledged, members).Append(dst, subscription)
}

// filterText returns the JSON object of f.
func filterText(f protocol.SubscriptionFilter) []byte {
	dst := []byte{'{'}
	for i, on := range []bool{f.ToolsListChanged, f.PromptsListChanged, f.ResourcesListChanged, f.EventsListChanged} {
		if on {
			dst = append(append(separate(dst), '"'), filterNames[i+1]...)
			dst = append(dst, `":true`...)
		}
	}
	dst = appendNames(dst, `"resourceSubscriptions":[`, f.ResourceSubscriptions)
	return append(appendNames(dst, `"taskIds":[`, f.TaskIDs), '}')
}

// appendNames appends a member with a list of strings, or nothing if the list is
// empty. member has the quoted name, the colon and the opening bracket.
func appendNames(dst []byte, member string, names []string) []byte {
	if len(names) == 0 {
		return dst
	}
	dst = append(separate(dst), member...)
	for _, name := range names {
		dst = append(jsonx.AppendString(dst, name), ',')
	}
	return append(bytes.TrimSuffix(dst, []byte{','}), ']')
}

// ListenResult is the result of subscriptions/listen, sent when the server ends
// the subscription in order, for example because it shuts down.
type ListenResult struct {
	protocol.Result
	Subscription protocol.ID
}

// Append implements [Result]. The _meta names the subscription, as that of each
// of its notifications did, and then has what every answer has.
func (r ListenResult) Append(dst []byte, to To) ([]byte, error) {
	dst = append(separate(openResult(dst, to)), `"_meta":{"`+facts.MetaSubscription+`":`...)
	dst = AppendID(dst, r.Subscription) // as it came: encoding/json would escape more
	if len(to.Meta) > 0 {
		dst = append(append(dst, ','), to.Meta...)
	}
	return append(dst, "}}"...), nil
}

// duplicate is the error for a member that occurs twice in what where names.
// Which of the two counts would be left to the program that reads it.
func duplicate(where, name string) *protocol.Error {
	return protocol.Errorf(protocol.CodeInvalidParams, "duplicate member %q in %s", name, where)
}

// asError returns the error for params of which Scan has checked the syntax.
func asError(err error) *protocol.Error {
	if err == nil {
		return nil
	}
	return protocol.Errorf(protocol.CodeParseError, "Parse error: %w", err)
}
