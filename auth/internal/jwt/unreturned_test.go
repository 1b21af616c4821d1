package jwt

import (
	"errors"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A transport that does not return fails the fetch for all who wait for it,
// and the next one is another try.
func TestKeysOfARoundTripperThatDoesNotReturn(t *testing.T) {
	for name, way := range map[string]func(){"panic": func() { panic("no wire") }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tries := 0
				s, err := NewKeys("https://issuer.example", KeyOptions{URL: "https://issuer.example/keys", MinInterval: time.Second,
					Client: &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
						time.Sleep(time.Second) // of the bubble
						tries++
						way()
						return nil, errors.New("not reached")
					})}})
				if err != nil {
					t.Fatal(err)
				}
				for round := range 2 {
					heard := make(chan error)
					for range 3 {
						go func() {
							_, err := s.after(t.Context(), nil)
							heard <- err
						}()
					}
					for range 3 {
						if err := <-heard; err == nil || !strings.Contains(err.Error(), "unreturned_test.go") {
							t.Errorf("the error is %v", err)
						}
					}
					if tries != round+1 {
						t.Errorf("round %d made %d tries", round, tries)
					}
					time.Sleep(time.Minute)
				}
			})
		})
	}
}
