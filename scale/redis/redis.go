// Package redis is a scale.Store on an engine that speaks the protocol of Redis:
// Redis or Valkey, version 7 or newer: one server, Sentinel, or a cluster.
//
//	store, err := redis.Open(ctx, redis.Options{URL: "rediss://…", Prefix: "shop"})
//	…
//	defer store.Close()
//
// It is a separate module, so that a server without it does not depend on a client of
// Redis.
//
// # What the engine needs
//
//   - Memory for all data: its maxmemory-policy has to be noeviction.
//   - min-replicas-to-write, if it has replicas: they receive writes a little later, so
//     that a failover loses the newest. An engine without its replicas then takes no
//     writes.
//   - Clocks that are kept together (NTP), see package scale.
//   - appendonly yes, to restart with its data: all of it with appendfsync always. With
//     everysec a killed engine loses what it took during the last sync.
//
// The user of the engine needs no more than [ACL] says.
//
// # What it keeps there
//
// All keys begin with "{talaria:PREFIX:". An entry is a hash, an index and a
// limit are sorted sets, and a box is a hash and a stream; the part or the name of
// the box is what decides about the slot of a cluster. Every change is one
// script, which also publishes what it did. The keys of a script are declared, except
// those that it finds by others: the index and the limit of an entry, and the entries
// of an index. They lie in the same slot.
package redis

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"github.com/redis/rueidis"
	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp/scale"
)

// ACL returns the rules of a user of the engine, in the form of ACL SETUSER. They let a
// Store with a prefix work, and allow nothing else. The name and the password are not in
// them.
func ACL(prefix string) string {
	return "~{talaria:" + prefix + ":* &talaria:" + prefix + ":* +@read +@write +@pubsub +@scripting +@connection +@transaction +time +wait " +
		"-@dangerous +info +role +cluster|slots +cluster|shards"
}

// Options say which engine a Store uses, and how.
type Options struct {
	// URL is where the engine is: "redis://user:password@host:port", "rediss://"
	// for TLS, "unix:///path". Parameters "addr" name more machines of a cluster, or
	// Sentinels, for which "master_set" has the name of what they watch.
	URL string
	// Prefix tells servers from each other that use one engine. It has 1 to 32
	// lower-case letters, digits and hyphens. Replicas of one server have the same,
	// and no two servers have.
	Prefix string
	// Credentials, if not nil, returns the name and the password for each
	// connection, in place of those of the URL. It is called by several goroutines
	// at once.
	Credentials func() (user, password string, err error)
	// SentinelUser and SentinelPassword are those for Sentinels, "" if they need
	// none.
	SentinelUser, SentinelPassword string
	// TLS, if not nil, is for all connections, in place of what rediss:// stands
	// for: certificates of the system, and TLS 1.2 at least.
	TLS *tls.Config
	// Timeout bounds each call, whatever its context says. 0 means a second.
	Timeout time.Duration
	// MaxCalls is how many calls may be at the engine at once; more wait for one of
	// them to end, within Timeout. 0 means 60.
	MaxCalls int
	// Logger logs outages of the engine and their end, and at Open whether it keeps nothing
	// on disk. nil logs nothing.
	Logger *zerolog.Logger
}

// Store is a scale.Store on an engine. It is safe for concurrent use.
//
// When the engine has not answered three calls in a row, further ones fail at
// once, until it answers again, for which it is asked five times a second. In a
// cluster that is so for each of 64 ranges of slots.
type Store struct {
	scale.Store
	engine *engine
}

// Open connects to an engine, and tries whether all that a Store needs is
// allowed and set there. An engine that cannot be reached is an error that wraps
// scale.ErrUnavailable.
func Open(ctx context.Context, o Options) (*Store, error) {
	e, err := newEngine(o)
	if err != nil {
		return nil, err
	}
	if e.opt, err = e.options(o); err != nil {
		return nil, err
	}
	if e.client, err = connect(ctx, e.opt); err != nil {
		return nil, fmt.Errorf("%w: %w", scale.ErrUnavailable, err)
	}
	e.cluster = e.client.Mode() == rueidis.ClientModeCluster
	s := &Store{scale.Checked(e), e}
	if err := check(ctx, e); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// HasTimeout implements scale.Bounded.
func (s *Store) HasTimeout() {}

// Close ends the connections. The Watchers of the Store have to be closed before.
func (s *Store) Close() {
	s.engine.close()
	s.engine.client.Close()
}

// connect is rueidis.NewClient that ends with ctx.
func connect(ctx context.Context, opt rueidis.ClientOption) (rueidis.Client, error) {
	type made struct {
		client rueidis.Client
		err    error
	}
	done := make(chan made, 1)
	go func() {
		client, err := rueidis.NewClient(opt)
		done <- made{client, err}
	}()
	select {
	case m := <-done:
		return m.client, m.err
	case <-ctx.Done():
		go func() {
			if m := <-done; m.err == nil {
				m.client.Close()
			}
		}()
		return nil, ctx.Err()
	}
}
