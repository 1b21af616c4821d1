package subscriptions

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/talaria-go/mcp/client"
)

// Recent is a set of subscriptions for clients that do not say when they stop: where there
// are too many, that which was wanted last the longest ago makes room. The zero value is
// empty and ready; it is safe for concurrent use.
type Recent struct {
	set Set

	mu     sync.Mutex
	client *client.Client // that the set is of
	wanted []string       // in the order of the last time
}

// Want notes that a resource is wanted, and returns one that makes room for it, or "".
func (r *Recent) Want(uri string, max int) (oldest string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.want(uri, max)
}

// want is Want with r.mu held.
func (r *Recent) want(uri string, max int) (oldest string) {
	if i := slices.Index(r.wanted, uri); i >= 0 {
		r.wanted = slices.Delete(r.wanted, i, i+1)
	}
	if r.wanted = append(r.wanted, uri); len(r.wanted) > max {
		oldest, r.wanted = r.wanted[0], slices.Delete(r.wanted, 0, 1)
	}
	return oldest
}

// Wanted returns the resources that are wanted, in the order of the last time.
func (r *Recent) Wanted() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.wanted)
}

// Empty reports whether no resource is wanted.
func (r *Recent) Empty() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.wanted) == 0
}

// Add subscribes to a resource at c, which has at most max, after Restore.
func (r *Recent) Add(ctx context.Context, c *client.Client, uri string, max int) (restored []string, err error) {
	restored = r.Restore(ctx, c)
	var ended error
	if oldest := r.Want(uri, max); oldest != "" {
		_, ended = r.set.Remove(oldest) // first, since the server may have the same limit
	}
	_, err = r.set.Add(ctx, c, uri)
	return restored, errors.Join(ended, err)
}

// Remove ends the subscription to a resource.
func (r *Recent) Remove(uri string) error {
	r.mu.Lock()
	r.wanted = slices.DeleteFunc(r.wanted, func(other string) bool { return other == uri })
	r.mu.Unlock()
	_, err := r.set.Remove(uri)
	return err
}

// Restore subscribes to all resources at c, if that has taken the place of another client,
// and returns them: changes in between were not notified. What the server does not take is
// tried again when it is wanted again.
func (r *Recent) Restore(ctx context.Context, c *client.Client) (restored []string) {
	r.mu.Lock()
	same := r.client == c
	r.client = c
	wanted := slices.Clone(r.wanted)
	r.mu.Unlock()
	if same {
		return nil
	}
	r.set.Clear()
	for _, uri := range wanted {
		_, _ = r.set.Add(ctx, c, uri) // it is tried again when it is wanted again
	}
	return wanted
}

// Follow makes r want what another one does, too; r has at most max.
func (r *Recent) Follow(other *Recent, max int) {
	wanted := other.Wanted()
	r.mu.Lock()
	defer r.mu.Unlock()
	own := r.wanted
	r.client, r.wanted = nil, nil
	for _, uri := range slices.Concat(wanted, own) { // what r has was wanted last
		r.want(uri, max)
	}
}
