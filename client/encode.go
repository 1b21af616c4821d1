package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/protocol"
)

// request is what is asked, in every round and attempt.
type request struct {
	op      string
	method  string
	name    string // what the header Mcp-Name says
	members []byte // of params, without braces and without _meta
	meta    []byte // members of _meta that the caller wants
	token   []byte // of progress, if the caller has one of its own
	args    []byte // the arguments of tools/call, a part of members
	tool    *toolInfo
	options *callOptions
	cache   bool // the result may be kept
	safe    bool // sending it twice is harmless
	// refreshed: the tool was listed again because of this very request.
	refreshed bool
	// renewed: its session had expired once.
	renewed bool
	// visited: the user was shown the URLs that it needs.
	visited bool
	// resent: the network had failed it once.
	resent bool
	// task: it became one.
	task bool
	// asked: how long the server's questions have taken.
	asked time.Duration
}

// encoders make the JSON text of values, one encoder per type.
type encoders struct{ byType sync.Map }

// append appends v as JSON.
func (e *encoders) append(dst []byte, v any) ([]byte, error) {
	switch raw := v.(type) {
	case nil:
		return append(dst, "null"...), nil
	case json.RawMessage:
		return jsonx.Compact(dst, raw)
	}
	typ := reflect.TypeOf(v)
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	known, ok := e.byType.Load(typ)
	if !ok {
		encoder, err := jsonx.NewEncoder(typ)
		if err != nil {
			return nil, err
		}
		known, _ = e.byType.LoadOrStore(typ, encoder)
	}
	return known.(*jsonx.Encoder).Append(dst, dereference(v))
}

// dereference follows pointers to pointers; the encoder takes one.
func dereference(v any) any {
	value := reflect.ValueOf(v)
	for value.Kind() == reflect.Pointer && !value.IsNil() && value.Elem().Kind() == reflect.Pointer {
		value = value.Elem()
	}
	return value.Interface()
}

// object appends v, which must encode to an object.
func (e *encoders) object(dst []byte, what string, v any) ([]byte, error) {
	start := len(dst)
	dst, err := e.append(dst, v)
	if err != nil {
		return nil, fmt.Errorf("%s do not encode: %w", what, err)
	}
	if len(dst) == start || dst[start] != '{' {
		return nil, fmt.Errorf("%s must encode to a JSON object, %T encodes to %.40s", what, v, dst[start:])
	}
	return dst, nil
}

// params splits an object into the members of _meta, its progress token and the
// other members.
func (e *encoders) params(v any) (members, meta, token []byte, err error) {
	if v == nil {
		return nil, nil, nil, nil
	}
	text, err := e.object(nil, "params", v)
	if err != nil {
		return nil, nil, nil, err
	}
	if !bytes.Contains(text, []byte(`"_meta"`)) {
		return bytes.TrimSpace(text[1 : len(text)-1]), nil, nil, nil
	}
	s := jsonx.Scanner{Buf: text, MaxDepth: len(text) + 1}
	more, err := s.ObjectStart()
	for more && err == nil {
		var name []byte
		if name, err = s.Name(); err != nil {
			break
		}
		key := string(name)
		raw := value(&s)
		if key == "_meta" {
			if len(raw) < 2 || raw[0] != '{' {
				return nil, nil, nil, fmt.Errorf("params._meta must be an object")
			}
			if meta, err = withoutReserved(raw); err != nil {
				return nil, nil, nil, err
			}
			token = protocol.Lookup(raw, []string{"progressToken"})
		} else {
			members = jsonx.AppendString(comma(members), key)
			members = append(append(members, ':'), raw...)
		}
		more, err = s.ObjectNext()
	}
	return members, meta, token, err
}

// reserved are the members of _meta that the client itself makes.
var reserved = []string{"progressToken", protocol.MetaVersion, protocol.MetaClientInfo, protocol.MetaCapabilities, protocol.MetaLogLevel}

// withoutReserved returns the members of an object but those.
func withoutReserved(raw []byte) ([]byte, error) {
	var kept []byte
	err := members(raw, func(name []byte, s *jsonx.Scanner) error {
		key := string(name)
		text := value(s)
		if !slices.Contains(reserved, key) {
			kept = jsonx.AppendString(comma(kept), key)
			kept = append(append(kept, ':'), text...)
		}
		return nil
	})
	return kept, err
}

// metaMembers encodes the members that the caller wants in _meta.
func (e *encoders) metaMembers(meta map[string]any) ([]byte, error) {
	if len(meta) == 0 {
		return nil, nil
	}
	var dst []byte
	for _, key := range slices.Sorted(mapKeys(meta)) {
		if slices.Contains(reserved, key) {
			continue
		}
		dst = append(jsonx.AppendString(comma(dst), key), ':')
		var err error
		if dst, err = e.append(dst, meta[key]); err != nil {
			return nil, fmt.Errorf("the metadata %q does not encode: %w", key, err)
		}
	}
	return dst, nil
}

func mapKeys(m map[string]any) func(func(string) bool) {
	return func(yield func(string) bool) {
		for key := range m {
			if !yield(key) {
				return
			}
		}
	}
}

// comma appends what must stand between two members, if dst has one.
func comma(dst []byte) []byte {
	if len(dst) == 0 || dst[len(dst)-1] == '{' {
		return dst
	}
	return append(dst, ',')
}

// round is what a request carries beyond itself when it is sent again with
// answers (basic/patterns/mrtr).
type round struct {
	responses []byte // the object of answers; nil for none
	state     string
	stated    bool // there is a state, though it may be empty
}

// encode returns the message for a request. level is for _meta.
func (conn *connection) encode(id int64, r *request, more round, token bool, level protocol.Level) []byte {
	dst := make([]byte, 0, 160+len(r.method)+len(r.members)+len(r.meta)+len(*conn.meta.Load())+len(more.responses)+len(more.state))
	dst = append(dst, `{"jsonrpc":"2.0","id":`...)
	dst = jsonx.AppendInt(dst, id)
	dst = append(dst, `,"method":`...)
	dst = jsonx.AppendString(dst, r.method)
	dst = conn.appendParams(dst, id, r, more, token, level)
	return append(dst, '}')
}

func (conn *connection) appendParams(dst []byte, id int64, r *request, more round, token bool, level protocol.Level) []byte {
	modern := conn.revision().Modern()
	inMeta := modern || len(r.meta) > 0 || len(r.token) > 0 || token
	if !inMeta && len(r.members) == 0 {
		return dst
	}
	dst = append(dst, `,"params":{`...)
	dst = append(dst, r.members...)
	if more.responses != nil {
		dst = append(append(comma(dst), `"inputResponses":`...), more.responses...)
	}
	if more.stated || more.state != "" {
		dst = jsonx.AppendString(append(comma(dst), `"requestState":`...), more.state)
	}
	if inMeta {
		dst = append(comma(dst), `"_meta":{`...)
		if modern {
			dst = append(dst, *conn.meta.Load()...)
			if level != 0 {
				dst = jsonx.AppendString(append(dst, `,"`+protocol.MetaLogLevel+`":`...), level.String())
			}
		}
		if token {
			dst = jsonx.AppendInt(append(comma(dst), `"progressToken":`...), id)
		} else if len(r.token) > 0 {
			dst = append(append(comma(dst), `"progressToken":`...), r.token...)
		}
		if len(r.meta) > 0 {
			dst = append(comma(dst), r.meta...)
		}
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// named starts the members of params with a name.
func named(member, name string) []byte {
	dst := make([]byte, 0, len(member)+len(name)+8)
	return jsonx.AppendString(append(append(append(dst, '"'), member...), `":`...), name)
}

// stringMap appends a map of strings as an object, in the order of its keys.
func stringMap(dst []byte, m map[string]string) []byte {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, strings.Compare)
	dst = append(dst, '{')
	for _, key := range keys {
		dst = append(jsonx.AppendString(comma(dst), key), ':')
		dst = jsonx.AppendString(dst, m[key])
	}
	return append(dst, '}')
}
