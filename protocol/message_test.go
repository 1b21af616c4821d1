package protocol

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/internal/facts"
)

func TestDecode(t *testing.T) {
	tests := []struct {
		name, text string
		code       Code   // of the error; 0 for none
		id         string // JSON text of the id that was read
		method     string
		message    string // part of the error's message
	}{
		{"request", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, 0, `1`, "ping", ""},
		{"string id kept byte for byte", `{"jsonrpc":"2.0","id":"\u0041/é","method":"ping"}`, 0, `"\u0041/é"`, "ping", ""},
		{"large id kept digit for digit", `{"jsonrpc":"2.0","id":9007199254740993,"method":"x"}`, 0, `9007199254740993`, "x", ""},
		{"notification", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, 0, "", "notifications/initialized", ""},
		{"any order and space", " {\"method\" : \"ping\" ,\n\"id\":2 , \"jsonrpc\":\"2.0\" } ", 0, `2`, "ping", ""},
		{"params", `{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":[1,{"b":null}]}}`, 0, `1`, "x", ""},
		{"unknown members are ignored", `{"jsonrpc":"2.0","id":1,"method":"x","trace":{}}`, 0, `1`, "x", ""},
		{"response", `{"jsonrpc":"2.0","id":1,"result":{}}`, 0, `1`, "", ""},
		{"error response without id", `{"jsonrpc":"2.0","error":{"code":-32700,"message":"x"}}`, 0, "", "", ""},
		{"half a surrogate pair", `{"jsonrpc":"2.0","id":1,"method":"x","params":{"\udc00":"cut \ud83d"}}`, 0, "1", "x", ""},
		{"invalid UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":\"a\xff\",\"method\":\"x\xe2\x82\",\"params\":{\"\xff\":\"\xc0\x80\"}}", 0, "\"a\ufffd\"", "x\ufffd\ufffd", ""},
		{"escaped method", `{"jsonrpc":"2.0","id":1,"method":"p\u0069ng"}`, 0, `1`, "ping", ""},

		{"byte order mark", "\ufeff\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}", 0, "1", "ping", ""},
		{"id with a fraction of nothing", `{"jsonrpc":"2.0","id":1.0,"method":"ping"}`, 0, "1.0", "ping", ""},
		{"id with an exponent", `{"jsonrpc":"2.0","id":1e999999999,"method":"ping"}`, 0, "1e999999999", "ping", ""},
		{"null for what is optional", `{"jsonrpc":"2.0","id":1,"method":"ping","params":null,"result":null,"error":null}`, 0, "1", "ping", ""},
		{"result without error", `{"jsonrpc":"2.0","id":1,"method":null,"result":{},"error":null}`, 0, "1", "", ""},
		{"error without result", `{"jsonrpc":"2.0","id":1,"result":null,"error":{}}`, 0, "1", "", ""},
		{"result of nothing", `{"jsonrpc":"2.0","id":1,"result":null}`, 0, "1", "", ""},

		{"empty", ``, CodeParseError, "", "", "unexpected end"},
		{"not JSON", `hello`, CodeParseError, "", "", "want a value"},
		{"cut off", `{"jsonrpc":"2.0","id":1`, CodeParseError, "1", "", "unexpected end"},
		{"trailing bytes", `{"jsonrpc":"2.0","id":1,"method":"ping"} x`, CodeParseError, "1", "", "after the value"},
		{"invalid UTF-8 at the end", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff", CodeParseError, "1", "", "unexpected end"},
		{"invalid UTF-8 outside of strings", "{\"jsonrpc\":\"2.0\",\"id\":1,\xff\"method\":\"x\"}", CodeParseError, "1", "", "Parse error"},

		{"batch", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, CodeInvalidRequest, "", "", "batches"},
		{"scalar", `42`, CodeInvalidRequest, "", "", "must be a JSON object, got number"},
		{"no version", `{"id":1,"method":"ping"}`, CodeInvalidRequest, "1", "", "jsonrpc is missing"},
		{"wrong version", `{"jsonrpc":"1.0","id":1,"method":"ping"}`, CodeInvalidRequest, "1", "", `must be "2.0"`},
		{"null id", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, CodeInvalidRequest, "", "", "got null"},
		{"fraction as id", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, CodeInvalidRequest, "", "", "got 1.5"},
		{"small fraction as id", `{"jsonrpc":"2.0","id":1e-99999999999999999999,"method":"ping"}`, CodeInvalidRequest, "", "", "got 1e-9"},
		{"two marks", "\ufeff\ufeff{}", CodeParseError, "", "", "want a value"},
		{"mark alone", "\ufeff", CodeParseError, "", "", "unexpected end"},
		{"neither", `{"jsonrpc":"2.0","id":1,"method":null,"error":null}`, CodeInvalidRequest, "1", "", "method is missing"},
		{"object as id", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, CodeInvalidRequest, "", "", "got object"},
		{"no method", `{"jsonrpc":"2.0","id":1}`, CodeInvalidRequest, "1", "", "method is missing"},
		{"empty method", `{"jsonrpc":"2.0","id":1,"method":""}`, CodeInvalidRequest, "1", "", "must not be empty"},
		{"number as method", `{"jsonrpc":"2.0","id":1,"method":7}`, CodeInvalidRequest, "1", "", "method must be a string"},
		{"array as params", `{"jsonrpc":"2.0","id":1,"method":"x","params":[1]}`, CodeInvalidRequest, "1", "", "params must be an object, got array"},
		{"fault before the id", `{"jsonrpc":"1.0","method":7,"id":"late"}`, CodeInvalidRequest, `"late"`, "", `must be "2.0"`},
		{"duplicate id", `{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}`, CodeInvalidRequest, "2", "", "duplicate"},
		{"duplicate deep in a result", `{"jsonrpc":"2.0","id":1,"result":{"a":{"b":1,"b":2}}}`, CodeInvalidRequest, "1", "", `duplicate member "b"`},
		{"duplicate in params is left to their reader", `{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":{"b":1,"b":2}}}`, 0, "1", "x", ""},
		{"too deep", `{"jsonrpc":"2.0","id":1,"method":"x","params":` + strings.Repeat(`{"a":`, 70) + "1" + strings.Repeat("}", 70) + "}", CodeInvalidRequest, "1", "", "nested deeper than 64"},
		{"method and result", `{"jsonrpc":"2.0","id":1,"method":"x","result":{}}`, CodeInvalidRequest, "1", "", "either method or result"},
		{"result and error", `{"jsonrpc":"2.0","id":1,"error":{},"result":{}}`, CodeInvalidRequest, "1", "", "either result or error"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := Decode([]byte(tt.text))
			fault, _ := err.(*Error)
			if m.ID.text != tt.id {
				t.Errorf("id = %s, want %s", m.ID.text, tt.id)
			}
			if tt.code == 0 {
				if fault != nil {
					t.Fatalf("unexpected error: %v", fault)
				}
				if m.Method != tt.method {
					t.Errorf("method = %q, want %q", m.Method, tt.method)
				}
				return
			}
			if fault == nil {
				t.Fatal("no error")
			}
			if fault.Code != tt.code || !strings.Contains(fault.Message, tt.message) {
				t.Errorf("error = %d %q, want %d with %q", fault.Code, fault.Message, tt.code, tt.message)
			}
		})
	}
}

func TestDecodeDeepNestingIsCheap(t *testing.T) {
	text := []byte(`{"jsonrpc":"2.0","id":1,"method":"x","params":` + strings.Repeat("[", 100_000))
	if _, err := Decode(text); err == nil || err.(*Error).Code != CodeInvalidRequest {
		t.Fatalf("err = %v", err)
	}
	if allocs := testing.AllocsPerRun(10, func() { _, _ = Decode(text) }); allocs > 20 {
		t.Errorf("%v allocations for a message that is refused", allocs)
	}
}

func TestDecodeParams(t *testing.T) {
	raw := `{"name":"t\u0065st","arguments":{"x":[1,"}"]},"cursor":"c","requestState":"s","inputResponses":{"k":{}},
		"_meta":{"progressToken":7,"io.modelcontextprotocol/protocolVersion":"2026-07-28",
		"io.modelcontextprotocol/clientInfo":{"name":"n"},"io.modelcontextprotocol/clientCapabilities":{},
		"io.modelcontextprotocol/logLevel":"debug","com.example/x":1}}`
	var p Params
	if err := (&Message{Method: "tools/call", Params: []byte(raw)}).DecodeParams(&p); err != nil {
		t.Fatal(err)
	}
	got := []string{p.Name, string(p.Arguments), string(p.Cursor), p.RequestState, string(p.InputResponses),
		string(p.Meta.ProgressToken), p.Meta.ProtocolVersion, string(p.Meta.ClientInfo),
		string(p.Meta.ClientCapabilities), string(p.Meta.LogLevel)}
	want := []string{"test", `{"x":[1,"}"]}`, `"c"`, "s", `{"k":{}}`, "7", "2026-07-28", `{"name":"n"}`, "{}", `"debug"`}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%d: got %s, want %s", i, got[i], want[i])
		}
	}
}

func TestDecodeParamsFaults(t *testing.T) {
	for raw, want := range map[string]string{
		`{"name":"a","name":"b"}`:                         `duplicate member "name" in params`,
		`{"_meta":{"progressToken":1,"progressToken":2}}`: `duplicate member "progressToken" in params._meta`,
		`{"name":1}`:                                 "params.name must be a string, got number",
		`{"_meta":[]}`:                               "params._meta must be an object",
		`{"requestState":{}}`:                        "params.requestState must be a string",
		`{"inputResponses":[]}`:                      "params.inputResponses must be an object",
		`{"_meta":{"progressToken":1.5}}`:            "progressToken must be a string or an integer",
		`{"_meta":{"progressToken":{}}}`:             "progressToken must be a string or an integer",
		`{"_meta":{"` + facts.MetaVersion + `":1}}`:  "must be of type string",
		`{"_meta":{"` + facts.MetaLogLevel + `":1}}`: "must be of type string",
	} {
		var p Params
		fault, _ := (&Message{Method: "tools/call", Params: []byte(raw)}).DecodeParams(&p).(*Error)
		if fault == nil || fault.Code != CodeInvalidParams || !strings.Contains(fault.Message, want) {
			t.Errorf("%s: fault = %v, want %q", raw, fault, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"x","arguments":{},"_meta":{"progressToken":1}}}`))
	f.Add([]byte(`[{"jsonrpc":"2.0"}]`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{"\ud83d\ude00":[[[]]]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := Decode(text)
		if err != nil {
			return
		}
		var p Params
		_ = m.DecodeParams(&p)
		_ = m.Validate(Latest)
		encoded, err := m.MarshalJSON()
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		again, err := Decode(encoded)
		if err != nil || !reflect.DeepEqual(m, again) {
			t.Fatalf("%s came back as %s: %v", text, encoded, err)
		}
		answer, _ := NewErrorResponse(m.ID, Errorf(CodeMethodNotFound, "%s", m.Method)).MarshalJSON()
		if again, err = Decode(answer); err != nil || again.ID != m.ID {
			t.Fatalf("the answer %s does not carry the id %s: %v", answer, m.ID, err)
		}
	})
}

func TestNameBelongsToTheMethod(t *testing.T) {
	for method, want := range map[string]string{"tools/call": "a", "prompts/get": "a", "resources/read": "b", "tasks/get": "c", "x/y": "a"} {
		var p Params
		m := Message{Method: method, Params: []byte(`{"name":"a","uri":"b","taskId":"c"}`)}
		if err := m.DecodeParams(&p); err != nil || p.Name != want {
			t.Errorf("%s: name %q, %v, want %q", method, p.Name, err, want)
		}
	}
	for method, fine := range map[string]bool{"x/y": true, "notifications/acme": true, "tools/call": false, "prompts/get": false} {
		var p Params
		m := Message{Method: method, Params: []byte(`{"name":{"first":"a"},"cursor":1}`)}
		if err := m.DecodeParams(&p); (err == nil) != fine || p.Name != "" || fine && string(p.Cursor) != "1" {
			t.Errorf("%s: name %q, cursor %s, %v", method, p.Name, p.Cursor, err)
		}
	}
}

// Ids are the same by value, and are written as they came.
func TestCanonicalIDs(t *testing.T) {
	for _, same := range [][]string{
		{"1", "1.0", "1e0", "10e-1", "1.00E0"}, {"0", "-0", "0.0"}, {"-7", "-7.0", "-70e-1"}, {"100", "1e2"},
		{"12345678901234567890", "12345678901234567890.0"}, {"1e999999999", "10e999999998"},
		{`"a/b"`, `"a\/b"`, `"\u0061/b"`}, {`"1"`}, {`"é"`, `"\u00e9"`}, {`""`},
	} {
		want := (ID{same[0]}).Canonical()
		for _, text := range same {
			var id ID
			if err := json.Unmarshal([]byte(text), &id); err != nil || id.Canonical() != want || id.String() != text {
				t.Errorf("%s: %s, %s, %v, want %s", text, id, id.Canonical(), err, want)
			}
			if id.Canonical().Canonical() != want {
				t.Errorf("%s has another canonical spelling", want)
			}
		}
	}
	for _, text := range []string{"7", "1234567", `"a-1"`, `"3fa85f64-5717-4562-b3fc-2c963f66afa6"`} {
		if n := testing.AllocsPerRun(10, func() { _ = ID{text}.Canonical() }); n > 0 {
			t.Errorf("%s: %v allocations", text, n)
		}
	}
}

// The member null is the same as none.
func TestNullParams(t *testing.T) {
	for _, method := range []string{MethodToolsList, MethodToolsCall, MethodResourcesRead, MethodTasksGet, "acme/own"} {
		m, err := Decode(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":%q,"params":{"name":null,"uri":null,"taskId":null,"arguments":null,"cursor":null,
			"requestState":null,"inputResponses":null,"_meta":null}}`, method))
		if err != nil {
			t.Fatal(err)
		}
		var p Params
		if err := m.DecodeParams(&p); err != nil {
			t.Fatalf("%s: %v", method, err)
		}
		p.Raw = nil
		if !reflect.DeepEqual(p, Params{}) {
			t.Errorf("%s: %+v", method, p)
		}
		m.Params = []byte(`{"_meta":{"progressToken":null,"io.modelcontextprotocol/protocolVersion":null,"io.modelcontextprotocol/clientInfo":null,
			"io.modelcontextprotocol/clientCapabilities":null,"io.modelcontextprotocol/logLevel":null}}`)
		if err := m.DecodeParams(&p); err != nil {
			t.Fatalf("%s: %v", method, err)
		}
		p.Raw, p.Meta.Raw = nil, nil
		if !reflect.DeepEqual(p, Params{}) {
			t.Errorf("%s: %+v", method, p)
		}
	}
}
