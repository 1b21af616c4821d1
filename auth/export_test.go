package auth

// The defaults, for tests.
const (
	DefaultProofAge    = defaultProofAge
	DefaultProofLeeway = defaultProofLeeway
	DefaultKeyAge      = defaultKeyAge
	DefaultKeyInterval = defaultKeyInterval
	DefaultKeyTimeout  = defaultKeyTimeout
	DefaultMaxReplays  = defaultMaxReplays
	DefaultMaxToken    = defaultMaxToken
)
