package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/talaria-go/mcp/protocol"
)

// onChange is the keeper's.
func (s *oneOfMany) onChange(c *Client, err error) {
	if fn := s.many.opts.OnStatus; fn != nil && (c != nil || err != nil) {
		fn(s.status())
	}
}

func (s *oneOfMany) status() ServerStatus {
	status := ServerStatus{Name: s.name}
	if s.transport != nil {
		status.Server = s.transport.String()
	}
	c, _, fault := s.now()
	status.Err = fault
	if c == nil {
		return status
	}
	_, _, stateErr := c.lostForGood()
	if status.State = c.State(); status.State != StateReady {
		status.Err = stateErr
		return status
	}
	status.Info, status.Revision, status.Instructions = c.ServerInfo(), c.Revision(), c.Instructions()
	s.listMu.Lock()
	status.Err = s.listFault
	s.listMu.Unlock()
	return status
}

// connected returns the connection once the first attempt to make one is over.
func (s *oneOfMany) connected(ctx context.Context) (*Client, error) {
	select {
	case <-s.tried:
	case <-s.ended:
	case <-ctx.Done():
		return nil, s.failed("connect", wrap("connect", "", "", context.Cause(ctx)))
	}
	c, _, fault := s.now()
	if c != nil {
		return c, nil
	}
	if fault == nil {
		fault = errManyClosed // by Close or Remove
	}
	if own, ok := errors.AsType[*Error](fault); ok && own.kind == nil && own.Err != nil {
		fault = own.Err // what it was about is said already
	}
	return nil, s.failed("connect", &Error{kind: ErrClosed, Err: fault, lost: true})
}

// failed puts the server's name into an error.
func (s *oneOfMany) failed(op string, err error) error {
	if err == nil {
		return nil
	}
	if own, ok := errors.AsType[*Error](err); ok {
		named := *own
		if named.Op != "" {
			op = named.Op
		}
		named.Op = fmt.Sprintf("server %q: %s", s.name, op)
		return &named
	}
	return &Error{Op: fmt.Sprintf("server %q: %s", s.name, op), Err: err}
}

// hear makes the client's notifications those of the Many, too.
func (s *oneOfMany) hear() {
	own := s.opts.OnNotification
	s.opts.OnNotification = func(e Event) {
		if own != nil {
			own(e)
		}
		if e.Method == protocol.MethodResourceUpdated {
			e.Params = s.withPrefixedURI(e.Params)
		}
		s.many.opts.OnNotification(s.name, e)
	}
}

// withPrefixedURI puts the prefix before the member uri.
func (s *oneOfMany) withPrefixedURI(params json.RawMessage) json.RawMessage {
	var all map[string]json.RawMessage
	var uri string
	if json.Unmarshal(params, &all) != nil || json.Unmarshal(all["uri"], &uri) != nil {
		return params // no such notification; it is not for this side to mend
	}
	text, err := json.Marshal(s.prefix + uri)
	if err != nil {
		return params
	}
	all["uri"] = text
	out, err := json.Marshal(all)
	if err != nil {
		return params
	}
	return out
}

// contents puts the prefix before the URIs in content, so that they can be
// read through the Many.
func (s *oneOfMany) contents(items []protocol.Content) []protocol.Content {
	for i, item := range items {
		items[i] = s.content(item)
	}
	return items
}

func (s *oneOfMany) content(item protocol.Content) protocol.Content {
	switch item := item.(type) {
	case protocol.ResourceLink:
		item.URI = s.prefix + item.URI
		return item
	case protocol.EmbeddedResource:
		item.Resource.URI = s.prefix + item.Resource.URI
		return item
	}
	return item
}
