package login

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"

	"github.com/talaria-go/mcp/auth/oauth"
	"github.com/talaria-go/mcp/cmd/talaria/internal/shellwords"
)

// Agent takes the user to the browser in the middle of another command: for a
// step-up, or because the login has ended. Where there is no user, it says what
// to run.
type Agent struct {
	Login *Login
	// Ask is called before the browser opens, with what to say to the user. done
	// is called when the user is back; ok is false if there is none. nil means
	// none.
	Ask func(text string) (done func(), ok bool)
}

// Open implements oauth.UserAgent.
func (a *Agent) Open(ctx context.Context, registered []string) (oauth.Visit, error) {
	if a.Ask != nil {
		loopback := &oauth.Loopback{Port: a.Login.RedirectPort, Browse: Browse, Prompt: func(string) {}}
		visit, err := loopback.Open(ctx, registered)
		if err != nil {
			return nil, err
		}
		return &askingVisit{Visit: visit, agent: a}, nil
	}
	if len(registered) == 0 {
		if a.Login.Registers() {
			return nil, &Needed{URL: a.Login.URL} // a registration without a login is of no use
		}
		registered = []string{"http://127.0.0.1/callback"}
	}
	return absentVisit{login: a.Login, uri: registered[0]}, nil
}

type askingVisit struct {
	oauth.Visit
	agent *Agent
}

func (v *askingVisit) Authorize(ctx context.Context, address string) (string, error) {
	done, ok := v.agent.Ask("the server asks for a login" + wanted(address) + "; opening the browser, if it does not show:\n  " + address)
	if !ok {
		return absentVisit{login: v.agent.Login}.Authorize(ctx, address)
	}
	defer done()
	return v.Visit.Authorize(ctx, address)
}

func wanted(address string) string {
	if list := asked(address); len(list) > 0 {
		return " for " + strings.Join(list, " ")
	}
	return ""
}

// asked returns the scopes of an authorization request.
func asked(address string) []string {
	u, err := url.Parse(address)
	if err != nil {
		return nil
	}
	return scopes(u.Query().Get("scope"))
}

// absentVisit is that of a user who is not there.
type absentVisit struct {
	login *Login
	uri   string
}

func (v absentVisit) RedirectURI() string { return v.uri }
func (v absentVisit) Close() error        { return nil }
func (v absentVisit) Authorize(_ context.Context, address string) (string, error) {
	return "", &Needed{URL: v.login.URL, Scopes: asked(address)}
}

// Browse opens a URL with the command in BROWSER, which gets it in the place of
// %s or as its last argument, else as the system does. No shell sees it: it
// comes from a server.
func Browse(ctx context.Context, address string) error {
	line := os.Getenv("BROWSER")
	if line == "" {
		return oauth.OpenBrowser(ctx, address)
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" {
		return errors.New("only http and https URLs are opened")
	}
	list, err := shellwords.Split(line)
	if err != nil || len(list) == 0 {
		return fmt.Errorf("BROWSER is not a command: %w", err)
	}
	args, placed := shellwords.Texts(list), false
	for i := range args {
		if strings.Contains(args[i], "%s") {
			args[i], placed = strings.ReplaceAll(args[i], "%s", u.String()), true
		}
	}
	if !placed {
		args = append(args, u.String())
	}
	cmd := exec.Command(args[0], args[1:]...) // outlives the login
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("BROWSER: %w", err)
	}
	go func() { _ = cmd.Wait() }() // it may stay open for as long as the user likes
	return nil
}
