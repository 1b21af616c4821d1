package session_test

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/opaque"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
)

// trapStore is a Store that does not return.
type trapStore struct{ way func() }

func (s trapStore) Save(context.Context, *session.Snapshot, time.Duration) error { s.way(); return nil }
func (s trapStore) Load(context.Context, string) (*session.Snapshot, error) {
	s.way()
	return nil, nil
}
func (s trapStore) Delete(context.Context, string) error { s.way(); return nil }

// What a Store, or the end of a session, does not return from is reported, and
// the sweep that ends sessions goes on.
func TestStoreThatDoesNotReturn(t *testing.T) {
	for name, way := range map[string]func(){"panic": func() { panic("lost") }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var told []string
				m := session.NewManager(session.Config{Idle: time.Minute, Store: trapStore{way}, StoreFailed: func(err error) {
					mu.Lock()
					told = append(told, err.Error())
					mu.Unlock()
					way()
				}})
				if got, err := m.Get(opaque.NewID()); got != nil || err == nil {
					t.Errorf("Get: %v, %v; want the error of the store", got, err)
				}
				for range 2 {
					x, err := m.Open(session.Client{Revision: protocol.LatestLegacy})
					if err != nil {
						t.Fatal(err)
					}
					x.OnEnd(func(error) { way() })
					x.Use()
					x.Release()
				}
				time.Sleep(3 * time.Minute) // of the bubble
				synctest.Wait()
				if m.Len() != 0 {
					t.Errorf("%d sessions are left", m.Len())
				}
				x, err := m.Open(session.Client{Revision: protocol.LatestLegacy})
				if err != nil {
					t.Fatal(err)
				}
				x.OnEnd(func(error) { way() })
				m.End(x.ID(), session.ErrDeleted)
				m.Close(session.ErrClosed)
				mu.Lock()
				defer mu.Unlock()
				if len(told) < 4 || !strings.Contains(told[0], "trapStore") {
					t.Errorf("told %q", told)
				}
			})
		})
	}
}
