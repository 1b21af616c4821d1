package protocol

import (
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"
)

func TestRevisions(t *testing.T) {
	for _, r := range Revisions() {
		if got, ok := ParseRevision(r.String()); !ok || got != r {
			t.Errorf("ParseRevision(%q) = %v, %v", r, got, ok)
		}
		if r.Modern() != r.Has(PerRequestMeta) {
			t.Errorf("%v: Modern and PerRequestMeta disagree", r)
		}
	}
	if _, ok := ParseRevision(""); ok {
		t.Error("the empty name is no revision")
	}
	if V20250618.Has(Batches) || !V20250326.Has(Batches) {
		t.Error("batches are a feature of 2025-03-26 alone")
	}
}

func TestNegotiate(t *testing.T) {
	for _, tt := range []struct {
		requested string
		supported []Revision
		want      Revision
	}{
		{"2025-06-18", Revisions(), V20250618},
		{"2024-11-05", Revisions(), V20241105},
		{"1999-01-01", Revisions(), LatestLegacy},
		{"2026-07-28", Revisions(), LatestLegacy},
		{"2025-11-25", []Revision{V20250326, V20241105}, V20250326},
		{"2025-11-25", []Revision{V20260728}, 0},
	} {
		if got, ok := Negotiate(tt.requested, tt.supported); got != tt.want || ok != (tt.want != 0) {
			t.Errorf("Negotiate(%q, %v) = %v, %v", tt.requested, tt.supported, got, ok)
		}
	}
}

func TestErrorText(t *testing.T) {
	for _, tt := range []struct {
		err  *Error
		want string
	}{
		{&Error{Code: CodeInvalidParams, Message: "a is missing"}, "Invalid params: a is missing"},
		{&Error{Code: CodeMethodNotFound, Message: "Method not found: x"}, "Method not found: x"},
		{&Error{Code: CodeInternal}, "Internal error"},
		{&Error{Code: 4711, Message: "no"}, "error 4711: no"},
	} {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
}

func TestErrorResponse(t *testing.T) {
	cause := errors.New("boom")
	for _, tt := range []struct {
		id   ID
		err  *Error
		rev  Revision
		want string
	}{
		{IntID(1), Errorf(CodeInvalidParams, "bad: %w", cause), Latest, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"bad: boom"}}`},
		{StringID("a\"b"), &Error{}, Latest, `{"jsonrpc":"2.0","id":"a\"b","error":{"code":-32603,"message":"Internal error"}}`},
		{ID{}, &Error{Code: CodeParseError}, Latest, `{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"}}`},
		{ID{}, &Error{Code: CodeParseError}, V20250618, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`},
		{IntID(2), UnsupportedVersion("x", []Revision{V20260728}), Latest, `{"jsonrpc":"2.0","id":2,"error":{"code":-32022,"message":"Unsupported protocol version \"x\"","data":{"supported":["2026-07-28"],"requested":"x"}}}`},
	} {
		if got := string(AppendErrorResponse(nil, tt.id, tt.err, tt.rev)); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
	if !errors.Is(Errorf(CodeInternal, "x: %w", cause), cause) {
		t.Error("the cause is lost")
	}
}

func TestCallToolResult(t *testing.T) {
	structured := func(text string) func([]byte) ([]byte, error) {
		return func(dst []byte) ([]byte, error) { return append(dst, text...), nil }
	}
	server := []byte(`"s":{}`)
	for _, tt := range []struct {
		name   string
		result CallToolResult
		wire   Wire
		want   string
	}{
		{"empty", CallToolResult{}, Wire{Revision: V20241105}, `{"content":[]}`},
		{"text, modern", CallToolResult{Content: []Content{TextContent{Text: "a\n"}}}, Wire{V20260728, server},
			`{"resultType":"complete","content":[{"type":"text","text":"a\n"}],"_meta":{"s":{}}}`},
		{"structured with twin", CallToolResult{AppendStructured: structured(`{"a":"b"}`), Twin: true}, Wire{Revision: V20250618},
			`{"structuredContent":{"a":"b"},"content":[{"type":"text","text":"{\"a\":\"b\"}"}]}`},
		{"twin before other content", CallToolResult{AppendStructured: structured(`{}`), Twin: true, Content: []Content{TextContent{Text: "x"}}}, Wire{Revision: V20250618},
			`{"structuredContent":{},"content":[{"type":"text","text":"{}"},{"type":"text","text":"x"}]}`},
		{"array where only objects may be", CallToolResult{AppendStructured: structured(`[1]`), Twin: true}, Wire{Revision: V20251125},
			`{"content":[{"type":"text","text":"[1]"}]}`},
		{"array where it may", CallToolResult{AppendStructured: structured(`[1]`), Twin: true}, Wire{Revision: V20260728},
			`{"resultType":"complete","structuredContent":[1],"content":[{"type":"text","text":"[1]"}]}`},
		{"structured for an old revision", CallToolResult{AppendStructured: structured(`{"a":1}`), Twin: true}, Wire{Revision: V20250326},
			`{"content":[{"type":"text","text":"{\"a\":1}"}]}`},
		{"error with meta", CallToolResult{IsError: true, Meta: MetaMap{"k": 1}}, Wire{V20260728, server},
			`{"resultType":"complete","content":[],"isError":true,"_meta":{"k":1,"s":{}}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := tt.result.Append(nil, tt.wire)
			if err != nil || string(got) != tt.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, tt.want)
			}
			if !json.Valid(got) {
				t.Error("not JSON")
			}
		})
	}
}

func TestContent(t *testing.T) {
	half := 0.5
	note := &Annotations{Audience: []Role{RoleUser}, Priority: &half, LastModified: time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC)}
	items := []Content{
		TextContent{Text: "t", Annotations: note},
		ImageContent{Data: []byte{1, 2, 3}, MIMEType: "image/png"},
		AudioContent{Data: []byte("snd"), MIMEType: "audio/wav"},
		ResourceLink{URI: "file:///a", Name: "a", Size: 3, Icons: []Icon{{Src: "data:,"}}},
		EmbeddedResource{Resource: ResourceContents{URI: "file:///b", MIMEType: "x/y", Blob: []byte{}}, Meta: MetaMap{"k": "v"}},
	}
	for rev, want := range map[Revision]string{
		V20241105: `[{"type":"text","text":"t","annotations":{"audience":["user"],"priority":0.5}},` +
			`{"type":"image","data":"AQID","mimeType":"image/png"},` +
			`{"type":"text","text":"[audio, audio/wav, 3 bytes: not available in protocol revision 2024-11-05]"},` +
			`{"type":"text","text":"a: file:///a"},` +
			`{"type":"resource","resource":{"uri":"file:///b","mimeType":"x/y","blob":""},"_meta":{"k":"v"}}]`,
		V20251125: `[{"type":"text","text":"t","annotations":{"audience":["user"],"priority":0.5,"lastModified":"2025-01-02T03:04:05Z"}},` +
			`{"type":"image","data":"AQID","mimeType":"image/png"},` +
			`{"type":"audio","data":"c25k","mimeType":"audio/wav"},` +
			`{"type":"resource_link","uri":"file:///a","name":"a","size":3,"icons":[{"src":"data:,"}]},` +
			`{"type":"resource","resource":{"uri":"file:///b","mimeType":"x/y","blob":""},"_meta":{"k":"v"}}]`,
	} {
		got, err := AppendContent(nil, items, rev)
		if err != nil || string(got) != want {
			t.Errorf("%v: got  %s, %v\nwant %s", rev, got, err, want)
		}
	}
	if _, err := AppendContent(nil, []Content{nil}, Latest); err == nil {
		t.Error("a nil item must be an error")
	}
	if _, err := AppendContent(nil, []Content{TextContent{Meta: MetaMap{"f": math.Inf(1)}}}, Latest); err == nil {
		t.Error("metadata that does not encode must be an error")
	}
}

func TestToolFor(t *testing.T) {
	yes := true
	tool := Tool{Name: "t", Title: "T", Icons: []Icon{{Src: "x"}}, InputSchema: json.RawMessage(`{}`), OutputSchema: json.RawMessage(`{"type":"array"}`),
		Annotations: &ToolAnnotations{ReadOnlyHint: &yes}, Meta: MetaMap{"a": 1}}
	for rev, want := range map[Revision]string{
		V20241105: `{"name":"t","inputSchema":{},"_meta":{"a":1}}`,
		V20250326: `{"name":"t","inputSchema":{},"annotations":{"title":"T","readOnlyHint":true},"_meta":{"a":1}}`,
		V20250618: `{"name":"t","title":"T","inputSchema":{},"annotations":{"readOnlyHint":true},"_meta":{"a":1}}`,
		V20251125: `{"name":"t","title":"T","icons":[{"src":"x"}],"inputSchema":{},"annotations":{"readOnlyHint":true},"_meta":{"a":1}}`,
		V20260728: `{"name":"t","title":"T","icons":[{"src":"x"}],"inputSchema":{},"outputSchema":{"type":"array"},"annotations":{"readOnlyHint":true},"_meta":{"a":1}}`,
	} {
		got, err := json.Marshal(tool.For(rev))
		if err != nil || string(got) != want {
			t.Errorf("%v: got  %s, %v\nwant %s", rev, got, err, want)
		}
	}
	if tool.Annotations.Title != "" {
		t.Error("For changed the tool itself")
	}
}

func TestHeaderValues(t *testing.T) {
	for text, header := range map[string]string{
		"us-west1": "us-west1", "Hello, 世界": "=?base64?SGVsbG8sIOS4lueVjA==?=",
		" padded ": "=?base64?IHBhZGRlZCA=?=", "line1\nline2": "=?base64?bGluZTEKbGluZTI=?=",
		"=?base64?literal?=": "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=", "a b": "a b",
	} {
		if got := EncodeHeaderValue(text); got != header {
			t.Errorf("EncodeHeaderValue(%q) = %q, want %q", text, got, header)
		}
		if got, ok := DecodeHeaderValue(header); !ok || got != text {
			t.Errorf("DecodeHeaderValue(%q) = %q, %v", header, got, ok)
		}
	}
	for _, bad := range []string{"=?base64?SGVsbG8?=", "=?base64?SGVs!!!bG8=?=", "a\nb", "\x7f", "é"} {
		if got, ok := DecodeHeaderValue(bad); ok {
			t.Errorf("DecodeHeaderValue(%q) = %q, want a fault", bad, got)
		}
	}
	for _, tt := range []struct {
		raw, value string
		want       bool
	}{
		{`"a"`, "a", true}, {`"a"`, `"a"`, false}, {"42", "42.0", true}, {"42", "43", false}, {"true", "true", true},
		{"true", "True", false}, {"1", "1e999999999", false}, {"1", "1/1", false}, {"-7", "-7", true},
	} {
		if got := EqualsHeader([]byte(tt.raw), tt.value); got != tt.want {
			t.Errorf("EqualsHeader(%s, %q) = %v", tt.raw, tt.value, got)
		}
	}
}

func TestLookup(t *testing.T) {
	raw := []byte(`{"a":{"b":[1],"c":"}"},"d":null}`)
	for _, tt := range []struct {
		path []string
		want string
	}{
		{[]string{"a", "c"}, `"}"`}, {[]string{"d"}, "null"}, {[]string{"a", "b", "0"}, ""}, {[]string{"x"}, ""}, {nil, string(raw)},
	} {
		if got := string(Lookup(raw, tt.path)); got != tt.want {
			t.Errorf("Lookup(%v) = %s, want %s", tt.path, got, tt.want)
		}
	}
}

func TestProgress(t *testing.T) {
	p := Progress{Token: []byte(`"t"`), Progress: 1.5, Total: 3, Message: "half"}
	if got, want := string(p.Append(nil, V20241105)), `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1.5,"total":3}}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := string(p.Append(nil, Latest)), `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1.5,"total":3,"message":"half"}}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
