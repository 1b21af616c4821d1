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

// challenge is the value of a WWW-Authenticate header.
type challenge struct {
	scheme, code, description string
	scopes                    []string
}

// header returns the challenge with the parameters that clients look for first
// at its front (RFC 6750, section 3; RFC 9728, section 5.1; RFC 9449, section
// 7.1).
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

// plain makes text fit for a quoted parameter.
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

// challenger answers requests that lack scopes of a component. What the server
// needs is needed for it, too, and is named, so that one round is enough.
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

// refuse answers a request that was not admitted.
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

// report tells the log of the http.Server what a callback did not return from.
func report(r *http.Request, failure error) {
	logger := log.Default()
	if s, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && s.ErrorLog != nil {
		logger = s.ErrorLog
	}
	_ = safely.Apart(func() { logger.Printf("auth: Options.Refused: %v", safely.Known(failure)) }) // its writer is users' code, too
}

// restTime is how long the rest of a refused request may take.
const restTime = 5 * time.Second

// describe returns the description for a challenge: none without a code, as in
// the first challenge that a client gets (RFC 6750, section 3.1).
func describe(why *Error) string {
	if why.Code == "" {
		return ""
	}
	return why.Description
}

// schemes returns those that the client is challenged for: what it has tried,
// or what the server takes.
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
