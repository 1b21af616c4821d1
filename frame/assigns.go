package frame

import (
	"context"
	"encoding/json"
	"sync"
)

// Assigns are values that a user keeps with a session or a request. The zero
// value is empty and ready; it is safe for concurrent use.
//
// Keys are compared as map keys are: plain names are strings, a Key is a key of
// its own type. Values that come from another process wait, encoded, until
// their key is first used, because only the key knows their type.
type Assigns struct {
	mu       sync.Mutex
	values   map[any]any
	restored map[string]json.RawMessage // values of stored keys, not decoded yet
	changed  bool
}

// Set stores a value.
func (a *Assigns) Set(key, value any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if k, ok := key.(storedKey); ok && a.restored != nil {
		delete(a.restored, k.storedName())
	}
	a.put(key, value)
	a.changed = true
}

// Get returns a value.
func (a *Assigns) Get(key any) (value any, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wake(key)
	value, ok = a.values[key]
	return value, ok
}

// SetNew returns the value at key; if there is none it stores what fn returns.
// fn runs at most once, with the values locked: it must not use them.
func (a *Assigns) SetNew(key any, fn func() any) any {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wake(key)
	if value, ok := a.values[key]; ok {
		return value
	}
	value := fn()
	a.put(key, value)
	a.changed = true
	return value
}

// Update stores what fn makes of the value at key; old is nil if there is
// none. fn runs with the values locked: it must not use them.
func (a *Assigns) Update(key any, fn func(old any) any) any {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wake(key)
	value := fn(a.values[key])
	a.put(key, value)
	a.changed = true
	return value
}

// Key is a typed place for a value that handlers keep: for the session in legacy
// revisions, for the request in modern ones, which have no sessions. mcp.NewKey
// and mcp.NewStoredKey make one; make it once, in a package variable. Two keys
// are never the same place, whatever their names, but those of NewStoredKey with
// one name and type.
type Key[T any] struct {
	name   *string
	stored string // of NewStoredKey, which has no name
}

// String returns the key's name.
func (k Key[T]) String() string {
	if k.name == nil {
		return k.stored
	}
	return *k.name
}

// Set keeps a value, as Frame.Assign does.
func (k Key[T]) Set(f *Frame, value T) { f.assigns().Set(k, value) }

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
	kept, ok := f.assigns().Get(k)
	value, _ = kept.(T) // fails for the nil of an interface type alone
	return value, ok
}

// GetOrSet returns the value; if there is none it keeps what fn returns. fn runs
// at most once, even under concurrent calls; it must not use f's assigns.
func (k Key[T]) GetOrSet(f *Frame, fn func() T) T {
	if value, ok := f.ctx.Value(k).(T); ok {
		return value
	}
	value, _ := f.assigns().SetNew(k, func() any { return fn() }).(T)
	return value
}

// Update keeps what fn makes of the value, which is T's zero value if there
// is none, and returns it. Nothing else changes the value meanwhile; fn must
// not use f's assigns.
func (k Key[T]) Update(f *Frame, fn func(old T) T) T {
	value, _ := f.assigns().Update(k, func(old any) any {
		value, _ := old.(T)
		return fn(value)
	}).(T)
	return value
}
