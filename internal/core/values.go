package core

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// Values are values that a user keeps with a session or a request. The zero
// value is empty and ready; it is safe for concurrent use.
//
// Keys are compared as map keys are: plain names are strings, a Key is a key of
// its own type. Values that come from another process wait, encoded, until
// their key is first used, because only the key knows their type.
type Values struct {
	mu       sync.Mutex
	values   map[any]any
	restored map[string]json.RawMessage // values of stored keys, not decoded yet
	changed  bool
	pending  string // the name of the stored value that Begin was called for; "" if it was set since
	share    func(key any, fn func(old any, ok bool) any) (any, error)
}

// Set stores a value.
func (a *Values) Set(key, value any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if k, ok := key.(storedKey); ok && a.restored != nil {
		delete(a.restored, k.storedName())
	}
	a.set(key, value)
}

// Get returns a value.
func (a *Values) Get(key any) (value any, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wake(key)
	value, ok = a.values[key]
	return value, ok
}

// GetOrSet returns the value at key; if there is none it stores what fn returns.
// fn runs at most once, with the values locked: it must not use them.
func (a *Values) GetOrSet(key any, fn func() any) any {
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
func (a *Values) Update(key any, fn func(old any, ok bool) any) any {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wake(key)
	old, ok := a.values[key]
	value := fn(old, ok)
	a.set(key, value)
	return value
}

// OnUpdate makes change do what Change does for stored keys: by Begin and Commit it
// changes the value for other processes, too. It comes before all use.
func (a *Values) OnUpdate(change func(key any, fn func(old any, ok bool) any) (value any, err error)) {
	a.share = change
}

// Change is Update, and also reports whether all processes that share the value
// have it. fn may run several times. After an error the value is the last result
// of fn, and may not be stored.
func (a *Values) Change(key any, fn func(old any, ok bool) any) (value any, err error) {
	if _, stored := Stored(key); stored && a.share != nil {
		return a.share(key, fn)
	}
	return a.Update(key, fn), nil
}

// set stores what a handler has set. a.mu is held.
func (a *Values) set(key, value any) {
	a.put(key, value)
	a.changed = true
	if name, ok := Stored(key); ok && name == a.pending {
		a.pending = ""
	}
}

// Begin returns the value at a stored key for a change that all replicas see;
// Commit follows. There is one such change at a time.
func (a *Values) Begin(key any) (old any, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.wake(key)
	a.pending, _ = Stored(key)
	old, ok = a.values[key]
	return old, ok
}

// Commit stores the change after Begin. A value that was set in the meantime
// stays: it is newer.
func (a *Values) Commit(key, value any) {
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

// storedKey is a Key of any type, as Values sees it. Only keys that
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

// wake decodes the value at key, if it has come from another process. A value
// that does not decode counts as absent. a.mu is held.
func (a *Values) wake(key any) {
	k, ok := key.(storedKey)
	if !ok || a.restored == nil {
		return
	}
	raw, ok := a.restored[k.storedName()]
	if !ok {
		return
	}
	delete(a.restored, k.storedName())
	if value, err := k.decode(raw); err == nil {
		a.put(key, value)
	}
}

// put stores a value. a.mu is held.
func (a *Values) put(key, value any) {
	if a.values == nil {
		a.values = make(map[any]any)
	}
	a.values[key] = value
}

// Prefixes of the names that Save gives: those of keys and of plain names.
const (
	keyPrefix  = "key:"
	namePrefix = "name:"
)

// Stored reports whether the value at key moves to other processes whatever it
// is, and the name that Save gives it.
func Stored(key any) (name string, ok bool) {
	k, ok := key.(storedKey)
	if !ok || k.storedName() == "" {
		return "", false
	}
	return keyPrefix + k.storedName(), true
}

// named is a value under a plain name, with its Go type.
type named struct {
	Type  string          `json:"t"`
	Value json.RawMessage `json:"v"`
}

// Save returns the values that can move to another process: those of keys that
// are stored, and under plain names strings, booleans, the types int, int64 and
// float64, slices and maps of strings, and what encoding/json makes of any JSON,
// as map[string]any. Others are left out. failed has an error for each that should
// move and does not encode.
func (a *Values) Save() (saved map[string]json.RawMessage, failed []error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	save := func(name string, value any) {
		text, err := json.Marshal(value)
		if err != nil {
			_, key, _ := strings.Cut(name, ":")
			failed = append(failed, fmt.Errorf("the value %q does not encode: %w", key, err))
			return
		}
		if saved == nil {
			saved = make(map[string]json.RawMessage)
		}
		saved[name] = text
	}
	for name, raw := range a.restored {
		save(keyPrefix+name, raw)
	}
	for key, value := range a.values {
		switch key := key.(type) {
		case string:
			if kind := plainType(value); kind != "" {
				text, err := json.Marshal(value)
				if err != nil { // such as of a number that JSON does not have
					failed = append(failed, fmt.Errorf("the value %q does not encode: %w", key, err))
					continue
				}
				save(namePrefix+key, named{kind, text})
			}
		case storedKey:
			if name := key.storedName(); name != "" {
				save(keyPrefix+name, value)
			}
		}
	}
	return saved, failed
}

// plainTypes are the types of values under plain names that move.
var plainTypes = map[string]func(raw []byte) (any, error){
	"string":            plain[string],
	"bool":              plain[bool],
	"int":               plain[int],
	"int64":             plain[int64],
	"float64":           plain[float64],
	"[]string":          plain[[]string],
	"map[string]string": plain[map[string]string],
	"[]any":             plain[[]any],
	"map[string]any":    plain[map[string]any],
}

// plain decodes a value of type T.
func plain[T any](raw []byte) (any, error) {
	var value T
	err := json.Unmarshal(raw, &value)
	return value, err
}

// plainType returns the name of value's type in plainTypes, "" if a round trip
// would change it. Slices and maps of any are looked into, since an int in one
// would come back as a float64.
func plainType(value any) string {
	switch value := value.(type) {
	case string:
		return "string"
	case bool:
		return "bool"
	case int:
		return "int"
	case int64:
		return "int64"
	case float64:
		return "float64"
	case []string:
		return "[]string"
	case map[string]string:
		return "map[string]string"
	case []any:
		for _, item := range value {
			if !isJSON(item) {
				return ""
			}
		}
		return "[]any"
	case map[string]any:
		for _, item := range value {
			if !isJSON(item) {
				return ""
			}
		}
		return "map[string]any"
	}
	return ""
}

// isJSON reports whether encoding/json returns value as it is.
func isJSON(value any) bool {
	switch value.(type) {
	case nil, string, bool, float64:
		return true
	case []any, map[string]any:
		return plainType(value) != ""
	}
	return false
}

// unname returns the value of a named.
func unname(raw json.RawMessage) (any, error) {
	var entry named
	if err := json.Unmarshal(raw, &entry); err != nil {
		return nil, err
	}
	decode, ok := plainTypes[entry.Type]
	if !ok {
		return nil, fmt.Errorf("unknown type %q", entry.Type)
	}
	return decode(entry.Value)
}

// Restore puts back what Save returned, here or at another replica. Identical
// values stay; others replace the existing ones. Values of stored keys are not
// decoded yet, so that one that no longer fits its type costs that value and not
// the session. On an error, which a value under a plain name may be, some values
// are back and others are not.
func (a *Values) Restore(saved map[string]json.RawMessage) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	for name, raw := range saved {
		if key, ok := strings.CutPrefix(name, keyPrefix); ok {
			if a.forget(key, raw) {
				if a.restored == nil {
					a.restored = make(map[string]json.RawMessage)
				}
				a.restored[key] = raw
			}
		} else if key, ok := strings.CutPrefix(name, namePrefix); ok {
			value, err := unname(raw)
			if err != nil {
				return fmt.Errorf("mcp: saved assign %q: %w", key, err)
			}
			if old, ok := a.values[key]; !ok || !reflect.DeepEqual(old, value) {
				a.put(key, value)
			}
		}
	}
	return nil
}

// forget drops the value of the stored key with that name, unless it is raw. It
// returns false if it is. a.mu is held.
func (a *Values) forget(name string, raw json.RawMessage) bool {
	for key, value := range a.values {
		k, ok := key.(storedKey)
		if !ok || k.storedName() != name {
			continue
		}
		if text, err := json.Marshal(value); err == nil && bytes.Equal(text, raw) {
			return false
		}
		delete(a.values, key)
	}
	return true
}

// TakeChanged reports whether a value was set since it was last called.
// Changes within a value, as of a map's entries, do not count.
func (a *Values) TakeChanged() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	changed := a.changed
	a.changed = false
	return changed
}
