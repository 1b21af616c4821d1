package facts

import "time"

// Defaults that several packages have in common.
const (
	MaxMessage   = 4 << 20          // bytes of a message
	ReadTimeout  = 30 * time.Second // for the rest of a message that a peer has begun
	WriteTimeout = 30 * time.Second // for a peer to take what is written
)
