package broker

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/oauth2"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/scale"
)

// The times and bounds of the vault.
const (
	vaultParts     = 256                    // partitions of the store, over which users are spread
	vaultTTL       = 90 * 24 * time.Hour    // life of tokens since their last use
	vaultTouch     = 24 * time.Hour         // interval between writes that extend that
	maxTokens      = 16 << 10               // bytes of an entry; longer tokens are refused
	freshFor       = 30 * time.Second       // time before the end of a token in which it is refreshed
	refreshTimeout = 10 * time.Second       // of a request for newer tokens
	leaseTimeout   = 15 * time.Second       // after which a replica takes over from one that refreshes
	vaultPoll      = 2 * time.Second        // interval between looks at an entry that another replica refreshes
	saveTimeout    = 4 * time.Second        // of saving tokens that were refreshed, in several attempts
	saveRetry      = 250 * time.Millisecond // interval between these attempts
	revokeTimeout  = 10 * time.Second       // of a request to end tokens at the provider
)

// errRefused means that the provider refused the tokens; an error that wraps
// errBusy, that it or the store did not answer; errNone, that there are none, or
// none that can be refreshed.
var (
	errRefused = errors.New("the provider refused the tokens")
	errNone    = errors.New("there are no tokens")
	errLong    = fmt.Errorf("the tokens have more than %d bytes", maxTokens)
)

// vault keeps tokens of providers, sealed, in the store: an entry of each principal
// and service. The service "" stands for the login. A vault is safe for concurrent
// use, and has no goroutine but that of a Watcher while calls wait.
//
// Tokens that have to be refreshed are leased by one call, which notes that in the
// entry by a compare-and-set. All others, at any replica, wait until the entry
// changes. They take over if it has not for leaseTimeout by their own clock, so no
// clocks are compared.
type vault struct {
	issuer string // of the broker, which all entries are bound to
	store  scale.Store
	sealer *seal.Sealer
	watch  watching
}

// newVault returns the vault of a broker. store is guarded.
func newVault(issuer string, store scale.Store, keys [][]byte) (*vault, error) {
	sealer, err := seal.New("broker/vault", keys...)
	if err != nil {
		return nil, err
	}
	return &vault{issuer: issuer, store: store, sealer: sealer, watch: watching{store: store}}, nil
}

// refresher is the part of an upstream that the vault needs.
type refresher interface {
	refresh(ctx context.Context, t *oauth2.Token) (*oauth2.Token, error)
	revoke(ctx context.Context, t *oauth2.Token) (bool, error)
}

// kept is what an entry has. The names of its members are short, because it is
// stored once for each user and service.
type kept struct {
	Access  string `json:"a"`
	Type    string `json:"t,omitempty"`
	Refresh string `json:"r,omitempty"`
	Expiry  int64  `json:"e,omitempty"` // Unix milliseconds; 0 if no end is known
	Life    int64  `json:"l,omitempty"` // milliseconds from the answer of the provider to Expiry
	Gen     string `json:"g"`           // a random name of these tokens
	Lease   string `json:"h,omitempty"` // random name of the call that refreshes them
	Refused bool   `json:"x,omitempty"` // the provider refused to refresh them
	Written int64  `json:"w"`           // Unix milliseconds of the last write
}

// keep returns what is kept of tokens.
func keep(t *oauth2.Token) *kept {
	k := &kept{Access: t.AccessToken, Type: t.TokenType, Refresh: t.RefreshToken, Gen: rand.Text()}
	if !t.Expiry.IsZero() {
		k.Expiry, k.Life = t.Expiry.UnixMilli(), time.Until(t.Expiry).Milliseconds()
	}
	return k
}

// token returns the tokens as x/oauth2 has them.
func (k *kept) token() *oauth2.Token {
	t := &oauth2.Token{AccessToken: k.Access, TokenType: k.Type, RefreshToken: k.Refresh}
	if k.Expiry != 0 {
		t.Expiry = time.UnixMilli(k.Expiry)
	}
	return t
}

// valid reports whether the access token has not ended.
func (k *kept) valid() bool { return k.Expiry == 0 || time.Now().UnixMilli() < k.Expiry }

// usable reports whether the access token is valid for a while, or as long as it can
// be. The while is a quarter of the life of tokens that live for less than four.
func (k *kept) usable() bool {
	if k.Expiry == 0 || k.Refresh == "" {
		return k.valid()
	}
	early := min(freshFor.Milliseconds(), k.Life/4)
	return time.Now().UnixMilli()+early < k.Expiry
}

// key returns the key of an entry. Its name is a hash.
func (v *vault) key(principal, service string) scale.Key {
	k := replica.StoreKey("broker", string(seal.Binding(v.issuer, principal)), vaultParts)
	k.Name = replica.StoreKey("vault", string(seal.Binding(v.issuer, principal, service)), 1).Name
	return k
}

// subject returns the subject that is notified of writes of an entry.
func subject(key scale.Key) string { return "broker-vault-" + key.Name }

// read returns an entry, with errNone if there is none, or none that can be opened.
// The Rev is 0 only if there is none.
func (v *vault) read(ctx context.Context, key scale.Key) (*kept, scale.Rev, error) {
	ctx, stop := context.WithTimeout(ctx, replica.StoreTimeout)
	defer stop()
	found, err := v.store.Get(ctx, scale.GetOp{Key: key})
	if err == nil {
		err = found[0].Err
	}
	if err != nil {
		return nil, 0, &awayError{err}
	}
	if found[0].Rev == 0 {
		return nil, 0, errNone
	}
	text, _, err := v.sealer.Open(found[0].Value, v.binding(key))
	k := &kept{}
	if err != nil || jsonx.Unmarshal(text, k) != nil {
		return nil, found[0].Rev, errNone // the key that sealed it was removed
	}
	return k, found[0].Rev, nil
}

// binding is what an entry is bound to.
func (v *vault) binding(key scale.Key) []byte { return seal.Binding(v.issuer, key.Partition, key.Name) }

// write replaces an entry whose version is prev; with nil it deletes the entry. The
// error wraps scale.ErrChanged if the version differs, or errBusy.
func (v *vault) write(ctx context.Context, key scale.Key, prev scale.Rev, k *kept) (scale.Rev, error) {
	w := scale.Write{Key: key, Prev: prev, Notify: subject(key)}
	if k != nil {
		k.Written = time.Now().UnixMilli()
		text, err := json.Marshal(k)
		if err != nil {
			return 0, err
		}
		if len(text) > maxTokens {
			return 0, errLong
		}
		w.Value, w.TTL = v.sealer.Seal(nil, text, v.binding(key)), vaultTTL
	}
	ctx, stop := context.WithTimeout(ctx, replica.StoreTimeout)
	defer stop()
	written, err := v.store.Put(ctx, w)
	if err == nil {
		err = written[0].Err
	}
	switch {
	case errors.Is(err, scale.ErrChanged):
		return 0, err
	case err != nil:
		return 0, &awayError{err}
	}
	return written[0].Rev, nil
}

// save keeps tokens in place of those that are there, and of those that a call is
// about to get for them. The refresh token of the login stays if there is no newer one: some
// providers give one at the first visit of a user only. One of a service could be that of
// another account.
func (v *vault) save(ctx context.Context, principal, service string, t *oauth2.Token) error {
	key, k := v.key(principal, service), keep(t)
	return v.change(ctx, key, func(before *kept) *kept {
		if k.Refresh = t.RefreshToken; k.Refresh == "" && service == "" && before != nil && !before.Refused {
			k.Refresh = before.Refresh
		}
		return k
	})
}

// change replaces an entry by what fn makes of it; nil deletes it, and is what fn gets
// where there is none.
func (v *vault) change(ctx context.Context, key scale.Key, fn func(*kept) *kept) error {
	for {
		now, rev, err := v.read(ctx, key)
		if err != nil && !errors.Is(err, errNone) {
			return err
		}
		next := fn(now)
		if next == nil && rev == 0 {
			return nil
		}
		if _, err = v.write(ctx, key, rev, next); !errors.Is(err, scale.ErrChanged) {
			return err
		}
	}
}

// forget deletes the tokens, and ends them at the provider before, where it can.
// revoked reports whether it could. With access, other tokens than those with that access
// token stay.
func (v *vault) forget(ctx context.Context, u refresher, principal, service, access string) (revoked bool, err error) {
	err = v.change(ctx, v.key(principal, service), func(k *kept) *kept {
		if k != nil && access != "" && k.Access != access {
			return k
		}
		if k != nil {
			revoked = v.end(ctx, u, k.token())
		}
		return nil
	})
	return revoked, err
}

// end ends tokens at the provider and reports whether it could.
func (v *vault) end(ctx context.Context, u refresher, t *oauth2.Token) bool {
	ctx, stop := context.WithTimeout(ctx, revokeTimeout)
	defer stop()
	ended, err := u.revoke(ctx, t)
	return ended && err == nil
}

// wanted says which tokens a call needs.
type wanted struct {
	not    string // an access token that was refused; "" for none
	newer  bool   // than those that are there when the call begins
	before string // Gen of these
}

// has reports whether the tokens of an entry are wanted.
func (w *wanted) has(k *kept) bool {
	if w.newer && w.before == "" {
		w.before = k.Gen
	}
	return k.usable() && (w.not == "" || k.Access != w.not) && k.Gen != w.before
}

// fresh returns tokens that are valid for a while, refreshed under the lease if need
// be. With force they were got after the call began. Only the call that got them has
// what else the provider answered, such as an ID token.
func (v *vault) fresh(ctx context.Context, u refresher, principal, service string, force bool) (*oauth2.Token, error) {
	return v.get(ctx, u, v.key(principal, service), &wanted{newer: force})
}

// replace returns tokens other than those whose access token the service refused.
func (v *vault) replace(ctx context.Context, u refresher, principal, service, refused string) (*oauth2.Token, error) {
	return v.get(ctx, u, v.key(principal, service), &wanted{not: refused})
}

// get returns tokens that are wanted, and refreshes them if no other call does.
func (v *vault) get(ctx context.Context, u refresher, key scale.Key, want *wanted) (*oauth2.Token, error) {
	var wake <-chan struct{} // nil before the call waits
	lease, since := "", time.Time{}
	for {
		k, rev, err := v.read(ctx, key)
		if err != nil {
			return nil, err
		}
		early := k.valid() && !want.newer && want.not == "" // no harm if it is not refreshed now
		switch {
		case k.Refused:
			return nil, errRefused
		case want.has(k):
			v.touch(ctx, key, k, rev)
			return k.token(), nil
		case k.Refresh == "":
			return nil, errNone
		case k.Lease == "" || k.Lease == lease && time.Since(since) >= leaseTimeout:
			k.Lease = rand.Text()
			if rev, err = v.write(ctx, key, rev, k); errors.Is(err, scale.ErrChanged) {
				continue
			} else if errors.Is(err, errBusy) && early {
				return k.token(), nil
			} else if err != nil {
				return nil, err
			}
			t, err := v.renew(ctx, u, key, k, rev)
			switch {
			case errors.Is(err, errLost):
				continue
			case errors.Is(err, errBusy) && early && k.valid():
				return k.token(), nil
			}
			return t, err
		case k.Lease != lease:
			lease, since = k.Lease, time.Now()
		}
		if wake == nil {
			var leave func()
			wake, leave = v.watch.join(ctx, subject(key))
			defer leave()
			continue // it may have changed before
		}
		if err := v.pause(ctx, wake, min(vaultPoll, leaseTimeout-time.Since(since))); err != nil {
			return nil, err
		}
	}
}

// pause waits until an entry may have changed.
func (*vault) pause(ctx context.Context, wake <-chan struct{}, most time.Duration) error {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-wake:
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// touch writes an entry again once in vaultTouch: that extends its life, and seals it
// with the first key. A failure has no effect.
func (v *vault) touch(ctx context.Context, key scale.Key, k *kept, rev scale.Rev) {
	if time.Now().UnixMilli()-k.Written >= vaultTouch.Milliseconds() {
		_, _ = v.write(ctx, key, rev, k) // the next call tries again
	}
}

// errLost means that another call refreshes the tokens after all.
var errLost = errors.New("another call has the lease")

// renew refreshes the tokens of an entry that this call has leased, and writes what
// came of it. It does not end with ctx, because the provider may have replaced the
// refresh token by then.
func (v *vault) renew(ctx context.Context, u refresher, key scale.Key, held *kept, rev scale.Rev) (*oauth2.Token, error) {
	ctx = context.WithoutCancel(ctx)
	asking, stop := context.WithTimeout(ctx, refreshTimeout)
	t, failed := u.refresh(asking, held.token())
	stop()
	next := *held
	switch {
	case failed == nil:
		next = *keep(t)
	case !errors.Is(failed, errBusy):
		next.Refused, failed = true, fmt.Errorf("%w: %w", errRefused, failed)
	}
	next.Lease = ""
	ctx, stop = context.WithTimeout(ctx, saveTimeout)
	defer stop()
	for {
		_, err := v.write(ctx, key, rev, &next)
		switch {
		case err == nil:
			return t, failed
		case errors.Is(err, errBusy) && v.pause(ctx, nil, saveRetry) == nil:
			continue // the same write
		case errors.Is(err, scale.ErrChanged):
		case failed == nil:
			return t, nil // good for this call, even though the store does not have it
		default:
			return nil, errors.Join(failed, err)
		}
		now, newest, err := v.read(ctx, key)
		switch {
		case errors.Is(err, errNone):
			if failed == nil {
				v.end(context.WithoutCancel(ctx), u, t)
			}
			return nil, errNone
		case err != nil:
			return nil, errors.Join(failed, err)
		case now.Gen == next.Gen:
			return t, failed // written by an attempt whose answer was lost
		case now.Gen != held.Gen || failed != nil:
			return nil, errLost // there are newer tokens, or another call has taken over
		}
		rev = newest // the call that took over has the refresh token from before
	}
}

// await waits until there are tokens that can be used, and returns them.
func (v *vault) await(ctx context.Context, u refresher, principal, service string) (*oauth2.Token, error) {
	key := v.key(principal, service)
	wake, leave := v.watch.join(ctx, subject(key))
	defer leave()
	for {
		t, err := v.get(ctx, u, key, &wanted{})
		if !errors.Is(err, errNone) && !errors.Is(err, errRefused) && !errors.Is(err, errBusy) {
			return t, err
		}
		if err := v.pause(ctx, wake, vaultPoll); err != nil {
			return nil, err
		}
	}
}
