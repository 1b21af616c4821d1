package jsonx

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestOutline(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for _, test := range []struct {
		text, want string
		whole      bool
	}{
		{`{"id":1,"method":"m"}`, `{"id":1,"method":"m"}`, true},
		{"\r\n{ \"id\" :\t\"a b\" , \"other\":[1,{\"id\":2}], \"method\":\"m\" }\n", `{"id":"a b","method":"m"}`, true},
		{`{"method":"m","params":{"id":7,"a":["` + long + `","id",{"id":8}]},"id":9}`, `{"method":"m","params":{},"id":9}`, true},
		{`{"params":{"a":"\"},\"id\":3,{` + long + `\\"},"id":"\"4\\"}`, `{"params":{},"id":"\"4\\"}`, true},
		{`{"\u0069d":5}`, `{"id":5}`, true},
		{`{"` + long + `":{"id":1},"id":6}`, `{"id":6}`, true},
		{`{"id":"` + long + `"}`, `{"id":{}}`, true},
		{`{"id":7,"params":{"a":"` + long, `{"id":7,"params":{}}`, false},
		{`{"params":{"a":1},"id":12`, `{"params":{"a":1},"id":{}}`, false}, // the number may go on
		{`{"params":{},"id"`, `{"params":{}}`, false},
		{`{"id":1,"id":2}`, ``, false},
		{`{"id":1}{"id":2}`, ``, false},
		{`[{"id":1}]`, ``, false},
		{`"id"`, ``, false},
		{``, ``, false},
		{`{`, `{}`, false},
		{`{}`, `{}`, true},
		{`{:1,"id":2,,"id"}`, `{"id":2}`, true},
		{`]{"id":2}`, ``, false},
	} {
		for _, size := range []int{1, 7, 1 << 20} {
			o := Outline{Names: []string{"id", "method", "params"}}
			for rest := test.text; rest != ""; rest = rest[min(size, len(rest)):] {
				if n, err := fmt.Fprint(&o, rest[:min(size, len(rest))]); err != nil || n != min(size, len(rest)) {
					t.Fatal(n, err)
				}
			}
			if got, whole := o.Text(); string(got) != test.want || whole != test.whole {
				t.Errorf("%.60s in parts of %d: got %s, %v, want %s, %v", test.text, size, got, whole, test.want, test.whole)
			}
		}
	}
}

// FuzzOutline checks that an outline has the members of the object and no others,
// however much of it is known.
func FuzzOutline(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":7,"result":{"id":8}}`), 12)
	f.Add([]byte(`{"result":{"a":"\"id\":8}"},"jsonrpc":"2.0","id":"x"}`), 60)
	f.Add([]byte(`{"result":{"id":8},"jsonrpc":"2.0","\u0069d" : 7 }`), 3)
	f.Fuzz(func(t *testing.T, text []byte, n int) {
		var members map[string]json.RawMessage
		if json.Unmarshal(text, &members) != nil || members == nil {
			return
		}
		o := Outline{Names: []string{"id"}}
		_, _ = o.Write(text[:min(max(n, 0), len(text))])
		got, _ := o.Text()
		var kept map[string]json.RawMessage
		if got == nil {
			return
		}
		if err := json.Unmarshal(got, &kept); err != nil {
			t.Fatalf("%s: outline %s: %v", text, got, err)
		}
		if id := kept["id"]; len(kept) > 1 || id != nil && string(id) != "{}" && jsonText(t, id) != jsonText(t, members["id"]) {
			t.Fatalf("%s: outline %s", text, got)
		}
	})
}

func jsonText(t *testing.T, text []byte) string {
	var out bytes.Buffer
	if err := json.Compact(&out, text); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return out.String()
}
