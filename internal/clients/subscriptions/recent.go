package subscriptions

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/talaria-go/mcp/client"
)

// Recent is a set of subscriptions for clients that do not say when they stop: where there
// are too many, one of the owner that has most makes room, namely that which it wanted last
// the longest ago. The zero value is empty and ready; it is safe for concurrent use.
type Recent struct {
	set Set

	mu     sync.Mutex
	client *client.Client // that the set is of
	wanted []want         // in the order of the last time
}

// want is a resource that an owner wants.
type want struct{ uri, owner string }

// Want notes that an owner wants a resource, and returns a resource that makes room for it,
// or "".
func (r *Recent) Want(uri, owner string, max int) (oldest string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.want(want{uri, owner}, max)
}

// want is Want with r.mu held.
func (r *Recent) want(w want, limit int) (oldest string) {
	if i := slices.Index(r.wanted, w); i >= 0 {
		r.wanted = slices.Delete(r.wanted, i, i+1)
	}
	if r.wanted = append(r.wanted, w); len(r.wanted) <= limit {
		return ""
	}
	most, of := 0, map[string]int{}
	for _, other := range r.wanted {
		of[other.owner]++
		most = max(most, of[other.owner])
	}
	i := slices.IndexFunc(r.wanted, func(other want) bool { return of[other.owner] == most })
	oldest = r.wanted[i].uri
	r.wanted = slices.Delete(r.wanted, i, i+1)
	if slices.ContainsFunc(r.wanted, func(other want) bool { return other.uri == oldest }) {
		return "" // another owner wants it, too
	}
	return oldest
}

// Wanted returns the resources that are wanted, in the order of the last time.
func (r *Recent) Wanted() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.uris()
}

// uris is Wanted with r.mu held.
func (r *Recent) uris() (uris []string) {
	for _, w := range r.wanted {
		if !slices.Contains(uris, w.uri) {
			uris = append(uris, w.uri)
		}
	}
	return uris
}

// Empty reports whether no resource is wanted.
func (r *Recent) Empty() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.wanted) == 0
}

// Add subscribes to a resource at c for an owner, after Restore; r has at most max.
func (r *Recent) Add(ctx context.Context, c *client.Client, uri, owner string, max int) (restored []string, err error) {
	restored = r.Restore(ctx, c)
	var ended error
	if oldest := r.Want(uri, owner, max); oldest != "" {
		_, ended = r.set.Remove(oldest) // first, since the server may have the same limit
	}
	_, err = r.set.Add(ctx, c, uri)
	return restored, errors.Join(ended, err)
}

// Remove ends the subscription to a resource.
func (r *Recent) Remove(uri string) error {
	r.mu.Lock()
	r.wanted = slices.DeleteFunc(r.wanted, func(other want) bool { return other.uri == uri })
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
	wanted := r.uris()
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
	other.mu.Lock()
	wanted := slices.Clone(other.wanted)
	other.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	own := r.wanted
	r.client, r.wanted = nil, nil
	for _, w := range slices.Concat(wanted, own) { // what r has was wanted last
		r.want(w, max)
	}
}
