package app_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/app"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

const (
	uri    = "ui://shop/cart"
	marker = `<script src="talaria-app.js"></script>`
	page   = "<!doctype html>\n<title>Cart</title>\n" + marker + "\n<p id=total></p>\n"
)

type none struct{}

type cart struct {
	Total int `json:"total"`
}

func total(*mcp.Frame, none) (cart, error) { return cart{3}, nil }

func server(t testing.TB, opts *mcp.Options, components ...mcp.Component) *mcp.Server {
	t.Helper()
	own := mcp.Options{}
	if opts != nil {
		own = *opts
	}
	quiet := zerolog.Nop()
	own.Logger = &quiet
	s := mcp.NewServer(mcp.Info{Name: "shop", Version: "1"}, &own)
	s.MustAdd(components...)
	return s
}

// host is a client that declares that it shows views of a type.
func host(mimeType string) mcptest.Option {
	return mcptest.Capabilities(protocol.ClientCapabilities{Extensions: map[string]json.RawMessage{
		"io.modelcontextprotocol/ui": json.RawMessage(fmt.Sprintf(`{"mimeTypes":["text/plain",%q]}`, mimeType)),
	}})
}

// shows is a client that shows our views.
func shows() mcptest.Option { return host("text/html;profile=mcp-app") }

// listed returns the description of a tool as it is on the wire; "" if it is in no list.
func listed(t *testing.T, c *mcptest.Client, name string) string {
	t.Helper()
	var list struct{ Tools []json.RawMessage }
	if err := json.Unmarshal(c.Request("tools/list", nil), &list); err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		if strings.Contains(string(tool), fmt.Sprintf(`"name":%q`, name)) {
			return string(tool)
		}
	}
	return ""
}

// declared returns what the server declares of the extension.
func declared(t *testing.T, c *mcptest.Client) string {
	t.Helper()
	text, err := json.Marshal(c.Server.Capabilities.Extensions["io.modelcontextprotocol/ui"])
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A view is a resource with a type of its own, a tool that shows it names it in every
// revision and for every client, and the extension is declared.
func TestView(t *testing.T) {
	yes := true
	asks := &app.ViewOptions{
		Title: "The cart", Connect: []string{"https://api.example.com", "wss://live.example.com:8443"}, Resources: []string{"https://*.example.com"},
		Frames: []string{"https://video.example.com"}, Bases: []string{"https://example.com"}, Camera: true, ClipboardWrite: true, Domain: "cart.example.com", Border: &yes,
	}
	const ui = `{"ui":{"csp":{"connectDomains":["https://api.example.com","wss://live.example.com:8443"],"resourceDomains":["https://*.example.com"],` +
		`"frameDomains":["https://video.example.com"],"baseUriDomains":["https://example.com"]},"permissions":{"camera":{},"clipboardWrite":{}},` +
		`"domain":"cart.example.com","prefersBorder":true}}`
	asking := app.View("ui://shop/asking", page, asks)
	asks.Connect[0], *asks.Border = "https://evil.example.com", false // what was asked for is asked for
	s := server(t, &mcp.Options{ListTTL: time.Minute, ListPublic: true},
		app.View(uri, page, nil), asking, mcp.Tool("total", total, app.Show(uri), mcp.Meta("example.com/a", 1)), mcp.Tool("plain", total))
	for _, rev := range testdep.Revisions() {
		for name, options := range map[string][]mcptest.Option{"host": {shows()}, "other": nil} {
			t.Run(rev.String()+"/"+name, func(t *testing.T) {
				c := mcptest.New(t, s, append(options, mcptest.Revision(rev))...)
				if got := declared(t, c); got != "{}" {
					t.Errorf("declared %s", got)
				}
				const meta = `"_meta":{"example.com/a":1,"ui":{"resourceUri":"ui://shop/cart"},"ui/resourceUri":"ui://shop/cart"}`
				if got := listed(t, c, "total"); !strings.Contains(got, meta) {
					t.Errorf("the tool is %s", got)
				}
				if got := listed(t, c, "plain"); strings.Contains(got, "_meta") {
					t.Errorf("a tool without view is %s", got)
				}
				var list struct{ Resources []json.RawMessage }
				if err := json.Unmarshal(c.Request("resources/list", nil), &list); err != nil || len(list.Resources) != 2 {
					t.Fatalf("%s %v", list.Resources, err)
				}
				if got := string(list.Resources[0]); !strings.Contains(got, `"name":"asking"`) || !strings.Contains(got, `"_meta":`+ui) {
					t.Errorf("listed as %s", got)
				}
				if got := string(list.Resources[1]); !strings.Contains(got, `"mimeType":"text/html;profile=mcp-app"`) || strings.Contains(got, "_meta") {
					t.Errorf("listed as %s", got)
				}
				if got := string(c.Request("resources/read", map[string]string{"uri": "ui://shop/asking"})); !strings.Contains(got, `"_meta":`+ui) {
					t.Errorf("read as %s", got)
				}
				text := c.Request("resources/read", map[string]string{"uri": uri})
				if modern := rev.Modern(); modern != strings.Contains(string(text), `"cacheScope":"public"`) {
					t.Errorf("read as %s", text)
				}
				read := c.Read(uri)
				if len(read) != 1 || read[0].URI != uri || read[0].MIMEType != "text/html;profile=mcp-app" || read[0].Meta != nil {
					t.Fatalf("read as %v", read)
				}
				head, tail, _ := strings.Cut(page, marker)
				if got := read[0].Text; !strings.HasPrefix(got, head+"<script>(prefix => {") || !strings.HasSuffix(got, `})`+"\n"+`("");</script>`+tail) {
					t.Errorf("the document is %s", got)
				}
			})
		}
	}
	without := mcptest.New(t, server(t, nil, mcp.Tool("plain", total), mcp.Bytes("a:b", nil)))
	if got := declared(t, without); got != "null" {
		t.Errorf("a server without views declares %s", got)
	}
}

// What a tool returns does not depend on whether it shows a view, nor on whether the
// client does.
func TestResultsAreTheSame(t *testing.T) {
	bare := server(t, nil, mcp.Tool("total", total))
	viewed := server(t, nil, app.View(uri, page, nil), mcp.Tool("total", total, app.Show(uri)))
	for _, rev := range testdep.Revisions() {
		want := mcptest.New(t, bare, mcptest.Revision(rev)).Call("total", nil).Raw
		for _, options := range [][]mcptest.Option{nil, {shows()}} {
			if got := mcptest.New(t, viewed, append(options, mcptest.Revision(rev))...).Call("total", nil).Raw; !bytes.Equal(got, want) {
				t.Errorf("%v: got %s, want %s", rev, got, want)
			}
		}
	}
}

// What a tool shows costs 120 bytes of a list at most, with a name of ordinary length.
func TestBytesOfATool(t *testing.T) {
	bare := listed(t, mcptest.New(t, server(t, nil, mcp.Tool("total", total))), "total")
	for name, options := range map[string]mcp.ToolOptions{"shown": {app.Show("ui://workbench/bar-chart")}, "only": {app.ViewOnly()}} {
		s := server(t, nil, app.View("ui://workbench/bar-chart", page, nil), mcp.Tool("total", total, options))
		if more := len(listed(t, mcptest.New(t, s, shows()), "total")) - len(bare); more > 120 || more < 30 {
			t.Errorf("%s: %d bytes", name, more)
		}
	}
}

// The script that every read of a view carries is small.
func TestScript(t *testing.T) {
	text, err := os.ReadFile("view.js")
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(text); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes, %d packed", len(text), packed.Len())
	if packed.Len() > 2<<10 || len(text) > 4<<10 { // as docs/apps.md says
		t.Errorf("it has %d bytes, %d when packed", len(text), packed.Len())
	}
	for _, word := range []string{"eval", "Function(", "innerHTML", "outerHTML", "document.write", "</", "<!--"} {
		if bytes.Contains(text, []byte(word)) {
			t.Errorf("it has %s", word)
		}
	}
}

func TestViewFaults(t *testing.T) {
	origin := func(set func(o *app.ViewOptions, origins []string), bad string) mcp.Component {
		o := &app.ViewOptions{}
		set(o, []string{"https://ok.example.com", bad})
		return app.View(uri, page, o)
	}
	tests := map[string]struct {
		component mcp.Component
		want      string
	}{
		"scheme":           {app.View("https://shop/cart", page, nil), "a view is at ui://SERVER/NAME"},
		"no host":          {app.View("ui:///cart", page, nil), "a view is at ui://SERVER/NAME"},
		"upper case":       {app.View("UI://shop/cart", page, nil), "a view is at ui://SERVER/NAME"},
		"template":         {app.View("ui://shop/{id}", page, nil), "a view is at ui://SERVER/NAME"},
		"query":            {app.View("ui://shop/cart?x", page, nil), "a view is at ui://SERVER/NAME"},
		"blank":            {app.View("ui://sh op/cart", page, nil), "a view is at ui://SERVER/NAME"},
		"user":             {app.View("ui://a@shop/cart", page, nil), "a view is at ui://SERVER/NAME"},
		"nothing":          {app.View(uri, "", nil), "must be whole"},
		"a part":           {app.View(uri, "<p>", nil), "begin with <!doctype html>"},
		"comment":          {app.View(uri, "<!-- made by x --> <!DOCTYPE HTML><p>", nil), ""},
		"mark":             {app.View(uri, "\ufeff<!doctype html><p>", nil), ""},
		"open comment":     {app.View(uri, "<!-- <!doctype html>", nil), "must be whole"},
		"bytes":            {app.View(uri, "<!doctype html>\xff", nil), "is not UTF-8"},
		"two markers":      {app.View(uri, page+marker, nil), "write " + marker},
		"half a marker":    {app.View(uri, "<!doctype html><script src='talaria-app.js'></script>", nil), "write " + marker},
		"no marker":        {app.View(uri, "<!doctype html>", nil), ""},
		"too large":        {app.View(uri, page+strings.Repeat("x", 4<<20), nil), "more than Limits.Message, which is 4194304"},
		"no view":          {mcp.Tool("total", total, app.Show("ui://shop/nothing")), `mcp: tool "total": there is no view at ui://shop/nothing`},
		"a resource":       {mcp.Tool("total", total, app.Show("ui://shop/plain")), `there is no view at ui://shop/plain`},
		"empty":            {mcp.Tool("total", total, app.Show("")), "app.Show: there is no view without a URI"},
		"two views":        {mcp.Tool("total", total, app.Show("ui://shop/there"), app.Show(uri)), "app.Show: the tool shows ui://shop/there already"},
		"the same twice":   {mcp.Tool("total", total, app.Show("ui://shop/there"), app.Show("ui://shop/there")), ""},
		"no text":          {mcp.Tool("total", total, app.Show("ui://shop/there"), mcp.StructuredOnly()), "StructuredOnly: hosts that show no views"},
		"with a text":      {mcp.Tool("total", total, app.Show("ui://shop/there"), mcp.StructuredOnly(), mcp.Text(func(cart) string { return "x" })), ""},
		"meta by hand":     {mcp.Tool("total", total, app.Show("ui://shop/there"), mcp.Meta("ui", 1)), `Meta("ui"): package app writes it`},
		"only, by hand":    {mcp.Tool("total", total, app.ViewOnly(), mcp.Meta("ui", 1)), `Meta("ui"): package app writes it`},
		"connect":          {origin(func(o *app.ViewOptions, all []string) { o.Connect = all }, "x"), `Connect: "x": an origin begins with https:// or wss://`},
		"resources":        {origin(func(o *app.ViewOptions, all []string) { o.Resources = all }, "wss://a.example.com"), `Resources: "wss://a.example.com": an origin begins with https://`},
		"frames":           {origin(func(o *app.ViewOptions, all []string) { o.Frames = all }, "*"), `Frames: "*"`},
		"bases":            {origin(func(o *app.ViewOptions, all []string) { o.Bases = all }, "'self'"), `Bases: "'self'"`},
		"domain":           {app.View(uri, page, &app.ViewOptions{Domain: "a b"}), `Domain: "a b"`},
		"domain as origin": {app.View(uri, page, &app.ViewOptions{Domain: "https://a.example.com"}), ""},
	}
	for _, bad := range []string{
		"", "https://", "http://a.example.com", "ws://a.example.com", "HTTPS://a.example.com", "https://a.example.com/", "https://a.example.com/path", "https://a.example.com?", "https://u@a.example.com",
		"https://a.example.com;", "https://a.example.com; script-src *", "https://a.example.com 'unsafe-eval'", "https://a.example.com,https://b.example.com", "https://a.example.com\n", "https://A.example.com",
		"https://*", "https://*.com", "https://*.*.com", "https://a.*.com", "https://com", "https://localhost", "https://a.localhost", "https://127.0.0.1", "https://[::1]", "https://0x7f.1", "https://1.2.3.0x4", "https://a.example.1",
		"https://a.example.com:", "https://a.example.com:0", "https://a.example.com:65536", "https://a.example.com:*", "https://a.example.com:+443", "https://a.example.com:0443", "https://a_b.example.com", "https://-a.example.com",
		"https://a.example.com.", "https://" + strings.Repeat("a", 64) + ".example.com", "https://" + strings.Repeat("a.", 130) + "com", "https://münchen.example.com", "data:", "blob:", "'none'", "https://a.example.com:443:443",
	} {
		tests["origin "+bad] = struct {
			component mcp.Component
			want      string
		}{app.View(uri, page, &app.ViewOptions{Connect: []string{bad}}), fmt.Sprintf("Connect: %.80q", bad)}
	}
	for _, good := range []string{"https://a.example.com", "wss://a.example.com", "https://*.example.com:8443", "https://xn--mnchen-3ya.example.com", "https://1.example.com", "https://a--b.example.co.uk"} {
		tests["origin "+good] = struct {
			component mcp.Component
			want      string
		}{app.View(uri, page, &app.ViewOptions{Connect: []string{good}}), ""}
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := server(t, nil, app.View("ui://shop/there", page, nil), mcp.Bytes("ui://shop/plain", []byte(page), mcp.MIME("text/html")))
			err := s.Add(tt.component)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// A tool may come with its view, in any order, and after it; all or none are added.
func TestShowWith(t *testing.T) {
	s := server(t, nil)
	if err := s.Add(mcp.Tool("total", total, app.Show(uri)), app.View(uri, page, nil), mcp.Tool("again", total, app.Show(uri))); err != nil {
		t.Error(err)
	}
	if err := s.Add(mcp.Tool("third", total, app.Show(uri))); err != nil {
		t.Error(err)
	}
	if err := s.AddSet("more", mcp.Tool("fourth", total, app.Show("ui://shop/none"))); err == nil || !strings.Contains(err.Error(), "there is no view at ui://shop/none") {
		t.Errorf("a set: %v", err)
	}
	if err := s.Add(mcp.Tool("fifth", total), mcp.Tool("sixth", total, app.Show("ui://shop/none"))); err == nil {
		t.Error("added")
	}
	c := mcptest.New(t, s)
	if got := len(c.Tools()); got != 3 {
		t.Errorf("%d tools", got)
	}
}

// A tool for views is unknown to clients that show none, in lists and calls, and
// lists are private with one.
func TestOnly(t *testing.T) {
	s := server(t, &mcp.Options{ListTTL: time.Minute, ListPublic: true},
		app.View(uri, page, nil), mcp.Tool("total", total, app.Show(uri)), mcp.Tool("refresh", total, app.ViewOnly()), mcp.Tool("reload", total, app.ViewOnly(), app.Show(uri)))
	child := server(t, nil)
	if err := child.Mount("bills", s); err != nil {
		t.Fatal(err)
	}
	for _, rev := range testdep.Revisions() {
		for name, options := range map[string][]mcptest.Option{"none": nil, "another type": {host("text/html")}} {
			t.Run(rev.String()+"/"+name, func(t *testing.T) {
				c := mcptest.New(t, s, append(options, mcptest.Revision(rev))...)
				if listed(t, c, "refresh")+listed(t, c, "reload") != "" || listed(t, c, "total") == "" {
					t.Error("the list has it")
				}
				_, err := c.TryCall("refresh", nil)
				_, other := c.TryCall("refreshing", nil)
				if err == nil || strings.ReplaceAll(fmt.Sprint(other), "refreshing", "refresh") != err.Error() {
					t.Errorf("got %v, and for no tool %v", err, other)
				}
			})
		}
		t.Run(rev.String()+"/host", func(t *testing.T) {
			c := mcptest.New(t, s, shows(), mcptest.Revision(rev))
			if got := listed(t, c, "refresh"); !strings.Contains(got, `"_meta":{"ui":{"visibility":["app"]}}`) {
				t.Errorf("listed as %s", got)
			}
			if got := listed(t, c, "reload"); !strings.Contains(got, `"ui":{"resourceUri":"ui://shop/cart","visibility":["app"]}`) {
				t.Errorf("listed as %s", got)
			}
			if text := string(c.Request("tools/list", nil)); strings.Contains(text, `"public"`) {
				t.Errorf("the list is %s", text)
			}
			if _, err := c.TryCall("refresh", nil); err != nil {
				t.Error(err)
			}
			mounted := mcptest.New(t, child, shows(), mcptest.Revision(rev))
			if _, err := mounted.TryCall("bills_refresh", nil); err != nil {
				t.Error(err)
			}
			if listed(t, mcptest.New(t, child, mcptest.Revision(rev)), "bills_refresh") != "" {
				t.Error("the list of the outer server has it")
			}
		})
	}
	for _, settings := range []string{`{}`, `[]`, `"x"`, `{"mimeTypes":"text/html;profile=mcp-app"}`, `{"mimeTypes":[1]}`, `null`} {
		c := mcptest.New(t, s, mcptest.Capabilities(protocol.ClientCapabilities{Extensions: map[string]json.RawMessage{"io.modelcontextprotocol/ui": json.RawMessage(settings)}}))
		if _, err := c.TryCall("refresh", nil); err == nil {
			t.Errorf("called with %s", settings)
		}
	}
}

// Where a view is not there for a client, its tool is described without it.
func TestHiddenView(t *testing.T) {
	hides := func(f *mcp.Frame, kind mcp.Kind, key string) bool {
		return kind != mcp.KindResource || key != uri || f.ClientInfo() != nil && f.ClientInfo().Name == "trusted"
	}
	components := []mcp.Component{app.View(uri, page, nil), mcp.Tool("total", total, app.Show(uri)), mcp.Tool("reload", total, app.ViewOnly(), app.Show(uri))}
	own := server(t, &mcp.Options{Filter: hides}, components...)
	outer := server(t, nil)
	if err := outer.Mount("", server(t, &mcp.Options{Filter: hides}, components...)); err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*mcp.Server{"own": own, "mounted": outer} {
		for _, rev := range testdep.Revisions() {
			t.Run(name+"/"+rev.String(), func(t *testing.T) {
				c := mcptest.New(t, s, shows(), mcptest.Revision(rev), mcptest.Info(protocol.Implementation{Name: "other", Version: "1"}))
				if got := listed(t, c, "total"); got == "" || strings.Contains(got, "_meta") || strings.Contains(got, "ui:") {
					t.Errorf("listed as %s", got)
				}
				if got := listed(t, c, "reload"); !strings.Contains(got, `"_meta":{"ui":{"visibility":["app"]}}`) {
					t.Errorf("listed as %s", got)
				}
				if _, err := c.TryRequest("resources/read", map[string]string{"uri": uri}); err == nil {
					t.Error("read")
				}
				trusted := mcptest.New(t, s, shows(), mcptest.Revision(rev), mcptest.Info(protocol.Implementation{Name: "trusted", Version: "1"}))
				if got := listed(t, trusted, "total"); !strings.Contains(got, `"resourceUri":"ui://shop/cart"`) {
					t.Errorf("listed as %s", got)
				}
				if text := string(trusted.Request("resources/read", map[string]string{"uri": uri})); strings.Contains(text, `"public"`) {
					t.Errorf("read as %s", text)
				}
			})
		}
	}
}

// A view that goes takes what tools say of it with it, and brings it back; clients
// hear of their lists.
func TestRemovedView(t *testing.T) {
	s := server(t, nil, app.View(uri, page, nil), mcp.Tool("total", total, app.Show(uri)), mcp.Tool("plain", total))
	c := mcptest.New(t, s, mcptest.Revision(protocol.V20251125))
	with := listed(t, c, "total")
	if n := s.Remove(mcp.KindResource, uri); n != 1 {
		t.Fatalf("removed %d", n)
	}
	if got := listed(t, c, "total"); strings.Contains(got, "_meta") {
		t.Errorf("listed as %s", got)
	}
	for _, method := range []string{protocol.MethodResourcesChanged, protocol.MethodToolsChanged} {
		c.WaitFor(method)
	}
	s.MustAdd(mcp.Bytes(uri, []byte("x"), mcp.MIME("text/plain")))
	if got := listed(t, c, "total"); strings.Contains(got, "_meta") {
		t.Errorf("with another resource there it is listed as %s", got)
	}
	s.Remove(mcp.KindResource, uri)
	s.MustAdd(app.View(uri, page, nil))
	if got := listed(t, c, "total"); got != with {
		t.Errorf("listed as %s, want %s", got, with)
	}
}

// Below a prefix a view calls the tools of its own server: the script knows the
// prefix, over any number of mounts.
func TestMountedView(t *testing.T) {
	inner := server(t, nil, app.View(uri, page, nil), mcp.Tool("total", total, app.Show(uri)))
	middle, outer, plain := server(t, nil), server(t, nil), server(t, nil)
	for _, mount := range []struct {
		prefix       string
		into, server *mcp.Server
	}{{"bills", middle, inner}, {"a-b.c", outer, middle}, {"", plain, middle}} {
		if err := mount.into.Mount(mount.prefix, mount.server); err != nil {
			t.Fatal(err)
		}
	}
	for want, s := range map[string]*mcp.Server{"": inner, "bills_": middle, "a-b.c_bills_": outer} {
		c := mcptest.New(t, s)
		if got := c.Read(uri)[0].Text; !strings.Contains(got, `("`+want+`");</script>`) {
			t.Errorf("%q: the document is %s", want, got)
		}
		if got := listed(t, c, want+"total"); !strings.Contains(got, `"resourceUri":"ui://shop/cart"`) {
			t.Errorf("%q: listed as %s", want, got)
		}
		if got := declared(t, c); got != "{}" {
			t.Errorf("%q: declared %s", want, got)
		}
	}
	if got := mcptest.New(t, plain).Read(uri)[0].Text; !strings.Contains(got, `("bills_");</script>`) {
		t.Errorf("without a prefix the document is %s", got)
	}
}

// A tool never shows the view of another server, whatever that has at its URI.
func TestForeignView(t *testing.T) {
	outer := server(t, nil, app.View(uri, page, nil))
	child := server(t, nil)
	if err := outer.Mount("child", child); err != nil {
		t.Fatal(err)
	}
	child.MustAdd(app.View(uri, page, nil), mcp.Tool("total", total, app.Show(uri))) // its view is left out, which the log says
	c := mcptest.New(t, outer)
	if got := listed(t, c, "child_total"); got == "" || strings.Contains(got, "_meta") {
		t.Errorf("listed as %s", got)
	}
	outer.Remove(mcp.KindResource, uri)
	child.MustAdd(mcp.Tool("more", total)) // by which the rest is tried again
	if got := listed(t, c, "child_total"); !strings.Contains(got, `"resourceUri"`) {
		t.Errorf("listed as %s", got)
	}
}

// A session, and a set, may have a view with its tool.
func TestViewOfSome(t *testing.T) {
	s := server(t, nil, mcp.Tool("open", func(f *mcp.Frame, _ none) (string, error) { return "", nil }))
	s.MustAdd(mcp.Tool("enable", func(f *mcp.Frame, _ none) (string, error) { return "", s.EnableSet(f, "views") }),
		mcp.Tool("add", func(f *mcp.Frame, _ none) (string, error) {
			return "", s.AddToSession(f, app.View("ui://shop/own", page, nil), mcp.Tool("own", total, app.Show("ui://shop/own")))
		}))
	if err := s.AddSet("views", app.View(uri, page, nil)); err != nil {
		t.Fatal(err)
	}
	s.MustAdd(mcp.Tool("total", total, app.Show(uri)))
	c := mcptest.New(t, s, mcptest.Revision(protocol.V20251125))
	if got := listed(t, c, "total"); got == "" || strings.Contains(got, "_meta") {
		t.Errorf("before the set is enabled: %s", got)
	}
	for _, name := range []string{"enable", "add"} {
		if _, err := c.TryCall(name, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"total", "own"} {
		if got := listed(t, c, name); !strings.Contains(got, `"resourceUri"`) {
			t.Errorf("%s is listed as %s", name, got)
		}
	}
	if other := mcptest.New(t, s, mcptest.Revision(protocol.V20251125)); listed(t, other, "own") != "" || strings.Contains(listed(t, other, "total"), "_meta") {
		t.Error("another session has it")
	}
}
