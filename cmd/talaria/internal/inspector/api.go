package inspector

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/talaria-go/mcp/internal/visible"
)

// API serves what the page asks. None of it starts a program, opens a file, or
// leads anywhere but to the servers that the user has named. The second of several
// is below /api/1/, and is connected to when the page asks for it.
func API(list ...*Inspector) http.Handler {
	var each []http.Handler
	for _, one := range list {
		each = append(each, api(pages{one, list}))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := 0
		number, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/api/"), "/")
		if at, err := strconv.Atoi(number); err == nil {
			if at < 0 || at >= len(list) {
				refuse(w, http.StatusNotFound, errors.New("there is no such server"))
				return
			}
			n = at
			there := *r.URL
			there.Path, there.RawPath = "/api/"+rest, ""
			r = r.WithContext(r.Context()) // a copy
			r.URL = &there
		}
		if len(list) > 1 {
			list[n].open()
		}
		each[n].ServeHTTP(w, r)
	})
}

// server is one of several, as the page lists it.
type server struct {
	Name      string `json:"name"`
	Label     string `json:"label"`
	State     string `json:"state"`
	Questions int    `json:"questions"` // that wait
}

func servers(list []*Inspector) (all []server) {
	for _, i := range list {
		i.mu.Lock()
		one := server{Name: i.options.Target, Label: visible.Line(i.options.Target, visible.Name), State: i.state}
		if i.attempt == 0 && i.options.Transport != nil {
			one.State = "not opened"
		}
		i.mu.Unlock()
		one.Questions = len(i.asked.waiting())
		all = append(all, one)
	}
	return all
}

func api(i pages) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/state", func(w http.ResponseWriter, _ *http.Request) { reply(w, i.members()) })
	mux.HandleFunc("GET /api/events", i.events)
	mux.HandleFunc("POST /api/connect", i.reconnect)
	mux.HandleFunc("GET /api/form", i.showForm)
	mux.HandleFunc("POST /api/check", i.check)
	mux.HandleFunc("POST /api/call", i.startCall)
	mux.HandleFunc("POST /api/request", i.request)
	mux.HandleFunc("GET /api/calls/{id}", i.showCall)
	mux.HandleFunc("DELETE /api/calls/{id}", i.cancelCall)
	mux.HandleFunc("GET /api/calls/{id}/diff", past{i.Inspector}.showDiff)
	mux.HandleFunc("POST /api/calls/{id}/against", i.against)
	mux.HandleFunc("POST /api/replay", i.replay)
	mux.HandleFunc("GET /api/save", exporter{i.Inspector}.save)
	mux.HandleFunc("GET /api/export", exporter{i.Inspector}.export)
	mux.HandleFunc("POST /api/history", past{i.Inspector}.keepDraft)
	mux.HandleFunc("GET /api/verdict", i.showVerdict)
	mux.HandleFunc("GET /api/view", i.showView)
	mux.HandleFunc("POST /api/view/request", i.viewRequest)
	mux.HandleFunc("POST /api/view/messages", i.viewMessages)
	mux.HandleFunc("GET /api/traffic", i.traffic)
	mux.HandleFunc("GET /api/traffic/{seq}", i.message)
	mux.HandleFunc("POST /api/questions", i.answerQuestion)
	return mux
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // who went away reads no answer
}

func refuse(w http.ResponseWriter, status int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	// The page may be gone.
	_ = json.NewEncoder(w).Encode(map[string]string{"error": visible.Text(err.Error(), visible.Sentence)})
}

// body reads the JSON of a request; false means that it was refused.
func body(w http.ResponseWriter, r *http.Request, into any) bool {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		refuse(w, http.StatusBadRequest, fmt.Errorf("the request does not decode: %w", err))
		return false
	}
	return true
}
