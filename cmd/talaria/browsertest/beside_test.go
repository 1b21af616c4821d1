package browsertest

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/talaria-go/mcp/internal/test/testdep"
)

var (
	rounds   = flag.Int("rounds", 0, "how often TestBesideOfficial starts each inspector")
	official = flag.String("official", "", "a directory where npm has installed node@22 and @modelcontextprotocol/inspector")
)

// figures are what it takes from the start of an inspector to the first result.
type figures struct {
	took     time.Duration
	keys     int
	requests int
	bytes    int     // of answers, as they came
	memory   float64 // MB of the inspector's processes, without those of the browser and the server
}

// TestBesideOfficial starts this inspector and the official one in turn, and calls
// a tool in each without a mouse. The figures are medians; -v shows them.
func TestBesideOfficial(t *testing.T) {
	if *rounds == 0 {
		t.Skip("-rounds is 0; CONTRIBUTING.md has the command")
	}
	node := filepath.Join(*official, "node_modules/node/bin/node")
	launcher := filepath.Join(*official, "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]figures{}
	for range *rounds {
		all["ours"] = append(all["ours"], measure(t, ours, talaria, "inspect", "-b", "--no-open", fixture(t, "plain")))
		all["official"] = append(all["official"], measure(t, theirs, node, launcher, self, "serve", "plain"))
	}
	for _, name := range []string{"ours", "official"} {
		t.Logf("%-8s  %5.0f ms  %2.0f keys  %2.0f requests  %4.0f kB  %5.1f MB", name,
			median(all[name], func(f figures) float64 { return float64(f.took.Milliseconds()) }),
			median(all[name], func(f figures) float64 { return float64(f.keys) }),
			median(all[name], func(f figures) float64 { return float64(f.requests) }),
			median(all[name], func(f figures) float64 { return float64(f.bytes) / 1000 }),
			median(all[name], func(f figures) float64 { return f.memory }))
	}
}

func median(all []figures, of func(figures) float64) float64 {
	var values []float64
	for _, f := range all {
		values = append(values, of(f))
	}
	slices.Sort(values)
	return values[len(values)/2]
}

// measure starts an inspector and lets drive call a tool in its page.
func measure(t *testing.T, drive func(b *tab, press func(keys string)), program string, args ...string) (f figures) {
	t.Helper()
	testdep.LookPath(t, "chromium")
	dir := t.TempDir()
	cmd := exec.Command(program, args...)
	printed := &address{found: make(chan string, 1)}
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, printed, printed
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_STATE_HOME="+dir, "XDG_CONFIG_HOME="+dir, "MCP_AUTO_OPEN_ENABLED=false", "MCP_INSPECTOR_SECRET_STORE=memory",
		"PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it has children
	b := newTab(t)
	var mu sync.Mutex
	err := chromedp.Listen(b.ctx, func(event any) {
		mu.Lock()
		defer mu.Unlock()
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			f.requests++
		case *network.EventDataReceived:
			f.bytes += int(e.DataLength)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(b.ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	}()
	select {
	case link := <-printed.found:
		b.open(link)
	case <-time.After(timeLimit):
		t.Fatalf("%s prints no link: %s", program, printed.text.Bytes())
	}
	drive(b, func(keys string) {
		f.keys += len([]rune(keys))
		b.press(keys)
	})
	f.took = time.Since(began)
	f.memory = resident(t, cmd.Process.Pid)
	mu.Lock()
	defer mu.Unlock()
	return f
}

// ours: the name of the tool, and its button.
func ours(b *tab, press func(string)) {
	b.until(`document.querySelector('nav button[data-tool]')`)
	press("/")
	b.ctrl("a") // the driver types the sign, too, which a keyboard does not
	press("good" + enter)
	b.until(`document.querySelector('.ask h2').innerText === 'good'`)
	b.ctrl(enter)
	b.reads("done")
}

// theirs: the switch that connects, the tab of tools, the tool, and its button.
func theirs(b *tab, press func(string)) {
	to := func(key, name string) {
		b.t.Helper()
		for range 60 {
			press(key)
			if strings.HasPrefix(strings.TrimSpace(b.focused()), name) {
				return
			}
		}
		b.t.Fatalf("the keyboard does not lead to %q", name)
	}
	b.until(`document.querySelector('input[aria-label^="Connect or"]')`)
	to(kb.Tab, "Connect or")
	press(" ")
	b.until(`[...document.querySelectorAll('label')].some(l => l.innerText === 'Tools')`)
	to(kb.Tab, "Servers")
	to(kb.ArrowRight, "Tools")
	b.until(`[...document.querySelectorAll('button')].some(l => l.innerText.startsWith('good'))`)
	to(kb.Tab, "good")
	press(enter)
	b.until(`[...document.querySelectorAll('button')].some(l => l.innerText.startsWith('Execute'))`)
	to(kb.Tab, "Execute")
	press(enter)
	b.reads("done")
}

// address is what a program prints, of which the first link is found.
type address struct {
	mu    sync.Mutex
	text  bytes.Buffer
	found chan string
}

var anyLink = regexp.MustCompile(`http://(127\.0\.0\.1|localhost):\d+/?[?#]\S+\s`)

func (a *address) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.text.Write(p)
	if link := anyLink.Find(a.text.Bytes()); link != nil {
		select {
		case a.found <- strings.TrimSpace(string(link)):
		default:
		}
	}
	return len(p), nil
}

// resident returns how many MB a process and its children hold, but for the server
// that is inspected.
func resident(t *testing.T, pid int) (mb float64) {
	t.Helper()
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil || bytes.Contains(line, []byte("\x00serve\x00plain")) && !bytes.Contains(line, []byte("index.js")) {
		return 0
	}
	rollup, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(rollup)) {
		if fields := strings.Fields(line); fields[0] == "Pss:" {
			kb, _ := strconv.ParseFloat(fields[1], 64) // as the kernel writes it
			mb += kb / 1000
		}
	}
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, name := range threads {
		children, _ := os.ReadFile(name) // it may be gone
		for _, child := range strings.Fields(string(children)) {
			if n, err := strconv.Atoi(child); err == nil {
				mb += resident(t, n)
			}
		}
	}
	return mb
}
