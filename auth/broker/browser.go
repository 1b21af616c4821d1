package broker

import (
	"crypto/rand"
	"net/http"
	"time"

	"github.com/talaria-go/mcp/auth/internal/issuing"
)

// cookieBrowser is the cookie by which pages recognize a browser, so that a form of one
// browser is of no use in another.
const cookieBrowser = "broker-browser"

// browsers distinguishes browsers by cookies. The zero value, with secure set as it
// has to be, is ready.
type browsers struct {
	secure bool // the issuer is https
}

// name returns the name of a cookie: with https, one that only this host can set.
func (b browsers) name(name string) string {
	if b.secure {
		return "__Host-" + name
	}
	return name
}

// set sets a cookie for a time; 0 is as long as the browser runs, and a negative
// time deletes it.
func (b browsers) set(w http.ResponseWriter, name, value string, life time.Duration) {
	age := int(life.Seconds())
	if life < 0 {
		age = -1
	}
	http.SetCookie(w, &http.Cookie{
		Name: b.name(name), Value: value, Path: "/", HttpOnly: true, Secure: b.secure, SameSite: http.SameSiteLaxMode, MaxAge: age,
	})
}

// of returns what names the browser of a request, and gives it such a name if it
// has none: a hash of its cookie.
func (b browsers) of(w http.ResponseWriter, r *http.Request) string {
	if name := b.at(r); name != "" {
		return name
	}
	secret := rand.Text()
	b.set(w, cookieBrowser, secret, 0)
	return hash(secret)
}

// at returns what names the browser of a request, "" if it has no name.
func (b browsers) at(r *http.Request) string {
	c, err := r.Cookie(b.name(cookieBrowser))
	if err != nil || len(c.Value) != len(rand.Text()) {
		return ""
	}
	return hash(c.Value)
}

// isAt reports whether the browser of a request has that name.
func (b browsers) isAt(r *http.Request, name string) bool { return name != "" && b.at(r) == name }

// hash returns a name for a secret that does not reveal it.
func hash(secret string) string { return issuing.Hash(secret) }
