package inspector

import (
	"fmt"
	"strings"
	"testing"
)

// wideSchema is one of two hundred fields with rules, and a value that fits.
func wideSchema() (schema, value string) {
	schema, value = `{"type":"object","additionalProperties":false,"properties":{`, `{`
	for n := range 200 {
		comma := ""
		if n > 0 {
			comma = ","
		}
		schema += fmt.Sprintf(`%s"f%d":{"anyOf":[{"type":"string","pattern":"^[A-Z]{2}[0-9]{3,9}(-[a-z]+)*(%d)?$","maxLength":40},{"type":"object","required":["n"],"properties":{"n":{"type":"integer","minimum":%d}}}]}`, comma, n, n, n)
		value += fmt.Sprintf(`%s"f%d":"AB123456-some"`, comma, n)
	}
	return schema + `}}`, value + `}`
}

// TestCompiledOnce: each schema is compiled once, one that is none as well, whoever asks.
func TestCompiledOnce(t *testing.T) {
	var s schemas
	wide, value := wideSchema()
	for range 3 {
		if issues := s.check([]byte(wide), []byte(value)); len(issues) != 0 {
			t.Fatalf("%+v", issues)
		}
		if issues := s.check([]byte(wide), []byte(strings.Replace(value, "AB", "ab", 1))); len(issues) != 1 || issues[0].Path != "/f0" {
			t.Fatalf("%+v", issues)
		}
		if issues := s.check([]byte(`{"type":5}`), []byte(value)); len(issues) != 1 || !strings.Contains(issues[0].Message, "cannot be checked") {
			t.Fatalf("%+v", issues)
		}
	}
	if s.n != 2 {
		t.Errorf("two schemas were compiled %d times", s.n)
	}
}

// BenchmarkCheck is what the page waits for after a change, and what it would be without
// the schema that is kept.
func BenchmarkCheck(b *testing.B) {
	wide, value := wideSchema()
	var s schemas
	for name, each := range map[string]func(){"kept": func() {}, "compiled anew": func() { s.made = nil }} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if each(); len(s.check([]byte(wide), []byte(value))) != 0 {
					b.Fatal("it does not fit")
				}
			}
		})
	}
}
