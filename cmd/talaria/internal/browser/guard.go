package browser

import (
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
)

// Guard is one check of a request, with a name. It sees every request before
// anything is done with it.
type Guard struct {
	Name  string
	check func(l *Listener, r *http.Request) *refusal
}

// refusal is what a request is answered with that does not pass.
type refusal struct {
	status int
	why    string
}

// Guards returns all guards. Each holds off attacks that no other one does; the
// tests name them.
func Guards() []Guard {
	return []Guard{
		{"peer", checkPeer},
		{"host", checkHost},
		{"origin", checkOrigin},
		{"site", checkSite},
		{"key", checkKey},
	}
}

// checkPeer refuses other users of this machine, where the system tells whose a
// connection is: they could have read a link in a list of processes.
func checkPeer(_ *Listener, r *http.Request) *refusal {
	from, _ := r.Context().Value(peerKey{}).(peer)
	if from.known && from.uid != 0 && from.uid != os.Getuid() {
		return &refusal{http.StatusForbidden, "this page belongs to another user of this machine"}
	}
	return nil
}

// checkHost rejects names that an attacker may have pointed here.
func checkHost(l *Listener, r *http.Request) *refusal {
	if l.hosts[strings.ToLower(r.Host)] {
		return nil
	}
	return &refusal{http.StatusForbidden, fmt.Sprintf("the page is not at %q; open the link that the terminal shows, or start talaria with --origin", r.Host)}
}

// checkOrigin refuses pages of other origins, also those of other ports here.
func checkOrigin(l *Listener, r *http.Request) *refusal {
	list := r.Header.Values("Origin")
	if len(list) == 0 || len(list) == 1 && l.origins[list[0]] {
		return nil
	}
	return &refusal{http.StatusForbidden, fmt.Sprintf("pages of %q may not ask; --origin lets one in", list[0])}
}

// checkSite refuses what another page has made the browser load: such a GET has
// no Origin.
func checkSite(_ *Listener, r *http.Request) *refusal {
	if !isAPI(r) || r.Header.Get("Sec-Fetch-Site") == "same-origin" {
		return nil
	}
	return &refusal{http.StatusForbidden, "only the page itself may ask (Sec-Fetch-Site is not same-origin)"}
}

// checkKey refuses who has no key.
func checkKey(l *Listener, r *http.Request) *refusal {
	if !isAPI(r) || r.URL.Path == keyPath {
		return nil
	}
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if key, _ := l.keys.current(); ok && key != "" && subtle.ConstantTimeCompare([]byte(token), []byte(key)) == 1 {
		return nil
	}
	return &refusal{http.StatusUnauthorized, "the key is not, or no longer, good; open the link that the terminal shows"}
}

// refuse answers with an error, as JSON.
func refuse(w http.ResponseWriter, status int, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": why}) // who went away reads no error
}
