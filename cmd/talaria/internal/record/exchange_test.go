package record

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/internal/tooling/recording"
)

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// exchanged makes requests with a body each, after a message with that text, and
// returns what the store has then. A status of 0 is an error.
func exchanged(t *testing.T, messages []string, bodies []string, statuses []int) (*Store, Page) {
	t.Helper()
	s := NewStore(func() {})
	for _, text := range messages {
		s.Load(recording.Entry{Dir: recording.Out, Conn: "1", Text: []byte(text)})
	}
	for n, body := range bodies {
		rt := Exchanging(tripper(func(r *http.Request) (*http.Response, error) {
			if got, err := io.ReadAll(r.Body); err != nil || string(got) != body {
				t.Errorf("%q %v", got, err)
			}
			if statuses[n] == 0 {
				return nil, errors.New("reset\x1b[31m")
			}
			return &http.Response{StatusCode: statuses[n], Header: http.Header{"Mcp-Session-Id": {"abcdef"}, "X-Odd": {"a\u202eb"}, "Set-Cookie": {"a=b; c"}}, Body: http.NoBody}, nil
		}), func(body []byte, x Exchange) { s.Exchange("1", body, x) })
		r, err := http.NewRequestWithContext(t.Context(), "POST", "http://user:pw@x.example/mcp?key=secret", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer abcdefgh")
		r.Header.Set("Accept", "text/html")
		if _, err := rt.RoundTrip(r); (err != nil) != (statuses[n] == 0) { //nolint:bodyclose // there is none
			t.Fatal(err)
		}
	}
	s.Close()
	return s, s.Rows(Query{Limit: 100})
}

// TestExchanges: an exchange belongs to the row of its message, and what has no
// message has a row of its own.
func TestExchanges(t *testing.T) {
	one, two := `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","method":"notifications/x"}`
	for _, c := range []struct {
		messages, bodies []string
		statuses         []int
		want             string // the newest first: kind, status, exchanges
	}{
		{[]string{one}, []string{one}, []int{200}, "request 200 1"},
		{[]string{one}, []string{one, one}, []int{401, 200}, "request 200 2"},
		{[]string{two, two}, []string{two, two}, []int{202, 500}, "notification 202 1|notification 500 1"},
		{[]string{one}, []string{"", "x"}, []int{405, 0}, "http 0 1|http 405 1|request 0 0"},
		{nil, []string{""}, []int{200}, "http 200 1"},
	} {
		s, page := exchanged(t, c.messages, c.bodies, c.statuses)
		var got []string
		for _, r := range page.Rows {
			got = append(got, fmt.Sprint(r.Kind, " ", r.HTTP, " ", len(s.Exchanges(r.Seq, false))))
		}
		if strings.Join(got, "|") != c.want {
			t.Errorf("%v %v: %v, want %s", c.messages, c.statuses, got, c.want)
		}
	}
	if s, _ := exchanged(t, nil, []string{""}, []int{500}); len(s.Rows(Query{Kinds: []string{"errors"}, Limit: 9}).Rows) != 1 {
		t.Error("a status of 500 is an error")
	}
}

// TestExchangeSecrets: values of credentials are masked unless they are asked for, and
// the query of the address is never kept.
func TestExchangeSecrets(t *testing.T) {
	s, _ := exchanged(t, nil, []string{""}, []int{200})
	masked, plain := s.Exchanges(1, false)[0], s.Exchanges(1, true)[0]
	if want := "[{Accept text/html false} {Authorization Bearer (8 characters) true}] [{Mcp-Session-Id (6 characters) true} {Set-Cookie (6 characters) true} {X-Odd a\ufffdb false}]"; fmt.Sprint(masked.Sent, masked.Got) != want {
		t.Errorf("got  %v\nwant %v", fmt.Sprint(masked.Sent, masked.Got), want)
	}
	if fmt.Sprint(plain.Sent[1], plain.Got[0]) != "{Authorization Bearer abcdefgh true} {Mcp-Session-Id abcdef true}" || plain.URL != "http://x.example/mcp" {
		t.Errorf("%+v", plain)
	}
	if s.Exchanges(99, true) != nil {
		t.Error("a row that there is not")
	}
	failed, _ := exchanged(t, nil, []string{""}, []int{0})
	if x := failed.Exchanges(1, true)[0]; x.Error != "reset␛[31m" || x.Status != 0 {
		t.Errorf("%+v", x)
	}
}

// FuzzExchange: whatever a server answers, and whatever error a transport has, no part of the
// query of an address that it repeats is kept, and no credential is shown.
func FuzzExchange(f *testing.F) {
	const key = "Ma2k8dQz"
	for _, text := range []string{"%s", "<%s>; rel=next", "0; url=%s", "Get \"%s\": EOF", "x %s, %s", "a=%s;b", "\x00%s"} {
		f.Add(text, "Location", true)
		f.Add(text, "X-Odd", false)
	}
	f.Fuzz(func(t *testing.T, around, name string, fails bool) {
		before, after, _ := strings.Cut(strings.ReplaceAll(around, "?", ""), "%s")
		if strings.Contains(around, key) || strings.ContainsAny(after, "/@") {
			return // it is not the address
		}
		for _, address := range []string{"http://ann:" + key + "@x.example/mcp?key=" + key + "&b=c", "/y?" + key, "https://x.example/?a=b%20" + key,
			"https://x.example/back#access_token=" + key, "?code=" + key, "back?code=" + key} {
			text := before + address + " " + after
			var got Exchange
			rt := Exchanging(tripper(func(r *http.Request) (*http.Response, error) {
				if fails {
					return nil, errors.New(text)
				}
				return &http.Response{StatusCode: 307, Header: http.Header{name: {text}, "Set-Cookie": {"a=" + key}}, Body: http.NoBody}, nil
			}), func(_ []byte, x Exchange) { got = x.masked() })
			r, err := http.NewRequestWithContext(t.Context(), "GET", "http://ann:"+key+"@x.example/mcp?key="+key+"#"+key, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+key)
			r.Header.Set("X-Api-Key", key)
			_, _ = rt.RoundTrip(r) //nolint:bodyclose // there is none
			if all := fmt.Sprintf("%+v", got); strings.Contains(all, key) {
				t.Errorf("%q: %s", text, all)
			}
		}
	})
}

// TestExchangeBounds: what a server makes of its head is kept within bounds, and counts.
func TestExchangeBounds(t *testing.T) {
	h := http.Header{}
	for n := range 200 {
		h.Set(fmt.Sprintf("X-%d", n), strings.Repeat("x", 1<<16))
	}
	list := headers(h)
	x := Exchange{Got: list}
	if len(list) != maxHeaders || x.size() > maxHeaders*5000 {
		t.Errorf("%d headers, %d bytes", len(list), x.size())
	}
	message := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	s, _ := exchanged(t, []string{message}, []string{message, message, message, message, message, message, message, message, message, message}, []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 1})
	if n := len(s.Exchanges(1, false)); n != maxExchanges || s.kept < s.rows[0].more || s.rows[0].more == 0 {
		t.Errorf("%d exchanges, %d bytes of %d", n, s.rows[0].more, s.kept)
	}
}

// TestRecordedStatus: the status that a recording has is that of the message before it on
// its connection, and of the note as well.
func TestRecordedStatus(t *testing.T) {
	s := NewStore(func() {})
	for _, e := range []recording.Entry{
		{Dir: recording.Out, Conn: "1", Text: []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)},
		{Dir: recording.Out, Conn: "2", Text: []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)},
		{Dir: recording.Note, Conn: "1", HTTP: 200, Text: []byte("POST /mcp HTTP 200")},
		{Dir: recording.In, Conn: "1", Text: []byte(`{"jsonrpc":"2.0","id":1,"result":{}}`)},
		{Dir: recording.Note, Conn: "2", HTTP: 404, Text: []byte("POST /mcp HTTP 404")},
		{Dir: recording.Note, Conn: "3", HTTP: 405, Text: []byte("GET /mcp HTTP 405")},
		{Dir: recording.Out, Conn: "4", Text: []byte(`{"jsonrpc":"2.0","id":1,"method":"one"}`)},
		{Dir: recording.Out, Conn: "4", Text: []byte(`{"jsonrpc":"2.0","id":"2","method":"two"}`)},
		{Dir: recording.Note, Conn: "4", HTTP: 200, ID: []byte("1"), Text: []byte("HTTP 200")},
		{Dir: recording.Note, Conn: "4", HTTP: 403, ID: []byte(`"2"`), Text: []byte("HTTP 403")},
	} {
		s.Load(e)
	}
	s.Close()
	var got []string
	for _, r := range s.Rows(Query{Limit: 20}).Rows {
		got = append(got, fmt.Sprint(r.Kind, " ", r.Method, r.HTTP))
	}
	if want := "note 403|note 200|request two403|request one200|note 405|note 404|note 200|notification notifications/initialized404|request tools/list200"; strings.Join(got, "|") != want {
		t.Errorf("got %s", strings.Join(got, "|"))
	}
	if p := s.Rows(Query{Limit: 10, Kinds: []string{"errors"}}); len(p.Rows) != 5 {
		t.Errorf("%+v", p.Rows)
	}
}

func TestMask(t *testing.T) {
	for value, want := range map[string]string{"Bearer abc": "Bearer (3 characters)", "x": "(1 character)", "a=b; c": "(6 characters)", "": "(0 characters)"} {
		if got := mask(value); got != want {
			t.Errorf("%s: %s", value, got)
		}
	}
}

func TestSecretName(t *testing.T) {
	for names, want := range map[string]bool{
		"DBPASS SMTPPASS dbPass DBPass DB_PW dbPw GITHUB_PAT githubPat creds AWS_CREDS jwt X-JWT bearer SENTRY_DSN dsn MYSQL_PWD mysqlpwd userpass RUBYPASS":       true,
		"Authorization X-Auth apiKey APIKey api_key key sslkey DB_PASS authToken PIN otpCode Cookie COMPASS_TOKEN":                                                 true,
		"PATH PATTERN KEYBOARD COMPASS bypass SURPASS X-Bypass OLDPWD author passenger compatible design PATCH dispatch credits spin NODE_ENV LANG jwtless pinned": false,
	} {
		for _, name := range strings.Fields(names) {
			if SecretName(name) != want {
				t.Errorf("%s: %v", name, !want)
			}
		}
	}
}
