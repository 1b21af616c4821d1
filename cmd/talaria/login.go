package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/talaria-go/mcp/auth/oauth"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/editor"
	"github.com/talaria-go/mcp/cmd/talaria/internal/form"
	"github.com/talaria-go/mcp/cmd/talaria/internal/login"
	"github.com/talaria-go/mcp/cmd/talaria/internal/terminal"
)

// secretVariable is the environment variable with a client secret.
const secretVariable = "TALARIA_CLIENT_SECRET"

// loginFlags are what a login can be told.
type loginFlags struct {
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

func (a *app) loginCommand() *cobra.Command {
	var f loginFlags
	cmd := &cobra.Command{
		Use: "login (URL | --list)", Short: "Log in to a server, or list the logins", GroupID: groupAuth, Long: loginHelp, Args: between(0, 1),
		Example: "  talaria login https://example.com/mcp\n  talaria login https://example.com/mcp --manual\n  talaria login https://example.com/mcp --scope \"notes:read notes:write\"\n" +
			"  talaria login https://example.com/mcp --client-id ci --client-secret-file secret --client-credentials\n  talaria login --list",
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			switch {
			case f.list && len(args) > 0:
				return usage("--list takes no URL")
			case f.list:
				return a.listLogins(ctx, f.asJSON)
			case f.asJSON:
				return usage("--json is for --list")
			case len(args) == 0:
				return usage("URL is missing").with("usage: " + cmd.UseLine())
			}
			err := a.login(ctx, &f, args[0], cmd.Flags().Changed)
			if ctx.Err() != nil && cmd.Context().Err() == nil {
				return terminal.ErrInterrupted
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.manual, "manual", false, "show the address instead of opening a browser, and take the one that the browser ended at")
	flags.BoolVar(&f.register, "register", false, "register anew, with an authorization server that has forgotten talaria; other logins there end")
	flags.StringArrayVar(&f.Scopes, "scope", nil, "ask for these `scopes`, too; again for more")
	flags.StringVar(&f.ClientID, "client-id", "", "the `id` of a client that is registered already")
	flags.StringVar(&f.secretFile, "client-secret-file", "", "its secret is in this `file` (or in "+secretVariable+")")
	flags.StringVar(&f.KeyFile, "client-key", "", "its private key is in this PEM `file` (private_key_jwt)")
	flags.IntVar(&f.RedirectPort, "redirect-port", 0, "the `port` of http://127.0.0.1:PORT/callback that it is registered with; 0 takes any")
	flags.StringVar(&f.Document, "metadata-url", "", "the `URL` of a Client ID Metadata Document to be known by")
	flags.StringVar(&f.Issuer, "issuer", "", "the authorization server, by its issuer `URL`, to which --client-id belongs or which to choose of several")
	flags.BoolVar(&f.Credentials, "client-credentials", false, "log in as a program, without a user: with a secret or a key")
	flags.StringVar(&f.AssertionFile, "assertion-file", "", "log in as a workload, with the JWT that its platform keeps in this `file`")
	flags.BoolVar(&f.DPoP, "dpop", false, "bind the token to a key that stays here (DPoP), and fail where that is not possible")
	flags.BoolVar(&f.AllowPrivate, "allow-private", false, "let the server name an authorization server in a private network")
	flags.BoolVar(&f.AllowInsecure, "allow-insecure", false, "allow http to other machines: tokens travel in the clear")
	flags.BoolVar(&f.list, "list", false, "list the logins, without their tokens")
	flags.BoolVar(&f.asJSON, "json", false, "with --list: print JSON")
	return cmd
}

// login logs in. changed tells which flags were given.
func (a *app) login(ctx context.Context, f *loginFlags, target string, changed func(string) bool) error {
	var err error
	if f.URL, err = login.Normal(target); err != nil {
		return usage("%w", err).with("only servers behind http and https URLs have logins")
	}
	store, err := login.Open()
	if err != nil {
		return err
	}
	before, err := store.Find(ctx, f.URL)
	if err != nil {
		return err
	}
	if err := f.complete(before, changed); err != nil {
		return err
	}
	switch needs, err := login.Probe(ctx, f.URL); {
	case err != nil:
		return failed(exitConnect, fmt.Errorf("cannot log in to %s: %w", login.Shown(f.URL), err)).with("check the URL; many servers have the path /mcp")
	case !needs:
		a.console.Printf("%s needs no login", login.Shown(f.URL))
		return nil
	}
	f.Since = time.Now().UTC().Truncate(time.Second)
	tokens := store
	if f.register {
		tokens = store.Anew()
	}
	c, err := tokens.Client(&f.Login, &login.Familiar{UserAgent: a.agent(f), Tell: func() {
		a.console.Notef("If the page does not know this client: talaria login %s --register", login.Quote(login.Shown(f.URL)))
	}}, nil)
	if err != nil {
		return usage("%w", err)
	}
	defer c.CloseIdleConnections()
	if err := c.Login(ctx); err != nil {
		return a.loginFailed(err)
	}
	if err := store.Put(ctx, &f.Login); err != nil {
		return err
	}
	if before != nil && !before.SameToken(&f.Login) {
		a.forget(ctx, store, before) // nobody would find its token again
	}
	return a.greet(ctx, c, f.URL)
}

// complete takes what the flags do not say from the last login.
func (f *loginFlags) complete(before *login.Login, changed func(string) bool) error {
	fresh := f.Login
	if before != nil {
		f.Login = *before
	}
	anew := changed("client-id") || changed("metadata-url") || changed("client-credentials") || changed("assertion-file")
	for name, take := range map[string]func(){
		"client-id":          func() { f.ClientID, f.ClientSecret, f.KeyFile = fresh.ClientID, "", "" },
		"metadata-url":       func() { f.Document = fresh.Document },
		"issuer":             func() { f.Issuer = fresh.Issuer },
		"redirect-port":      func() { f.RedirectPort = fresh.RedirectPort },
		"dpop":               func() { f.DPoP = fresh.DPoP },
		"client-credentials": func() { f.Credentials = fresh.Credentials },
		"assertion-file":     func() { f.AssertionFile = fresh.AssertionFile },
		"allow-private":      func() { f.AllowPrivate = fresh.AllowPrivate },
		"allow-insecure":     func() { f.AllowInsecure = fresh.AllowInsecure },
	} {
		if anew || changed(name) {
			take()
		}
	}
	if anew || changed("scope") {
		f.Scopes = strings.Fields(strings.Join(fresh.Scopes, " "))
	}
	if changed("client-key") {
		f.KeyFile = fresh.KeyFile
	}
	for _, file := range []*string{&f.KeyFile, &f.AssertionFile} {
		if *file != "" {
			*file, _ = filepath.Abs(*file) // fails only where there is no directory to be in
		}
	}
	if err := f.secret(); err != nil {
		return err
	}
	switch {
	case f.Credentials && f.AssertionFile != "":
		return usage("--client-credentials and --assertion-file exclude each other")
	case f.Credentials && f.ClientSecret == "" && f.KeyFile == "":
		return usage("--client-credentials needs --client-id, and --client-secret-file, %s or --client-key", secretVariable)
	case (f.ClientSecret != "" || f.KeyFile != "") && f.Registers():
		return usage("a secret or a key belongs to a client: --client-id is missing")
	}
	return nil
}

// secret reads the secret of the client.
func (f *loginFlags) secret() error {
	if f.secretFile != "" {
		text, err := os.ReadFile(f.secretFile)
		if err != nil {
			return usage("--client-secret-file: %w", err)
		}
		if f.ClientSecret = strings.TrimSpace(string(text)); f.ClientSecret == "" {
			return usage("--client-secret-file: %s is empty", f.secretFile)
		}
	} else if secret := os.Getenv(secretVariable); secret != "" && f.ClientID != "" {
		f.ClientSecret = secret
	}
	return nil
}

// agent takes the user to the browser for a login.
func (a *app) agent(f *loginFlags) oauth.UserAgent {
	if f.manual {
		manual := &oauth.Manual{Ask: a.pasted}
		if f.RedirectPort != 0 {
			manual.RedirectURI = fmt.Sprintf("http://127.0.0.1:%d/callback", f.RedirectPort)
		}
		return manual
	}
	return &oauth.Loopback{Port: f.RedirectPort,
		Browse: func(ctx context.Context, address string) error {
			err := login.Browse(ctx, address)
			if err != nil {
				a.console.Warnf("no browser opens (%v); open the address yourself, or start again with --manual", err)
			}
			return err
		},
		Prompt: func(address string) {
			a.console.Notef("opening the browser; Ctrl-C gives up. If it does not show, open:\n\n  %s\n", address)
		},
	}
}

// pasted shows an address and reads the one that the browser ended at.
func (a *app) pasted(ctx context.Context, address string) (string, error) {
	a.console.Notef("Open this address in a browser:\n\n  %s\n\nThen paste the address that the browser ends at, even if its page cannot be loaded.", address)
	ed := editor.New(a.console, "")
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
		if errors.Is(got.err, form.ErrCancel) && a.console.InTerminal {
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
func (a *app) loginFailed(err error) error {
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

func (a *app) greet(ctx context.Context, c *oauth.Client, address string) error {
	status, err := c.Status(ctx)
	if err != nil || status == nil {
		return err
	}
	text := "logged in to " + login.Shown(address)
	if len(status.Scopes) > 0 {
		text += " for " + console.Line(strings.Join(status.Scopes, " "))
	}
	if !status.Refreshable && !status.Expiry.IsZero() {
		text += ", until " + status.Expiry.Local().Format(time.DateTime)
	}
	a.console.Print(text)
	if os.Getenv(tokenVariable) != "" {
		a.console.Warnf("%s is set, and takes precedence over the login", tokenVariable)
	}
	return nil
}
