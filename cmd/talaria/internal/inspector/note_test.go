package inspector

import "testing"

// The first text that is not a message is noted, and a message with a byte order mark is one.
func TestNote(t *testing.T) {
	for _, tt := range []struct{ message, want string }{
		{`{"jsonrpc":"2.0"}`, ""}, {` [{"jsonrpc":"2.0"}]`, ""}, {"\ufeff" + `{"jsonrpc":"2.0"}`, ""}, {"\ufeff\n", ""}, {"", ""},
		{"Listening on 8080", "Listening on 8080"}, {"\ufeffhello", "hello"},
	} {
		i := &Inspector{}
		(&tap{i: i}).note([]byte(tt.message))
		if i.noise != tt.want {
			t.Errorf("%q: noted %q, want %q", tt.message, i.noise, tt.want)
		}
	}
}
