package frame

import (
	"context"
	"encoding/json"
	"maps"
	"sync"
)

// Assigns are values that a user keeps with a session or a request. The zero
// value is empty and ready; it is safe for concurrent use.
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

// assigns returns where f keeps values: the session if there is one, so that
// they last from call to call, else the request.
func (f *Frame) assigns() *Assigns {
	root := f.root
	if root.session != nil {
		return root.session.Assigns()
	}
	root.mu.Lock()
	defer root.mu.Unlock()
	if root.own == nil {
		root.own = &Assigns{}
	}
	return root.own
}

// Assign keeps a value under a name: for the session in legacy revisions, for
// this request in modern ones, which have no sessions.
func (f *Frame) Assign(name string, value any) { f.assigns().Set(name, value) }

// AssignAll keeps every value of a map, as Assign does.
func (f *Frame) AssignAll(values map[string]any) {
	a := f.assigns()
	for name, value := range values {
		a.Set(name, value)
	}
}

// AssignNew returns the value kept under a name; if there is none it keeps
// what fn returns. fn runs at most once per session, or per request in modern
// revisions, even under concurrent calls; it must not use f's assigns.
func (f *Frame) AssignNew(name string, fn func() any) any {
	if value, ok := f.contextAssign(name); ok {
		return value
	}
	return f.assigns().SetNew(name, fn)
}

// Get returns the value kept under a name. Values that HTTP middleware put
// into the request's context with WithAssigns come before those of the
// session.
func (f *Frame) Get(name string) (value any, ok bool) {
	if value, ok = f.contextAssign(name); ok {
		return value, true
	}
	return f.assigns().Get(name)
}

type assignsKey struct{}

// WithAssigns returns a context whose Frames see values through Get. It is
// for net/http middleware in front of the server: the values belong to the
// one request and are never kept in the session, where another user's request
// could find them.
func WithAssigns(ctx context.Context, values map[string]any) context.Context {
	merged := maps.Clone(values)
	if before, ok := ctx.Value(assignsKey{}).(map[string]any); ok {
		merged = maps.Clone(before)
		maps.Copy(merged, values)
	}
	return context.WithValue(ctx, assignsKey{}, merged)
}

func (f *Frame) contextAssign(name string) (value any, ok bool) {
	values, _ := f.ctx.Value(assignsKey{}).(map[string]any)
	value, ok = values[name]
	return value, ok
}

// Key is a typed place for a value. Make it once, in a package variable; two
// keys are never the same place, whatever their names.
type Key[T any] struct {
	name   *string
	stored string // of NewStoredKey, which has no name
}

// NewKey returns a new Key. The name is for people.
func NewKey[T any](name string) Key[T] { return Key[T]{name: &name} }

// String returns the key's name.
func (k Key[T]) String() string {
	if k.name == nil {
		return k.stored
	}
	return *k.name
}

// Set keeps a value, as Frame.Assign does.
func (k Key[T]) Set(f *Frame, value T) { f.assigns().Set(k, value) }

// Get returns the value and whether there is one.
func (k Key[T]) Get(f *Frame) (value T, ok bool) {
	stored, ok := f.assigns().Get(k)
	value, _ = stored.(T) // fails for the nil of an interface type alone
	return value, ok
}

// New returns the value; if there is none it keeps what fn returns, as
// Frame.AssignNew does.
func (k Key[T]) New(f *Frame, fn func() T) T {
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
