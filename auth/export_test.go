package auth

import "github.com/talaria-go/mcp/auth/internal/jwt"

// The defaults, for tests.
const (
	DefaultProofAge    = defaultProofAge
	DefaultProofLeeway = defaultProofLeeway
	DefaultKeyAge      = jwt.DefaultAge
	DefaultKeyInterval = jwt.DefaultInterval
	DefaultKeyTimeout  = jwt.DefaultTimeout
	DefaultMaxReplays  = defaultMaxReplays
	DefaultMaxToken    = defaultMaxToken
)
