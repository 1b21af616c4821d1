package browsertest

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

var flooded = flag.Duration("flood", 0, "for how long TestFlood lets messages arrive")

// TestFlood: 500 messages a second arrive while a search is typed and the store is full.
// The command and the page take a quarter of a core at most, and no more memory than at
// the beginning.
func TestFlood(t *testing.T) {
	if *flooded == 0 {
		t.Skip("-flood is 0; CONTRIBUTING.md has the command")
	}
	i := inspect(t, fixture(t, "floods"))
	b := newTab(t)
	b.open(i.link)
	b.call("good")
	b.until(`document.querySelector('[data-state=done]')`)
	b.reads("steady")
	b.tabTo("Traffic")
	b.press(enter)
	b.tabTo("find in messages")
	b.write("AN IMPORT")
	if _, err := chromedp.Call(b.ctx, performance.Enable, performance.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	const rounds = 12
	var memory []float64
	began, ours, pages := time.Now(), busy(t, i.pid), b.busy()
	for n := range rounds {
		b.press(kb.Backspace + "T")
		for until := began.Add(*flooded * time.Duration(n+1) / rounds); time.Now().Before(until); {
			time.Sleep(time.Second) // this is what is measured, and nothing waits for it
		}
		memory = append(memory, rss(t, i.pid))
		b.until(`document.querySelectorAll('.rows tr').length > 0`)
	}
	took := time.Since(began).Seconds()
	for name, share := range map[string]float64{"command": (busy(t, i.pid) - ours) / took, "page": (b.busy() - pages) / took} {
		t.Logf("the %s: %.1f %% of a core", name, 100*share)
		if share > 0.25 {
			t.Errorf("the %s takes %.1f %% of a core", name, 100*share)
		}
	}
	mean := func(list []float64) (sum float64) {
		for _, mb := range list {
			sum += mb / float64(len(list))
		}
		return sum
	}
	from, to := mean(memory[:rounds/3]), mean(memory[rounds-rounds/3:]) // the collector takes it up and down
	t.Logf("the command, in MB: %.1f", memory)
	if to > 1.1*from || to < 0.9*from {
		t.Errorf("memory goes from %.1f to %.1f MB", from, to)
	}
}

// busy is for how many seconds the main thread of the page has worked.
func (b *tab) busy() float64 {
	b.t.Helper()
	got, err := chromedp.Call(b.ctx, performance.GetMetrics, cdp.Empty{})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, m := range got.Metrics {
		if m.Name == "TaskDuration" {
			return m.Value
		}
	}
	b.t.Fatal("Chromium does not tell")
	return 0
}

// busy is for how many seconds of a core a process has worked.
func busy(t *testing.T, pid int) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	user, _ := strconv.Atoi(fields[11]) // as the kernel writes them
	system, _ := strconv.Atoi(fields[12])
	return float64(user+system) / 100
}

// rss is how many MB of memory a process has.
func rss(t *testing.T, pid int) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		t.Fatal(err)
	}
	pages, _ := strconv.Atoi(strings.Fields(string(text))[1]) // as the kernel writes it
	return float64(pages*os.Getpagesize()) / 1e6
}
