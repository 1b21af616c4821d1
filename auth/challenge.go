package auth

import (
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/safely"
)

// challenge is what a WWW-Authenticate header says. Empty fields are left out.
type challenge struct {
	scheme, code, description string
	scopes                    []string
}

// header returns the value of a WWW-Authenticate header (RFC 6750, section 3;
// RFC 9728, section 5.1; RFC 9449, section 7.1). The parameters that clients
// look for come first.
func (g *guard) header(c challenge) string {
	var params []string
	add := func(name, value string) {
		if value != "" {
			params = append(params, name+`="`+value+`"`)
		}
	}
	add("error", c.code)
	add("error_description", plain(c.description))
	add("scope", strings.Join(c.scopes, " "))
	add("resource_metadata", g.metadata)
	if c.scheme == schemeDPoP {
		add("algs", strings.Join(g.proofs.algorithms, " "))
	}
	if len(params) == 0 { // there has to be one
		add("realm", plain(g.resource))
	}
	return c.scheme + " " + strings.Join(params, ", ")
}

// plain replaces the characters that a quoted parameter cannot have.
func plain(text string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c == '"' || c == '\\':
			return '\''
		case c < ' ' || c > '~':
			return '?'
		}
		return c
	}, text)
}

// challenger returns the function with which the server answers requests that
// lack scopes of a component. The challenge names the scopes of the whole
// server too, so that a client needs one round only.
func (g *guard) challenger(scheme string, status int) frame.Challenger {
	return func(scopes []string) (int, string) {
		all := slices.Clone(g.opts.Scopes)
		for _, s := range scopes {
			if !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
		c := challenge{scheme: scheme, scopes: all}
		if status == http.StatusForbidden {
			c.code, c.description = CodeInsufficientScope, "this needs the scope "+strings.Join(all, " ")
		}
		return status, g.header(c)
	}
}

// refuse answers a request that was not admitted. An error that is no *Error
// means that the token could not be verified, which is 503.
func (g *guard) refuse(w http.ResponseWriter, r *http.Request, err error) {
	why, ok := errors.AsType[*Error](err)
	if !ok {
		why = &Error{Status: http.StatusServiceUnavailable, Description: "the token cannot be verified at the moment", Err: err}
	}
	if g.opts.Refused != nil {
		if err := safely.Apart(func() { g.opts.Refused(r, why) }); err != nil {
			report(r, err)
		}
	}
	// net/http waits for the rest of a body, which may never come.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(restTime))
	header := w.Header()
	switch {
	case why.Status == http.StatusServiceUnavailable:
		header.Set("Retry-After", "5")
	default:
		for _, scheme := range g.schemes(r, why) {
			header.Add("WWW-Authenticate", g.header(challenge{
				scheme: scheme, code: why.Code, description: describe(why), scopes: g.opts.Scopes,
			}))
		}
	}
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(why.Status)
	// The client may be gone, which net/http notices by itself.
	_ = json.NewEncoder(w).Encode(struct {
		Code        string `json:"error,omitempty"`
		Description string `json:"error_description"`
	}{why.Code, why.Description})
}

// report writes to the log of the http.Server that Options.Refused panicked or
// ended its goroutine.
func report(r *http.Request, failure error) {
	logger := log.Default()
	if s, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && s.ErrorLog != nil {
		logger = s.ErrorLog
	}
	_ = safely.Apart(func() { logger.Printf("auth: Options.Refused: %v", safely.Known(failure)) }) // its writer is users' code, too
}

// restTime is how long the rest of the body of a refused request may take.
// net/http would wait for it without a limit.
const restTime = 5 * time.Second

// describe returns the description for a challenge. The first challenge that a
// client gets has neither code nor description (RFC 6750, section 3.1).
func describe(why *Error) string {
	if why.Code == "" {
		return ""
	}
	return why.Description
}

// schemes returns the schemes that a client is challenged for: the one it has
// tried, or those that the server accepts.
func (g *guard) schemes(r *http.Request, why *Error) []string {
	tried, _, _ := credentials(r)
	switch {
	case g.opts.DPoP.Required || why.Code == CodeInvalidProof || why.Code == CodeUseNonce || tried == schemeDPoP:
		return []string{schemeDPoP}
	case g.opts.DPoP.Offer && tried == "":
		return []string{schemeBearer, schemeDPoP}
	}
	return []string{schemeBearer}
}
