package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/talaria-go/mcp/auth/internal/jwt"
	"github.com/talaria-go/mcp/frame"
)

// Identity is what a token says; see frame.Identity.
type Identity = frame.Identity

// Verifier verifies access tokens. Verify returns one of three results:
//
//   - an Identity with a Subject or a ClientID, which it must not change afterwards
//   - an error of Invalid, if this server does not accept the token
//   - any other error, if it could not verify the token: the response is 503
//
// Errors must not contain the token.
//
// A Verifier must check that the token was issued for this server and not for
// another one. Verify is called by many goroutines at once. Its result must
// depend only on the token, not on values in ctx: Bearer caches it for
// Options.CacheFor, and concurrent requests with one token share one call.
type Verifier interface {
	Verify(ctx context.Context, token string) (*Identity, error)
}

// VerifierFunc is a function that is a Verifier.
//
//	keys := auth.VerifierFunc(func(ctx context.Context, token string) (*auth.Identity, error) {
//		user, ok := users.ByKey(ctx, token)
//		if !ok {
//			return nil, auth.Invalid("the key is unknown")
//		}
//		return &auth.Identity{Subject: user.Name, Scopes: user.Scopes}, nil
//	})
type VerifierFunc func(ctx context.Context, token string) (*Identity, error)

// Verify calls v.
func (v VerifierFunc) Verify(ctx context.Context, token string) (*Identity, error) {
	return v(ctx, token)
}

// Error is why a request was refused. Options.OnRefused gets one, and a Verifier
// may return one.
type Error struct {
	// Status is the HTTP status of the answer: 400, 401, 403 or 503.
	Status int
	// Code is the error parameter of the challenge: one of the constants, or of
	// RFC 9449, section 7.1, invalid_dpop_proof or use_dpop_nonce; "" for a
	// request that brought no token.
	Code string
	// Description is for people and in ASCII. The client sees it.
	Description string
	// Err is the cause, or nil. The client does not see it.
	Err error
}

// Values of Error.Code (RFC 6750, section 3.1).
const (
	CodeInvalidRequest    = "invalid_request"
	CodeInvalidToken      = "invalid_token"
	CodeInsufficientScope = "insufficient_scope"

	codeInvalidProof = "invalid_dpop_proof"
	codeUseNonce     = "use_dpop_nonce"
)

// Error returns description, code and cause on one line.
func (e *Error) Error() string {
	text := "auth: " + e.Description
	if e.Code != "" {
		text += " (" + e.Code + ")"
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Invalid returns the error for a token that is not accepted: the answer is 401
// with invalid_token. The description is sent to the client; it must not
// contain the token or any part of it.
func Invalid(format string, args ...any) *Error {
	return &Error{Status: http.StatusUnauthorized, Code: CodeInvalidToken, Description: fmt.Sprintf(format, args...)}
}

// invalid is Invalid with a cause, which only the log gets.
func invalid(err error, description string) *Error {
	return &Error{Status: http.StatusUnauthorized, Code: CodeInvalidToken, Description: description, Err: err}
}

// Any returns a Verifier that asks several in their order until one accepts the
// token. Only the Verifier of NewJWT for an issuer is asked about the tokens of
// that issuer, and only that of a broker.Broker about the Broker's. Its refusal is
// final, and the introspection endpoint of another issuer never receives them.
//
// If none accepts the token, the error is that of a Verifier that could not verify it,
// or else that of the last one.
func Any(verifiers ...Verifier) Verifier { return anyOf(append([]Verifier(nil), verifiers...)) }

// anyOf is the Verifier that Any returns.
type anyOf []Verifier

// binder is implemented by a Verifier that can be given an audience.
type binder interface {
	// bind returns the Verifier for tokens whose audience is resource, unless
	// it was given another audience.
	bind(resource string) (Verifier, error)
}

// bind implements binder.
func (all anyOf) bind(resource string) (Verifier, error) {
	bound := slices.Clone(all)
	for i, v := range all {
		if v == nil {
			return nil, fmt.Errorf("auth: Any: Verifier %d is nil", i)
		}
		if known, ok := v.(binder); ok {
			var err error
			if bound[i], err = known.bind(resource); err != nil {
				return nil, err
			}
		}
	}
	return bound, nil
}

// Issuers implements jwt.Issuer.
func (all anyOf) Issuers() (list []string) {
	for _, v := range all {
		if known, ok := v.(jwt.Issuer); ok {
			list = append(list, known.Issuers()...)
		}
	}
	return list
}

// takes asks a Verifier whether a token belongs to it. Most cannot tell.
func takes(v Verifier, token string) (own, may bool) {
	if t, ok := v.(jwt.Taker); ok {
		return t.Takes(token)
	}
	return false, true
}

// Verify implements Verifier. If some Verifier owns the token, only owners are
// asked.
func (all anyOf) Verify(ctx context.Context, token string) (*Identity, error) {
	var refused, failed error
	owned, _ := all.Takes(token)
	for _, v := range all {
		if own, may := takes(v, token); !may || owned && !own {
			continue
		}
		id, err := v.Verify(ctx, token)
		if err == nil {
			return id, nil
		}
		if _, ok := errors.AsType[*Error](err); ok {
			refused = err
		} else if failed == nil {
			failed = err
		}
	}
	switch {
	case failed != nil:
		return nil, failed
	case refused != nil:
		return nil, refused
	}
	return nil, Invalid("the token is of no issuer that this server trusts")
}

// Takes implements jwt.Taker, for an Any within another.
func (all anyOf) Takes(token string) (own, may bool) {
	for _, v := range all {
		ownOne, mayOne := takes(v, token)
		own, may = own || ownOne, may || mayOne
	}
	return own, may
}
