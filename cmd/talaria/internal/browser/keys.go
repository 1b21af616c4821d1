package browser

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/user"
	"strconv"
	"sync"
	"time"
)

// keyPath is where a code is traded for a key.
const keyPath = "/api/key"

// keys are the code of the link and the key that was given for one; mu guards
// all. There is at most one key, and at most one code that is good.
type keys struct {
	mu    sync.Mutex
	code  string
	spent string // the code that key was given for
	key   string
	ended chan struct{} // closed when key is good no longer; nil without one
}

// link returns the code that is good.
func (k *keys) link() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.code == "" {
		k.code = rand.Text()
	}
	return k.code
}

// current returns the key, "" if there is none, and what is closed at its end.
func (k *keys) current() (key string, ended <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.key, k.ended
}

// trade gives a key for a code. The second use may be the user's, whose code
// another program has read and used first: the key ends for both.
func (k *keys) trade(code string) (key string, again bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case same(code, k.code):
		k.spent, k.code, k.key, k.ended = code, "", rand.Text(), make(chan struct{})
		return k.key, false
	case same(code, k.spent):
		close(k.ended)
		k.spent, k.key, k.code, k.ended = "", "", rand.Text(), nil
		return "", true
	}
	return "", false
}

func same(given, want string) bool {
	return want != "" && subtle.ConstantTimeCompare([]byte(given), []byte(want)) == 1
}

// trade answers the page, which has the code from its link.
func (l *Listener) trade(w http.ResponseWriter, r *http.Request) {
	var body struct{ Code string }
	if r.Method != http.MethodPost || json.NewDecoder(io.LimitReader(r.Body, 1<<10)).Decode(&body) != nil {
		refuse(w, http.StatusBadRequest, `POST {"code": "…"}`)
		return
	}
	key, again := l.keys.trade(body.Code)
	if again {
		l.options.Tell(fmt.Sprintf("the link was used a second time at %s, by %s: the page that used it first is locked out. If that was you, use the new link:\n  %s",
			time.Now().Format(time.TimeOnly), who(r), l.Links()[0]))
	}
	if key == "" {
		refuse(w, http.StatusUnauthorized, "this link was used before, or is not whole: open the one that the terminal shows now")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{"key": key}) // who went away has none
}

// who says whose request it is, as far as the system tells.
func who(r *http.Request) string {
	text := r.RemoteAddr
	if from, _ := r.Context().Value(peerKey{}).(peer); from.known {
		uid := strconv.Itoa(from.uid)
		if u, err := user.LookupId(uid); err == nil {
			return u.Username + " (" + text + ")"
		}
		return "user " + uid + " (" + text + ")"
	}
	return text
}
