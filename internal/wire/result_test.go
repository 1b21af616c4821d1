package wire

import (
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/talaria-go/mcp/protocol"
)

func TestErrorResponse(t *testing.T) {
	cause := errors.New("boom")
	for _, tt := range []struct {
		id   protocol.ID
		err  *protocol.Error
		rev  protocol.Revision
		want string
	}{
		{protocol.NewID(1), protocol.Errorf(protocol.CodeInvalidParams, "bad: %w", cause), protocol.Latest, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"bad: boom"}}`},
		{protocol.NewID("a\"b"), &protocol.Error{}, protocol.Latest, `{"jsonrpc":"2.0","id":"a\"b","error":{"code":-32603,"message":"Internal error"}}`},
		{protocol.ID{}, &protocol.Error{Code: protocol.CodeParseError}, protocol.Latest, `{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"}}`},
		{protocol.ID{}, &protocol.Error{Code: protocol.CodeParseError}, protocol.V20250618, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`},
		{protocol.NewID(2), UnsupportedVersion("x", []protocol.Revision{protocol.V20260728}), protocol.Latest, `{"jsonrpc":"2.0","id":2,"error":{"code":-32022,"message":"Unsupported protocol version \"x\"","data":{"supported":["2026-07-28"],"requested":"x"}}}`},
	} {
		if got := string(AppendErrorResponse(nil, tt.id, tt.err, tt.rev)); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
	if !errors.Is(protocol.Errorf(protocol.CodeInternal, "x: %w", cause), cause) {
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
		result protocol.CallToolResult
		wire   To
		want   string
	}{
		{"empty", protocol.CallToolResult{}, To{Revision: protocol.V20241105}, `{"content":[]}`},
		{"text, modern", protocol.CallToolResult{Content: []protocol.Content{protocol.TextContent{Text: "a\n"}}}, To{protocol.V20260728, server},
			`{"resultType":"complete","content":[{"type":"text","text":"a\n"}],"_meta":{"s":{}}}`},
		{"structured with twin", protocol.CallToolResult{AppendStructured: structured(`{"a":"b"}`), RepeatStructured: true}, To{Revision: protocol.V20250618},
			`{"structuredContent":{"a":"b"},"content":[{"type":"text","text":"{\"a\":\"b\"}"}]}`},
		{"twin before other content", protocol.CallToolResult{AppendStructured: structured(`{}`), RepeatStructured: true, Content: []protocol.Content{protocol.TextContent{Text: "x"}}}, To{Revision: protocol.V20250618},
			`{"structuredContent":{},"content":[{"type":"text","text":"{}"},{"type":"text","text":"x"}]}`},
		{"array where only objects may be", protocol.CallToolResult{AppendStructured: structured(`[1]`), RepeatStructured: true}, To{Revision: protocol.V20251125},
			`{"content":[{"type":"text","text":"[1]"}]}`},
		{"array where it may", protocol.CallToolResult{AppendStructured: structured(`[1]`), RepeatStructured: true}, To{Revision: protocol.V20260728},
			`{"resultType":"complete","structuredContent":[1],"content":[{"type":"text","text":"[1]"}]}`},
		{"structured for an old revision", protocol.CallToolResult{AppendStructured: structured(`{"a":1}`), RepeatStructured: true}, To{Revision: protocol.V20250326},
			`{"content":[{"type":"text","text":"{\"a\":1}"}]}`},
		{"error with meta", protocol.CallToolResult{IsError: true, Meta: map[string]any{"k": 1}}, To{protocol.V20260728, server},
			`{"resultType":"complete","content":[],"isError":true,"_meta":{"k":1,"s":{}}}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := AppendResult(nil, &tt.result, tt.wire)
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
	note := &protocol.Annotations{Audience: []protocol.Role{protocol.RoleUser}, Priority: &half, LastModified: time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC)}
	items := []protocol.Content{
		protocol.TextContent{Text: "t", Annotations: note},
		protocol.ImageContent{Data: []byte{1, 2, 3}, MIMEType: "image/png"},
		protocol.AudioContent{Data: []byte("snd"), MIMEType: "audio/wav"},
		protocol.ResourceLink{URI: "file:///a", Name: "a", Size: 3, Icons: []protocol.Icon{{Src: "data:,"}}},
		protocol.EmbeddedResource{Resource: protocol.ResourceContents{URI: "file:///b", MIMEType: "x/y", Blob: []byte{}}, Meta: map[string]any{"k": "v"}},
	}
	for rev, want := range map[protocol.Revision]string{
		protocol.V20241105: `[{"type":"text","text":"t","annotations":{"audience":["user"],"priority":0.5}},` +
			`{"type":"image","data":"AQID","mimeType":"image/png"},` +
			`{"type":"text","text":"[audio, audio/wav, 3 bytes: not available in protocol revision 2024-11-05]"},` +
			`{"type":"text","text":"a: file:///a"},` +
			`{"type":"resource","resource":{"uri":"file:///b","mimeType":"x/y","blob":""},"_meta":{"k":"v"}}]`,
		protocol.V20251125: `[{"type":"text","text":"t","annotations":{"audience":["user"],"priority":0.5,"lastModified":"2025-01-02T03:04:05Z"}},` +
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
	if _, err := AppendContent(nil, []protocol.Content{nil}, protocol.Latest); err == nil {
		t.Error("a nil item must be an error")
	}
	if _, err := AppendContent(nil, []protocol.Content{protocol.TextContent{Meta: map[string]any{"f": math.Inf(1)}}}, protocol.Latest); err == nil {
		t.Error("metadata that does not encode must be an error")
	}
}

func TestToolFor(t *testing.T) {
	yes := true
	tool := protocol.Tool{Name: "t", Title: "T", Icons: []protocol.Icon{{Src: "x"}}, InputSchema: json.RawMessage(`{}`), OutputSchema: json.RawMessage(`{"type":"array"}`),
		Annotations: &protocol.ToolAnnotations{ReadOnlyHint: &yes}, Meta: map[string]any{"a": 1}}
	for rev, want := range map[protocol.Revision]string{
		protocol.V20241105: `{"name":"t","inputSchema":{},"_meta":{"a":1}}`,
		protocol.V20250326: `{"name":"t","inputSchema":{},"annotations":{"title":"T","readOnlyHint":true},"_meta":{"a":1}}`,
		protocol.V20250618: `{"name":"t","title":"T","inputSchema":{},"annotations":{"readOnlyHint":true},"_meta":{"a":1}}`,
		protocol.V20251125: `{"name":"t","title":"T","icons":[{"src":"x"}],"inputSchema":{},"annotations":{"readOnlyHint":true},"_meta":{"a":1}}`,
		protocol.V20260728: `{"name":"t","title":"T","icons":[{"src":"x"}],"inputSchema":{},"outputSchema":{"type":"array"},"annotations":{"readOnlyHint":true},"_meta":{"a":1}}`,
	} {
		got, err := json.Marshal(ToolFor(tool, rev))
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
		{"true", "True", false}, {"1", "1e999999999", false}, {"1e999999999", "10e999999998", true},
		{"1e2", "100", true}, {"9007199254740993.0", "9007199254740993", true}, {"1", " 1", false}, {"1", "1x", false}, {"1", "", false}, {"1", "1/1", false}, {"-7", "-7", true},
	} {
		if got := EqualsHeader([]byte(tt.raw), tt.value); got != tt.want {
			t.Errorf("EqualsHeader(%s, %q) = %v", tt.raw, tt.value, got)
		}
	}
}

func TestProgress(t *testing.T) {
	p := Progress{Token: []byte(`"t"`), Progress: 1.5, Total: 3, Message: "half"}
	if got, want := string(p.Append(nil, protocol.V20241105)), `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1.5,"total":3}}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := string(p.Append(nil, protocol.Latest)), `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1.5,"total":3,"message":"half"}}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestCheckModern(t *testing.T) {
	capable := []byte("{}")
	for _, tt := range []struct {
		meta protocol.Meta
		code protocol.Code
	}{
		{protocol.Meta{ProtocolVersion: "2026-07-28", ClientCapabilities: capable}, 0},
		{protocol.Meta{ClientCapabilities: capable}, protocol.CodeInvalidParams},
		{protocol.Meta{ProtocolVersion: "2026-07-28"}, protocol.CodeInvalidParams},
		{protocol.Meta{ProtocolVersion: "v999", ClientCapabilities: capable}, protocol.CodeUnsupportedVersion},
		{protocol.Meta{ProtocolVersion: "2025-11-25", ClientCapabilities: capable}, protocol.CodeUnsupportedVersion},
	} {
		_, fault := CheckModern(&tt.meta, protocol.Revisions())
		if tt.code == 0 && fault != nil || tt.code != 0 && (fault == nil || fault.Code != tt.code) {
			t.Errorf("%+v: fault = %v, want code %d", tt.meta, fault, tt.code)
		}
	}
}
