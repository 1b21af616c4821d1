package inspector

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/test/testdep"
)

type tripIn struct {
	City    string `json:"city"`
	Country string `json:"country,omitempty"`
}

// library has a prompt, a resource and a template, with completion.
func library(t *testing.T) *mcp.Server {
	t.Helper()
	s := mcp.NewServer(mcp.Info{Name: "library", Version: "1"}, nil)
	err := s.Add(
		mcp.Prompt("trip", func(_ context.Context, in tripIn) (string, error) {
			return fmt.Sprintf("to %s in %q", in.City, in.Country), nil
		}, mcp.Complete("city", func(_ *mcp.Frame, q mcp.CompletionQuery) (mcp.Completion, error) {
			if q.Arguments["country"] == "IT" {
				return mcp.Completion{Values: []string{"Rome"}}, nil
			}
			return mcp.Completion{Values: []string{q.Value + "slo", "pay\u202enoisrev"}}, nil
		})),
		mcp.Resource("lib://all", func(context.Context) (string, error) { return "everything", nil }, mcp.Name("all")),
		mcp.Template("lib://{shelf}/books{?page}", func(_ context.Context, in struct {
			Shelf string `json:"shelf"`
			Page  string `json:"page,omitempty"`
		}) (string, error) {
			return in.Shelf + ", page " + in.Page, nil
		}, mcp.Name("book"), mcp.CompleteFrom("shelf", "a b", "c")),
	)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestOffer: prompts, resources and templates, from the list to what comes of them,
// in both eras.
func TestOffer(t *testing.T) {
	i := inspect(t, client.Local(library(t).ServeConn), "")
	for _, revision := range []string{"2026-07-28", "2025-11-25", "2024-11-05"} {
		ask(t, i, "POST", "/api/connect", `{"revision":"`+revision+`"}`, nil)
		until(t, i, func() bool { return snapshot(i).State == "ready" })
		for kind, want := range map[string]string{"tool": "", "prompt": "trip", "resource": "lib://all", "template": "lib://{shelf}/books{?page}"} {
			if o := listed(t, i, kind); o.Error != "" || len(o.Entries) != min(1, len(want)) || len(want) > 0 && o.Entries[0].Name != want {
				t.Errorf("%s %s: %+v", revision, kind, o)
			}
		}
		for path, want := range map[string]string{"kind=prompt&tool=trip": "city true true, country false true", "kind=template&tool=lib://%7Bshelf%7D/books%7B?page%7D": "shelf true true, page false true",
			"kind=resource&tool=lib://all": "", "kind=resource&tool=lib://elsewhere": ""} {
			var f form
			ask(t, i, "GET", "/api/form?"+path, "", &f)
			var got []string
			if f.Form == nil {
				t.Fatalf("%s %s: %+v", revision, path, f)
			}
			for _, one := range f.Form.Fields {
				got = append(got, fmt.Sprint(one.Key, " ", one.Required, " ", one.Complete))
			}
			if strings.Join(got, ", ") != want {
				t.Errorf("%s %s: %v", revision, path, got)
			}
		}
		if c := ended(t, i, "prompt", "trip", `{"city":"Oslo"}`); c.State != "done" || c.Tool != "trip" || !strings.Contains(c.Result, `to Oslo in \"\"`) {
			t.Errorf("%s: %+v", revision, c)
		}
		if c := ended(t, i, "resource", "lib://all", "{}"); c.State != "done" || !strings.Contains(c.Result, "everything") {
			t.Errorf("%s: %+v", revision, c)
		}
		if c := ended(t, i, "resource", "lib://none", "{}"); c.State != "error" || c.Error.Code == 0 {
			t.Errorf("%s: %+v", revision, c)
		}
		var checked struct {
			Issues []struct{ Path, Message string }
			Shown  string
		}
		ask(t, i, "POST", "/api/check", `{"kind":"template","tool":"lib://{shelf}/books{?page}","value":"{\"shelf\":\"a b\",\"page\":\"2\"}"}`, &checked)
		if len(checked.Issues) != 0 || checked.Shown != "lib://a%20b/books?page=2" {
			t.Errorf("%s: %+v", revision, checked)
		}
		if c := ended(t, i, "template", "lib://{shelf}/books{?page}", `{"shelf":"a b","page":"2"}`); !strings.Contains(c.Result, "a b, page 2") {
			t.Errorf("%s: %+v", revision, c)
		}
		ask(t, i, "POST", "/api/check", `{"kind":"prompt","tool":"trip","value":"{\"city\":1,\"sea\":\"\"}"}`, &checked)
		if len(checked.Issues) != 2 {
			t.Errorf("%s: %+v", revision, checked)
		}
		for context, want := range map[string]string{"FR": `"Oslo","pay`, "IT": `"Rome"`} {
			if revision < "2025-06-18" {
				want = `"Oslo","pay` // it has no context
			}
			var got suggestions
			ask(t, i, "POST", "/api/request", `{"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"trip"},"argument":{"name":"city","value":"O"},"context":{"arguments":{"country":"`+context+`"}}}}`, &got)
			var values, labels []string
			for _, v := range got.Values {
				values, labels = append(values, v.Value), append(labels, v.Label)
			}
			text, err := json.Marshal(values)
			if err != nil || !strings.Contains(string(text), want) || strings.Contains(strings.Join(labels, ""), "\u202e") {
				t.Errorf("%s %s: %s %q", revision, context, text, labels)
			}
		}
		var got suggestions
		ask(t, i, "POST", "/api/request", `{"method":"completion/complete","params":{"ref":{"type":"ref/resource","uri":"lib://{shelf}/books{?page}"},"argument":{"name":"shelf","value":"a"}}}`, &got)
		if len(got.Values) != 1 || got.Values[0].Value != "a b" {
			t.Errorf("%s: %+v", revision, got)
		}
		if code := ask(t, i, "POST", "/api/request", `{"method":"ping"}`, nil); code != http.StatusOK {
			t.Errorf("%s: ping: %d", revision, code)
		}
	}
}

// TestRequestsClosed: the page makes these requests and no other.
func TestRequestsClosed(t *testing.T) {
	i := inspect(t, client.Local(library(t).ServeConn), "")
	for _, c := range []struct {
		body string
		want int
	}{
		{`{"method":"tools/call","params":{"name":"x"}}`, http.StatusBadRequest},
		{`{"method":"roots/list"}`, http.StatusBadRequest},
		{`{"method":"ping","command":"rm"}`, http.StatusBadRequest},
		{`{"method":"ping","params":{"path":"/etc"}}`, http.StatusBadRequest},
		{`{"method":"logging/setLevel","params":{"level":"loud"}}`, http.StatusConflict},
		{`{"method":"prompts/get","params":{"name":"trip"}}`, http.StatusBadRequest},
		{`{"method":"logging/setLevel","params":{"level":"info"}}`, http.StatusOK},
	} {
		if code := ask(t, i, "POST", "/api/request", c.body, nil); code != c.want {
			t.Errorf("%s: %d, want %d", c.body, code, c.want)
		}
	}
	i.completions.Store(maxCompletions)
	if code := ask(t, i, "POST", "/api/request", `{"method":"completion/complete","params":{}}`, nil); code != http.StatusConflict || i.completions.Load() != maxCompletions {
		t.Errorf("one completion too many: %d", code)
	}
}

// TestEntries: an entry of any list that is broken says what is wrong, and names are
// shown so that nothing in them is hidden.
func TestEntries(t *testing.T) {
	for _, c := range []struct {
		kind, text, want string
	}{
		{"prompt", `{"name":"good"}`, "good: "},
		{"prompt", `{"name":"bad","arguments":3}`, "bad: arguments is a number"},
		{"prompt", `{"name":"pay\u202enoisrev","arguments":[{"name":"a"},{"name":"a","required":true}]}`, "pay\ufffdnoisrev: "},
		{"prompt", `null`, "(number 1, without a name): it has no name"},
		{"resource", `{"uri":"x://y","name":"a file","mimeType":"text/\u202eplain"}`, "a file: "},
		{"resource", `{"uri":"x://y"}`, "x://y: "},
		{"resource", `{"uri":"x://y","size":"big"}`, "x://y: size is a string"},
		{"template", `{"uriTemplate":"x://{a}{b}","name":"t"}`, "t: its variables cannot be read"},
		{"template", `{"uriTemplate":"x://{","name":"t"}`, "t: its variables"},
		{"template", `{"uriTemplate":"x://` + strings.Repeat("/{a}", 100_000) + `","name":"t"}`, "t: its variables cannot be read; enter the URI: the template has more than"},
		{"template", `{"uriTemplate":"x://{?a` + strings.Repeat(",a", 100) + `}","name":"t"}`, "t: its variables cannot be read; enter the URI: the template has more than"},
		{"template", `7`, "(number 1, without a name): it is a number and must be an object"},
	} {
		e := entryOf(kinds[c.kind], json.RawMessage(c.text), 0)
		if c.kind == "template" {
			e.readVariables()
		}
		if got := e.Label + ": " + e.Wrong; !strings.HasPrefix(got, c.want) {
			t.Errorf("%s %s: %s, want %s", c.kind, c.text, got, c.want)
		}
		if strings.Contains(strings.Join(e.Marks, ""), "\u202e") {
			t.Errorf("%s: %q", c.text, e.Marks)
		}
		drawn, _, err := draw(e.input)
		if err != nil || strings.HasPrefix(e.Wrong, "its variables") && (len(drawn.Fields) != 1 || drawn.Fields[0].Key != wholeURI) {
			t.Errorf("%s: %v %+v", c.text, err, drawn)
		}
	}
}

func TestExpanded(t *testing.T) {
	for _, c := range []struct{ template, value, want string }{
		{"x://{a}/{+b}", `{"a":"1/2","b":"3/4"}`, "x://1%2F2/3/4"},
		{"x://{a}{?q*}", `{"a":"1","q":["2","3"]}`, "x://1?q=2&q=3"},
		{"x://{a}", `{"a":1}`, ""},
		{"x://{a}", `[`, ""},
		{"x://{a}{b}", `{"uri":"x://typed"}`, "x://typed"},
	} {
		if got := expanded(c.template, []byte(c.value)); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.template, c.value, got, c.want)
		}
	}
}

// TestServers: of several servers each has its own part of the API, and is connected
// to when it is asked for.
func TestServers(t *testing.T) {
	var list []*Inspector
	for _, name := range []string{"first", "pay\u202enoisrev"} {
		i := New(Options{Target: name, Explain: func(_ client.Transport, err error) (string, string) { return err.Error(), "" },
			Transport: func(io.Writer, func(http.RoundTripper) http.RoundTripper) (client.Transport, error) {
				return client.Local(library(t).ServeConn), nil
			}})
		t.Cleanup(i.Close)
		list = append(list, i)
	}
	get := func(path string, into any) int {
		w := httptest.NewRecorder()
		API(list...).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", path, nil))
		if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
			t.Fatalf("%s: %v", w.Body, err)
		}
		return w.Code
	}
	for n, path := range []string{"/api/1/", "/api/"} {
		i := list[1-n]
		var s struct {
			state
			Servers []server
			Prompt  offer
		}
		if get(path+"state", &s); n == 0 && (len(s.Servers) != 2 || s.Servers[0].State != "not opened" || s.Servers[1].Label != "pay\ufffdnoisrev" || s.Servers[1].Name != "pay\u202enoisrev") {
			t.Errorf("%+v", s.Servers)
		}
		until(t, i, func() bool { get(path+"state", &s); return len(s.Prompt.Entries) == 1 && s.State == "ready" }) // the list may come between both
		if s.Connection != 1 || s.State != "ready" || s.Servers[1-n].State != "ready" {
			t.Errorf("%s: %+v", path, s)
		}
	}
	var refused map[string]string
	for _, path := range []string{"/api/2/state", "/api/-1/state"} {
		if code := get(path, &refused); code != http.StatusNotFound || refused["error"] == "" {
			t.Errorf("%s: %d", path, code)
		}
	}
}

// TestFormOptions: of many long lists of options the page gets few, and asks for the
// others; a union of too many kinds is typed.
func TestFormOptions(t *testing.T) {
	enum, kinds, props := "", "", ""
	for n := range 150 {
		enum += fmt.Sprintf(`,"value %d"`, n)
		kinds += fmt.Sprintf(`,{"type":"object","properties":{"k%d":{"type":"string"}}}`, n)
		props += fmt.Sprintf(`,"p%d":{"enum":["only"]},"q%d":{"$ref":"#/$defs/e"}`, n, n)
	}
	c, lists, err := draw(json.RawMessage(`{"properties":{"kind":{"oneOf":[` + kinds[1:] + `]}` + props + `},"$defs":{"e":{"enum":[` + enum[1:] + `]}}}`))
	if err != nil || c.Fields[0].Kind != "json" {
		t.Fatalf("%+v, %v", c.Fields[0], err)
	}
	n := 0
	for _, f := range c.Fields[1:] {
		n += len(f.Options)
		if whole := len(f.Options) == 1 || len(f.Options) == 150; f.Kind != "choice" || whole != (f.Count == 0) || f.Count > 0 && len(lists[f.List-1]) != 150 {
			t.Errorf("%s: %d of %d options, list %d", f.Key, len(f.Options), f.Count, f.List)
		}
	}
	if most := mostDrawn + 150; n > most || n < mostDrawn {
		t.Errorf("%d options", n)
	}
}

// TestFormBounds: what has too many fields is typed as JSON.
func TestFormBounds(t *testing.T) {
	testdep.NoRace(t, "one goroutine draws each form")
	for n, drawn := range map[int]bool{100: true, 100_000: false} {
		var arguments strings.Builder
		for i := range n {
			fmt.Fprintf(&arguments, `,{"name":"a%d"}`, i)
		}
		e := entryOf(kinds["prompt"], json.RawMessage(`{"name":"p","arguments":[`+arguments.String()[1:]+`]}`), 0)
		c, _, err := draw(e.input)
		if (err == nil) != drawn || drawn && len(c.Fields) != n {
			t.Errorf("%d: %d fields, %v", n, len(c.Fields), err)
		}
	}
}
