package main

import (
	"context"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/login"
	"github.com/talaria-go/mcp/cmd/talaria/internal/terminal"
)

func logoutCommand(c *console.Console) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "logout (URL | --all)", Short: "Revoke a login and delete it", GroupID: groupAuth, Args: between(0, 1),
		Long: "Logout tells the authorization server that the token has ended, where that is possible,\nand forgets the login in any case.",
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := terminal.UntilSignal(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			if all == (len(args) > 0) {
				return usage("give either a URL or --all").with("talaria login --list lists the logins")
			}
			return logout(ctx, c, args)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "log out everywhere")
	return cmd
}

// logout ends the login for a URL, or all without one.
func logout(ctx context.Context, c *console.Console, args []string) error {
	store, err := login.Open()
	if err != nil {
		return err
	}
	logins, err := store.All(ctx)
	if err != nil {
		return err
	}
	if len(args) > 0 {
		address, err := login.Normal(args[0])
		if err != nil {
			return usage("%w", err)
		}
		kept := logins[:0]
		for _, l := range logins {
			if l.URL == address {
				kept = append(kept, l)
			}
		}
		if logins = kept; len(logins) == 0 {
			c.Printf("there is no login for %s", address)
			return nil
		}
	}
	ok := true
	for i := range logins {
		revoked := forget(ctx, c, store, &logins[i])
		if err := store.Remove(ctx, logins[i].URL); err != nil {
			return err
		}
		c.Printf("logged out of %s", logins[i].URL)
		ok = ok && revoked
	}
	if !ok {
		return &failure{code: exitAuth}
	}
	return nil
}

// forget revokes the token of a login and removes it.
func forget(ctx context.Context, c *console.Console, store *login.Store, l *login.Login) (revoked bool) {
	known, err := store.Client(l, nil, http.DefaultTransport)
	if err == nil {
		defer known.HTTPClient().CloseIdleConnections()
		err = known.Logout(ctx)
	}
	if err != nil {
		c.Warnf("%s: the token is forgotten here, but could not be revoked: %s", l.URL, err)
	}
	return err == nil
}

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
