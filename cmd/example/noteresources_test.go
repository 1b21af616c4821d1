package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// ask sends any request and returns the whole answer.
func (c *client) ask(method, params string) string {
	c.t.Helper()
	c.id++
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, c.id, method, params))
	line, err := c.out.ReadString('\n')
	if err != nil {
		c.t.Fatal(err)
	}
	return line
}

func TestNoteResources(t *testing.T) {
	c := connect(t, newBench(t, t.TempDir()))
	must[Note](c, "add_note", `{"text":"Buy milk","tags":["shop","home"]}`)
	must[Note](c, "add_note", `{"text":"Call Ada","tags":["work"]}`)
	for _, test := range []struct{ method, params, want string }{
		{"resources/read", `{"uri":"notes://all"}`, `[{\"id\":2,\"text\":\"Call Ada\"`},
		{"resources/read", `{"uri":"notes://1"}`, `"text":"{\"id\":1,\"text\":\"Buy milk\"`},
		{"resources/read", `{"uri":"notes://3"}`, `Resource not found: notes://3`},
		{"resources/read", `{"uri":"notes://x"}`, `/id: must be an integer`},
		{"prompts/get", `{"name":"summarize_notes","arguments":{"style":"haiku","most":"1"}}`, `as a haiku`},
		{"prompts/get", `{"name":"summarize_notes","arguments":{"tag":"shop"}}`, `Note 1 of 2030-03-01 [shop, home]\nBuy milk`},
		{"prompts/get", `{"name":"summarize_notes","arguments":{"tag":"none"}}`, `there are no such notes`},
		{"prompts/get", `{"name":"summarize_notes","arguments":{"style":"opera"}}`, `-32602`},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"summarize_notes"},"argument":{"name":"tag","value":"ho"}}`, `"values":["home","shop"]`},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"summarize_notes"},"argument":{"name":"style","value":"h"}}`, `"values":["haiku","paragraph"]`},
		{"completion/complete", `{"ref":{"type":"ref/resource","uri":"notes://{id}"},"argument":{"name":"id","value":""}}`, `"values":["2","1"]`},
	} {
		if got := c.ask(test.method, test.params); !strings.Contains(got, test.want) {
			t.Errorf("%s %s: got %s, want %s", test.method, test.params, got, test.want)
		}
	}
	var answer struct{ Result struct{ Messages []any } }
	if err := json.Unmarshal([]byte(c.ask("prompts/get", `{"name":"summarize_notes","arguments":{"most":"1"}}`)), &answer); err != nil {
		t.Fatal(err)
	}
	if n := len(answer.Result.Messages); n != 2 {
		t.Errorf("got %d messages, want the request and one note", n)
	}
}
