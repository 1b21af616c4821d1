package main

import (
	"context"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/login"
)

func logoutCommand(c *console.Console) *cobra.Command {
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
		defer known.CloseIdleConnections()
		err = known.Logout(ctx)
	}
	if err != nil {
		c.Warnf("%s: the token is forgotten here, but could not be revoked: %s", l.URL, err)
	}
	return err == nil
}
