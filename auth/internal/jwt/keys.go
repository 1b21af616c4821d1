package jwt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/safely"
)

// KeyOptions say where the keys of an issuer come from; see auth.KeyOptions.
type KeyOptions struct {
	URL              string
	Static           json.RawMessage
	Client           *http.Client
	MaxAge, MaxStale time.Duration
	MinInterval      time.Duration
	Timeout          time.Duration
}

// The defaults of KeyOptions.
const (
	DefaultAge      = 10 * time.Minute
	defaultStale    = time.Hour
	DefaultInterval = 10 * time.Second
	DefaultTimeout  = 10 * time.Second
)

// keySet is the keys of an issuer at one time. It does not change.
type keySet struct {
	keys    []jose.JSONWebKey
	fetched time.Time // zero for static ones
}

// maxKeys bounds the keys that a token without a key id is tried with, and
// maxKeysKept those of an issuer: a document of maxDocument bytes could have
// thousands.
const (
	maxKeys     = 20
	maxKeysKept = 256
)

// fitting returns the keys that may have signed a token: those with its key id,
// or all if it has none, as far as they permit the algorithm.
func (s *keySet) fitting(kid, alg string) (keys []jose.JSONWebKey) {
	for _, k := range s.keys {
		if (kid == "" || k.KeyID == kid) && (k.Algorithm == "" || k.Algorithm == alg) && len(keys) < maxKeys {
			keys = append(keys, k)
		}
	}
	return keys
}

// Keys provides the keys of an issuer. Of all requests that need newer
// keys at a time, one fetches them and the others wait for it.
//
// A source with static keys has a set from the beginning, whose time is zero,
// and never fetches. Any other has no set until the first fetch, which the
// first token causes.
//
// No library has this behavior: with jwkset these requests fetch one after the other, and
// the key set of go-oidc uses withdrawn keys until a token has an unknown one.
type Keys struct {
	opts   KeyOptions
	issuer string
	client *http.Client

	mu     sync.Mutex
	set    *keySet
	url    string        // of the keys, once it is known
	tried  time.Time     // when the last fetch began
	err    error         // of the last fetch
	flight chan struct{} // closed when the fetch in progress ends; nil if none is
}

// NewKeys checks the options. It fetches nothing.
func NewKeys(issuer string, opts KeyOptions) (*Keys, error) {
	s := &Keys{opts: opts, issuer: issuer, url: opts.URL, client: HTTPClient(opts.Client)}
	s.opts.MaxAge = OrDefault(opts.MaxAge, DefaultAge)
	s.opts.MaxStale = OrDefault(opts.MaxStale, defaultStale)
	s.opts.MinInterval = OrDefault(opts.MinInterval, DefaultInterval)
	s.opts.Timeout = OrDefault(opts.Timeout, DefaultTimeout)
	if issuer == "" {
		return nil, errors.New("the issuer is empty; give it as its metadata names it")
	}
	if opts.Static != nil {
		set, err := parseKeys(opts.Static)
		if err != nil {
			return nil, fmt.Errorf("KeyOptions.Static: %w", err)
		}
		s.set = &keySet{keys: set}
		return s, nil
	}
	if opts.URL != "" {
		return s, SafeURL(opts.URL)
	}
	if err := SafeURL(issuer); err != nil {
		return nil, fmt.Errorf("the issuer is not where its keys could be found: %w; give KeyOptions.URL", err)
	}
	return s, nil
}

// after returns the keys. If seen is not nil, the caller has tried those keys
// in vain and wants newer ones; it gets seen again if there are none or if it
// is too early to fetch. The result is immutable.
func (s *Keys) after(ctx context.Context, seen *keySet) (*keySet, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	waited := false // for a fetch: it is not repeated
	for {
		now := time.Now()
		switch {
		case s.set != nil && s.set != seen && s.fresh(now):
			return s.set, nil
		case s.flight != nil:
			if err := s.wait(ctx); err != nil {
				return nil, err
			}
			waited = true
		case waited || s.set != nil && s.set.fetched.IsZero() || !s.tried.IsZero() && now.Sub(s.tried) < s.opts.MinInterval:
			return s.usable(now)
		default:
			s.fetch(ctx, now)
			waited = true
		}
	}
}

// fresh reports whether the keys need not be fetched again because of their
// age. s.mu is held, and s.set is not nil.
func (s *Keys) fresh(now time.Time) bool {
	return s.set.fetched.IsZero() || now.Sub(s.set.fetched) < s.opts.MaxAge
}

// usable returns the keys that there are if no newer ones can be had, or the
// error of the last fetch if they are too old. s.mu is held.
func (s *Keys) usable(now time.Time) (*keySet, error) {
	if s.set != nil && (s.set.fetched.IsZero() || now.Sub(s.set.fetched) < s.opts.MaxAge+s.opts.MaxStale) {
		return s.set, nil
	}
	return nil, fmt.Errorf("auth: the keys of %s cannot be had: %w", s.issuer, s.err)
}

// wait waits for the fetch in progress, or for the end of ctx. s.mu is held
// when it is called and when it returns, but not while it waits.
func (s *Keys) wait(ctx context.Context) error {
	flight := s.flight
	s.mu.Unlock()
	defer s.mu.Lock()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-flight:
		return nil
	}
}

// fetch fetches the keys for everyone who waits, even if the request that
// caused it is cancelled. s.mu is held when it is called and when it returns,
// but not while it fetches.
func (s *Keys) fetch(ctx context.Context, now time.Time) {
	flight, where := make(chan struct{}), s.url
	s.flight, s.tried = flight, now
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opts.Timeout)
	defer cancel()
	var keys []jose.JSONWebKey
	// On a goroutine of its own: the client's transport is users' code.
	err := safely.Known(safely.Try(func() (err error) { keys, where, err = s.load(ctx, where); return err }))
	s.mu.Lock()
	s.flight, s.err = nil, err
	if err == nil {
		s.set, s.url = &keySet{keys: keys, fetched: now}, where
	} else if s.opts.URL == "" {
		s.url = "" // the issuer may have moved its keys
	}
	close(flight)
}

// load gets the keys from a URL, which is found through the metadata if it is
// "". It returns the URL with the keys.
func (s *Keys) load(ctx context.Context, where string) ([]jose.JSONWebKey, string, error) {
	if where == "" {
		found, err := Discover(ctx, s.client, s.issuer)
		if err != nil {
			return nil, "", err
		}
		if where = found.Keys; where == "" {
			return nil, "", errors.New("the metadata has no jwks_uri")
		}
		if err := SafeURL(where); err != nil {
			return nil, "", fmt.Errorf("jwks_uri: %w", err)
		}
	}
	text, err := Get(ctx, s.client, where)
	if err != nil {
		return nil, "", err
	}
	keys, err := parseKeys(text)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", where, err)
	}
	return keys, where, nil
}

// parseKeys returns the public signature keys of a JWK Set, at most
// maxKeysKept. Keys of any other kind, and keys that cannot be read, are
// skipped: issuers may publish kinds that do not exist yet.
func parseKeys(text []byte) ([]jose.JSONWebKey, error) {
	var raw struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := jsonx.Unmarshal(text, &raw); err != nil {
		return nil, fmt.Errorf("no JWK Set: %w", err)
	}
	var keys []jose.JSONWebKey
	for _, one := range raw.Keys {
		if len(keys) == maxKeysKept {
			break
		}
		var k jose.JSONWebKey
		if jsonx.Unmarshal(one, &k) != nil || !k.Valid() || !k.IsPublic() || k.Use != "" && k.Use != "sig" {
			continue
		}
		k.Certificates = nil // nothing asks for them
		keys = append(keys, k)
	}
	if len(keys) == 0 {
		return nil, errors.New("the JWK Set has no public key for signatures")
	}
	return keys, nil
}

// SafeURL returns an error for a URL whose document others could change on its
// way: anything but https, except on this machine.
func SafeURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return err
	case u.Scheme == "https" && u.Host != "" || u.Scheme == "http" && facts.Loopback(u.Hostname()):
		return nil
	}
	return fmt.Errorf("%q has to be an https URL", text)
}
