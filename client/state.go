package client

import (
	"time"

	"github.com/talaria-go/mcp/internal/pause"
)

// State is the state of a client's connection.
type State int

// The states. A new client is connecting; a connection that has been made is
// initializing until a revision is agreed on, and then ready. After a loss the
// client is disconnected between the attempts to reconnect.
const (
	StateDisconnected State = iota
	StateConnecting
	StateInitializing
	StateReady
)

// stateNames are the texts of the states, by their numbers.
var stateNames = [...]string{"disconnected", "connecting", "initializing", "ready"}

// String returns the state's name.
func (s State) String() string {
	if s < 0 || int(s) >= len(stateNames) {
		return "unknown"
	}
	return stateNames[s]
}

// Backoff says how long to wait before reconnecting: the n-th attempt in a row
// waits Base·n², at most Max, plus or minus a random part. A nil *Backoff has
// the defaults.
type Backoff struct {
	Base     time.Duration // 0 means 1 second
	Max      time.Duration // 0 means 15 seconds
	Attempts int           // in a row; 0 means 5, less than 0 no limit
	Jitter   float64       // the random part, 0 to 1; 0 means 0.2, less than 0 none
}

// wait returns how long to wait before attempt n, counted from 1; ok is false
// after the last attempt.
func (b *Backoff) wait(n int) (d time.Duration, ok bool) {
	attempts := 5
	if b != nil && b.Attempts != 0 {
		attempts = b.Attempts
	}
	return b.pause(n), attempts < 0 || n <= attempts
}

// pause returns how long to wait before attempt n, whether or not it is made.
func (b *Backoff) pause(n int) time.Duration {
	if b == nil {
		return pause.Growing(n, 0, 0, 0)
	}
	return pause.Growing(n, b.Base, b.Max, b.Jitter)
}

// Stats counts what a client did since Connect.
type Stats struct {
	Requests        int64 // sent, retries and rounds included
	Completed       int64 // answered with a result
	Failed          int64 // answered with an error, or not sent
	TimedOut        int64
	Cancelled       int64
	Pending         int   // in progress
	Unmatched       int64 // answers to no request that is in progress
	InvalidMessages int64 // what is not a message of the protocol
	Dropped         int64 // notifications that were not taken in time
	Reconnects      int64
	Sent            int64 // messages, a batch being one, whether or not they arrived
	Received        int64 // messages, a batch being one, valid or not
	BytesSent       int64 // of JSON text, without what the transport adds
	BytesReceived   int64
}
