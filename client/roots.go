package client

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/talaria-go/mcp/protocol"
)

// methodRootsChanged tells the server that the roots are others; legacy
// revisions alone have it.
const methodRootsChanged = "notifications/roots/list_changed"

type roots struct {
	mu   sync.Mutex
	list []protocol.Root
}

// Roots lists the places that the server may work in.
func (c *Client) Roots() []protocol.Root {
	c.roots.mu.Lock()
	defer c.roots.mu.Unlock()
	return slices.Clone(c.roots.list)
}

// AddRoot adds a root, or names the one of the same URI anew, and tells the
// server if that changed anything. The URI begins with file://
// (client/roots). A client whose Options.Roots is nil has declared none and
// gets ErrUnsupported.
func (c *Client) AddRoot(ctx context.Context, root protocol.Root) error {
	if !strings.HasPrefix(root.URI, "file://") {
		return &Error{Op: "add root", Err: errors.New("the URI of a root must begin with file://, got " + root.URI)}
	}
	return c.changeRoots(ctx, "add root", func(list []protocol.Root) ([]protocol.Root, error) {
		at := slices.IndexFunc(list, func(r protocol.Root) bool { return r.URI == root.URI })
		switch {
		case at < 0:
			return append(slices.Clone(list), root), nil
		case list[at].Name == root.Name && root.Meta == nil && list[at].Meta == nil:
			return list, nil
		}
		list = slices.Clone(list)
		list[at] = root
		return list, nil
	})
}

// RemoveRoot removes the root of that URI and tells the server. One that is not
// there is ErrNotFound.
func (c *Client) RemoveRoot(ctx context.Context, uri string) error {
	return c.changeRoots(ctx, "remove root", func(list []protocol.Root) ([]protocol.Root, error) {
		at := slices.IndexFunc(list, func(r protocol.Root) bool { return r.URI == uri })
		if at < 0 {
			return nil, &Error{kind: ErrNotFound, Err: errors.New("no root " + uri)}
		}
		return slices.Delete(slices.Clone(list), at, at+1), nil
	})
}

// ClearRoots removes all roots and tells the server if there were any.
func (c *Client) ClearRoots(ctx context.Context) error {
	return c.changeRoots(ctx, "clear roots", func([]protocol.Root) ([]protocol.Root, error) { return []protocol.Root{}, nil })
}

// changeRoots replaces the list by what change makes of it, which must not be
// the same slice if it is another list.
func (c *Client) changeRoots(ctx context.Context, op string, change func([]protocol.Root) ([]protocol.Root, error)) error {
	if c.Capabilities().Roots == nil {
		return unsupported(op, "", "the client has not declared roots: set Options.Roots, if only to an empty list")
	}
	c.roots.mu.Lock()
	list, err := change(c.roots.list)
	changed := err == nil && (len(list) != len(c.roots.list) || len(list) > 0 && &list[0] != &c.roots.list[0])
	if changed {
		c.roots.list = list
	}
	c.roots.mu.Unlock()
	if err != nil || !changed {
		return wrap(op, "", "", err)
	}
	conn := c.conn.Load()
	if conn == nil || conn.revision().Modern() {
		return nil // a later session asks anew; modern servers ask each time
	}
	err = conn.send(ctx, methodRootsChanged, protocol.AppendNotification(nil, methodRootsChanged, nil))
	return wrap(op, methodRootsChanged, "", err)
}

// answerRoots answers roots/list.
func (c *Client) answerRoots() ([]byte, error) {
	if c.Capabilities().Roots == nil {
		return nil, protocol.Errorf(protocol.CodeMethodNotFound, "the client has no roots")
	}
	list := c.Roots()
	if list == nil {
		list = []protocol.Root{}
	}
	return json.Marshal(protocol.RootsResult{Roots: list})
}
