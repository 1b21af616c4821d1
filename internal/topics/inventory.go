package topics

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/scale"
)

// maxLivenessChecks is how many replicas one look checks.
const maxLivenessChecks = 3

// inventoryKey is where the store has what each replica offers.
var inventoryKey = scale.Key{Partition: "catalogues", Name: "all"}

// inventory is what the replicas of a server offer: a digest of each list, by the
// topic of the list, by the name of the replica. They differ while one release
// takes the place of another, when no list changes anywhere, and still a client
// may get one list or the other. So a list counts as changed when a replica comes
// that has one that no other has, and when the last leaves that had it. What
// changes within a replica is raised there.
//
// One entry of the store has all of it, since there is no other way to find out
// which replicas there are. It is written when one comes, changes, or goes, and
// otherwise each reads it once in a look.
type inventory struct {
	hub *Hub

	mu    sync.Mutex // held while the store works
	rev   scale.Rev
	known map[string]map[string]string
	old   bool // it is sealed with a key that goes
	left  bool // this replica does not belong to it any more
}

// refresh adds this replica to the inventory, and removes some that are dead.
func (f *inventory) refresh(ctx context.Context) error {
	mine := f.hub.config.ListDigests()
	if mine == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.left {
		return nil
	}
	if err := f.load(ctx); err != nil {
		return err
	}
	var gone []string
	if f.hub.contact.IsTrusted() {
		var err error
		if gone, err = f.deadReplicas(ctx); err != nil {
			return err
		}
	}
	return f.update(ctx, func(all map[string]map[string]string) {
		for _, node := range gone {
			delete(all, node)
		}
		all[f.hub.config.ReplicaID] = mine
	})
}

// withdraw removes this replica from the inventory, unless it is the last: what comes
// next differs from that, or does not.
func (f *inventory) withdraw(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left = true
	if f.rev == 0 {
		return nil
	}
	return f.update(ctx, func(all map[string]map[string]string) {
		if len(all) > 1 {
			delete(all, f.hub.config.ReplicaID)
		}
	})
}

// load reads what the store has. f.mu is held.
func (f *inventory) load(ctx context.Context) error {
	found, err := f.hub.config.Store.Get(ctx, scale.GetOp{Key: inventoryKey, Known: f.rev, TTL: topicTTL})
	if f.hub.noteUse(err) != nil || found[0].Rev == f.rev {
		return err
	}
	return f.decode(found[0])
}

// decode takes in what the store has. f.mu is held.
func (f *inventory) decode(e scale.Entry) error {
	known, old := map[string]map[string]string{}, false
	if e.Rev != 0 {
		var text []byte
		var err error
		text, old, err = f.hub.config.Seal.Open(e.Value, seal.Binding(inventoryKey.Name))
		if err == nil {
			err = json.Unmarshal(text, &known)
		}
		if err != nil {
			return fmt.Errorf("topics: what the replicas offer does not open: %w", err)
		}
	}
	f.rev, f.known, f.old = e.Rev, known, old
	return nil
}

// deadReplicas returns which of some replicas are not there. f.mu is held.
func (f *inventory) deadReplicas(ctx context.Context) (nodes []string, err error) {
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(f.known)), func(node string) bool { return node == f.hub.config.ReplicaID })
	rand.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	for _, node := range others[:min(len(others), maxLivenessChecks)] {
		lives, err := f.hub.config.IsAlive(ctx, node)
		if f.hub.noteUse(err) != nil {
			return nil, err
		}
		if !lives {
			nodes = append(nodes, node)
		}
	}
	return nodes, nil
}

// update changes the entry in the store, unless it stays the same under the same key, and
// publishes the lists that differ for some client. f.mu is held.
func (f *inventory) update(ctx context.Context, fn func(all map[string]map[string]string)) error {
	for {
		next := make(map[string]map[string]string, len(f.known)+1)
		maps.Copy(next, f.known)
		fn(next)
		before, err := json.Marshal(f.known)
		if err != nil {
			return err
		}
		text, err := json.Marshal(next)
		if err != nil || bytes.Equal(text, before) && !f.old {
			return err
		}
		written, err := f.hub.config.Store.Put(ctx, scale.Write{
			Key: inventoryKey, Prev: f.rev, TTL: topicTTL, Value: f.hub.config.Seal.Seal(nil, text, seal.Binding(inventoryKey.Name)),
		})
		switch {
		case f.hub.noteUse(err) != nil:
			return err
		case errors.Is(written[0].Err, scale.ErrChanged):
			if err := f.decode(written[0]); err != nil {
				return err
			}
		case written[0].Err != nil:
			return written[0].Err
		default:
			for _, topic := range f.changedLists(next) {
				f.hub.publishEverywhere(topic)
			}
			f.rev, f.known, f.old = written[0].Rev, next, false
			return nil
		}
	}
}

// changedLists returns the lists that only the replica which has joined, or left, had. The
// first replica changes nothing.
func (f *inventory) changedLists(next map[string]map[string]string) (topics []string) {
	alone := func(one, other map[string]map[string]string, topic string) bool {
		for node, lists := range one {
			if _, stays := other[node]; !stays && !slices.ContainsFunc(slices.Collect(maps.Values(other)), func(l map[string]string) bool { return l[topic] == lists[topic] }) {
				return true
			}
		}
		return false
	}
	for _, topic := range ListTopics {
		if len(f.known) > 0 && (alone(f.known, next, topic) || alone(next, f.known, topic)) {
			topics = append(topics, topic)
		}
	}
	return topics
}
