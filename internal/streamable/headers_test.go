package streamable

import (
	"encoding/base64"
	"encoding/json"
	"testing"

	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

func encoded(text string) string {
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(text)) + "?="
}

// Mcp-Method and Mcp-Name must say what the body says.
func TestStandardHeaders(t *testing.T) {
	const isCall = "Mcp-Method: tools/call"
	tests := []struct {
		name    string
		body    string
		headers headers
		ok      bool
	}{
		{"list", call("tools/list", ""), headers{"Mcp-Method: tools/list"}, true},
		{"list, name ignored", call("tools/list", ""), headers{"Mcp-Method: tools/list", "Mcp-Name: x"}, true},
		{"name of the header in lower case", call("tools/list", ""), headers{"mcp-method: tools/list"}, true},
		{"no method", call("tools/list", ""), nil, false},
		{"another method", call("tools/list", ""), headers{"Mcp-Method: tools/call"}, false},
		{"another case", call("tools/list", ""), headers{"Mcp-Method: TOOLS/LIST"}, false},
		{"method twice", call("tools/list", ""), headers{"Mcp-Method: tools/list", "+Mcp-Method: tools/list"}, false},
		{"method encoded", call("tools/list", ""), headers{"Mcp-Method: " + encoded("tools/list")}, false},

		{"call", call("tools/call", `"name":"add"`), headers{isCall, "Mcp-Name: add"}, true},
		{"call, name encoded", call("tools/call", `"name":"add"`), headers{isCall, "Mcp-Name: " + encoded("add")}, true},
		{"call, name that needs it", call("tools/call", `"name":"größe"`), headers{isCall, "Mcp-Name: " + encoded("größe")}, true},
		{"call, raw bytes", call("tools/call", `"name":"größe"`), headers{isCall, "Mcp-Name: größe"}, false},
		{"call, name escaped in the body", call("tools/call", `"name":"\u0061dd"`), headers{isCall, "Mcp-Name: add"}, true},
		{"call, no name header", call("tools/call", `"name":"add"`), headers{isCall}, false},
		{"call, another name", call("tools/call", `"name":"add"`), headers{isCall, "Mcp-Name: sub"}, false},
		{"call, name twice", call("tools/call", `"name":"add"`), headers{isCall, "Mcp-Name: add", "+Mcp-Name: add"}, false},
		{"call, no name in the body", call("tools/call", ""), headers{isCall, "Mcp-Name: add"}, false},
		{"call, bad padding", call("tools/call", `"name":"Hello"`), headers{isCall, "Mcp-Name: =?base64?SGVsbG8?="}, false},
		{"call, bad letters", call("tools/call", `"name":"Hello"`), headers{isCall, "Mcp-Name: =?base64?SGVs!!!bG8=?="}, false},

		{"read", call("resources/read", `"uri":"file:///a"`), headers{"Mcp-Method: resources/read", "Mcp-Name: file:///a"}, true},
		{"read, another uri", call("resources/read", `"uri":"file:///a"`), headers{"Mcp-Method: resources/read", "Mcp-Name: file:///b"}, false},
		{"prompt", call("prompts/get", `"name":"p"`), headers{"Mcp-Method: prompts/get", "Mcp-Name: p"}, true},
		{"prompt, no name", call("prompts/get", `"name":"p"`), headers{"Mcp-Method: prompts/get"}, false},
	}
	h := New(newBackend().as(), Options{})
	for _, tt := range tests {
		w := post(h, tt.body, append(headers{modern}, tt.headers...)...)
		if tt.ok {
			check(t, tt.name, w, 200, 0, true)
		} else {
			check(t, tt.name, w, 400, protocol.CodeHeaderMismatch, true)
		}
	}
	// Legacy requests have no such headers, and none are looked at.
	check(t, "legacy", post(h, legacyCall("tools/list"), inS1, "Mcp-Method: other"), 200, 0, true)
}

// Mcp-Param headers mirror arguments of tools/call.
func TestParamHeaders(t *testing.T) {
	tests := []struct {
		name, args string // "" for none at all
		header     string // of Mcp-Param-Region
		ok         bool
	}{
		{"same", `{"region":"eu"}`, "eu", true},
		{"encoded", `{"region":"Hello"}`, "=?base64?SGVsbG8=?=", true},
		{"encoded, not ASCII", `{"region":"世界"}`, encoded("世界"), true},
		{"encoded, spaces", `{"region":" x "}`, encoded(" x "), true},
		{"encoded, empty", `{"region":""}`, encoded(""), true},
		{"looks encoded, literal", `{"region":"SGVsbG8="}`, "SGVsbG8=", true},
		{"open only, literal", `{"region":"=?base64?SGVsbG8="}`, "=?base64?SGVsbG8=", true},
		{"upper case marks, literal", `{"region":"=?BASE64?SGVsbG8=?="}`, "=?BASE64?SGVsbG8=?=", true},
		{"another value", `{"region":"eu"}`, "us", false},
		{"another case", `{"region":"eu"}`, "EU", false},
		{"bad padding", `{"region":"Hello"}`, "=?base64?SGVsbG8?=", false},
		{"bad letters", `{"region":"Hello"}`, "=?base64?SGVs!!!bG8=?=", false},
		{"raw bytes", `{"region":"ü"}`, "ü", false},
		{"header missing", `{"region":"eu"}`, "", false},
		{"argument missing", `{}`, "eu", false},
		{"neither", `{}`, "", true},
		{"no arguments", ``, "", true},
		{"null", `{"region":null}`, "", true},
		{"null with header", `{"region":null}`, "null", false},
		{"arguments no object", `[]`, "", true}, // the tool says what is wrong
		{"integer", `{"region":42}`, "42", true},
		{"integer, written otherwise", `{"region":42.0}`, "42", true},
		{"another integer", `{"region":42}`, "43", false},
		{"integer, no number", `{"region":42}`, "forty-two", false},
		{"boolean", `{"region":true}`, "true", true},
		{"another boolean", `{"region":true}`, "false", false},
		{"nested elsewhere", `{"x":{"region":"eu"}}`, "", true},
	}
	b := newBackend()
	b.headers = []facts.Header{{Name: "Region", Path: []string{"region"}}}
	h := New(b.as(), Options{})
	for _, tt := range tests {
		params := `"name":"t"`
		if tt.args != "" {
			params += `,"arguments":` + tt.args
		}
		hs := headers{modern, "Mcp-Method: tools/call", "Mcp-Name: t", "mcp-param-other: is nobody's"}
		if tt.header != "" {
			hs = append(hs, "MCP-PARAM-REGION: "+tt.header)
		}
		w := post(h, call("tools/call", params), hs...)
		if tt.ok {
			check(t, tt.name, w, 200, 0, true)
		} else {
			check(t, tt.name, w, 400, protocol.CodeHeaderMismatch, true)
		}
	}
	w := post(h, call("tools/call", `"name":"t","arguments":{"region":"eu"}`),
		modern, "Mcp-Method: tools/call", "Mcp-Name: t", "Mcp-Param-Region: eu", "+Mcp-Param-Region: eu")
	check(t, "twice", w, 400, protocol.CodeHeaderMismatch, true)
	// Other methods have no mirrored arguments.
	w = post(h, call("prompts/get", `"name":"t","arguments":{"region":"eu"}`), modern, "Mcp-Method: prompts/get", "Mcp-Name: t")
	check(t, "prompt", w, 200, 0, true)
}

// A nested argument is found by its path, and the error names it.
func TestNestedParamHeader(t *testing.T) {
	b := newBackend()
	b.headers = []facts.Header{{Name: "City", Path: []string{"address", "city"}}}
	h := New(b.as(), Options{})
	send := func(city string) (message string) {
		w := post(h, call("tools/call", `"name":"t","arguments":{"city":"Rom","address":{"street":{"city":"x"},"city":"Oslo"}}`),
			modern, "Mcp-Method: tools/call", "Mcp-Name: t", "Mcp-Param-City: "+city)
		var m struct{ Error struct{ Message string } }
		if err := json.Unmarshal(w.Body.Bytes(), &m); err != nil {
			t.Fatal(err)
		}
		return m.Error.Message
	}
	if got := send("Oslo"); got != "" {
		t.Errorf("the right city: %s", got)
	}
	want := `Header mismatch: Mcp-Param-City header value "Rom" does not match argument address.city`
	if got := send("Rom"); got != want {
		t.Errorf("the wrong city: %s\nwant %s", got, want)
	}
}

// Nothing that a client sends in these headers breaks the server, and what
// does not match is never served.
func FuzzHeaders(f *testing.F) {
	f.Add("add", "add", `{"region":"eu"}`, "eu")
	f.Add("=?base64?YWRk?=", "add", `{"region":1e9}`, "1000000000")
	b := newBackend()
	b.headers = []facts.Header{{Name: "Region", Path: []string{"region"}}}
	var served *Call
	b.serve = func(c *Call) Answer { served = c; return result(c, "1") }
	h := New(b.as(), Options{})
	f.Fuzz(func(t *testing.T, header, name, args, region string) {
		text, err := json.Marshal(name)
		if err != nil {
			return
		}
		served = nil
		w := post(h, call("tools/call", `"name":`+string(text)+`,"arguments":`+args),
			modern, "Mcp-Method: tools/call", "Mcp-Name: "+header, "Mcp-Param-Region: "+region)
		if (served != nil) != (w.Code == 200) {
			t.Fatalf("status %d, served %v", w.Code, served != nil)
		}
		if served == nil {
			return
		}
		if decoded, ok := wire.DecodeHeaderValue(served.HTTP.Header.Get("Mcp-Name")); !ok || decoded != served.Params.Name {
			t.Errorf("header %q served %q", header, served.Params.Name)
		}
	})
}
