package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// TestStores holds every store to the contract of the interface.
func TestStores(t *testing.T) {
	stores := map[string]func(t *testing.T) Store{
		"memory": func(*testing.T) Store { return NewMemoryStore() },
		"file":   func(t *testing.T) Store { return NewFileStore(filepath.Join(t.TempDir(), "deep", "oauth.json")) },
	}
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			store := open(t)
			if value, err := store.Load(ctx, "none"); value != nil || err != nil {
				t.Errorf("nothing there: %s, %v", value, err)
			}
			set := func(key, value string) error {
				return store.Update(ctx, key, func(json.RawMessage) (json.RawMessage, error) { return json.RawMessage(value), nil })
			}
			if err := errors.Join(set("a", `{"x":1}`), set("b", `{"x":2}`)); err != nil {
				t.Fatal(err)
			}
			refusal := errors.New("no")
			err := store.Update(ctx, "a", func(old json.RawMessage) (json.RawMessage, error) {
				if compact(old) != `{"x":1}` {
					t.Errorf("old value %s", old)
				}
				return json.RawMessage(`{}`), refusal
			})
			if !errors.Is(err, refusal) {
				t.Errorf("the error of change: %v", err)
			}
			if err := store.Update(ctx, "b", func(json.RawMessage) (json.RawMessage, error) { return nil, nil }); err != nil {
				t.Error(err)
			}
			a, _ := store.Load(ctx, "a")
			b, _ := store.Load(ctx, "b")
			if compact(a) != `{"x":1}` || b != nil {
				t.Errorf("a is %s, b is %s", a, b)
			}
		})
		t.Run(name+", one at a time", func(t *testing.T) {
			store := open(t)
			var updates sync.WaitGroup
			const n = 10
			for i := range 2 * n {
				key := fmt.Sprint(i % 2)
				updates.Go(func() {
					err := store.Update(t.Context(), key, func(old json.RawMessage) (json.RawMessage, error) {
						count := 0
						if old != nil {
							if err := json.Unmarshal(old, &count); err != nil {
								return nil, err
							}
						}
						return json.Marshal(count + 1)
					})
					if err != nil {
						t.Error(err)
					}
				})
			}
			updates.Wait()
			for _, key := range []string{"0", "1"} {
				if value, err := store.Load(t.Context(), key); string(value) != fmt.Sprint(n) || err != nil {
					t.Errorf("key %s has %s, %v", key, value, err)
				}
			}
		})
		t.Run(name+", waiting ends", func(t *testing.T) {
			store := open(t)
			ctx, cancel := context.WithCancel(t.Context())
			err := store.Update(t.Context(), "a", func(json.RawMessage) (json.RawMessage, error) {
				cancel()
				return nil, store.Update(ctx, "a", func(json.RawMessage) (json.RawMessage, error) { return nil, nil })
			})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func compact(value json.RawMessage) string {
	return strings.NewReplacer(" ", "", "\n", "").Replace(string(value))
}

func TestFileStore(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no modes here")
	}
	path := filepath.Join(t.TempDir(), "sub", "oauth.json")
	store := NewFileStore(path)
	put := func() error {
		return store.Update(t.Context(), "k", func(json.RawMessage) (json.RawMessage, error) { return json.RawMessage(`"v"`), nil })
	}
	if err := put(); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, %v", name, info.Mode(), err)
		}
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Name() != "oauth.json" && !strings.HasSuffix(entry.Name(), ".lock") {
			t.Errorf("%s is left over", entry.Name())
		}
	}

	for name, spoil := range map[string]func(string) error{
		"directory": func(name string) error { return os.Mkdir(name, 0o700) },
		"link to what others can read": func(name string) error {
			return errors.Join(os.WriteFile(name+".open", []byte("{}"), 0o644), os.Symlink(name+".open", name))
		},
	} {
		other := filepath.Join(t.TempDir(), "oauth.json")
		if err := spoil(other); err != nil {
			t.Fatal(err)
		}
		if _, err := NewFileStore(other).Load(t.Context(), "k"); err == nil {
			t.Errorf("%s: no error", name)
		}
	}

	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Load(t.Context(), "k"); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("others can read it: %v", err)
	}
	if err := os.WriteFile(path, []byte(`{"k": "secret`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := put(); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("half a file: %v", err)
	}
}

// TestSpoiledStore: what the store gives may be anything; it is no reason to
// panic, nor to print it.
func TestSpoiledStore(t *testing.T) {
	w := newWorld(t)
	for name, value := range map[string]string{
		"no object": `["secret"]`, "wrong form": `{"issuer": 7, "access_token": "secret"}`, "bad key": `{"dpop_key": "c2VjcmV0"}`,
	} {
		t.Run(name, func(t *testing.T) {
			store := NewMemoryStore().(*memoryStore)
			c := w.client(&Options{Store: store})
			store.values[c.storage.serverKey()] = json.RawMessage(`{"issuer":"i","resource":"r"}`)
			store.values["token i  r "] = json.RawMessage(value)
			_, err := c.Token(t.Context())
			if err == nil || !strings.Contains(err.Error(), "log out and in again") || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v", err)
			}
		})
	}
}
