package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rs/zerolog"
)

// Keys in addresses are in no name, error or log, and servers that differ by
// them alone are not taken for one another.
func TestAddressSecrets(t *testing.T) {
	t.Parallel()
	const secret = "hunter2"
	for name, serve := range map[string]http.HandlerFunc{
		"refused": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUnauthorized) },
		"cut":     func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://elsewhere.example"+r.URL.String(), http.StatusTemporaryRedirect)
		},
		"see other": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/x?"+r.URL.RawQuery, http.StatusSeeOther)
		},
		"events": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "event: endpoint\ndata: http://elsewhere.example/?%s\n\n", r.URL.RawQuery)
		},
	} {
		web := httptest.NewServer(serve)
		t.Cleanup(web.Close)
		address := "http://user:" + secret + "@" + web.Listener.Addr().String() + "/mcp?api_key=" + secret + "&" + secret
		for kind, open := range map[string]func(string, *HTTPOptions) Transport{"http": HTTP, "sse": SSE, "ws": WebSocket} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				var log logText
				logger := zerolog.New(&log)
				tr := open(address, nil)
				c, err := Connect(context.Background(), tr, &Options{Logger: &logger, NoReconnect: true})
				if err == nil {
					c.Close()
					t.Fatal("it connects")
				}
				for what, text := range map[string]string{"name": tr.String(), "error": err.Error(), "log": log.String()} {
					if strings.Contains(text, secret) {
						t.Errorf("the %s has the secret: %s", what, text)
					}
				}
				if tr.String() == open(strings.ReplaceAll(address, secret, "other"), nil).String() {
					t.Errorf("another key has the same name %s", tr)
				}
				if tr.String() != open(address, nil).String() {
					t.Errorf("the same address has two names, one of which is %s", tr)
				}
			})
		}
	}
}

// Neither questions nor ids of visits come in any number or size.
func TestQuestionsOfOneRound(t *testing.T) {
	asked := 0
	opts := modernOptions()
	opts.Roots = nil
	opts.OnRequest = func(context.Context, string, json.RawMessage) (any, error) {
		asked++
		return map[string]any{}, nil
	}
	for _, n := range []int{maxAsked, maxAsked + 1} {
		asked = 0
		var questions []string
		for i := range n {
			questions = append(questions, fmt.Sprintf(`"q%d":{"method":"sampling/createMessage","params":{}}`, i))
		}
		c := connect(t, scripted(t, func(s *script) {
			s.modernHello()
			s.result(s.until("tools/call"), `{"resultType":"input_required","inputRequests":{`+strings.Join(questions, ",")+`}}`)
			s.result(s.until("tools/call"), `{"resultType":"complete","content":[]}`)
			s.drain()
		}), opts)
		_, err := c.Call(t.Context(), "x", nil)
		if n == maxAsked && (err != nil || asked != n) {
			t.Errorf("%d questions: %d asked, %v", n, asked, err)
		}
		if n > maxAsked && (err == nil || asked != 0) {
			t.Errorf("%d questions: %d asked, %v", n, asked, err)
		}
	}
}

func TestVisitIDs(t *testing.T) {
	var e elicited
	for range 2 * maxOver {
		e.complete(strings.Repeat("x", maxOverID+1))
		e.complete("short")
	}
	if len(e.over) != maxOver {
		t.Errorf("%d ids are kept", len(e.over))
	}
	for _, id := range e.over {
		if len(id) > maxOverID {
			t.Fatalf("an id of %d bytes is kept", len(id))
		}
	}
}
