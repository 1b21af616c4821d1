package inspector

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/internal/test/backendtest"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// scripted is a server that answers each method, or the call of each tool, with a text
// of its own, in one of two revisions.
func scripted(revision string, answers map[string]string) client.Transport {
	return client.Local(func(_ context.Context, conn transport.Conn) error {
		return backendtest.Scripted(conn, func(m *protocol.Message, _ string) string {
			var params struct{ Name string }
			_ = json.Unmarshal(m.Params, &params) // without a name it is the method's
			answer, ok := answers[strings.TrimSpace(m.Method+" "+params.Name)]
			switch {
			case ok:
				return `"result":` + answer
			case m.Method == "server/discover" && revision == "2026-07-28":
				return `"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"prompts":{},"resources":{}},"serverInfo":{"name":"odd","version":"1"},"ttlMs":0,"cacheScope":"private"}`
			case m.Method == "initialize":
				return `"result":{"protocolVersion":"` + revision + `","capabilities":{"tools":{},"prompts":{},"resources":{}},"serverInfo":{"name":"odd","version":"1"}}`
			}
			return `"error":{"code":-32601,"message":"no"}`
		})
	})
}

// TestFaults: what is wrong with a definition is said in the list and at the form, with its
// place and its rule, in every revision; what is right is not marked.
func TestFaults(t *testing.T) {
	tool := func(input, more string) string { return fmt.Sprintf(`{"name":"$n","inputSchema":%s%s}`, input, more) }
	property := func(schema string) string { return tool(`{"type":"object","properties":{"a":`+schema+`}}`, "") }
	output := func(schema string) string { return tool(`{"type":"object"}`, `,"outputSchema":`+schema) }
	for _, c := range []struct{ kind, text, want string }{
		{"tool", tool(`{"type":"object"}`, ""), ""},
		{"tool", property(`{"$ref":"#/$defs/b"}},"$defs":{"b":{"type":"string"}`), ""},
		{"tool", property(`{"type":["string","null"],"default":null,"x-mine":1}`), ""},
		{"tool", output(`{"type":"object","properties":{"a":{}}}`), ""},
		{"tool", output(`null`), ""},
		{"tool", tool(`{"type":"object","required":"a"}`, ""), "/inputSchema/required: must be an array"},
		{"tool", tool(`{"type":"object","required":["a","a"]}`, ""), "/inputSchema/required: must be an array of different names"},
		{"tool", property(`{"type":"strin"}`), "/inputSchema/properties/a/type: must be one of"},
		{"tool", property(`{"type":"string","required":true}`), "/inputSchema/properties/a/required: must be an array"},
		{"tool", property(`{"$ref":"#/$defs/b"}`), "/inputSchema/properties/a/$ref: there is nothing at #/$defs/b"},
		{"tool", property(`{"$ref":"https://example.com/b"}`), "/inputSchema/properties/a/$ref: reference to"},
		{"tool", property(`{"pattern":"["}`), "/inputSchema/properties/a/pattern:"},
		{"tool", property(`{"minimum":"1"}`), "/inputSchema/properties/a/minimum: must be a number"},
		{"tool", property(`{"enum":"a"}`), "/inputSchema/properties/a/enum: must be an array"},
		{"tool", property(`{"anyOf":{}}`), "/inputSchema/properties/a/anyOf: must be an array"},
		{"tool", property(`5`), "/inputSchema/properties/a: a schema is an object"},
		{"tool", tool(`{"type":"object","properties":[]}`, ""), "/inputSchema/properties: must be an object"},
		{"tool", tool(`{"properties":{}}`, ""), `/inputSchema/type: must be "object"; got none`},
		{"tool", tool(`{"type":"array"}`, ""), `/inputSchema/type: must be "object"; got "array"`},
		{"tool", tool(`{"type":["object"]}`, ""), `/inputSchema/type: must be "object"; got ["object"]`},
		{"tool", tool(`true`, ""), `/inputSchema/type: must be "object"; got none`},
		{"tool", tool(`null`, ""), "/inputSchema: a schema is an object"},
		{"tool", tool(`"x"`, ""), "/inputSchema: a schema is an object"},
		{"tool", tool(`{"$schema":"https://example.com/mine","type":"object"}`, ""), "/inputSchema/$schema:"},
		{"tool", `{"name":"$n"}`, "/inputSchema: is missing"},
		{"tool", output(`{"type":"strin"}`), "/outputSchema/type: must be one of"},
		{"tool", output(`{"type":"array"}`), `legacy: /outputSchema/type: must be "object"; got "array"`},
		{"tool", property(`{"pattern":"^(?=a)b$"}`), ""}, // which regexp has not
		{"tool", property(`{"pattern":"(a)\\\\1"}`), ""},
		{"tool", property(`{"pattern":"(?<x"}`), "/inputSchema/properties/a/pattern:"},
		{"tool", property(`{"multipleOf":0}`), "/inputSchema/properties/a/multipleOf: must be a number above 0"},
		{"tool", tool(`{"type":"object"}`, `,"annotations":[]`), "annotations is an array and must be an object"},
		{"tool", tool(`{"type":"object"}`, `,"annotations":{"readOnlyHint":"yes"}`), "annotations.readOnlyHint is a string and must be a boolean"},
		{"tool", tool(`{"type":"object"}`, `,"icons":5`), "icons is a number and must be an array"},
		{"prompt", `{"name":"$n","arguments":{}}`, "arguments is an object and must be an array"},
		{"prompt", `{"name":"$n","arguments":[{"name":"a"},{"name":"b"}]}`, ""},
		{"prompt", `{"name":"$n","arguments":[{"name":"a"},{"description":"b"}]}`, "/arguments/1: must have a name"},
		{"prompt", `{"name":"$n","arguments":[{"name":"a"},{"name":"a"}]}`, "/arguments/1/name: must differ"},
		{"resource", `{"name":"$n","uri":"x://$n"}`, ""},
		{"resource", `{"name":"$n","uri":"urn:$n"}`, ""},
		{"resource", `{"uri":"x://$n"}`, "/name: is missing"},
		{"resource", `{"name":"$n","uri":"x://$n","size":"1"}`, "size is a string and must be an integer"},
		{"template", `{"name":"$n","uriTemplate":"x://$n/{a}"}`, ""},
		{"template", `{"name":"$n"}`, "/uriTemplate: is missing"},
		{"template", `{"uriTemplate":"x://$n/{a}"}`, "/name: is missing"},
		{"resource", `{"name":"$n"}`, "/uri: is missing"},
		{"resource", `{"name":"$n","uri":"docs/$n"}`, "/uri: must begin with a scheme"},
		{"resource", `{"name":"$n","uri":"x://%zz"}`, "/uri: must be a URI"},
	} {
		for _, revision := range []string{"2026-07-28", "2025-11-25", "2024-11-05"} {
			want, legacy := strings.CutPrefix(c.want, "legacy: ")
			if legacy && revision == "2026-07-28" {
				want = ""
			}
			list := strings.ReplaceAll(c.text, "$n", "one") + "," + strings.ReplaceAll(c.text, "$n", "two")
			i := inspect(t, scripted(revision, map[string]string{
				kinds[c.kind].list: `{"resultType":"complete","ttlMs":0,"cacheScope":"private","` + kinds[c.kind].member + `":[` + list + `]}`,
			}), "")
			o := listed(t, i, c.kind)
			if len(o.Entries) != 2 || o.Error != "" {
				t.Fatalf("%s %s: %+v", revision, c.text, o)
			}
			for _, e := range o.Entries {
				if !strings.HasPrefix(e.Wrong, want) || want == "" && e.Wrong != "" {
					t.Errorf("%s %s: %q, want %q", revision, c.text, e.Wrong, want)
				}
			}
			var f form
			if ask(t, i, "GET", "/api/form?kind="+c.kind+"&tool="+url.QueryEscape(o.Entries[0].Name), "", &f); o.Entries[0].Name != "" && !strings.HasPrefix(f.Wrong, want) {
				t.Errorf("the form of %s: %q, want %q", c.text, f.Wrong, want)
			}
			i.Close()
		}
	}
}

// TestTwice: of two entries with one name the second is marked.
func TestTwice(t *testing.T) {
	i := inspect(t, odd(`{"name":"a","inputSchema":{"type":"object"}},{"name":"b","inputSchema":{"type":"object"}},{"name":"a","inputSchema":{"type":"object"}}`), "")
	var got []string
	for _, e := range listed(t, i, "tool").Entries {
		got = append(got, fmt.Sprintf("%s %v", e.Name, e.Wrong))
	}
	if want := "a |b |a its name is listed twice"; !strings.HasPrefix(strings.Join(got, "|"), want) {
		t.Errorf("got %q", got)
	}
}

// TestJudgedBytes: of a list that is too long to be checked the form says what is wrong.
func TestJudgedBytes(t *testing.T) {
	long := strings.Repeat("x", maxJudged)
	i := inspect(t, odd(`{"name":"long","description":"`+long+`","inputSchema":{"type":"object"}},{"name":"bad","inputSchema":{"type":"strin"}}`), "")
	if o := listed(t, i, "tool"); len(o.Entries) != 2 || o.Entries[1].Wrong != "" {
		t.Errorf("%+v", o.Entries[1])
	}
	var f form
	if ask(t, i, "GET", "/api/form?tool=bad", "", &f); !strings.HasPrefix(f.Wrong, "/inputSchema/type: must be one of") {
		t.Errorf("%q", f.Wrong)
	}
}

// TestInvalid: a result that does not match the output schema of its tool is no success,
// whatever of it is missing, and remains none after a restart.
func TestInvalid(t *testing.T) {
	const schema = `{"type":"object","required":["n"],"properties":{"n":{"type":"integer"}}}`
	for _, revision := range []string{"2026-07-28", "2025-11-25", "2025-06-18"} {
		for _, c := range []struct {
			name, result, state string
			checked             bool
			issue               string
		}{
			{"matches", `"content":[],"structuredContent":{"n":1}`, "done", true, ""},
			{"none", `"content":[{"type":"text","text":"{\"n\":1}"}]`, "invalid", true, "has no structuredContent"},
			{"nothing", `"content":[]`, "invalid", true, "has no structuredContent"},
			{"wrong", `"content":[],"structuredContent":{"n":"1"}`, "invalid", true, "must be an integer"},
			{"missing", `"content":[],"structuredContent":{}`, "invalid", true, "is required"},
			{"fails", `"content":[],"isError":true`, "failed", false, ""},
			{"plain", `"content":[]`, "done", false, ""},
		} {
			output := `,"outputSchema":` + schema
			if c.name == "plain" {
				output = ""
			}
			i := inspect(t, scripted(revision, map[string]string{
				"tools/list":           `{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"` + c.name + `","inputSchema":{"type":"object"}` + output + `}]}`,
				"tools/call " + c.name: `{"resultType":"complete",` + c.result + `}`,
			}), "")
			listed(t, i, "tool")
			got := finished(t, i, c.name, "{}")
			if got.State != c.state || got.Checked != c.checked || (c.issue == "") != (len(got.Issues) == 0) || c.issue != "" && !strings.Contains(got.Issues[0].Message, c.issue) {
				t.Errorf("%s %s: %+v", revision, c.name, got)
			}
			until(t, i, func() bool { // what is kept has the verdict
				list := i.calls.kept()
				return len(list) == 1 && list[0].State == c.state
			})
			if report, err := (exporter{i}).exported(got, "report", "share"); err != nil || strings.Contains(report, "does not match its output schema") != (c.state == "invalid") {
				t.Errorf("%s: %v %s", c.name, err, report)
			}
			i.Close()
		}
	}
}
