package harness

import (
	"errors"
)

// ErrFired is a reason for which tests stop sessions.
var ErrFired = errors.New("the user was fired")
