package session

import (
	"time"

	"github.com/talaria-go/mcp/internal/replica"
)

// The times of sessions. Those that all replicas agree on are in package replica.
const (
	defaultIdle = 30 * time.Minute // default of Config.IdleTimeout
	unusedTTL   = time.Minute      // lifetime of a session that was never used after initialize
	grace       = time.Minute      // wait of a question for a client that has disconnected and can resume

	endLeaseTTL      = 30 * time.Second   // lease of the replica that ends a session
	stateRetention   = 24 * time.Hour     // lifetime of the state after it became due, so that OnEnd gets it
	retentionRefresh = stateRetention / 8 // interval between TTL extensions of a stored session; each costs one write
	retryInterval    = time.Second        // between attempts to read a session that has changed

	firstLook = replica.PollInterval // until a stream that stands by looks; doubles up to replica.StreamCheck
	retryFor  = time.Minute          // time in which a replica appends again what it has not passed on
	answerTTL = 15 * time.Minute     // lifetime of the box of an answer after the last message

	firstReplyTimeout = time.Second      // time until the first reply to a follower, twice
	firstReplyLimit   = 30 * time.Second // a follower without a reply ends
	noMemoryLimit     = 10 * time.Second // a follower without memory for what it reads ends

	waitStep = 5 * time.Millisecond // until a replica that ends looks again whether answers are still to come
)
