// Package assigns keeps values of handlers, for a session or a request: [Assigns]
// are the values, a [Key] is the place of one. Package frame exports what users
// see of it; package session saves the values that can move to another process.
//
// The package starts no goroutines. The lock of Assigns is held while the
// functions that SetNew and Update are given run, and while values are encoded
// and decoded, all of which is code of users.
package assigns

import (
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
	pending  string // the name of the stored value that Begin was called for; "" if it was set since
	share    func(key any, fn func(old any, ok bool) any) (any, error)
}

// Set stores a value.
func (a *Assigns) Set(key, value any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if k, ok := key.(storedKey); ok && a.restored != nil {
		delete(a.restored, k.storedName())
	}
	a.set(key, value)
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
	a.set(key, value)
	return value
}

// Update stores what fn makes of the value at key; ok tells whether there is one.
// fn runs with the values locked: it must not use them.
func (a *Assigns) Update(key any, fn func(old any, ok bool) any) any {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wake(key)
	old, ok := a.values[key]
	value := fn(old, ok)
	a.set(key, value)
	return value
}

// Share makes change do what Change does for stored keys: by Begin and Commit it
// changes the value for other processes, too. Share comes before all use.
func (a *Assigns) Share(change func(key any, fn func(old any, ok bool) any) (value any, err error)) {
	a.share = change
}

// Change is Update, and also reports whether all processes that share the value
// have it. fn may run several times. After an error the value is the last result
// of fn, and may not be stored.
func (a *Assigns) Change(key any, fn func(old any, ok bool) any) (value any, err error) {
	if _, stored := Stored(key); stored && a.share != nil {
		return a.share(key, fn)
	}
	return a.Update(key, fn), nil
}

// set stores what a handler has set. a.mu is held.
func (a *Assigns) set(key, value any) {
	a.put(key, value)
	a.changed = true
	if name, ok := Stored(key); ok && name == a.pending {
		a.pending = ""
	}
}

// Begin returns the value at a stored key for a change that all replicas see;
// Commit follows. There is one such change at a time.
func (a *Assigns) Begin(key any) (old any, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wake(key)
	a.pending, _ = Stored(key)
	old, ok = a.values[key]
	return old, ok
}

// Commit stores the change after Begin. A value that was set in the meantime
// stays: it is newer.
func (a *Assigns) Commit(key, value any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if name, ok := Stored(key); ok && name == a.pending {
		a.put(key, value)
	}
	a.pending = ""
}

// Key is the place of a value of type T. Two keys are the same place if they are
// stored under the same name, or are copies of one.
type Key[T any] struct {
	name   *string
	stored string // of one whose value moves, which has no name
}

// NewKey returns a new Key. If its value is to move with a session to another
// process, all keys of that name and type are one.
func NewKey[T any](name string, stored bool) Key[T] {
	if stored {
		return Key[T]{stored: name}
	}
	return Key[T]{name: &name}
}

// String returns the key's name.
func (k Key[T]) String() string {
	if k.name == nil {
		return k.stored
	}
	return *k.name
}

// storedKey is a Key of any type, as Assigns sees it. Only keys that
// NewKey made to be stored have a name by which they are stored; it is "" for the
// others, whose values never move.
type storedKey interface {
	storedName() string
	decode(raw json.RawMessage) (any, error)
}

// storedName implements storedKey.
func (k Key[T]) storedName() string { return k.stored }

// decode implements storedKey.
func (k Key[T]) decode(raw json.RawMessage) (any, error) {
	var value T
	err := json.Unmarshal(raw, &value)
	return value, err
}
