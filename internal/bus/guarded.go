package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/scale"
)

// Guard returns a store as servers use it: whatever its code does, each call
// returns, and what it returns fits what it was asked for, as scale.Checked says. The context
// of a call ends after replica.StoreTimeout, unless the store is scale.Bounded. The error of a
// call that ends by that wraps scale.ErrUnavailable: a change may have happened.
func Guard(store scale.Store) scale.Store {
	_, bounded := store.(scale.Bounded)
	return guardedStore{scale.Checked(store), bounded}
}

// HasTimeout reports whether a store that Guard has returned bounds the time of its
// calls by itself, so that who waits for one needs no timer.
func HasTimeout(store scale.Store) bool {
	g, ok := store.(guardedStore)
	return ok && g.inline
}

// guardedStore is what Guard returns. Calls run on goroutines of their own, which
// costs more than all else here does, unless the store is scale.Bounded.
type guardedStore struct {
	scale.Store
	inline bool
}

// try calls fn, and returns whatever fn does.
func (g guardedStore) try(ctx context.Context, fn func(ctx context.Context) error) (err error) {
	if !g.inline {
		return within(ctx, fn)
	}
	if failure := safely.Call(func() { err = fn(ctx) }); failure != nil {
		return failure
	}
	return err
}

// within calls fn on a goroutine of its own, with a context that ends after
// replica.StoreTimeout.
func within(ctx context.Context, fn func(ctx context.Context) error) error {
	short, cancel := context.WithTimeout(ctx, replica.StoreTimeout)
	defer cancel()
	err := safely.Try(func() error { return fn(short) })
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil && !errors.Is(err, scale.ErrUnavailable) {
		err = fmt.Errorf("%w: it has not answered within %v: %w", scale.ErrUnavailable, replica.StoreTimeout, err)
	}
	return err
}

// Get implements scale.Store.
func (g guardedStore) Get(ctx context.Context, looks ...scale.GetOp) ([]scale.Entry, error) {
	if g.inline {
		return g.get(ctx, looks)
	}
	return g.getApart(ctx, looks)
}

// get is Get on this goroutine. Every request of a session makes this call, so that
// it is apart from getApart, which allocates what it shares with a goroutine.
func (g guardedStore) get(ctx context.Context, looks []scale.GetOp) (found []scale.Entry, err error) {
	if failure := safely.Call(func() { found, err = g.Store.Get(ctx, looks...) }); failure != nil {
		return nil, failure
	}
	return found, err
}

// getApart is Get on a goroutine of its own.
func (g guardedStore) getApart(ctx context.Context, looks []scale.GetOp) (found []scale.Entry, err error) {
	err = within(ctx, func(ctx context.Context) (err error) { found, err = g.Store.Get(ctx, looks...); return err })
	return found, err
}

// Put implements scale.Store.
func (g guardedStore) Put(ctx context.Context, writes ...scale.Write) (written []scale.Entry, err error) {
	err = g.try(ctx, func(ctx context.Context) (err error) { written, err = g.Store.Put(ctx, writes...); return err })
	return written, err
}

// ClaimDue implements scale.Store.
func (g guardedStore) ClaimDue(ctx context.Context, part, index, owner string, max int, lease time.Duration) (due []scale.Entry, err error) {
	err = g.try(ctx, func(ctx context.Context) (err error) {
		due, err = g.Store.ClaimDue(ctx, part, index, owner, max, lease)
		return err
	})
	return due, err
}

// Append implements scale.Store.
func (g guardedStore) Append(ctx context.Context, p scale.AppendOp) (rev scale.Rev, reader string, err error) {
	err = g.try(ctx, func(ctx context.Context) (err error) { rev, reader, err = g.Store.Append(ctx, p); return err })
	return rev, reader, err
}

// Read implements scale.Store.
func (g guardedStore) Read(ctx context.Context, box string, after scale.Rev, reader string) (messages []scale.Message, now string, err error) {
	err = g.try(ctx, func(ctx context.Context) (err error) {
		messages, now, err = g.Store.Read(ctx, box, after, reader)
		return err
	})
	return messages, now, err
}

// Take implements scale.Store.
func (g guardedStore) Take(ctx context.Context, t scale.Take) (found scale.Box, err error) {
	err = g.try(ctx, func(ctx context.Context) (err error) { found, err = g.Store.Take(ctx, t); return err })
	return found, err
}

// Watch implements scale.Store. fn and gap are the server's and need no guard;
// the goroutine on which they run is the store's.
func (g guardedStore) Watch(fn func(subject string, m scale.Message), gap func()) scale.Watcher {
	w := &guardedWatcher{}
	w.failed = safely.Apart(func() { w.Watcher = g.Store.Watch(fn, gap) })
	return w
}

// guardedWatcher is a Watcher of a guardedStore. If Watch has failed, failed is set and no
// hints come; polls find the same changes.
type guardedWatcher struct {
	scale.Watcher
	failed error
}

// Add implements scale.Watcher.
func (w *guardedWatcher) Add(ctx context.Context, subjects ...string) error {
	if w.failed != nil {
		return w.failed
	}
	return within(ctx, func(ctx context.Context) error { return w.Watcher.Add(ctx, subjects...) })
}

// Remove implements scale.Watcher.
func (w *guardedWatcher) Remove(subjects ...string) {
	if w.failed == nil {
		_ = safely.Apart(func() { w.Watcher.Remove(subjects...) })
	}
}

// Close implements scale.Watcher.
func (w *guardedWatcher) Close() {
	if w.failed == nil {
		_ = safely.Apart(w.Watcher.Close)
	}
}
