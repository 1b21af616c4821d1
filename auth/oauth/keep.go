package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
)

// What the store has, by key:
//
//	server <URL> <grant> <client>                  which token is in use for an MCP server
//	token <issuer> <client id> <resource> <grant>  the token
//	client <issuer> <name of the client>           a client that was registered dynamically
//	issuer <client id> <URL of the server>         the issuer of a client without one
//
// Programs that say the same of themselves share a token. A user's token and
// that of a program for itself are never mixed up.

// binding is the value of a server key.
type binding struct {
	Issuer   string `json:"issuer"`
	Resource string `json:"resource"`
	ClientID string `json:"client_id,omitempty"`
	Grant    string `json:"grant,omitempty"`
}

func (c *Client) serverKey() string {
	return "server " + c.server.String() + " " + c.opts.Grant.kind() + " " + c.opts.identity()
}

// identity is what the client calls itself.
func (o *Options) identity() string {
	if o.Document != nil {
		return o.Document.URL
	}
	if len(o.Clients) == 0 {
		return o.ClientName
	}
	ids := make([]string, len(o.Clients))
	for i := range o.Clients {
		ids[i] = o.Clients[i].ClientID
	}
	return strings.Join(ids, ",")
}

func (b binding) tokenKey() string {
	return "token " + b.Issuer + " " + b.ClientID + " " + b.Resource + " " + b.Grant
}

func (r *record) binding() binding {
	return binding{Issuer: r.Issuer, Resource: r.Resource, ClientID: r.ClientID, Grant: r.Grant}
}

func (r *record) issuer() string {
	if r == nil {
		return ""
	}
	return r.Issuer
}

// stored returns the token in use. The first time it asks the store.
func (c *Client) stored(ctx context.Context) (*record, error) {
	c.mu.Lock()
	rec, loaded := c.token, c.loaded
	c.mu.Unlock()
	if loaded {
		return rec, nil
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	c.mu.Lock()
	rec, loaded = c.token, c.loaded
	c.mu.Unlock()
	if loaded {
		return rec, nil
	}
	if rec, err = c.load(ctx); err != nil {
		return nil, err
	}
	c.use(rec)
	return rec, nil
}

// load reads the token from the store, nil if there is none. If it is the one
// in use, that is what it returns.
func (c *Client) load(ctx context.Context) (*record, error) {
	var bound binding
	if found, err := c.read(ctx, c.serverKey(), &bound); err != nil || !found {
		return nil, err
	}
	var rec record
	if found, err := c.read(ctx, bound.tokenKey(), &rec); err != nil || !found {
		return nil, err
	}
	if newest := c.newest(); newest != nil && newest.AccessToken == rec.AccessToken && newest.RefreshToken == rec.RefreshToken {
		return newest, nil
	}
	return &rec, rec.restore()
}

func (c *Client) read(ctx context.Context, key string, into any) (bool, error) {
	value, err := c.opts.Store.Load(ctx, key)
	if err != nil {
		return false, storeError(err)
	}
	if value == nil {
		return false, nil
	}
	return true, decode(value, into)
}

func decode(value json.RawMessage, into any) error {
	if err := json.Unmarshal(value, into); err != nil {
		// The error may quote the value.
		return &Error{Step: StepStore, Problem: "a stored value is not what this package has stored; log out and in again"}
	}
	return nil
}

// write replaces the value of a key; nil removes it.
func (c *Client) write(ctx context.Context, key string, value any) error {
	var text json.RawMessage
	if value != nil {
		var err error
		if text, err = json.Marshal(value); err != nil {
			return storeError(err)
		}
	}
	return storeError(c.opts.Store.Update(ctx, key, func(json.RawMessage) (json.RawMessage, error) { return text, nil }))
}

func storeError(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	return &Error{Step: StepStore, Err: err}
}

// save keeps a token and removes the one that it takes the place of, if that
// was of another authorization server or client.
func (c *Client) save(ctx context.Context, rec *record) error {
	var old binding
	found, err := c.read(ctx, c.serverKey(), &old)
	if err != nil {
		return err
	}
	if err := c.write(ctx, rec.binding().tokenKey(), rec); err != nil {
		return err
	}
	if err := c.write(ctx, c.serverKey(), rec.binding()); err != nil {
		return err
	}
	if found && old != rec.binding() {
		return c.write(ctx, old.tokenKey(), nil)
	}
	return nil
}

// forget removes a token.
func (c *Client) forget(ctx context.Context, rec *record) error {
	c.use(nil)
	return errors.Join(c.write(ctx, rec.binding().tokenKey(), nil), c.write(ctx, c.serverKey(), nil))
}
