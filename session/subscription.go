package session

import (
	"slices"

	"github.com/talaria-go/mcp/internal/wire"
)

// uriCost is what one subscription counts in the budget of all sessions, in
// bytes: the URI, and about what its entry in the map takes.
func uriCost(uri string) int { return 128 + len(uri) }

// subscriptions are the URIs of the resources of which a client wants to hear
// that they have changed. The mu of its session guards them.
type subscriptions struct {
	budget *budget // of all sessions; nil without a Manager
	uris   map[string]struct{}
	bytes  int // of the URIs
}

// add adds a URI; see Session.Subscribe. added is false if it was there.
func (u *subscriptions) add(uri string, max int) (added, ok bool) {
	if _, there := u.uris[uri]; there {
		return false, true
	}
	if len(u.uris) >= max || u.bytes+len(uri) > wire.MaxSubscribed || !u.budget.reserve(uriCost(uri)) {
		return false, false
	}
	if u.uris == nil {
		u.uris = make(map[string]struct{})
	}
	u.uris[uri] = struct{}{}
	u.bytes += len(uri)
	return true, true
}

// remove removes a URI, and tells whether it was there.
func (u *subscriptions) remove(uri string) bool {
	if _, ok := u.uris[uri]; !ok {
		return false
	}
	delete(u.uris, uri)
	u.bytes -= len(uri)
	u.budget.release(uriCost(uri))
	return true
}

// clear removes all URIs.
func (u *subscriptions) clear() {
	for uri := range u.uris {
		u.budget.release(uriCost(uri))
	}
	u.uris, u.bytes = nil, 0
}

// change adds and removes what differs between two sorted lists. URIs for which
// there is no room are left out.
func (u *subscriptions) change(from, to []string) {
	for _, uri := range from {
		if _, ok := slices.BinarySearch(to, uri); !ok {
			u.remove(uri)
		}
	}
	for _, uri := range to {
		if _, ok := slices.BinarySearch(from, uri); !ok {
			u.add(uri, max(len(to), len(u.uris)+1))
		}
	}
}

// countIn makes the URIs count in a budget from now on. Ones for which there is
// no room are dropped.
func (u *subscriptions) countIn(all *budget) {
	uris := u.uris
	u.clear()
	u.budget = all
	for uri := range uris {
		u.add(uri, len(uris))
	}
}
