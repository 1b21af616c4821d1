package main

import (
	"context"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/talaria-go/mcp/cmd/talaria/internal/login"
)

func (a *app) logoutCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "logout (URL | --all)", Short: "Revoke a login and forget it", GroupID: groupAuth, Args: between(0, 1),
		Long: "Logout tells the authorization server that the token has ended, where that is possible,\nand forgets the login in any case.",
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			if all == (len(args) > 0) {
				return usage("give either a URL or --all").with("talaria login --list lists the logins")
			}
			return a.logout(ctx, args)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "log out everywhere")
	return cmd
}

// logout ends the login for a URL, or all without one.
func (a *app) logout(ctx context.Context, args []string) error {
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
			a.console.Printf("there is no login for %s", address)
			return nil
		}
	}
	ok := true
	for i := range logins {
		revoked := a.forget(ctx, store, &logins[i])
		if err := store.Remove(ctx, logins[i].URL); err != nil {
			return err
		}
		a.console.Printf("logged out of %s", logins[i].URL)
		ok = ok && revoked
	}
	if !ok {
		return &failure{code: exitAuth}
	}
	return nil
}

// forget revokes the token of a login and removes it.
func (a *app) forget(ctx context.Context, store *login.Store, l *login.Login) bool {
	c, err := store.Client(l, nil, http.DefaultTransport)
	if err == nil {
		defer c.CloseIdleConnections()
		err = c.Logout(ctx)
	}
	if err != nil {
		a.console.Warnf("%s: the token is forgotten here, but could not be revoked: %s", l.URL, err)
	}
	return err == nil
}
