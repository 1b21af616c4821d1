package client

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/talaria-go/mcp/protocol"
)

// codeURLRequired is the code of a request that needs the user to visit a URL
// first, and methodElicited the notification that the user did
// (client/elicitation of 2025-11-25).
const (
	codeURLRequired protocol.Code = -32042
	methodElicited                = "notifications/elicitation/complete"
)

// elicited knows the visits that requests wait for, and the last ones that
// nobody waited for when they were over.
type elicited struct {
	mu    sync.Mutex
	waits map[string]chan struct{} // by elicitation id
	over  []string
}

// maxOver is how many of those are kept.
const maxOver = 64

// expect returns a channel that is closed when the visit is over.
func (e *elicited) expect(id string) (over <-chan struct{}, forget func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ch := e.waits[id]
	if ch == nil {
		ch = make(chan struct{})
		if slices.Contains(e.over, id) {
			close(ch)
			return ch, func() {}
		}
		if e.waits == nil {
			e.waits = map[string]chan struct{}{}
		}
		e.waits[id] = ch
	}
	return ch, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.waits[id] == ch {
			delete(e.waits, id)
		}
	}
}

// complete takes notifications/elicitation/complete.
func (e *elicited) complete(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if ch := e.waits[id]; ch != nil {
		close(ch)
		delete(e.waits, id)
		return
	}
	if e.over = append(e.over, id); len(e.over) > maxOver {
		e.over = slices.Clone(e.over[1:])
	}
}

// visit shows the user the URLs that a request needs, and waits until the
// server says that the user is through with them. It tells whether the request
// is worth another attempt.
func (c *Client) visit(ctx context.Context, fault *protocol.Error) bool {
	raw, _ := fault.Data.(json.RawMessage)
	var data struct {
		Elicitations []protocol.ElicitParams `json:"elicitations"`
	}
	conn := c.conn.Load()
	if conn == nil || c.opts.ElicitURL == nil || json.Unmarshal(raw, &data) != nil || len(data.Elicitations) == 0 {
		return false
	}
	if most := cmp.Or(c.opts.MaxTimeout, DefaultMaxTimeout); most > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, most)
		defer stop()
	}
	var visits []<-chan struct{}
	for i := range data.Elicitations {
		q := &data.Elicitations[i]
		q.Mode = "url"
		over, forget := c.elicited.expect(q.ElicitationID)
		defer forget()
		visits = append(visits, over)
		if err := c.askURL(ctx, conn, q); err != nil {
			c.opts.Logger.Info().Err(err).Str("server", c.server).Msg("a URL that a request needs was not visited")
			return false
		}
	}
	for _, over := range visits {
		select {
		case <-over:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// askURL asks the handler; anything but consent is an error.
func (c *Client) askURL(ctx context.Context, conn *connection, q *protocol.ElicitParams) error {
	params, err := json.Marshal(q)
	if err != nil {
		return err
	}
	answer, err := conn.answerTo(ctx, protocol.MethodElicit, params)
	if err != nil {
		return err
	}
	var result protocol.ElicitResult
	if err := json.Unmarshal(answer, &result); err != nil || result.Action != protocol.ElicitAccept {
		return fmt.Errorf("the user answered %q", result.Action)
	}
	return nil
}
