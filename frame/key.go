package frame

import (
	"context"

	"github.com/talaria-go/mcp/internal/core"
)

// Key is a typed place for a value that handlers keep: for the session in legacy
// revisions, for the request in modern ones, which have no sessions. mcp.NewKey
// and mcp.NewStoredKey make one; make it once, in a package variable. Two keys
// are never the same place, whatever their names, but those of mcp.NewStoredKey with
// one name and type. Methods that take a Frame panic if that is nil or zero.
type Key[T any] struct{ place core.Key[T] }

// NewKey is mcp.NewKey.
func NewKey[T any](name string) Key[T] { return Key[T]{core.NewKey[T](name, false)} }

// NewStoredKey is mcp.NewStoredKey.
func NewStoredKey[T any](name string) Key[T] { return Key[T]{core.NewKey[T](name, true)} }

// String returns the key's name.
func (k Key[T]) String() string { return k.place.String() }

// Set keeps a value, as Frame.Set does. Of replicas that set a stored key, the
// one whose request ends last wins.
func (k Key[T]) Set(f *Frame, value T) { f.values().Set(k.place, value) }

// With returns a context whose Frames find the value through Get. It is for
// net/http middleware in front of the server: the value belongs to the one
// request and is never kept in the session, where another user's request could
// find it. It comes before what Set has kept.
func (k Key[T]) With(ctx context.Context, value T) context.Context {
	return context.WithValue(ctx, k, value)
}

// Get returns the value and whether there is one.
func (k Key[T]) Get(f *Frame) (value T, ok bool) {
	values := f.values()
	if value, ok = f.ctx.Value(k).(T); ok {
		return value, true
	}
	kept, ok := values.Get(k.place)
	value, _ = kept.(T) // fails only for the nil of an interface type
	return value, ok
}

// GetOrSet returns the value; if there is none it keeps what fn returns. fn runs
// at most once, even under concurrent calls; it must not keep or get values
// itself. With a stored key and Options.Store it is as Update.
func (k Key[T]) GetOrSet(f *Frame, fn func() T) T {
	values := f.values()
	if value, ok := f.ctx.Value(k).(T); ok {
		return value
	}
	kept, ok := values.Get(k.place)
	if !ok {
		kept = f.change(k.place, func(old any, ok bool) any {
			if ok {
				return old
			}
			return fn()
		})
	}
	value, _ := kept.(T)
	return value
}

// Update keeps what fn makes of the value, which is T's zero value if there is
// none, and returns it. Nothing else changes the value in the meantime; fn must not
// keep or get values itself.
//
// With a stored key and Options.Store no other replica changes it either, so that
// two calls never return the same number of a counter: the value is kept in the
// store when Update returns. fn runs again when another replica came first; it must
// do nothing but compute. If the store does not answer, the value is not kept, nor
// is that of any further Update of f, and the client gets an error in place of the
// handler's result, with "executed": true in its data.
func (k Key[T]) Update(f *Frame, fn func(old T) T) T {
	value, _ := f.change(k.place, func(old any, _ bool) any {
		value, _ := old.(T)
		return fn(value)
	}).(T)
	return value
}
