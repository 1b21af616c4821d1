package oauth

import (
	"net/http"
	"reflect"
	"testing"
)

func TestParseChallenges(t *testing.T) {
	tests := []struct {
		name   string
		values []string
		want   []authChallenge
	}{
		{"none", nil, nil},
		{"scheme alone", []string{`Bearer`}, []authChallenge{{"Bearer", map[string]string{}}}},
		{"parameters", []string{`Bearer realm="a, b", scope="x y", error=invalid_token`},
			[]authChallenge{{"Bearer", map[string]string{"realm": "a, b", "scope": "x y", "error": "invalid_token"}}}},
		{"several in one value", []string{`DPoP algs="ES256", Bearer scope="x"`},
			[]authChallenge{{"DPoP", map[string]string{"algs": "ES256"}}, {"Bearer", map[string]string{"scope": "x"}}}},
		{"several values", []string{`Basic realm="r"`, `Bearer scope=x`},
			[]authChallenge{{"Basic", map[string]string{"realm": "r"}}, {"Bearer", map[string]string{"scope": "x"}}}},
		{"token68", []string{`Negotiate YWJj/+==, Bearer scope="x"`},
			[]authChallenge{{"Negotiate", map[string]string{}}, {"Bearer", map[string]string{"scope": "x"}}}},
		{"escapes", []string{`Bearer error_description="say \"no\""`},
			[]authChallenge{{"Bearer", map[string]string{"error_description": `say "no"`}}}},
		{"spaces around =", []string{`Bearer scope = "x" , error= y`},
			[]authChallenge{{"Bearer", map[string]string{"scope": "x", "error": "y"}}}},
		{"names in capitals", []string{`bearer SCOPE="x"`}, []authChallenge{{"bearer", map[string]string{"scope": "x"}}}},
		{"repeated: the first counts", []string{`Bearer scope="x", scope="evil"`}, []authChallenge{{"Bearer", map[string]string{"scope": "x"}}}},
		{"string without end", []string{`Bearer scope="x`}, []authChallenge{{"Bearer", map[string]string{"scope": ""}}}},
		{"rubbish", []string{`"""`, `,,,`, ` = `}, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := parseChallenges(test.values); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestReadChallenge(t *testing.T) {
	header := http.Header{"Www-Authenticate": {
		`Basic realm="x", scope="not this"`,
		`DPoP algs="ES256"`,
		`Bearer error="insufficient_scope", scope="notes:read notes:write notes:read", resource_metadata="https://a.example/m"`,
	}}
	got := readChallenge(header)
	want := challenge{
		metadata: "https://a.example/m", errorCode: "insufficient_scope",
		scope: scopes{"notes:read", "notes:write"}, bearer: true, dpop: true,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	header = http.Header{"Www-Authenticate": {"Bearer scope=\"a\\\\b\""}}
	if got := readChallenge(header); got.err == nil {
		t.Errorf("a scope with a backslash is taken: %+v", got)
	}
}

func FuzzParseChallenges(f *testing.F) {
	for _, seed := range []string{`Bearer scope="x y", error=z`, `A B==, C d="e\"`, `"`, `=`, "A\x00", `Bearer =`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		for _, each := range parseChallenges([]string{value}) {
			if each.scheme == "" {
				t.Errorf("a challenge without scheme in %q", value)
			}
		}
	})
}
