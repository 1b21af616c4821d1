package facts

import (
	"errors"
	"time"
)

// Defaults that several packages have in common.
const (
	MaxMessage   = 4 << 20          // bytes of a message
	ReadTimeout  = 30 * time.Second // for the rest of a message that a peer has begun
	WriteTimeout = 30 * time.Second // for a peer to take what is written
)

// ErrArguments is in the chain of errors for arguments that do not fit.
var ErrArguments = errors.New("the arguments do not fit")

// ErrHalfMessage is the error of a transport.Conn whose peer began a message and
// did not end it in ReadTimeout, or what options name. Nothing more can be read.
var ErrHalfMessage = errors.New("transport: the peer has begun a message and not ended it in time")
