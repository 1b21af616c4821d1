package browsertest

import (
	"sync"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// maxRequests is how many requests the page makes from its start to the first result.
const maxRequests = 12

// TestRequests: the page asks for little, and its files are few enough to need no build.
func TestRequests(t *testing.T) {
	t.Parallel()
	i := inspect(t, fixture(t, "good"))
	b := newTab(t)
	var mu sync.Mutex
	var asked []string
	err := chromedp.Listen(b.ctx, func(event any) {
		if e, ok := event.(*network.EventRequestWillBeSent); ok {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, e.Request.Method+" "+e.Request.URL)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(b.ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	b.open(i.link)
	b.choose("good")
	b.ctrl(enter)
	b.reads("done")
	mu.Lock()
	defer mu.Unlock()
	if len(asked) > maxRequests || len(asked) < 8 {
		t.Errorf("%d requests: %q", len(asked), asked)
	}
}
