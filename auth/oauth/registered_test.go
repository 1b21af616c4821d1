package oauth

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// An answer to a registration that cannot be used is an error with the member and
// its value, and forms of numbers that servers really send are read.
func TestRegistrationAnswer(t *testing.T) {
	for body, want := range map[string]struct {
		expires int64  // 0: never
		problem string // in the error; "" for none
	}{
		`{"client_id":"x","client_secret":"s"}`:                                         {},
		`{"client_id":"x","client_secret":"s","client_secret_expires_at":0}`:            {},
		`{"client_id":"x","client_secret":"s","client_secret_expires_at":"0"}`:          {},
		`{"client_id":"x","client_secret":"s","client_secret_expires_at":null}`:         {},
		`{"client_id":"x","client_secret":"s","client_secret_expires_at":""}`:           {},
		`{"client_id":"x","client_secret":"s","client_secret_expires_at":4000000000}`:   {expires: 4000000000},
		`{"client_id":"x","client_secret":"s","client_secret_expires_at":4000000000.0}`: {expires: 4000000000},
		`{"client_id":"x","client_secret":"s","client_secret_expires_at":"4000000000"}`: {expires: 4000000000},
		`{"client_id":"x","client_secret":"s","client_secret_expires_at":1e300}`:        {expires: 1 << 37},
		`{"client_id":"x","client_secret":"s","client_secret_expires_at":"never"}`:      {problem: "client_secret_expires_at"},
		`{"client_id":"x","client_secret":"s","client_secret_expires_at":{}}`:           {problem: "client_secret_expires_at"},
		`{"client_id":"x","client_secret":"s","client_secret_expires_at":true}`:         {problem: "client_secret_expires_at true"},
		`{"client_secret":"s"}`:                            {problem: "has no client_id"},
		`{"client_id":null}`:                               {problem: "has no client_id"},
		`{"client_id":""}`:                                 {problem: `the client_id ""`},
		`{"client_id":5}`:                                  {problem: "its member client_id is 5"},
		`{"client_id":"x","client_secret":7777777}`:        {problem: "its member client_secret is a number"},
		`{"client_id":"x","token_endpoint_auth_method":5}`: {problem: "its member token_endpoint_auth_method is 5"},
		`[]`:     {problem: "right form"},
		`<html>`: {problem: "right form"},
	} {
		w := newWorld(t)
		w.handlers["issuer /register"] = func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(rw, body)
		}
		c := w.client(nil)
		server := &serverMetadata{Issuer: w.issuer.URL, RegistrationEndpoint: w.issuer.URL + "/register"}
		client, err := c.registrar.register(t.Context(), server, c.registrar.codeMetadata("http://127.0.0.1:1/callback"))
		switch {
		case want.problem != "":
			if err == nil || !strings.Contains(err.Error(), want.problem) || strings.Contains(err.Error(), "7777777") {
				t.Errorf("%s: got %v, want %q in it", body, err, want.problem)
			}
		case err != nil:
			t.Errorf("%s: %v", body, err)
		case want.expires == 0 && !client.SecretExpires.IsZero(), want.expires != 0 && !client.SecretExpires.Equal(time.Unix(want.expires, 0)):
			t.Errorf("%s: expires at %v", body, client.SecretExpires)
		}
	}
}
