package mcp

import (
	"context"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/call"
)

// Frame carries one request to its handler, which may ask the client something
// and tell it how far it is; it is the context of the request, too. See package
// frame.
type Frame = frame.Frame

// FromContext returns the Frame that ctx is or comes from, for handlers that
// take a context.Context and for what they call. ok is false where there is
// none.
func FromContext(ctx context.Context) (f *Frame, ok bool) {
	return frame.Internal(call.Private{}).From(ctx)
}

// Key is a typed place for a value that handlers keep; see frame.Key.
type Key[T any] = frame.Key[T]

// NewKey returns a new Key, whose values stay in this process. The name is for
// people.
func NewKey[T any](name string) Key[T] { return frame.NewKey[T](call.Private{}, name, false) }

// NewStoredKey returns a Key whose value moves with its session to another
// process, where the server has a session store. T must survive encoding/json.
// Keys of the same name and type are the same place: give each a name of its
// own, as "example.com/cart".
func NewStoredKey[T any](name string) Key[T] { return frame.NewKey[T](call.Private{}, name, true) }

// Identity is who a request comes from and what it may do; see frame.Identity.
type Identity = frame.Identity

// WithIdentity returns a context whose requests come from id: for middleware of
// one's own, for tests, and for transports whose client is known otherwise, as
// that of stdio is.
//
//	ctx = mcp.WithIdentity(ctx, &mcp.Identity{Subject: "me", Scopes: []string{"notes:write"}})
//	err := server.ServeStdio(ctx)
func WithIdentity(ctx context.Context, id *Identity) context.Context {
	return frame.WithGrant(ctx, frame.NewGrant(id, nil))
}
