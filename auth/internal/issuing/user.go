package issuing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/scale"
)

// User is the entry of a user in the store: the principal, and the logins of the
// programs that the user has let in.
type User struct {
	Issuer  string
	Subject string
	Claims  map[string]any
	Asked   int64             // Unix seconds: when the provider vouched for the user last
	Logins  map[string]*Login // by their ids
}

// Login is what a user has allowed a client. A code is number 0 of it, and each
// refresh token the next.
type Login struct {
	Client   string
	Scopes   []string
	Resource string
	Key      string // that it is bound to
	Refresh  bool   // it has refresh tokens
	Number   int64
	Redeemed string // random: the request that redeemed the code, until the first refresh
	At       int64  // Unix milliseconds: when it got the number
	End      int64  // Unix seconds
}

// Numbers of parts in the text of a user and of each login.
const (
	userParts  = 4
	loginParts = 10
)

// text returns an entry as text, which parseUser reads. Only the claims are JSON: each
// token is read with its entry once a minute, and JSON would take most of that.
func (u *User) text() ([]byte, error) {
	parts := append(make([]string, 0, userParts+loginParts*len(u.Logins)), u.Issuer, u.Subject, strconv.FormatInt(u.Asked, 36))
	for id, l := range u.Logins {
		parts = append(parts, id, l.Client, strings.Join(l.Scopes, " "), l.Resource, l.Key, strconv.FormatBool(l.Refresh), l.Redeemed,
			strconv.FormatInt(l.Number, 36), strconv.FormatInt(l.At, 36), strconv.FormatInt(l.End, 36))
	}
	claims, err := json.Marshal(u.Claims)
	return seal.Binding(append(parts, string(claims))...), err
}

// parseUser returns the entry that text was made of, or nil. All strings in it are parts
// of one.
func parseUser(text []byte) *User {
	p, ok := unpack(text)
	if !ok || len(p)%loginParts != userParts {
		return nil
	}
	claims := text[len(text)-len(p[len(p)-1]):]
	u := &User{Issuer: p[0], Subject: p[1], Asked: number(p[2], &ok), Logins: make(map[string]*Login, len(p)/loginParts)}
	for l := range slices.Chunk(p[userParts-1:len(p)-1], loginParts) {
		u.Logins[l[0]] = &Login{
			Client: l[1], Scopes: strings.Fields(l[2]), Resource: l[3], Key: l[4], Refresh: l[5] == "true", Redeemed: l[6],
			Number: number(l[7], &ok), At: number(l[8], &ok), End: number(l[9], &ok),
		}
	}
	if json.Unmarshal(claims, &u.Claims) != nil || !ok {
		return nil
	}
	return u
}

// number reads a number of base 36, and clears ok if it cannot.
func number(text string, ok *bool) int64 {
	n, err := strconv.ParseInt(text, 36, 64)
	*ok = *ok && err == nil
	return n
}

// maxLogins bounds the logins of a user: the one unused longest goes.
const maxLogins = 32

// The errors of entries. Any other is temporary.
var (
	ErrGrant = errors.New("the grant is over")     // there is no such user or login
	ErrUsed  = errors.New("the login is used")     // one of that id is there already
	errGone  = errors.New("the store is too slow") // its time is over
)

// Users are the entries of users. Users is safe for concurrent use.
type Users struct{ k *Keeper }

// Get returns the entry of a user, or ErrGrant.
func (us *Users) Get(ctx context.Context, user string) (*User, error) {
	u, _, err := us.get(ctx, us.k.Key("login", user))
	if err == nil && u == nil {
		err = ErrGrant
	}
	return u, err
}

// get returns the entry at a key, nil if there is none that opens.
func (us *Users) get(ctx context.Context, key scale.Key) (*User, scale.Rev, error) {
	found, err := us.k.store.Get(ctx, scale.GetOp{Key: key})
	if err == nil {
		err = found[0].Err
	}
	if err != nil || found[0].Rev == 0 {
		return nil, 0, err
	}
	return us.userOf(key, found[0]), found[0].Rev, nil
}

// userOf opens an entry. One that does not open was sealed with a key that is gone:
// its logins have ended.
func (us *Users) userOf(key scale.Key, e scale.Entry) *User {
	text, _, err := us.k.seals.Open(e.Value, us.bindUser(key))
	if err != nil {
		return nil
	}
	return parseUser(text)
}

func (us *Users) bindUser(key scale.Key) []byte { return seal.Binding(us.k.issuer, "user", key.Name) }

// Change changes the entry of a user, by compare-and-set. fn gets the entry, an
// empty one if there is none, and says whether it is to be written; its error is
// returned unless the write fails. It may be called several times.
func (us *Users) Change(ctx context.Context, user string, fn func(u *User) (write bool, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	key := us.k.Key("login", user)
	for ctx.Err() == nil {
		u, rev, err := us.get(ctx, key)
		if err != nil {
			return err
		}
		if u == nil {
			u = &User{Logins: map[string]*Login{}}
		}
		write, result := fn(u)
		if !write {
			return result
		}
		done, err := us.put(ctx, key, rev, u)
		if err != nil {
			return err
		}
		if done {
			return result
		}
	}
	return errGone
}

// put writes an entry, or deletes one without logins. It reports whether it could:
// another change may have been first. A write without an answer is made once more,
// since it may have been made.
func (us *Users) put(ctx context.Context, key scale.Key, rev scale.Rev, u *User) (bool, error) {
	w := scale.Write{Key: key, Prev: rev}
	if ttl := u.tidy(time.Now()); ttl > 0 {
		text, err := u.text()
		if err != nil {
			return false, err
		}
		w.TTL, w.Value = ttl, us.k.seals.Seal(nil, text, us.bindUser(key))
	} else if rev == 0 {
		return true, nil
	}
	var lost error
	for range 2 {
		done, err := us.k.store.Put(ctx, w)
		if err == nil {
			err = done[0].Err
		}
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, scale.ErrUnavailable) && lost == nil:
			lost = err
			continue
		case errors.Is(err, scale.ErrChanged):
			// The write before may have been made: then this is what it wrote.
			return lost != nil && (w.Value != nil && string(done[0].Value) == string(w.Value) || w.Value == nil && done[0].Rev == 0), nil
		}
		return false, err
	}
	return false, lost
}

// tidy removes logins that have ended or are too many, and returns for how long
// the entry is kept; 0 if nothing is left.
func (u *User) tidy(now time.Time) (ttl time.Duration) {
	maps.DeleteFunc(u.Logins, func(_ string, l *Login) bool { return l.End <= now.Unix() })
	for len(u.Logins) > maxLogins {
		oldest := ""
		for id, l := range u.Logins {
			if first := u.Logins[oldest]; first == nil || l.At < first.At || l.At == first.At && id < oldest {
				oldest = id
			}
		}
		delete(u.Logins, oldest)
	}
	for _, l := range u.Logins {
		ttl = max(ttl, time.Unix(l.End, 0).Sub(now)+time.Minute)
	}
	return ttl
}

// add adds the login of a request, whose code ends at end. set completes the entry.
// ErrUsed means that the login was added before.
func (us *Users) add(ctx context.Context, user string, req *Request, end time.Time, set func(u *User) error) error {
	return us.Change(ctx, user, func(u *User) (bool, error) {
		if u.Logins[req.ID] != nil {
			return false, ErrUsed
		}
		if err := set(u); err != nil {
			return false, err
		}
		u.Logins[req.ID] = &Login{
			Client: req.Client, Scopes: req.Scopes, Resource: req.Resource, Refresh: req.refresh, At: time.Now().UnixMilli(), End: end.Unix(),
		}
		return true, nil
	})
}

// Mint adds a login that no client asked for, for tests.
func (us *Users) Mint(ctx context.Context, g *Grant) error {
	return us.Change(ctx, g.User, func(u *User) (bool, error) {
		u.Issuer, u.Subject = g.Issuer, g.Subject
		u.Logins[g.Login] = &Login{Client: g.Client, Scopes: g.Scopes, Resource: g.Resource, Number: 1, At: time.Now().UnixMilli(), End: g.End.Unix() + 60}
		return true, nil
	})
}

// Has returns the entry of a user who has that login, or ErrGrant.
func (us *Users) Has(ctx context.Context, user, login string) (*User, *Login, error) {
	u, err := us.Get(ctx, user)
	if err != nil {
		return nil, nil, err
	}
	l := u.Logins[login]
	if l == nil || l.End <= time.Now().Unix() {
		return nil, nil, ErrGrant
	}
	return u, l, nil
}

// End ends a login of a user, or all with login "".
func (us *Users) End(ctx context.Context, user, login string) error {
	err := us.Change(ctx, user, func(u *User) (bool, error) {
		if login == "" {
			clear(u.Logins)
			return true, nil
		}
		if u.Logins[login] == nil {
			return false, nil
		}
		delete(u.Logins, login)
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("ending a login: %w", err)
	}
	return nil
}
