package inspector

import (
	"strings"
	"testing"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/test/testdep"
)

// TestLikely: what is masked wherever it is may be a secret, and nothing that other texts
// have as well.
func TestLikely(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        bool
	}{
		{"DEBUG", "true", false}, {"PORT", "3000", false}, {"RATIO", "0.125", false}, {"LEVEL", "info", false}, {"API_KEY_ENABLED", "Disabled", false}, {"PASSWORD", "1234", false},
		{"HOME", "/home/somebody", false}, {"PATH", "/usr/local/bin:/usr/bin:/bin", false}, {"DATA", `C:\Users\ann\data.db`, false}, {"CONFIG", "./config/local.json", false}, {"CACHE", "~/.cache/bills", false},
		{"DATABASE", "postgres://ann:pw@host/db", true}, {"NOTE", "tenant-of-ann", true}, {"NUMBER", "12345678", true},
		{"API_KEY", "abcd", true}, {"API_KEY", "abc", false}, {"DB_PASS", "hunt", true}, {"PIN", "a1b2", true}, {"apikey", "abcd", true}, {"X-Auth", "abcd", true}, {"key", "abcd", true},
		{"author", "anna", false}, {"keyboard", "anna", false}, {"passenger", "anna", false}, {"design", "anna", false},
		{"SEED", "/8Jf0aQx7KQm2Yd0vYp7n3cTz1rB5wLk9HsGd4", true}, {"SEED", "/8Jf+aQx7KQm2", true}, {"SECRET_FILE", "/run/secrets/key", true},
	} {
		if got := likely(c.name, c.value); got != c.want {
			t.Errorf("%s=%s: %v", c.name, c.value, got)
		}
	}
}

// TestSettings: of variables and flags what may be a secret is masked wherever it is, and
// what is too short for that in its place, if its name says that it is one.
func TestSettings(t *testing.T) {
	words := []string{"--env", "DEBUG=true", "--env", "PORT=3000", "--env", "PIN=17", "--header", "X-Api-Key: 42", "--header", "X-Day=12", "--token", "abc", "http://127.0.0.1/mcp?key=7&page=2"}
	i := New(Options{Words: words})
	defer i.Close()
	i.mask.learn(&client.CommandTransport{Env: []string{"DEBUG=true", "PORT=3000", "DATABASE=postgres://ann:hush@host/db?sslkey=abcd", "TOKEN=t0k1"}})
	i.reach.url = "http://127.0.0.1/mcp?key=7&page=2"
	i.reach.header = map[string][]string{"X-Api-Key": {"42"}, "X-Day": {"12"}}
	one := call{Method: "tools/call", Tool: "sum", Label: "sum", Arguments: `{"a":true,"b":3000,"c":"hush abcd t0k1 42"}`, State: "done"}
	i.offered = map[string]*offer{"tool": {Entries: []entry{{Name: "sum", input: []byte(`{}`)}}}}
	for as, want := range map[string]string{
		"command": `talaria call --env DEBUG=true --env PORT=3000 --env 'PIN=***' --header 'X-Api-Key: ***' --header X-Day=12 --token '***' -- 'http://127.0.0.1/mcp?key=***&page=2' sum '{"a":true,"b":3000,"c":"*** *** *** 42"}'`,
		"curl":    `-H 'X-Api-Key: ***'|-H 'X-Day: 12'|'http://127.0.0.1/mcp?key=***&page=2'|"a":true,"b":3000,"c":"*** *** *** 42"`,
	} {
		text, err := exporter{i}.exported(one, as, "share")
		if err != nil {
			t.Fatal(err)
		}
		for part := range strings.SplitSeq(want, "|") {
			if !strings.Contains(text, part) {
				t.Errorf("%s: %s is not in\n%s", as, part, text)
			}
		}
	}
}

// TestInPlace: a value in a query is masked whole, however the URL is written, and what
// is beside it stays.
func TestInPlace(t *testing.T) {
	testdep.NoRace(t, "one goroutine compares long texts")
	for _, c := range []struct{ text, want string }{
		{"?page=2&key=7#pin=8", "?page=2&key=***#pin=***"},
		{"?page=2;pin=17;x=1", "?page=2;pin=***"}, // some servers take ; for a part of the value
		{`{"u":"h?a=1\u0026pin=17\u0026b=2"}`, `{"u":"h?a=1\u0026pin=***\u0026b=2"}`},
		{`{"u":"{\"v\":\"h?a=1\\u0026pin=17\"}"}`, `{"u":"{\"v\":\"h?a=1\\u0026pin=***\"}"}`},
		{"?a=1&amp;pin=17&amp;b=2", "?a=1&amp;pin=***&amp;b=2"},
		{`"?token=ab\/cdef"`, `"?token=***"`},
		{`"?token=ab\u002Bcd\\u003def\n"`, `"?token=***\n"`},
		{"?key=***&page=2", "?key=***&page=2"},
		{"http://h***ey=7", "http://h***ey=***"}, // a server has had the name masked
		{"?page=2&size=3", "?page=2&size=3"},
		{"?token=", "?token="},
	} {
		got := inPlace(c.text)
		if got != c.want {
			t.Errorf("%s: got %s, want %s", c.text, got, c.want)
		}
		if again := inPlace(got); again != got {
			t.Errorf("%s: again %s", got, again)
		}
	}
	inPlace(strings.Repeat("?a=", 200_000)) // takes no time that grows with its square
}
