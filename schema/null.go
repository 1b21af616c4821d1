package schema

import (
	"bytes"
	"reflect"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// Null is a value that may be null in JSON, and remembers whether it was there
// at all. Use it where "not given" and "set to null" mean different things:
//
//	type Patch struct {
//		Title schema.Null[string] `json:"title,omitzero"`
//	}
//
// The zero value is absent.
type Null[T any] struct {
	Value T    // the value; zero unless Valid
	Valid bool // there was a value, and it was not null
	Set   bool // the member was there, null or not
}

// NullOf returns a Null that holds v.
func NullOf[T any](v T) Null[T] { return Null[T]{Value: v, Valid: true, Set: true} }

// IsZero reports whether the value is absent, so that json:",omitzero" leaves
// it out.
func (n Null[T]) IsZero() bool { return !n.Set }

// MarshalJSON writes the value, or null if it is not valid.
func (n Null[T]) MarshalJSON() ([]byte, error) {
	if !n.Valid {
		return []byte("null"), nil
	}
	return jsonx.Append(nil, &n.Value)
}

// UnmarshalJSON reads a value or null.
func (n *Null[T]) UnmarshalJSON(data []byte) error {
	*n = Null[T]{Set: true}
	if bytes.Equal(bytes.TrimSpace(data), []byte("null")) {
		return nil
	}
	n.Valid = true
	return jsonx.Unmarshal(data, &n.Value)
}

// nullElem marks Null for the compiler, which cannot ask reflect whether a type
// is an instance of a generic one.
func (Null[T]) nullElem() reflect.Type { return reflect.TypeFor[T]() }

// nullElem returns T if t is a Null[T]. The package path is compared first, so
// that a type of another package is not called.
func nullElem(t reflect.Type) (reflect.Type, bool) {
	if t.Kind() != reflect.Struct || t.PkgPath() != reflect.TypeFor[Plan]().PkgPath() {
		return nil, false
	}
	null, ok := reflect.Zero(t).Interface().(interface{ nullElem() reflect.Type })
	if !ok {
		return nil, false
	}
	return null.nullElem(), true
}

// setNull marks the Null[T] at p as present. It relies on the order of the
// fields: Valid and Set follow Value directly, because a bool needs no
// alignment.
func setNull(n *node, p slot, valid bool) {
	size := n.elem.typ.Size()
	*in[bool](p.at(size)) = valid
	*in[bool](p.at(size + 1)) = true
}
