package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/talaria-go/mcp/auth/oauth"
	"github.com/talaria-go/mcp/cmd/talaria/internal/login"
	"github.com/talaria-go/mcp/cmd/talaria/internal/terminal"
	"github.com/talaria-go/mcp/internal/tooling/files"
)

// tokenVariable is the environment variable with an access token.
const tokenVariable = "TALARIA_TOKEN"

// access says what HTTP requests are authorized with: a token of the user's, or
// a login.
type access struct {
	token, tokenFile string
	terminal         *terminal.Terminal // where the user can be taken to a browser; nil means nowhere
	authorized       bool               // set by authorize: requests have a token
	// around is put around what makes the requests, with all their headers; nil is nothing.
	around func(http.RoundTripper) http.RoundTripper
	// several servers are connected to: the token of the environment is for none of them.
	several bool
}

func (a *access) add(flags *pflag.FlagSet) {
	flags.StringVar(&a.token, "token", "", "send this access `token`; others on this machine can see it, unlike --token-file and "+tokenVariable)
	flags.StringVar(&a.tokenFile, "token-file", "", "send the access token in this `file`")
}

// given reports whether a flag names a token.
func (a *access) given() bool { return a.token != "" || a.tokenFile != "" }

// bearer returns the token of the user, "" if there is none.
func (a *access) bearer() (string, error) {
	token, from := a.token, "--token"
	switch {
	case a.token != "" && a.tokenFile != "":
		return "", usage("--token and --token-file exclude each other")
	case a.tokenFile != "":
		text, err := files.Text(a.tokenFile, files.MaxSecret)
		if err != nil {
			return "", usage("--token-file: %w", err)
		}
		if token, from = strings.TrimSpace(string(text)), "--token-file"; token == "" {
			return "", usage("--token-file: %s is empty", a.tokenFile)
		}
	case a.token == "" && !a.several:
		token, from = strings.TrimSpace(os.Getenv(tokenVariable)), tokenVariable
	}
	token = strings.TrimPrefix(token, "Bearer ")
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", usage("%s: this is no token; there is a space or something else in it that tokens do not have", from)
	}
	return token, nil
}

// authorize makes the client of an HTTP transport to that address, and puts the
// token of the user, if there is one, into the headers.
func (a *access) authorize(address string, header http.Header) (*http.Client, error) {
	own := http.DefaultTransport.(*http.Transport).Clone()
	own.MaxIdleConnsPerHost = 128
	var next http.RoundTripper = own
	if a.around != nil {
		next = a.around(own)
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, usage("%w", err)
	}
	target, err := login.Normal(address)
	if err != nil { // such as a URL with a password
		if a.given() {
			return nil, usage("a token cannot be sent: %w", err)
		}
		return &http.Client{Transport: next}, nil
	}
	gate := &login.Gate{URL: target, Token: true, Next: next}
	if header.Get("Authorization") != "" {
		if a.given() {
			return nil, usage("--token and --header Authorization exclude each other")
		}
		a.authorized = true
		return &http.Client{Transport: gate}, nil
	}
	token, err := a.bearer()
	if err != nil {
		return nil, err
	}
	if token != "" {
		if u.Scheme != "https" && u.Scheme != "wss" && !loopback(u.Hostname()) {
			return nil, usage("%s is not https: the token would travel in the clear", login.Shown(target)).
				with("if the network is yours: --header \"Authorization=Bearer TOKEN\"")
		}
		header.Set("Authorization", "Bearer "+token)
		a.authorized = true
		return &http.Client{Transport: gate}, nil
	}
	gate.Token = false
	client, err := a.stored(target, next)
	if client != nil && err == nil {
		a.authorized = true
		return client, nil
	}
	gate.Err = err // matters only if the server asks
	return &http.Client{Transport: gate}, nil
}

// stored makes the client of a stored login, nil if there is none.
func (a *access) stored(target string, next http.RoundTripper) (*http.Client, error) {
	store, err := login.Open()
	if err != nil {
		return nil, nil // without such a directory there are no logins
	}
	known, err := store.Find(context.Background(), target)
	if err != nil || known == nil {
		return nil, err
	}
	agent := &login.Agent{Login: known}
	if a.terminal != nil && a.terminal.Attended() {
		agent.Ask = a.terminal.Hold
	}
	c, err := store.Client(known, agent, next)
	if err != nil {
		return nil, err
	}
	return c.HTTPClient(), nil
}

// refused is the failure that an authorization ended in, nil if err is not one.
func refused(err error) *failure {
	if needed, ok := errors.AsType[*login.Needed](err); ok {
		return failed(exitAuth, needed).with(needed.Hint())
	}
	if own, ok := errors.AsType[*oauth.Error](err); ok {
		return failed(exitAuth, own)
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback() || host == "localhost" || strings.HasSuffix(host, ".localhost")
}
