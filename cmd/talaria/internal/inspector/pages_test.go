package inspector

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestConfided: of the answer to a form all is secret but short numbers whose names and
// whose schema do not say so.
func TestConfided(t *testing.T) {
	for _, c := range []struct{ schema, content, want string }{
		{`{}`, `{"otp":"483920"}`, "483920"},
		{`{}`, `{"pin":1234,"n":1234.5}`, "1234"},
		{`{}`, `{"n":12345678,"sure":true,"list":[7,"seven"]}`, "12345678|seven"},
		{`{}`, `{"secrets":{"a":[7]}}`, "7"},
		{`{"properties":{"n":{"writeOnly":true}}}`, `{"n":42,"m":43}`, "42"},
		{``, `{"a":"b","c":3}`, "b"},
		{`{}`, `{"a`, `{"a`},
	} {
		got := formSecrets(json.RawMessage(c.schema), json.RawMessage(c.content))
		slices.Sort(got)
		if strings.Join(got, "|") != c.want {
			t.Errorf("%s: got %v, want %s", c.content, got, c.want)
		}
	}
}

// TestAnswerIsMasked: what a person has answered is in nothing that is shared.
func TestAnswerIsMasked(t *testing.T) {
	i := connected(t)
	ask(t, i, "POST", "/api/call", `{"tool":"ask","arguments":"{}"}`, nil)
	until(t, i, func() bool { return len(snapshot(i).Questions) == 1 })
	ask(t, i, "POST", "/api/questions", fmt.Sprintf(`{"id":%d,"action":"accept","content":"{\"sure\":true,\"otp\":\"483920\"}"}`, snapshot(i).Questions[0].ID), nil)
	if out, err := i.mask.hide("it is 483920"); err != nil || out != "it is ***" {
		t.Errorf("%s, %v", out, err)
	}
}

// TestFormLists: a list that there is not has nothing in it, and a question that does not
// wait opens nothing.
func TestFormLists(t *testing.T) {
	i := connected(t)
	listed(t, i, "tool")
	ask(t, i, "GET", "/api/form?tool=sum", "", nil)
	ask(t, i, "POST", "/api/call", `{"tool":"ask","arguments":"{}"}`, nil)
	until(t, i, func() bool { return len(snapshot(i).Questions) == 1 })
	for _, c := range []struct {
		query, want string
		code        int
	}{
		{"tool=sum&list=1", "[]", http.StatusOK},
		{"tool=sum&list=x", "[]", http.StatusOK},
		{fmt.Sprintf("question=%d&list=9", snapshot(i).Questions[0].ID), "[]", http.StatusOK},
		{"question=99&list=1", "no longer open", http.StatusNotFound},
		{"question=99", "no longer open", http.StatusNotFound},
		{"question=x&tool=sum", "no longer open", http.StatusNotFound},
	} {
		var got json.RawMessage
		if code := ask(t, i, "GET", "/api/form?"+c.query, "", &got); code != c.code || !strings.Contains(string(got), c.want) {
			t.Errorf("%s: %d %s", c.query, code, got)
		}
	}
	i.history.mu.Lock()
	defer i.history.mu.Unlock()
	if i.history.tool != "sum" {
		t.Errorf("%q is open", i.history.tool)
	}
}
