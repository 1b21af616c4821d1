package client

import (
	"math"
	"math/rand/v2"
	"time"
)

// State is the state of a client's connection.
type State int

// The states.
const (
	StateDisconnected State = iota
	StateConnecting
	StateInitializing
	StateReady
)

var stateNames = [...]string{"disconnected", "connecting", "initializing", "ready"}

// String returns the state's name.
func (s State) String() string {
	if s < 0 || int(s) >= len(stateNames) {
		return "unknown"
	}
	return stateNames[s]
}

// Backoff says how to come back: the n-th attempt in a row waits Base·n², at
// most Max, plus or minus a random part.
type Backoff struct {
	Base     time.Duration // 0 means 1 second
	Max      time.Duration // 0 means 15 seconds
	Attempts int           // in a row; 0 means 5, less than 0 no limit
	Jitter   float64       // the random part, 0 to 1; 0 means 0.2, less than 0 none
}

// wait returns how long to wait before attempt n, from 1 on; ok is false past
// the last.
func (b *Backoff) wait(n int) (d time.Duration, ok bool) {
	base, most, attempts, jitter := time.Second, 15*time.Second, 5, 0.2
	if b != nil {
		if b.Base > 0 {
			base = b.Base
		}
		if b.Max > 0 {
			most = b.Max
		}
		if b.Attempts != 0 {
			attempts = b.Attempts
		}
		if b.Jitter != 0 {
			jitter = min(max(b.Jitter, 0), 1)
		}
	}
	if attempts >= 0 && n > attempts {
		return 0, false
	}
	wait := math.Min(float64(base)*float64(n)*float64(n), float64(most))
	wait *= 1 + jitter*(2*rand.Float64()-1)
	return time.Duration(wait), true
}

// Stats count what a client did.
type Stats struct {
	Requests   int64 // sent, retries and rounds included
	Completed  int64 // answered with a result
	Failed     int64 // answered with an error, or not sent
	TimedOut   int64
	Cancelled  int64
	Pending    int   // under way
	Unmatched  int64 // answers to no request that is under way
	Garbage    int64 // messages that are none
	Dropped    int64 // notifications that nobody took in time
	Reconnects int64
}
