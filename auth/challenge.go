package auth

import (
	"log"
	"net/http"
	"strings"
	"time"

	"github.com/talaria-go/mcp/internal/safely"
)

// challenge is what a WWW-Authenticate header says. Empty fields are left out.
type challenge struct {
	scheme, code, description string
	scopes                    []string
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

// report writes to the log of the http.Server that Options.OnRefused panicked or
// ended its goroutine.
func report(r *http.Request, failure error) {
	logger := log.Default()
	if s, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && s.ErrorLog != nil {
		logger = s.ErrorLog
	}
	_ = safely.Apart(func() { logger.Printf("auth: Options.OnRefused: %v", safely.Known(failure)) }) // its writer is users' code, too
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
