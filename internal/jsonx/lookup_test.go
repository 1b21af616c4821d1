package jsonx

import "testing"

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
