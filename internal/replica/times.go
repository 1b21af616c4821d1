package replica

import (
	"math/rand/v2"
	"time"
)

// The times of everything that replicas share. A hint of a change comes within a
// millisecond; these are for what no hint tells.
//
//	0 s    5 s    10 s   15 s                                    150 s
//	|------|------|------|-----------------------------------------|
//	poll   poll   poll   dead                                      StreamCheck
const (
	// PollInterval is the time between two looks of a replica at what others write.
	PollInterval = 5 * time.Second
	// DeadAfter is how long a replica may send no heartbeat before others take over its
	// work. It is three polls, so one failed poll has no effect.
	DeadAfter = 3 * PollInterval
	// ClockSkew is the largest difference between the clocks of an engine's machines.
	ClockSkew = 2 * time.Second
	// StreamCheck is the time between two looks at a stream of which no hint comes.
	StreamCheck = 30 * PollInterval
	// StoreTimeout bounds one use of a store that has no bound of its own.
	StoreTimeout = 5 * time.Second
)

// NextPoll returns the time until the next look: a PollInterval or up to a fifth less,
// so that replicas that started together do not look together.
func NextPoll() time.Duration { return PollInterval - rand.N(PollInterval/5) }
