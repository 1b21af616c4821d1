package telemetry

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

var w3c = []string{"traceparent", "tracestate", "baggage"}

const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestMeta(t *testing.T) {
	for _, test := range []struct{ meta, name, want string }{
		{``, "traceparent", ""},
		{`{}`, "traceparent", ""},
		{`{"traceparent":"` + parent + `"}`, "traceparent", parent},
		{` { "a" : [ 1 , {"b":"}"} ] , "traceparent" : "` + parent + `" , "c":null}`, "traceparent", parent},
		{`{"a":"\\\"","traceparent":"x"}`, "traceparent", "x"},
		{`{"a":"\\\\","traceparent":"x"}`, "traceparent", "x"},
		{`{"baggage":"a=\"b\"","traceparent":"x"}`, "baggage", `a="b"`},
		{`{"baggage":"a=\u0062"}`, "baggage", "a=b"},
		{`{"baggage":"","traceparent":"x"}`, "baggage", ""},
		{`{"a":{"traceparent":"inner"}}`, "traceparent", ""},
		{`{"a":["traceparent","x"]}`, "traceparent", ""},
		{`{"a":"traceparent","b":"x"}`, "traceparent", ""},
		{`{"a":"\"traceparent\":\"x\""}`, "traceparent", ""},
		{`{"traceparent":1,"tracestate":"a=b"}`, "traceparent", ""},
		{`{"traceparent":1,"tracestate":"a=b"}`, "tracestate", "a=b"},
		{`{"traceparent":{"traceparent":"x"}}`, "traceparent", ""},
		{`{"traceparent":["x"],"tracestate":"a=b"}`, "traceparent", ""},
		{`{"traceparent":"` + strings.Repeat("x", 129) + `"}`, "traceparent", ""},
		{`{"tracestate":"` + strings.Repeat("x", 513) + `"}`, "tracestate", ""},
		{`{"baggage":"` + strings.Repeat("x", maxField) + `"}`, "baggage", strings.Repeat("x", maxField)},
		{`{"baggage":"` + strings.Repeat("x", maxField+1) + `"}`, "baggage", ""},
		{`{"traceparent":"x","a":"` + strings.Repeat("y", maxMeta) + `"}`, "traceparent", ""},
		{`{"traceparent":"x`, "traceparent", ""}, // no JSON, which does not come this far
		{`{"traceparent":`, "traceparent", ""},
		{`{"traceparent"`, "traceparent", ""},
	} {
		c := fromMeta([]byte(test.meta), w3c)
		if got := c.Get(test.name); got != test.want {
			t.Errorf("%.80s: %s is %q, want %q", test.meta, test.name, got, test.want)
		}
	}
}

func TestHeader(t *testing.T) {
	h := http.Header{"Traceparent": {parent}, "Baggage": {"a=1", "b=2"}, "Tracestate": {strings.Repeat("x", 513)}}
	c := fromHeader(h, w3c)
	if got := strings.Join(c.Keys(), " "); got != "traceparent baggage" || c.Get("traceparent") != parent || c.Get("Baggage") != "a=1,b=2" {
		t.Errorf("got %q", c)
	}
}

// FuzzMeta: what is read of any _meta is what encoding/json reads of it.
func FuzzMeta(f *testing.F) {
	for _, seed := range []string{`{"traceparent":"x"}`, `{"a":{"traceparent":"y"},"traceparent":"\u0061"}`, `{"a":"\\\"","baggage":"b"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, meta []byte) {
		c := fromMeta(meta, w3c)
		var all map[string]json.RawMessage
		if json.Unmarshal(meta, &all) != nil || len(meta) > maxMeta {
			return // it must not panic
		}
		if strings.Contains(string(meta), `\u`) || strings.ContainsRune(string(meta), '\ufffd') {
			return // an escaped name is another one here, and bad UTF-8 stays as it is
		}
		for _, name := range w3c {
			if strings.Count(string(meta), `"`+name+`"`) > 1 {
				continue // the first counts here, the last there
			}
			var want string
			if json.Unmarshal(all[name], &want) != nil || len(want) > longest(name) {
				want = ""
			}
			if got := c.Get(name); got != want {
				t.Errorf("%s of %q is %q, want %q", name, meta, got, want)
			}
		}
	})
}
