//go:build unix

package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
)

// docs/login.md: a token of one's own does not follow redirects.
func TestTokenStays(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(other.Close)
	for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, status) }))
		for _, args := range [][]string{{"--token", "mine"}, {"--header", "Authorization=Bearer mine"}, nil} {
			u := newUser(t)
			if args == nil {
				u = newUser(t, tokenVariable+"=mine")
			}
			if got := u.talaria(append([]string{"ping", web.URL}, args...)...); got.code == exitOK {
				t.Errorf("%d, %v: %+v", status, args, got)
			}
		}
		web.Close()
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the other server got %d requests", n)
	}
}

// docs/command.md: what goes on until Ctrl-C ends with 0.
func TestUntilInterrupted(t *testing.T) {
	t.Parallel()
	target := httpExample(t)
	for says, args := range map[string][]string{
		"watching;":             {"watch", target},
		"serving http://":       {"serve-proxy", "--http", "127.0.0.1:0", target},
		"give your client":      {"tap", "--http", "127.0.0.1:0", "-o", t.TempDir() + "/calls.jsonl", target},
		"the inspector is at\n": {"inspect", "-b", "--no-open", target},
	} {
		var stderr syncBuffer
		cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
		cmd.Env = append(os.Environ(), "TALARIA_COMMAND=1")
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		stderr.wait(t, says)
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %v: %s", args, err, stderr.String())
		}
	}
}
