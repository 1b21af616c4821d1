package inspector

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// TestFramePolicy: what a view declares is allowed where it says, and nothing that is not
// an origin gets into the header.
func TestFramePolicy(t *testing.T) {
	const strict = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; media-src data:; font-src 'none'; connect-src 'none'; frame-src 'none'; base-uri 'none'; object-src 'none'; form-action 'none'"
	for _, c := range []struct{ query, want string }{
		{"", strict},
		{"connectDomains=https://a.example.com&connectDomains=wss://b.example.com", strings.Replace(strict, "connect-src 'none'", "connect-src https://a.example.com wss://b.example.com", 1)},
		{"resourceDomains=https://*.example.com", strings.NewReplacer("script-src 'unsafe-inline'", "script-src 'unsafe-inline' https://*.example.com", "style-src 'unsafe-inline'", "style-src 'unsafe-inline' https://*.example.com",
			"img-src data:", "img-src data: https://*.example.com", "media-src data:", "media-src data: https://*.example.com", "font-src 'none'", "font-src https://*.example.com").Replace(strict)},
		{"frameDomains=https://a.example.com&baseUriDomains=https://b.example.com", strings.NewReplacer("frame-src 'none'", "frame-src https://a.example.com", "base-uri 'none'", "base-uri https://b.example.com").Replace(strict)},
		{"connectDomains=*&connectDomains=https:&connectDomains=http://a.example.com&connectDomains='self'&connectDomains=https://a.example.com;script-src *", strict},
		{"resourceDomains=https://a.example.com%3B%20connect-src%20*&resourceDomains='unsafe-eval'&resourceDomains=wss://a.example.com&resourceDomains=data:", strict},
		{"connectDomains=https://127.0.0.1&connectDomains=https://localhost:1&connectDomains=https://[::1]&connectDomains=https://10.1&connectDomains=https://a.localhost&other=https://a.example.com", strict},
		{strings.Repeat("connectDomains=https://a.example.com&", 100), strings.Replace(strict, "connect-src 'none'", "connect-src"+strings.Repeat(" https://a.example.com", maxOrigins), 1)},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.URL.RawQuery = strings.NewReplacer(";script-src *", "%3Bscript-src%20*").Replace(c.query)
		Frames([]string{"http://127.0.0.1:1", "https://a.example"}).ServeHTTP(w, r)
		if got := w.Header().Get("Content-Security-Policy"); got != c.want+"; frame-ancestors http://127.0.0.1:1 https://a.example" {
			t.Errorf("%.80s:\n%s\nwant\n%s", c.query, got, c.want)
		}
	}
}

const viewPage = `<!doctype html><title>x</title>`

// TestReadView: what is read of a view, what it is granted, and what other hosts would not
// accept of it.
func TestReadView(t *testing.T) {
	quoted, _ := json.Marshal(viewPage) // a text always encodes
	text := `"text":` + string(quoted)
	for _, c := range []struct{ contents, query, problem, fails string }{
		{`[{"uri":"ui://v","mimeType":"text/html;profile=mcp-app",` + text + `}]`, "", "", ""},
		{`[{"uri":"ui://v","mimeType":"text/html;profile=mcp-app","blob":"PCFkb2N0eXBlIGh0bWw+PHRpdGxlPng8L3RpdGxlPg=="}]`, "", "", ""},
		{`[{"mimeType":"text/html",` + text + `}]`, "", `its mimeType must be text/html;profile=mcp-app; got "text/html"`, ""},
		{`[{"mimeType":"text/html;profile=mcp-app","text":"<p>x"}]`, "", "it must be a whole document", ""},
		{`[{"mimeType":"text/html;profile=mcp-app","blob":"?"}]`, "", "", "is not base64"},
		{`[{"mimeType":"text/html;profile=mcp-app"}]`, "", "", "neither a text nor a blob"},
		{`[]`, "", "", "has no contents"},
		{`5`, "", "", "has no contents"},
		{`[{"mimeType":"text/html;profile=mcp-app","text":"` + strings.Repeat("x", maxView+1) + `"}]`, "", "", "exceeds the limit of 8388608"},
		{`[{"mimeType":"text/html;profile=mcp-app",` + text + `,"_meta":{"ui":{"csp":{"connectDomains":["https://a.example.com","http://b.example.com"]},"permissions":{"camera":{}}}}}]`, "connectDomains=https%3A%2F%2Fa.example.com", `csp.connectDomains: "http://b.example.com" is not allowed`, ""},
		{`[{"mimeType":"text/html;profile=mcp-app",` + text + `,"_meta":{"ui":{"csp":{"frameDomains":"https://a.example.com"}}}}]`, "", "csp.frameDomains must be a list of texts", ""},
		{`[{"mimeType":"text/html;profile=mcp-app",` + text + `,"_meta":{"ui":5}}]`, "", "its _meta.ui does not decode", ""},
		{`[{"mimeType":"text/html;profile=mcp-app",` + text + `,"_meta":5}]`, "", "", ""},
	} {
		i := inspect(t, scripted("2025-11-25", map[string]string{
			"tools/list":     `{"tools":[{"name":"t","inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"ui://v"}}},{"name":"old","inputSchema":{"type":"object"},"_meta":{"ui/resourceUri":"ui://v","ui":7}},{"name":"none","inputSchema":{"type":"object"},"_meta":7}]}`,
			"resources/read": `{"contents":` + c.contents + `}`}), "")
		listed(t, i, "tool")
		var v struct {
			shownView
			Error string
		}
		code := ask(t, i, "GET", "/api/view?tool=t", "", &v)
		problems := strings.Join(v.Problems, "\n")
		if (c.fails != "") != (code != http.StatusOK) || !strings.Contains(v.Error, c.fails) || v.Query != c.query || !strings.Contains(problems, c.problem) || (problems != "") != (c.problem != "") ||
			c.fails == "" && v.HTML != viewPage && !strings.Contains(c.contents, "<p>x") {
			t.Errorf("%.200s: %d %q %q %v", c.contents, code, v.Error, v.Query, v.Problems)
		}
		if code = ask(t, i, "GET", "/api/view?tool=none", "", &v); code != http.StatusConflict || v.Error != errNoView.Error() {
			t.Errorf("without a view: %d %s", code, v.Error)
		}
		if c.fails != "" {
			continue
		}
		if code = ask(t, i, "GET", "/api/view?tool=old", "", &v); code != http.StatusOK {
			t.Errorf("the first form of the metadata: %d %s", code, v.Error)
		}
	}
}

// TestViewRequest: a view calls tools that are for views, and reads resources; errors are
// those of the server; nothing else goes through.
func TestViewRequest(t *testing.T) {
	i := inspect(t, scripted("2025-11-25", map[string]string{
		"tools/list":      `{"tools":[{"name":"both","inputSchema":{"type":"object"}},{"name":"app","inputSchema":{"type":"object"},"_meta":{"ui":{"visibility":["app"]}}},{"name":"model","inputSchema":{"type":"object"},"_meta":{"ui":{"visibility":["model"]}}}]}`,
		"tools/call both": `{"content":[],"structuredContent":{"a":1}}`, "tools/call app": `{"content":[],"isError":true}`, "tools/call model": `{"content":[]}`, "resources/read": `{"contents":[{"uri":"x://a","text":"t"}]}`}), "")
	listed(t, i, "tool")
	for _, c := range []struct{ body, want string }{
		{`{"method":"tools/call","params":{"name":"both","arguments":{}}}`, `{"result":{"content":[],"structuredContent":{"a":1}}}`},
		{`{"method":"tools/call","params":{"name":"app"}}`, `{"result":{"content":[],"isError":true}}`},
		{`{"method":"tools/call","params":{"name":"model"}}`, `{"error":{"code":-32000,"message":"the tool model is not for views: its visibility does not have app"}}`},
		{`{"method":"tools/call","params":{"name":"gone"}}`, `{"error":{"code":-32601,`},
		{`{"method":"resources/read","params":{"uri":"x://a"}}`, `{"result":{"contents":[{"uri":"x://a","text":"t"}]}}`},
		{`{"method":"tools/list","params":{}}`, `{"error":"a view makes no request \"tools/list\""}`},
		{`{"method":"tools/call","params":{"name":5}}`, `{"error":"the request does not decode`},
	} {
		w := httptest.NewRecorder()
		API(i).ServeHTTP(w, httptest.NewRequest("POST", "/api/view/request", strings.NewReader(c.body)))
		if got := strings.TrimSpace(w.Body.String()); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s", c.body, got)
		}
	}
	i.viewRequests.Store(maxViewRequests)
	var answer struct{ Error viewError }
	if ask(t, i, "POST", "/api/view/request", `{"method":"tools/call","params":{"name":"both"}}`, &answer); !strings.Contains(answer.Error.Message, "too many") || i.viewRequests.Load() != maxViewRequests {
		t.Errorf("%+v", answer)
	}
}

// TestViewMessages: what a view says is in the traffic, where its requests have their
// answers, apart from those of the server with the same ids.
func TestViewMessages(t *testing.T) {
	i := inspect(t, scripted("2025-11-25", map[string]string{"tools/list": `{"tools":[]}`}), "")
	listed(t, i, "tool")
	ask(t, i, "POST", "/api/view/messages", `{"view":7,"list":[{"at":1,"from":"view","text":"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ui/initialize\"}"},{"at":2,"from":"host","text":"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"},{"at":3,"from":"host","text":"{\"jsonrpc\":\"2.0\",\"method\":\"ui/notifications/tool-input\"}"}]}`, nil)
	var page struct {
		Rows []struct {
			Method, From, Status string
			View                 bool
		}
	}
	find := func(query url.Values, want int) {
		t.Helper()
		until(t, i, func() bool {
			ask(t, i, "GET", "/api/traffic?"+query.Encode(), "", &page)
			return len(page.Rows) == want
		})
	}
	find(url.Values{"text": {"ui/"}}, 2)
	until(t, i, func() bool {
		ask(t, i, "GET", "/api/traffic?text=ui/", "", &page)
		return page.Rows[1].Status == "ok"
	})
	for n, want := range []struct{ method, from string }{{"ui/notifications/tool-input", "server"}, {"ui/initialize", "client"}} {
		if r := page.Rows[n]; r.Method != want.method || r.From != want.from || !r.View {
			t.Errorf("%+v", r)
		}
	}
	ask(t, i, "GET", "/api/traffic?text=tools/list", "", &page)
	if len(page.Rows) != 1 || page.Rows[0].View || page.Rows[0].Status != "ok" {
		t.Errorf("%+v", page.Rows)
	}
	i.Close() // after which nothing is kept, and nothing breaks
	if code := ask(t, i, "POST", "/api/view/messages", `{"view":7,"list":[{"at":1,"from":"view","text":"{}"}]}`, nil); code != http.StatusOK {
		t.Error(code)
	}
}

// TestPlain: a server is told whether this host shows views.
func TestPlain(t *testing.T) {
	i := inspect(t, scripted("2025-11-25", map[string]string{"tools/list": `{"tools":[{"name":"t","inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"ui://v"}}}]}`}), "")
	last := int64(0)
	initialized := func() string { // of the newest connection
		var page struct{ Rows []struct{ Seq int64 } }
		until(t, i, func() bool {
			ask(t, i, "GET", "/api/traffic?text=%22initialize%22&kinds=request", "", &page)
			return len(page.Rows) > 0 && page.Rows[0].Seq > last
		})
		last = page.Rows[0].Seq
		_, request, _, _ := i.store.Texts(page.Rows[0].Seq)
		return string(request)
	}
	for _, c := range []struct {
		body        string
		plain, with bool
	}{{"", false, true}, {`{"plain":true}`, true, false}, {`{}`, true, false}, {`{"plain":false}`, false, true}} {
		if c.body != "" {
			before := snapshot(i).Connection
			ask(t, i, "POST", "/api/connect", c.body, nil)
			until(t, i, func() bool { s := snapshot(i); return s.State == "ready" && s.Connection > before })
		}
		if view := listed(t, i, "tool").Entries[0].View; (view != "") != c.with {
			t.Errorf("%s: the view is %q", c.body, view)
		}
		sent := initialized()
		if snapshot(i).Plain != c.plain || strings.Contains(sent, `"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}`) != c.with {
			t.Errorf("%s: %s", c.body, sent)
		}
	}
}
