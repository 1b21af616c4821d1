package apps

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/talaria-go/mcp/internal/test/testdep"
)

// The pages of the host and of its sandbox proxy, and another window.
var (
	//go:embed host.js
	hostScript string
	//go:embed sandbox.html
	sandboxPage string
	//go:embed other.html
	otherPage string
)

// modules is where npm has put the packages.
func modules(t testing.TB) string {
	return testdep.Env(t, "E2E_MODULES", "e2e/run apps sets it")
}

// browser is a Chromium with the page of a host, which does one job at a time.
type browser struct {
	t       testing.TB
	jobs    chan any
	results chan json.RawMessage
	ended   chan struct{} // closed when the process has
	web     *http.ServeMux
	arrived arrivals
}

// arrivals are the requests that reached hosts elsewhere.
type arrivals struct {
	mu  sync.Mutex
	all map[string]bool
}

func (a *arrivals) note(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.all == nil {
		a.all = map[string]bool{}
	}
	a.all[name] = true
}

// names returns them in order, and forgets them.
func (a *arrivals) names() (names []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for name := range a.all {
		names = append(names, name)
	}
	a.all = nil
	slices.Sort(names)
	return names
}

// newBrowser starts Chromium. Every host below example.com and example.org is this
// process, and notes what reaches it.
func newBrowser(t testing.TB) *browser {
	b := &browser{t: t, jobs: make(chan any), results: make(chan json.RawMessage), ended: make(chan struct{}), web: http.NewServeMux()}
	built := api.Build(api.BuildOptions{
		Stdin:  &api.StdinOptions{Contents: hostScript, ResolveDir: t.TempDir(), Sourcefile: "host.js"},
		Bundle: true, Format: api.FormatESModule, Platform: api.PlatformBrowser, NodePaths: []string{modules(t)},
	})
	if len(built.Errors) > 0 {
		t.Fatal(built.Errors)
	}
	script := built.OutputFiles[0].Contents

	elsewhere := httptest.NewUnstartedServer(http.HandlerFunc(b.elsewhere))
	elsewhere.StartTLS()
	t.Cleanup(elsewhere.Close)
	sandbox := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path == "/view" {
			w.Header().Set("Content-Security-Policy", r.URL.Query().Get("policy"))
			return
		}
		_, _ = io.WriteString(w, sandboxPage)
	}))
	t.Cleanup(sandbox.Close)
	origin := "http://localhost:" + port(sandbox.URL) // and the host's is 127.0.0.1

	ended, end := context.WithCancel(context.Background())
	b.web.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `<!doctype html><body data-sandbox=%q><script type=module src=host.js></script>`, origin+"/")
	})
	b.web.HandleFunc("GET /host.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = w.Write(script)
	})
	b.web.HandleFunc("GET /other.html", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, otherPage)
	})
	b.web.HandleFunc("GET /job", func(w http.ResponseWriter, r *http.Request) {
		select {
		case job := <-b.jobs:
			_ = json.NewEncoder(w).Encode(job)
		case <-r.Context().Done():
		case <-ended.Done():
		}
	})
	b.web.HandleFunc("POST /result", func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		select {
		case b.results <- text:
		case <-ended.Done():
		}
	})
	host := httptest.NewServer(b.web)
	t.Cleanup(host.Close)
	b.start(host.URL, port(elsewhere.URL))
	t.Cleanup(end) // first of all
	return b
}

// start starts the process, which ends with the test.
func (b *browser) start(page, elsewhere string) {
	t, home := b.t, b.t.TempDir()
	to := "127.0.0.1:" + elsewhere
	cmd := exec.Command(testdep.LookPath(t, "chromium"), "--headless=new", "--no-sandbox", "--enable-logging=stderr", "--disable-gpu", "--no-first-run", "--disable-extensions",
		"--disable-background-networking", "--disable-component-update", "--disable-popup-blocking", "--disable-dev-shm-usage", "--user-data-dir="+filepath.Join(home, "profile"),
		"--ignore-certificate-errors", "--host-resolver-rules=MAP *.example.com "+to+", MAP *.example.org "+to, page)
	cmd.Env = append(os.Environ(), "HOME="+home)
	log, err := os.Create(filepath.Join(home, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // it has children
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait()
		close(b.ended)
	}()
	t.Cleanup(func() {
		for syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) == nil {
			time.Sleep(time.Millisecond) // they write to their directory until they are gone
		}
		<-b.ended
		_ = log.Close()
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			for line := range strings.Lines(string(text)) {
				if !strings.Contains(line, "ERROR:dbus/") { // there is none here
					t.Logf("Chromium says: %s", line)
				}
			}
		}
	})
}

// elsewhere answers for a host elsewhere with whatever was asked for.
func (b *browser) elsewhere(w http.ResponseWriter, r *http.Request) {
	b.arrived.note(strings.TrimPrefix(r.URL.Path, "/") + " " + r.Host)
	w.Header().Set("Access-Control-Allow-Origin", "*")
	switch r.URL.Path {
	case "/script":
		w.Header().Set("Content-Type", "text/javascript")
	case "/image":
		w.Header().Set("Content-Type", "image/svg+xml")
		_, _ = io.WriteString(w, `<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>`)
	default:
		w.Header().Set("Content-Type", "text/html")
	}
}

// serve puts an MCP server below a path of the host's own origin, as its client runs
// in the page.
func (b *browser) serve(path, target string) {
	to, err := url.Parse(target)
	if err != nil {
		b.t.Fatal(err)
	}
	// A connection for each request, and its body at once: a transport that closes a
	// connection under an answer would fail the page and say nothing of the server.
	own := &http.Transport{DisableKeepAlives: true}
	b.web.Handle(path, &httputil.ReverseProxy{Transport: own, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL, r.Out.Host = to, ""
		r.Out.Header.Del("Origin")
		if body, err := io.ReadAll(r.In.Body); err == nil {
			r.Out.Body = io.NopCloser(bytes.NewReader(body))
		}
	}})
}

// within makes a test the one that jobs belong to, until what it returns is called.
func (b *browser) within(t testing.TB) func() {
	around := b.t
	b.t = t
	return func() { b.t = around }
}

// jobTime is how long a job may take, of which one takes a fraction.
const jobTime = 20 * time.Second

// job lets the page do something, and fills in what became of it.
func (b *browser) job(do string, members map[string]any, result any) {
	b.t.Helper()
	job := map[string]any{"do": do}
	for name, value := range members {
		job[name] = value
	}
	late := time.After(jobTime)
	select {
	case b.jobs <- job:
	case <-b.ended:
		b.t.Fatalf("%s: Chromium has ended", do)
	case <-late:
		b.t.Fatalf("%s: the page takes no job", do)
	}
	select {
	case text := <-b.results:
		var outcome struct {
			Value json.RawMessage
			Error string
		}
		if err := json.Unmarshal(text, &outcome); err != nil || outcome.Error != "" {
			b.t.Fatalf("%s: %v %s", do, err, outcome.Error)
		}
		if result != nil && outcome.Value != nil {
			if err := json.Unmarshal(outcome.Value, result); err != nil {
				b.t.Fatalf("%s: %s: %v", do, outcome.Value, err)
			}
		}
	case <-b.ended:
		b.t.Fatalf("%s: Chromium has ended", do)
	case <-late:
		b.t.Fatalf("%s: the page does not end it", do)
	}
}

// probe looks at the view.
func (b *browser) probe(name string, with ...any) string {
	b.t.Helper()
	var value any
	b.job("probe", map[string]any{"what": map[string]any{"name": name, "with": with}}, &value)
	return fmt.Sprint(value)
}

// until probes the view until it has a value: messages take their time.
func (b *browser) until(want, name string, with ...any) {
	b.t.Helper()
	got := ""
	for end := time.Now().Add(jobTime); time.Now().Before(end); {
		if got = b.probe(name, with...); got == want {
			return
		}
	}
	b.t.Fatalf("%s %v is %q, and not %q", name, with, got, want)
}

// port returns the port of a URL.
func port(address string) string {
	_, port, _ := net.SplitHostPort(address[strings.LastIndex(address, "/")+1:])
	return port
}
