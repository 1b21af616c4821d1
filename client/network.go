package client

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/talaria-go/mcp/client/internal/link"
)

// sent returns the error of sending: what the network did is worth another
// attempt, and a stream that takes nothing any more is lost.
func sent(conn *connection, err error) error {
	var status *link.StatusError
	switch {
	case err == nil, errors.As(err, &status), errors.Is(err, link.ErrSession):
		return err
	case !conn.sync:
		return &Error{kind: ErrClosed, Err: err, lost: true}
	case ofNetwork(err):
		return &Error{Err: err, lost: true}
	}
	return err
}

// ofNetwork tells whether an HTTP exchange failed for what became of its
// connection, and for nothing that was said on it.
func ofNetwork(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return false // a net.Error too
	}
	var broken net.Error
	if errors.As(err, &broken) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) {
		return true
	}
	text := err.Error()
	for _, hidden := range hiddenErrors {
		if strings.Contains(text, hidden) {
			return true
		}
	}
	return false
}

// hiddenErrors are those errors of net/http for a broken connection that have
// neither a name nor a type outside it.
var hiddenErrors = [...]string{
	"http: server closed idle connection",
	"http2: client connection lost",
	"http2: client conn not usable",
	"http2: server sent GOAWAY",
	"http2: Transport received Server's graceful shutdown GOAWAY",
}

// slow tells whether a network error took a timeout to come, so that another
// attempt would take as long.
func slow(err error) bool {
	var broken net.Error
	return errors.As(err, &broken) && broken.Timeout()
}
