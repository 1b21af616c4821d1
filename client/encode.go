package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/jsonx"
)

// encoders encode the values of callers, with one jsonx.Encoder for each type.
// It grows by one entry for each type that is used.
type encoders struct{ byType sync.Map }

// append appends v as JSON. JSON text is checked and compacted.
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

// dereference follows pointers to pointers, since an encoder takes one level
// only.
func dereference(v any) any {
	value := reflect.ValueOf(v)
	for value.Kind() == reflect.Pointer && !value.IsNil() && value.Elem().Kind() == reflect.Pointer {
		value = value.Elem()
	}
	return value.Interface()
}

// object appends v, which must encode to an object; what names it in errors.
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

// params encodes v and splits the object into the members of its _meta, the
// progress token in that, and all other members.
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
			token = jsonx.Lookup(raw, []string{"progressToken"})
		} else {
			members = jsonx.AppendString(comma(members), key)
			members = append(append(members, ':'), raw...)
		}
		more, err = s.ObjectNext()
	}
	return members, meta, token, err
}

// reserved are the members of _meta that the client sets itself.
var reserved = []string{"progressToken", facts.MetaVersion, facts.MetaClientInfo, facts.MetaCapabilities, facts.MetaLogLevel}

// withoutReserved returns the members of an object except the reserved ones.
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

// mapKeys iterates over the keys of a map, for slices.Sorted: metadata is sent
// in one order, so that the same call has the same bytes.
func mapKeys(m map[string]any) func(func(string) bool) {
	return func(yield func(string) bool) {
		for key := range m {
			if !yield(key) {
				return
			}
		}
	}
}

// comma appends a comma if dst ends in a member.
func comma(dst []byte) []byte {
	if len(dst) == 0 || dst[len(dst)-1] == '{' {
		return dst
	}
	return append(dst, ',')
}

// named returns a member with a string value, as the beginning of params.
func named(member, name string) []byte {
	dst := make([]byte, 0, len(member)+len(name)+8)
	return jsonx.AppendString(append(append(append(dst, '"'), member...), `":`...), name)
}

// stringMap appends a map of strings as an object, sorted by key.
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
