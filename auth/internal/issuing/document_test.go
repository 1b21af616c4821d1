package issuing

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// web answers requests for documents.
type web func(r *http.Request) *http.Response

func (w web) RoundTrip(r *http.Request) (*http.Response, error) { return w(r), r.Context().Err() }

// served returns the answer with a document, and counts it.
func served(count *int, control string) web {
	return func(r *http.Request) *http.Response {
		*count++
		text := fmt.Sprintf(`{"client_id":%q,"client_name":"App","redirect_uris":["http://127.0.0.1/cb"]}`, r.URL)
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Cache-Control": {control}}, Body: io.NopCloser(strings.NewReader(text)), Request: r}
	}
}

// A document is kept for as long as its server says, between a minute and a day.
func TestDocumentsAreKept(t *testing.T) {
	for control, want := range map[string]time.Duration{
		"": time.Minute, "max-age=5": time.Minute, "max-age=300": 5 * time.Minute, "public, MAX-AGE=300": 5 * time.Minute, "max-age=99999999": 24 * time.Hour,
		"max-age=99999999999999999999": time.Minute, "max-age=-1": time.Minute, "max-age=x": time.Minute, "max-age=300, no-store": time.Minute, "no-cache": time.Minute,
	} {
		synctest.Test(t, func(t *testing.T) {
			var d documents
			fetched := 0
			d.init(&http.Client{Transport: served(&fetched, control)})
			const id = "https://app.example.com/c.json"
			for _, step := range []struct {
				wait time.Duration
				want int
			}{{0, 1}, {want - time.Second, 1}, {time.Second, 2}} {
				time.Sleep(step.wait)
				if _, err := d.client(t.Context(), id); err != nil || fetched != step.want {
					t.Errorf("%q after %v: fetched %d times, want %d; %v", control, step.wait, fetched, step.want, err)
				}
			}
		})
	}
}

// Of the documents of strangers 1,000 are kept, and 16 are fetched at a time, each for
// at most 5 seconds.
func TestDocumentsOfStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d documents
		fetched := 0
		answer := served(&fetched, "max-age=86400")
		hang := func(r *http.Request) *http.Response { <-r.Context().Done(); return nil }
		d.init(&http.Client{Transport: web(func(r *http.Request) *http.Response {
			if strings.HasPrefix(r.URL.Path, "/slow") {
				return hang(r)
			}
			return answer(r)
		})})
		for i := range 1_100 {
			if _, err := d.client(t.Context(), fmt.Sprintf("https://app.example.com/%d", i)); err != nil {
				t.Fatal(err)
			}
		}
		if n := d.cache.Len(); n != 1_000 {
			t.Errorf("%d documents are kept", n)
		}
		begun := time.Now()
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				if _, err := d.client(t.Context(), fmt.Sprintf("https://app.example.com/slow/%d", i)); !errors.Is(err, errFetch) {
					t.Errorf("a document that does not come: %v", err)
				}
			})
		}
		synctest.Wait()
		before := fetched
		if _, err := d.client(t.Context(), "https://other.example.com/c"); !errors.Is(err, errFetch) || fetched != before {
			t.Errorf("beyond 16 at a time: %v, %d fetched", err, fetched-before)
		}
		if _, err := d.client(t.Context(), "https://app.example.com/1099"); err != nil || fetched != before {
			t.Errorf("one that is kept: %v, %d fetched", err, fetched-before)
		}
		wg.Wait()
		if took := time.Since(begun); took != 5*time.Second {
			t.Errorf("documents were waited for %v", took)
		}
		if _, err := d.client(t.Context(), "https://other.example.com/c"); err != nil {
			t.Errorf("after the others: %v", err)
		}
	})
}
