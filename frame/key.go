package frame

import (
	"context"

	"github.com/talaria-go/mcp/internal/assigns"
	"github.com/talaria-go/mcp/internal/call"
)

// Key is a typed place for a value that handlers keep: for the session in legacy
// revisions, for the request in modern ones, which have no sessions. mcp.NewKey
// and mcp.NewStoredKey make one; make it once, in a package variable. Two keys
// are never the same place, whatever their names, but those of NewStoredKey with
// one name and type.
type Key[T any] struct{ place assigns.Key[T] }

// NewKey makes a Key, for mcp.NewKey and mcp.NewStoredKey. Only packages of this
// module can call it.
func NewKey[T any](_ call.Private, name string, stored bool) Key[T] {
	return Key[T]{assigns.NewKey[T](name, stored)}
}

// String returns the key's name.
func (k Key[T]) String() string { return k.place.String() }

// Set keeps a value, as Frame.Assign does.
func (k Key[T]) Set(f *Frame, value T) { f.assigns().Set(k.place, value) }

// With returns a context whose Frames find the value through Get. It is for
// net/http middleware in front of the server: the value belongs to the one
// request and is never kept in the session, where another user's request could
// find it. It comes before what Set has kept.
func (k Key[T]) With(ctx context.Context, value T) context.Context {
	return context.WithValue(ctx, k, value)
}

// Get returns the value and whether there is one.
func (k Key[T]) Get(f *Frame) (value T, ok bool) {
	if value, ok = f.ctx.Value(k).(T); ok {
		return value, true
	}
	kept, ok := f.assigns().Get(k.place)
	value, _ = kept.(T) // fails for the nil of an interface type alone
	return value, ok
}

// GetOrSet returns the value; if there is none it keeps what fn returns. fn runs
// at most once, even under concurrent calls; it must not keep or get values
// itself.
func (k Key[T]) GetOrSet(f *Frame, fn func() T) T {
	if value, ok := f.ctx.Value(k).(T); ok {
		return value
	}
	value, _ := f.assigns().SetNew(k.place, func() any { return fn() }).(T)
	return value
}

// Update keeps what fn makes of the value, which is T's zero value if there
// is none, and returns it. Nothing else changes the value meanwhile; fn must
// not keep or get values itself.
func (k Key[T]) Update(f *Frame, fn func(old T) T) T {
	value, _ := f.assigns().Update(k.place, func(old any) any {
		value, _ := old.(T)
		return fn(value)
	}).(T)
	return value
}
