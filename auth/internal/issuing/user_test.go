package issuing

import (
	"reflect"
	"testing"

	"github.com/talaria-go/mcp/internal/seal"
)

// The text of an entry is read as it was written, and no other text is an entry.
func TestTextOfUser(t *testing.T) {
	for name, u := range map[string]*User{
		"empty": {Logins: map[string]*Login{}},
		"all": {Issuer: "https://id.example.com", Subject: "ä \x00\n", Claims: map[string]any{"email": "a@example.com", "n": 1.5, "roles": []any{"x"}}, Asked: -1, Logins: map[string]*Login{
			"": {Scopes: []string{}},
			"a": {
				Client: "c", Scopes: []string{"notes:read", "offline_access"}, Resource: "https://notes.example.com/mcp", Key: "k", Refresh: true, Number: 1 << 62, Redeemed: "r",
				At: 1, End: 2,
			},
		}},
	} {
		text, err := u.text()
		if err != nil {
			t.Fatal(err)
		}
		if got := parseUser(text); !reflect.DeepEqual(got, u) {
			t.Errorf("%s: got %+v of %+v", name, got, u)
		}
		for n := range text {
			if parseUser(text[:n]) != nil {
				t.Errorf("%s: %d bytes of %d are an entry", name, n, len(text))
			}
		}
	}
	for _, parts := range [][]string{
		{}, {"i", "s", "0"}, {"i", "s", "0", "{"}, {"i", "s", "0", "[]"}, {"i", "s", "", "{}"}, {"i", "s", "0", "{}", "x"},
		{"i", "s", "0", "id", "c", "", "", "", "false", "", "1", "2", "-", "{}"},
	} {
		if u := parseUser(seal.Binding(parts...)); u != nil {
			t.Errorf("%q: %+v", parts, u)
		}
	}
}
