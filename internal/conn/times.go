package conn

import "time"

// The times of connections and streams.
const (
	settleTime  = time.Second     // for cancelled calls to write their answers before a connection is closed, and again after that
	retryAfter  = time.Second     // until a client may try again if other clients are in the way, or a store does not answer
	postTimeout = 5 * time.Second // until another replica has a message of a client that waits for it

	// The wait before connections are accepted again after a failure. It doubles from the
	// least to the greatest and starts again after a success.
	minAcceptWait = 5 * time.Millisecond
	maxAcceptWait = time.Second

	aged     = time.Millisecond      // until the client of a stream that has reached its age comes back
	comeBack = 5 * time.Second       // within which the clients of streams that end come back
	beat     = 10 * time.Millisecond // between two looks at streams that end
)
