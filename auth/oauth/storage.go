package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
)

// storage reads and writes what the Store keeps for a client, under keys that
// all programs of one user share.
type storage struct{ *setup }

// What the store has, by key:
//
//	server <URL> <grant> <client>                  which token is in use for an MCP server
//	token <issuer> <client id> <resource> <grant>  the token
//	client <issuer> <name of the client>           a client that was registered dynamically
//	issuer <client id> <URL of the server>         the issuer of a client without one
//
// Programs that say the same of themselves share a token. A user's token and
// that of a program for itself are never mixed up.

// serverKey returns the key of which token is in use for the MCP server.
func (s *storage) serverKey() string {
	return "server " + s.server.String() + " " + s.opts.Grant.kind() + " " + s.opts.identity()
}

// read decodes the value of a key. It returns false if there is none.
func (s *storage) read(ctx context.Context, key string, into any) (bool, error) {
	value, err := s.opts.Store.Load(ctx, key)
	if err != nil {
		return false, storeError(err)
	}
	if value == nil {
		return false, nil
	}
	return true, decode(value, into)
}

// write replaces the value of a key; nil removes it.
func (s *storage) write(ctx context.Context, key string, value any) error {
	var text json.RawMessage
	if value != nil {
		var err error
		if text, err = json.Marshal(value); err != nil {
			return storeError(err)
		}
	}
	return storeError(s.opts.Store.Update(ctx, key, func(json.RawMessage) (json.RawMessage, error) { return text, nil }))
}

// save stores a token and makes it the one in use. It removes the token that
// was in use before, if that was of another authorization server or client.
func (s *storage) save(ctx context.Context, rec *record) error {
	var old binding
	found, err := s.read(ctx, s.serverKey(), &old)
	if err != nil {
		return err
	}
	if err := s.write(ctx, rec.binding().tokenKey(), rec); err != nil {
		return err
	}
	if err := s.write(ctx, s.serverKey(), rec.binding()); err != nil {
		return err
	}
	if found && old != rec.binding() {
		return s.write(ctx, old.tokenKey(), nil)
	}
	return nil
}

// clientKey returns the key of the client that was registered with an issuer.
func (s *storage) clientKey(issuer string) string {
	return "client " + issuer + " " + s.opts.ClientName
}

// registered returns the client that was registered dynamically with an issuer,
// or nil.
func (s *storage) registered(ctx context.Context, issuer string) (*Registration, error) {
	var client Registration
	if found, err := s.read(ctx, s.clientKey(issuer), &client); err != nil || !found {
		return nil, err
	}
	client.stored = true
	return &client, nil
}

// forgetClient removes a client that its issuer does not know any more, unless
// another one has been registered in the meantime.
func (s *storage) forgetClient(ctx context.Context, issuer, id string) error {
	client, err := s.registered(ctx, issuer)
	if err != nil || client == nil || client.ClientID != id {
		return err
	}
	return s.write(ctx, s.clientKey(issuer), nil)
}

// binding identifies a token. It is the value of a server key.
type binding struct {
	Issuer   string `json:"issuer"`
	Resource string `json:"resource"`
	ClientID string `json:"client_id,omitempty"`
	Grant    string `json:"grant,omitempty"`
}

// identity returns what the client calls itself. Programs with the same
// identity share tokens.
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

// tokenKey returns the key of the token.
func (b binding) tokenKey() string {
	return "token " + b.Issuer + " " + b.ClientID + " " + b.Resource + " " + b.Grant
}

// decode decodes a stored value. The error of encoding/json could quote it and
// is dropped.
func decode(value json.RawMessage, into any) error {
	if err := json.Unmarshal(value, into); err != nil {
		// The error may quote the value.
		return &Error{Step: StepStore, Problem: "a stored value is not what this package has stored; log out and in again"}
	}
	return nil
}

// storeError returns an error of the Store as an *Error; nil for nil.
func storeError(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*Error](err); ok {
		return err
	}
	return &Error{Step: StepStore, Err: err}
}
