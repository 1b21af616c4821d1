package main

import (
	"context"
	"strings"
	"time"

	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/login"
)

// shownLogin is what is shown of a login.
type shownLogin struct {
	URL         string    `json:"url"`
	Client      string    `json:"client,omitempty"`
	Issuer      string    `json:"issuer,omitempty"`
	Scopes      []string  `json:"scopes"`
	Expires     time.Time `json:"expires,omitzero"`
	Refreshable bool      `json:"refreshable"`
	DPoP        bool      `json:"dpop,omitempty"`
	Since       time.Time `json:"since,omitzero"`
	Problem     string    `json:"problem,omitempty"`
}

func listLogins(ctx context.Context, c *console.Console, asJSON bool) error {
	store, err := login.Open()
	if err != nil {
		return err
	}
	logins, err := store.All(ctx)
	if err != nil {
		return err
	}
	list := []shownLogin{}
	for i := range logins {
		list = append(list, show(ctx, store, &logins[i]))
	}
	switch {
	case asJSON:
		return c.JSON(list)
	case len(list) == 0:
		c.Print("there are no logins")
		return nil
	}
	var rows [][]string
	for _, l := range list {
		rows = append(rows, []string{l.URL, l.Issuer, state(l, time.Now()), strings.Join(l.Scopes, " ")})
	}
	c.Table([]string{"url", "authorization server", "state", "scopes"}, rows)
	c.Notef("kept in %s", store.Path)
	return nil
}

func show(ctx context.Context, store *login.Store, l *login.Login) shownLogin {
	s := shownLogin{URL: l.URL, Client: l.ClientID, Issuer: l.Issuer, Scopes: []string{}, Since: l.Since}
	c, err := store.Client(l, nil, nil)
	if err != nil {
		s.Problem = err.Error()
		return s
	}
	status, err := c.Status(ctx)
	switch {
	case err != nil:
		s.Problem = err.Error()
	case status == nil:
		s.Problem = "the token is gone"
	default:
		s.Issuer, s.Client, s.Expires, s.Refreshable, s.DPoP = status.Issuer, status.ClientID, status.Expiry, status.Refreshable || l.Machine(), status.DPoP
		s.Scopes = append(s.Scopes, status.Scopes...)
	}
	return s
}

// state says in a few words whether a login is any good.
func state(l shownLogin, now time.Time) string {
	switch {
	case l.Problem != "":
		return l.Problem
	case l.Refreshable:
		return "renews itself"
	case l.Expires.IsZero():
		return "no known end"
	case now.After(l.Expires):
		return "has ended"
	}
	return "until " + l.Expires.Local().Format(time.DateTime)
}
