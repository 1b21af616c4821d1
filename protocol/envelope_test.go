package protocol

import (
	"strings"
	"testing"
)

func TestScan(t *testing.T) {
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
		{"escaped method", `{"jsonrpc":"2.0","id":1,"method":"p\u0069ng"}`, 0, `1`, "ping", ""},

		{"empty", ``, CodeParseError, "", "", "unexpected end"},
		{"not JSON", `hello`, CodeParseError, "", "", "want a value"},
		{"cut off", `{"jsonrpc":"2.0","id":1`, CodeParseError, "1", "", "unexpected end"},
		{"trailing bytes", `{"jsonrpc":"2.0","id":1,"method":"ping"} x`, CodeParseError, "1", "", "after the value"},
		{"invalid UTF-8", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", CodeParseError, "1", "", "UTF-8"},
		{"lone surrogate", `{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"\ud800"}}`, CodeParseError, "1", "", "surrogate"},

		{"batch", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, CodeInvalidRequest, "", "", "batches"},
		{"scalar", `42`, CodeInvalidRequest, "", "", "must be a JSON object, got number"},
		{"no version", `{"id":1,"method":"ping"}`, CodeInvalidRequest, "1", "", "jsonrpc is missing"},
		{"wrong version", `{"jsonrpc":"1.0","id":1,"method":"ping"}`, CodeInvalidRequest, "1", "", `must be "2.0"`},
		{"null id", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, CodeInvalidRequest, "", "", "got null"},
		{"fraction as id", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, CodeInvalidRequest, "", "", "got 1.5"},
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
			var m Message
			fault := Scan([]byte(tt.text), Limits{}, &m)
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

func TestScanDeepNestingIsCheap(t *testing.T) {
	text := []byte(`{"jsonrpc":"2.0","id":1,"method":"x","params":` + strings.Repeat("[", 100_000))
	var m Message
	if fault := Scan(text, Limits{}, &m); fault == nil || fault.Code != CodeInvalidRequest {
		t.Fatalf("fault = %v", fault)
	}
	if allocs := testing.AllocsPerRun(10, func() { Scan(text, Limits{}, &m) }); allocs > 20 {
		t.Errorf("%v allocations for a message that is refused", allocs)
	}
}

func TestScanParams(t *testing.T) {
	raw := `{"name":"t\u0065st","arguments":{"x":[1,"}"]},"cursor":"c","requestState":"s","inputResponses":{"k":{}},
		"_meta":{"progressToken":7,"io.modelcontextprotocol/protocolVersion":"2026-07-28",
		"io.modelcontextprotocol/clientInfo":{"name":"n"},"io.modelcontextprotocol/clientCapabilities":{},
		"io.modelcontextprotocol/logLevel":"debug","com.example/x":1}}`
	var p Params
	if fault := ScanParams(&Message{Method: "tools/call", Params: []byte(raw)}, &p); fault != nil {
		t.Fatal(fault)
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

func TestScanParamsFaults(t *testing.T) {
	for raw, want := range map[string]string{
		`{"name":"a","name":"b"}`:                         `duplicate member "name" in params`,
		`{"_meta":{"progressToken":1,"progressToken":2}}`: `duplicate member "progressToken" in params._meta`,
		`{"name":1}`:                           "params.name must be a string, got number",
		`{"_meta":[]}`:                         "params._meta must be an object",
		`{"requestState":{}}`:                  "params.requestState must be a string",
		`{"inputResponses":null}`:              "params.inputResponses must be an object",
		`{"_meta":{"progressToken":1.5}}`:      "progressToken must be a string or an integer",
		`{"_meta":{"progressToken":{}}}`:       "progressToken must be a string or an integer",
		`{"_meta":{"` + MetaVersion + `":1}}`:  "must be of type string",
		`{"_meta":{"` + MetaLogLevel + `":1}}`: "must be of type string",
	} {
		var p Params
		fault := ScanParams(&Message{Method: "tools/call", Params: []byte(raw)}, &p)
		if fault == nil || fault.Code != CodeInvalidParams || !strings.Contains(fault.Message, want) {
			t.Errorf("%s: fault = %v, want %q", raw, fault, want)
		}
	}
}

func TestCheckModern(t *testing.T) {
	capable := []byte("{}")
	for _, tt := range []struct {
		meta Meta
		code Code
	}{
		{Meta{ProtocolVersion: "2026-07-28", ClientCapabilities: capable}, 0},
		{Meta{ClientCapabilities: capable}, CodeInvalidParams},
		{Meta{ProtocolVersion: "2026-07-28"}, CodeInvalidParams},
		{Meta{ProtocolVersion: "v999", ClientCapabilities: capable}, CodeUnsupportedVersion},
		{Meta{ProtocolVersion: "2025-11-25", ClientCapabilities: capable}, CodeUnsupportedVersion},
	} {
		_, fault := tt.meta.CheckModern(Revisions())
		if tt.code == 0 && fault != nil || tt.code != 0 && (fault == nil || fault.Code != tt.code) {
			t.Errorf("%+v: fault = %v, want code %d", tt.meta, fault, tt.code)
		}
	}
}

func FuzzScan(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"x","arguments":{},"_meta":{"progressToken":1}}}`))
	f.Add([]byte(`[{"jsonrpc":"2.0"}]`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"result":{"\ud83d\ude00":[[[]]]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var m Message
		if Scan(text, Limits{}, &m) != nil {
			return
		}
		var p Params
		_ = ScanParams(&m, &p)
		answer := AppendErrorResponse(nil, m.ID, MethodNotFound(m.Method), Latest)
		var again Message
		if fault := Scan(answer, Limits{}, &again); fault != nil || again.ID != m.ID {
			t.Fatalf("the answer %s does not carry the id %s: %v", answer, m.ID, fault)
		}
	})
}

func TestNameBelongsToTheMethod(t *testing.T) {
	for method, want := range map[string]string{"tools/call": "a", "prompts/get": "a", "resources/read": "b", "tasks/get": "c", "x/y": "a"} {
		var p Params
		m := Message{Method: method, Params: []byte(`{"name":"a","uri":"b","taskId":"c"}`)}
		if fault := ScanParams(&m, &p); fault != nil || p.Name != want {
			t.Errorf("%s: name %q, %v, want %q", method, p.Name, fault, want)
		}
	}
	for method, fine := range map[string]bool{"x/y": true, "notifications/acme": true, "tools/call": false, "prompts/get": false} {
		var p Params
		m := Message{Method: method, Params: []byte(`{"name":{"first":"a"},"cursor":1}`)}
		if fault := ScanParams(&m, &p); (fault == nil) != fine || p.Name != "" || fine && string(p.Cursor) != "1" {
			t.Errorf("%s: name %q, cursor %s, %v", method, p.Name, p.Cursor, fault)
		}
	}
	var p Params
	m := Message{Method: "resources/read", Params: []byte(`{"uri":null}`)}
	if fault := ScanParams(&m, &p); fault == nil || fault.Message != "params.uri must be a string, got null" {
		t.Errorf("fault = %v", fault)
	}
}
