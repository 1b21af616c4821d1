package protocol

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"testing/quick"
	"time"
	"unicode/utf8"
)

// Whatever is made is read again as it was: alone, as a line, and in a batch.
func TestMessagesComeBack(t *testing.T) {
	check := func(number int64, text, method string, code int16, total float64, asText bool) bool {
		id := NewID(number)
		if asText {
			id = NewID(text)
		}
		if !utf8.ValidString(text) || !utf8.ValidString(method) || len(method) > maxMethod || len(id.String()) > maxID {
			return true // JSON has other bytes for these
		}
		failure := &Error{Code: Code(code), Message: text, RetryAfter: time.Duration(number&0xffff) * time.Millisecond}
		params := map[string]any{"text": text, "number": total}
		var made []Message
		add := func(m Message, err error) {
			if err != nil {
				t.Error(err)
			}
			made = append(made, m)
		}
		add(NewRequest(id, "m"+method, params))
		add(NewNotification("m"+method, nil))
		add(NewProgress([]byte(id.String()), total, 0, text))
		add(NewResponse(id, params))
		add(NewErrorResponse(id, failure), nil)
		var lines, batch bytes.Buffer
		for i, m := range made {
			encoded, err := m.MarshalJSON()
			if err != nil {
				t.Error(err)
			}
			lines.Write(append(encoded, '\n'))
			batch.WriteByte("[,"[min(i, 1)])
			batch.Write(encoded)
		}
		lines.Write(append(batch.Bytes(), "]\n"...))
		i := 0
		for m, err := range DecodeLines(&lines) {
			want := made[i%len(made)]
			if i++; err != nil || !reflect.DeepEqual(m, want) {
				t.Errorf("%+v came back as %+v: %v", want, m, err)
				return false
			}
			if err := m.Validate(V20251125); err != nil {
				t.Errorf("%+v: %v", m, err)
			}
			var again Error
			if m.Error != nil && (again.UnmarshalJSON(m.Error) != nil || again.RetryAfter != failure.RetryAfter) {
				t.Errorf("%s came back as %+v", m.Error, again)
			}
		}
		return i == 2*len(made)
	}
	if err := quick.Check(check, nil); err != nil {
		t.Error(err)
	}
}

// What a revision has not is refused, with the error to answer with.
func TestValidate(t *testing.T) {
	const modernMeta = `"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}`
	for _, tt := range []struct {
		text string
		rev  Revision
		want string
	}{
		{`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, V20241105, ""},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/list",` + modernMeta + `}`, V20260728, ""},
		{`{"jsonrpc":"2.0","id":1,"method":"acme/own",` + modernMeta + `}`, V20260728, ""},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, V20260728, `params._meta["io.modelcontextprotocol/protocolVersion"] must be "2026-07-28", got ""`},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, V20260728,
			`params._meta["io.modelcontextprotocol/clientCapabilities"] is missing; every request must carry it`},
		{`{"jsonrpc":"2.0","id":1,"method":"initialize",` + modernMeta + `}`, V20260728, "Method not found: initialize is not in revision 2026-07-28"},
		{`{"jsonrpc":"2.0","id":1,"method":"server/discover"}`, V20251125, "Method not found: server/discover is not in revision 2025-11-25"},
		{`{"jsonrpc":"2.0","id":1,"method":"elicitation/create"}`, V20250326, "Method not found: elicitation/create is not in revision 2025-03-26"},
		{`{"jsonrpc":"2.0","id":1,"method":"notifications/initialized"}`, V20250326, "notifications/initialized is a notification: it has no id"},
		{`{"jsonrpc":"2.0","method":"tools/call"}`, V20250326, "tools/call is a request: member id is missing"},
		{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":1}}`, V20250326, "params.name must be a string, got number"},
		{`{"jsonrpc":"2.0","id":1,"result":{}}`, V20251125, ""},
		{`{"jsonrpc":"2.0","id":1,"result":[]}`, V20251125, "result must be an object, got array"},
		{`{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete"}}`, V20260728, ""},
		{`{"jsonrpc":"2.0","id":1,"result":{}}`, V20260728, "result.resultType is missing; every result of revision 2026-07-28 has it"},
		{`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}`, V20250618, ""},
		{`{"jsonrpc":"2.0","id":1,"error":7}`, V20250618, "error must be an object, got number"},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":-32600.0,"message":"x"}}`, V20250618, ""},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":"x"}}`, V20250618, "error.code must be an integer"},
		{`{"jsonrpc":"2.0","id":1,"error":{"message":"x"}}`, V20250618, "error.code must be an integer"},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":1}}`, V20250618, "error.message must be a string"},
	} {
		m, err := Decode([]byte(tt.text))
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		got := ""
		if err := m.Validate(tt.rev); err != nil {
			got = err.(*Error).Message
		}
		if got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.text, got, tt.want)
		}
	}
}

// Content of a type that the specification does not name is read with the rest of a message,
// and is written as it came; a known type with wrong members is refused.
func TestUnknownContent(t *testing.T) {
	for _, raw := range []string{`{"type":"video","data":{"x":[1]}}`, `{"type":"error","text":"no"}`, `{"text":"no type"}`, `{"type":"thinking","thinking":"hm","signature":"x"}`} {
		text := `{"type":"text","text":"good"}`
		var m SampleMessage
		message := `{"role":"user","content":[` + text + `,` + raw + `]}`
		if err := m.UnmarshalJSON([]byte(message)); err != nil || len(m.Content) != 2 || string(m.Content[1].(UnknownContent).Raw) != raw {
			t.Errorf("%s: %+v, %v", raw, m, err)
		}
		if got, err := m.MarshalJSON(); err != nil || string(got) != message {
			t.Errorf("%s came back as %s, %v", message, got, err)
		}
		var r SampleResult
		for content, items := range map[string]int{raw: 1, `[` + raw + `,` + text + `]`: 2, `{"type":"tool_result","toolUseId":"1","content":[` + raw + `]}`: 1} {
			if err := r.UnmarshalJSON([]byte(`{"role":"assistant","model":"m","content":` + content + `}`)); err != nil || len(r.Content) != items {
				t.Errorf("%s: %+v, %v", content, r, err)
			}
		}
		if _, err := ParseContent([]byte(raw)); err == nil || !strings.Contains(err.Error(), "unknown type of content") {
			t.Errorf("%s: %v", raw, err)
		}
	}
	for _, raw := range []string{`{"type":"image","data":{}}`, `{"type":"text","text":7}`, `{"type":7}`, `null`, `"x"`, `[]`, `{"type":"resource"}`} {
		if err := new(SampleMessage).UnmarshalJSON([]byte(`{"role":"user","content":[` + raw + `]}`)); err == nil {
			t.Errorf("%s is read", raw)
		}
	}
	for _, raw := range []string{"", "null", "7", `{"a":`, "[]"} {
		if got, err := (SampleMessage{Role: "user", Content: []Content{UnknownContent{"x", []byte(raw)}}}).MarshalJSON(); err == nil {
			t.Errorf("%q is written as %s", raw, got)
		}
	}
}
