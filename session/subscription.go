package session

import (
	"slices"

	"github.com/talaria-go/mcp/internal/share"
	"github.com/talaria-go/mcp/internal/topics"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/scale"
)

// uriCost is what one subscription counts in the budget of all sessions, in
// bytes: the URI, and about what its entry in the map takes.
func uriCost(uri string) int { return 128 + len(uri) }

// subscriptions are the URIs of resources to which a client has subscribed. The mu of its
// session guards them. If replicas share the session, the replica with its stream
// subscribes to the topics and notifies the client.
type subscriptions struct {
	shares    *share.Shares // bytes of all sessions; nil without a Manager
	principal string        // whose they are
	uris      map[string]struct{}
	bytes     int // of the URIs

	topics *topics.Hub // nil without other replicas
	joined bool
	mark   scale.Rev // earlier changes were sent to the client, or it was not subscribed
}

// subscribeAll subscribes a session to its topics; this replica notifies the client from
// now on. since is the time up to which the client has all changes; 0 is now.
func (u *subscriptions) subscribeAll(s *Session, since scale.Rev) {
	if u.topics == nil || u.joined {
		return
	}
	u.joined = true
	for _, topic := range u.names() {
		u.topics.Subscribe(s, topic, since)
	}
}

// recheck repeats changes since the mark for a session that is subscribed to the topics.
func (u *subscriptions) recheck(s *Session) {
	if u.joined {
		u.unsubscribeAll(s, false)
		u.subscribeAll(s, max(u.mark, 1))
	}
}

// unsubscribeAll leaves the topics for a session. It tells whether that changed the mark, which the
// replica needs that joins them next. all tells whether the client got what was
// sent.
func (u *subscriptions) unsubscribeAll(s *Session, all bool) (marked bool) {
	if !u.joined {
		return false
	}
	u.joined = false
	names := u.names()
	if mark := u.topics.Checkpoint(s, u.mark, names...); all && mark > u.mark {
		u.mark, marked = mark, true
	}
	for _, topic := range names {
		u.topics.Unsubscribe(topic)
	}
	return marked
}

// names returns the topics.
func (u *subscriptions) names() []string {
	names := make([]string, 0, len(topics.SessionTopics)+len(u.uris))
	names = append(names, topics.SessionTopics[:]...)
	for uri := range u.uris {
		names = append(names, topics.ResourceTopic(uri))
	}
	return names
}

// add adds a URI; see Session.Subscribe. added is false if it was there. s is the
// session, and since the time after which its client has subscribed; 0 is now.
func (u *subscriptions) add(s *Session, uri string, max int, since scale.Rev) (added, ok bool) {
	if _, there := u.uris[uri]; there {
		return false, true
	}
	if len(u.uris) >= max || u.bytes+len(uri) > wire.MaxSubscribed || !u.reserve(uri) {
		return false, false
	}
	if u.uris == nil {
		u.uris = make(map[string]struct{})
	}
	u.uris[uri] = struct{}{}
	u.bytes += len(uri)
	if u.joined {
		u.topics.Subscribe(s, topics.ResourceTopic(uri), since)
	}
	return true, true
}

// reserve takes the room for a URI, and tells whether there is any.
func (u *subscriptions) reserve(uri string) bool {
	return u.shares == nil || u.shares.Take(u.principal, uriCost(uri)) == nil
}

// release gives back what reserve has taken.
func (u *subscriptions) release(uri string) {
	if u.shares != nil {
		u.shares.Give(u.principal, uriCost(uri))
	}
}

// remove removes a URI, and tells whether it was there.
func (u *subscriptions) remove(uri string) bool {
	if _, ok := u.uris[uri]; !ok {
		return false
	}
	delete(u.uris, uri)
	u.bytes -= len(uri)
	u.release(uri)
	if u.joined {
		u.topics.Unsubscribe(topics.ResourceTopic(uri))
	}
	return true
}

// clear removes all URIs of a session.
func (u *subscriptions) clear(s *Session) {
	u.unsubscribeAll(s, false)
	for uri := range u.uris {
		u.release(uri)
	}
	u.uris, u.bytes = nil, 0
}

// change adds and removes what differs between two sorted lists, which another
// replica has done after since. URIs for which there is no room are left out.
func (u *subscriptions) change(s *Session, from, to []string, since scale.Rev) {
	for _, uri := range from {
		if _, ok := slices.BinarySearch(to, uri); !ok {
			u.remove(uri)
		}
	}
	for _, uri := range to {
		if _, ok := slices.BinarySearch(from, uri); !ok {
			u.add(s, uri, max(len(to), len(u.uris)+1), since)
		}
	}
}

// countIn makes the URIs count in a budget from now on. Ones for which there is
// no room are dropped. No topics have been joined for them yet.
func (u *subscriptions) countIn(all *share.Shares, principal string) {
	uris := u.uris
	u.clear(nil)
	u.shares, u.principal = all, principal
	for uri := range uris {
		u.add(nil, uri, len(uris), 0)
	}
}
