package broker

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
)

// A provider gets 64 requests at a time. One more is not sent, and a place that is free again is used.
func TestRequestsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUpstream(&Provider{AuthURL: "https://id.example.com/authorize", TokenURL: "https://id.example.com/token"}, nil)
		answer := make(chan struct{})
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				if err := u.ask(t.Context(), func(context.Context) error { <-answer; return nil }); err != nil {
					t.Errorf("a request within the limit: %v", err)
				}
			})
		}
		synctest.Wait()
		sent := false
		send := func(context.Context) error { sent = true; return nil }
		if err := u.ask(t.Context(), send); !errors.Is(err, errBusy) || sent {
			t.Errorf("a request beyond the limit: sent %v, %v", sent, err)
		}
		close(answer)
		wg.Wait()
		if err := u.ask(t.Context(), send); err != nil || !sent {
			t.Errorf("a request after the others: sent %v, %v", sent, err)
		}
	})
}

// Google gives refresh tokens only to who asks for them so.
func TestGoogleIsAskedForRefreshTokens(t *testing.T) {
	if p := Google("id", "secret"); p.Params.Get("access_type") != "offline" || p.Params.Get("prompt") != "consent" {
		t.Errorf("%v", p.Params)
	}
}

// Access tokens fit into headers of clients and proxies.
func TestLengthOfAccessTokens(t *testing.T) {
	if token := newWorld(t, 1, nil).enter().access; len(token) == 0 || len(token) > 250 {
		t.Errorf("%d bytes", len(token))
	}
}
