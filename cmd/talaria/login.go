package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/talaria-go/mcp/auth/oauth"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/editor"
	"github.com/talaria-go/mcp/cmd/talaria/internal/form"
	"github.com/talaria-go/mcp/cmd/talaria/internal/login"
	"github.com/talaria-go/mcp/cmd/talaria/internal/terminal"
	"github.com/talaria-go/mcp/internal/tooling/files"
)

// secretVariable is the environment variable with a client secret.
const secretVariable = "TALARIA_CLIENT_SECRET"

// loginCommand logs in to a server.
type loginCommand struct {
	console *console.Console
	login.Login
	secretFile   string
	manual       bool
	register     bool
	list, asJSON bool
}

const loginHelp = `Login gets an access token for the MCP server at URL and keeps it. From then on
every command that connects to this URL uses it, and renews it when it has ended.

The browser opens at the server's authorization server and comes back to a port of
127.0.0.1. BROWSER may name the command that opens it. Where there is none, --manual
shows the address and takes the one that the browser ended at.

Most servers let talaria register by itself. Where that is not so, say which client
it is with --client-id, and a secret with --client-secret-file or ` + secretVariable + `.
A program without a user has a client of its own: --client-credentials.

What is not said again is as it was at the last login. Logins are in a file that only
you can read; talaria login --list names it. Log in again with --scope for more than
you have; a command in a terminal does so when the server asks for it.`

func (l *loginCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use: "login (URL | --list)", Short: "Log in to a server, or list the logins", GroupID: groupAuth, Long: loginHelp, Args: between(0, 1),
		Example: "  talaria login https://example.com/mcp\n  talaria login https://example.com/mcp --manual\n  talaria login https://example.com/mcp --scope \"notes:read notes:write\"\n" +
			"  talaria login https://example.com/mcp --client-id ci --client-secret-file secret --client-credentials\n  talaria login --list",
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := terminal.UntilSignal(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			switch {
			case l.list && len(args) > 0:
				return usage("--list takes no URL")
			case l.list:
				if err := unused(cmd.Flags(), "has no effect with --list", "manual", "register", "scope", "client-id", "client-secret-file", "client-key", "redirect-port",
					"metadata-url", "issuer", "client-credentials", "assertion-file", "dpop", "allow-private", "allow-insecure"); err != nil {
					return err
				}
				return listLogins(ctx, l.console, l.asJSON)
			case l.asJSON:
				return usage("--json is for --list")
			case len(args) == 0:
				return usage("URL is missing").with("usage: " + cmd.UseLine())
			}
			if err := l.check(cmd.Flags()); err != nil {
				return err
			}
			err := l.run(ctx, args[0], cmd.Flags().Changed)
			if ctx.Err() != nil && cmd.Context().Err() == nil {
				return terminal.ErrInterrupted
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&l.manual, "manual", false, "show the address instead of opening a browser, and take the one that the browser ended at")
	flags.BoolVar(&l.register, "register", false, "register anew, with an authorization server that has forgotten talaria; other logins there end")
	flags.StringArrayVar(&l.Scopes, "scope", nil, "ask for these `scopes`, too; again for more")
	flags.StringVar(&l.ClientID, "client-id", "", "the `id` of a client that is registered already")
	flags.StringVar(&l.secretFile, "client-secret-file", "", "its secret is in this `file` (or in "+secretVariable+")")
	flags.StringVar(&l.KeyFile, "client-key", "", "its private key is in this PEM `file` (private_key_jwt)")
	flags.IntVar(&l.RedirectPort, "redirect-port", 0, "the `port` of http://127.0.0.1:PORT/callback that it is registered with; 0 takes any")
	flags.StringVar(&l.Document, "metadata-url", "", "the `URL` of a Client ID Metadata Document to be known by")
	flags.StringVar(&l.Issuer, "issuer", "", "the authorization server, by its issuer `URL`, to which --client-id belongs or which to choose of several")
	flags.BoolVar(&l.Credentials, "client-credentials", false, "log in as a program, without a user: with a secret or a key")
	flags.StringVar(&l.AssertionFile, "assertion-file", "", "log in as a workload, with the JWT that its platform keeps in this `file`")
	flags.BoolVar(&l.DPoP, "dpop", false, "bind the token to a key that stays here (DPoP), and fail where that is not possible")
	flags.BoolVar(&l.AllowPrivate, "allow-private", false, "let the server name an authorization server in a private network")
	flags.BoolVar(&l.AllowInsecure, "allow-insecure", false, "allow http to other machines: tokens travel in the clear")
	flags.BoolVar(&l.list, "list", false, "list the logins, without their tokens")
	flags.BoolVar(&l.asJSON, "json", false, "with --list: print JSON")
	return cmd
}

// check refuses flags that other flags leave without effect.
func (l *loginCommand) check(flags *pflag.FlagSet) error {
	if l.ClientID != "" || l.Document != "" || l.AssertionFile != "" {
		if err := unused(flags, "has no effect for a client that is registered: leave out --client-id, --metadata-url and --assertion-file", "register"); err != nil {
			return err
		}
	}
	if l.Credentials || l.AssertionFile != "" {
		return unused(flags, "is for a login of a user, and a program logs in without one", "manual", "redirect-port")
	}
	return nil
}

// run logs in. changed tells which flags were given.
func (l *loginCommand) run(ctx context.Context, target string, changed func(string) bool) error {
	var err error
	if l.URL, err = login.Normal(target); err != nil {
		return usage("%w", err).with("only servers behind http and https URLs have logins")
	}
	store, err := login.Open()
	if err != nil {
		return err
	}
	before, err := store.Find(ctx, l.URL)
	if err != nil {
		return err
	}
	if err := l.complete(before, changed); err != nil {
		return err
	}
	switch needs, err := login.Probe(ctx, l.URL); {
	case err != nil:
		return failed(exitConnect, fmt.Errorf("cannot log in to %s: %w", login.Shown(l.URL), err)).with("check the URL; many servers have the path /mcp")
	case !needs:
		l.console.Printf("%s needs no login", login.Shown(l.URL))
		return nil
	}
	l.Since = time.Now().UTC().Truncate(time.Second)
	tokens := store
	if l.register {
		tokens = store.Anew()
	}
	c, err := tokens.Client(&l.Login, &login.Familiar{UserAgent: l.agent(), Tell: func() {
		l.console.Notef("If the page does not know this client: talaria login %s --register", login.Quote(login.Shown(l.URL)))
	}}, nil)
	if err != nil {
		return usage("%w", err)
	}
	defer c.HTTPClient().CloseIdleConnections()
	if err := c.Login(ctx); err != nil {
		return loginFailed(err)
	}
	if err := store.Put(ctx, &l.Login); err != nil {
		return err
	}
	if before != nil && !before.SameToken(&l.Login) {
		forget(ctx, l.console, store, before) // its token could not be found again
	}
	return l.greet(ctx, c)
}

// complete takes what the flags do not say from the last login.
func (l *loginCommand) complete(before *login.Login, changed func(string) bool) error {
	fresh := l.Login
	if before != nil {
		l.Login = *before
	}
	anew := changed("client-id") || changed("metadata-url") || changed("client-credentials") || changed("assertion-file")
	for name, take := range map[string]func(){
		"client-id":          func() { l.ClientID, l.ClientSecret, l.KeyFile = fresh.ClientID, "", "" },
		"metadata-url":       func() { l.Document = fresh.Document },
		"issuer":             func() { l.Issuer = fresh.Issuer },
		"redirect-port":      func() { l.RedirectPort = fresh.RedirectPort },
		"dpop":               func() { l.DPoP = fresh.DPoP },
		"client-credentials": func() { l.Credentials = fresh.Credentials },
		"assertion-file":     func() { l.AssertionFile = fresh.AssertionFile },
		"allow-private":      func() { l.AllowPrivate = fresh.AllowPrivate },
		"allow-insecure":     func() { l.AllowInsecure = fresh.AllowInsecure },
	} {
		if anew || changed(name) {
			take()
		}
	}
	if anew || changed("scope") {
		l.Scopes = strings.Fields(strings.Join(fresh.Scopes, " "))
	}
	if changed("client-key") {
		l.KeyFile = fresh.KeyFile
	}
	for _, file := range []*string{&l.KeyFile, &l.AssertionFile} {
		if *file != "" {
			*file, _ = filepath.Abs(*file) // fails only where there is no directory to be in
		}
	}
	if err := l.secret(); err != nil {
		return err
	}
	switch {
	case l.Credentials && l.AssertionFile != "":
		return usage("--client-credentials and --assertion-file exclude each other")
	case l.Credentials && l.ClientSecret == "" && l.KeyFile == "":
		return usage("--client-credentials needs --client-id, and --client-secret-file, %s or --client-key", secretVariable)
	case (l.ClientSecret != "" || l.KeyFile != "") && l.Registers():
		return usage("a secret or a key belongs to a client: --client-id is missing")
	}
	return nil
}

// secret reads the secret of the client.
func (l *loginCommand) secret() error {
	if l.secretFile != "" {
		text, err := files.Text(l.secretFile, files.MaxSecret)
		if err != nil {
			return usage("--client-secret-file: %w", err)
		}
		if l.ClientSecret = strings.TrimSpace(string(text)); l.ClientSecret == "" {
			return usage("--client-secret-file: %s is empty", l.secretFile)
		}
	} else if secret := os.Getenv(secretVariable); secret != "" && l.ClientID != "" {
		l.ClientSecret = secret
	}
	return nil
}

// agent takes the user to the browser for a login.
func (l *loginCommand) agent() oauth.UserAgent {
	if l.manual {
		manual := &oauth.Manual{Ask: l.pasted}
		if l.RedirectPort != 0 {
			manual.RedirectURI = fmt.Sprintf("http://127.0.0.1:%d/callback", l.RedirectPort)
		}
		return manual
	}
	return &oauth.Loopback{Port: l.RedirectPort,
		Browse: func(ctx context.Context, address string) error {
			err := login.Browse(ctx, address)
			if err != nil {
				l.console.Warnf("no browser opens (%v); open the address yourself, or start again with --manual", err)
			}
			return err
		},
		Prompt: func(address string) {
			l.console.Notef("opening the browser; Ctrl-C gives up. If it does not show, open:\n\n  %s\n", address)
		},
	}
}

// pasted shows an address and reads the one that the browser ended at.
func (l *loginCommand) pasted(ctx context.Context, address string) (string, error) {
	l.console.Notef("Open this address in a browser:\n\n  %s\n\nThen paste the address that the browser ends at, even if its page cannot be loaded.", address)
	ed := editor.New(l.console, "")
	type answer struct {
		text string
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		text, err := ed.Ask("address: ", nil)
		answers <- answer{text, err}
	}()
	select {
	case got := <-answers:
		got.err = errors.Join(got.err, ed.Close())
		if errors.Is(got.err, form.ErrCancel) && l.console.InTerminal {
			return "", terminal.ErrInterrupted
		}
		if errors.Is(got.err, form.ErrCancel) || errors.Is(got.err, form.ErrDecline) {
			return "", errors.New("no address was given")
		}
		return strings.TrimSpace(got.text), got.err
	case <-ctx.Done(): // nothing else interrupts the read, which ends with the program
		return "", errors.Join(context.Cause(ctx), ed.Close())
	}
}

// loginFailed says what can be done about a login that failed.
func loginFailed(err error) error {
	if errors.Is(err, terminal.ErrInterrupted) {
		return terminal.ErrInterrupted
	}
	f := failed(exitAuth, fmt.Errorf("the login failed: %w", err))
	own, ok := errors.AsType[*oauth.Error](err)
	switch {
	case !ok:
	case own.Step == oauth.StepRegistration && (own.Status == http.StatusNotFound || own.Status == http.StatusMethodNotAllowed || own.Status == http.StatusUnauthorized):
		f.hint = "nothing there registers clients; the server may want an API key (--header NAME=value), a token (--token-file), or a client that is registered (--client-id)"
	case own.Step == oauth.StepRegistration:
		f.hint = "register talaria with " + console.Line(own.URL) + " and give --client-id (and --client-secret-file)"
	case own.Err == nil && (own.Step == oauth.StepResource || own.Step == oauth.StepServer):
		f.hint = "its metadata does not lead to a login; the server may want an API key (--header NAME=value) or a token (--token-file)"
	case errors.Is(err, context.DeadlineExceeded):
		f.hint = "if the page did not know this client: --register"
	case own.Code == "access_denied":
		f.hint = "somebody has said no in the browser"
	}
	return f
}

func (l *loginCommand) greet(ctx context.Context, c *oauth.Client) error {
	status, err := c.Status(ctx)
	if err != nil || status == nil {
		return err
	}
	text := "logged in to " + login.Shown(l.URL)
	if len(status.Scopes) > 0 {
		text += " for " + console.Line(strings.Join(status.Scopes, " "))
	}
	if !status.Refreshable && !status.Expiry.IsZero() {
		text += ", until " + status.Expiry.Local().Format(time.DateTime)
	}
	l.console.Print(text)
	if os.Getenv(tokenVariable) != "" {
		l.console.Warnf("%s is set, and takes precedence over the login", tokenVariable)
	}
	return nil
}
