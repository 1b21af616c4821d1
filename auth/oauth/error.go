package oauth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/talaria-go/mcp/internal/clients/attend"
	"github.com/talaria-go/mcp/internal/outbound"
)

// Step is a step of authorization; Error names the one that failed.
type Step string

// The steps.
const (
	StepResource      Step = "protected resource metadata"
	StepServer        Step = "authorization server metadata"
	StepRegistration  Step = "client registration"
	StepAuthorization Step = "authorization"
	StepToken         Step = "token request"
	StepExchange      Step = "token exchange"
	StepStepUp        Step = "step-up"
	StepRevocation    Step = "revocation"
	StepRequest       Step = "request"
	StepStore         Step = "token store"
)

// ErrLoginRequired is the error of [Client.Token] when there is no token and
// only the user can get one.
var ErrLoginRequired = errors.New("no access token; call Login")

// Error is the only error type of this package. It names the step that failed
// and the place. It never contains a token, a code or a secret.
type Error struct {
	// Step is what failed.
	Step Step
	// URL is the place: an issuer, an endpoint or a metadata document.
	URL string
	// Code is an OAuth error code such as invalid_grant, when a server gave one.
	Code string
	// Status is the HTTP status, when a server answered; 0 otherwise.
	Status int
	// Problem says what is wrong and what to do about it.
	Problem string
	// Err is the cause, or nil.
	Err error

	asked bool // the user was asked
}

// Error returns everything on one line. Control characters are escaped, because
// parts of the text come from servers.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("oauth: " + string(e.Step))
	if e.URL != "" {
		b.WriteString(" at " + e.URL)
	}
	if e.Code != "" {
		b.WriteString(": " + printable(e.Code))
	}
	if e.Problem != "" {
		b.WriteString(": " + e.Problem)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return visible(b.String())
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports, for client.ErrUnauthorized, whether trying again is of no use
// until a person acts. That is so after the user was asked, whatever happened
// then, and after each refusal of a server. It is not so after a failure that
// may pass before the user was asked, such as an authorization server that does
// not answer.
func (e *Error) Is(target error) bool {
	return target == attend.ErrUnauthorized && (e.asked || !e.passing())
}

// passing reports whether the error may pass by itself, or is not about authorization
// but about the store or the request.
func (e *Error) passing() bool {
	switch {
	case e.Step == StepStore, e.Code == "server_error", e.Code == "temporarily_unavailable", e.Code == "slow_down", passingStatus(e.Status):
		return true
	case e.Code != "", e.Status != 0:
		return false
	case e.Step == StepRequest:
		return true
	}
	var network net.Error
	return errors.Is(e.Err, context.Canceled) || errors.Is(e.Err, context.DeadlineExceeded) || errors.As(e.Err, &network) ||
		errors.Is(e.Err, io.EOF) || errors.Is(e.Err, io.ErrUnexpectedEOF) || errors.Is(e.Err, net.ErrClosed)
}

// passingStatus reports whether an HTTP status says nothing about the request:
// the same request may be answered otherwise soon.
func passingStatus(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	}
	return status >= 500
}

// refused reports whether a server has refused something for good.
func refused(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && !e.passing() && (e.Code != "" || e.Status >= 400)
}

// afterAsking returns err as the error of a login for which the user was asked.
func afterAsking(err error) error {
	e, ok := err.(*Error)
	if !ok {
		return &Error{Step: StepAuthorization, Err: err, asked: true}
	}
	asked := *e // others may have the same
	asked.asked = true
	return &asked
}

// hasCode reports whether err is an *Error with one of these OAuth error codes.
func hasCode(err error, codes ...string) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && slices.Contains(codes, e.Code)
}

// refusedToken returns the Error for a token request that was refused. The body of
// the response is left out, and so are the secrets of the request, because a server
// might repeat them.
func refusedToken(answer *outbound.Response, secrets []string) Error {
	code, description := readError(answer)
	e := Error{Code: without(secrets, code), Status: answer.Status}
	if description != "" {
		e.Problem = "the server says " + printable(without(secrets, description))
	} else if e.Code == "" {
		e.Problem = fmt.Sprintf("HTTP status %d without an OAuth error", e.Status)
		if e.Status == http.StatusUnauthorized {
			e.Problem += "; if the server does not know the client any more, Client.ForgetRegistration lets it register again"
		}
	}
	return e
}

// without returns text from a server with the secrets replaced by ***.
func without(secrets []string, text string) string {
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	return text
}

// visible escapes what a terminal would act on and cuts long text.
func visible(s string) string {
	const longest = 2000
	if len(s) > longest {
		s = s[:longest] + "…"
	}
	var b strings.Builder
	for _, r := range s {
		if strconv.IsPrint(r) && r != utf8.RuneError {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		}
	}
	return b.String()
}

// printable returns text from a server in a form for terminals and logs: short,
// on one line, quoted unless it is one word.
func printable(s string) string {
	const longest = 200
	if len(s) > longest {
		s = s[:longest] + "…"
	}
	for _, r := range s {
		if r != '_' && r != '-' && r != '.' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			return strconv.QuoteToASCII(s)
		}
	}
	return s
}
