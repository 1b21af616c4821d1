package uritemplate_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/uritemplate"
)

// readsBack checks that a template matches what it expands to, and that what
// it reads there expands to the same URI. Where reserved characters stand for
// themselves, an escape may become the character that it stands for, and no
// more than once.
func readsBack(t *testing.T, template *uritemplate.Template, values uritemplate.Values) {
	t.Helper()
	uri := template.Expand(values)
	reserved := strings.Contains(template.String(), "{+") || strings.Contains(template.String(), "{#")
	for range 3 + 2*strings.Count(uri, "%") {
		read, ok := template.Match(uri)
		if !ok {
			t.Errorf("%s with %q: expands to %s, which it does not match", template, values, uri)
			return
		}
		again := template.Expand(read)
		if again == uri {
			return
		}
		if !reserved {
			t.Errorf("%s with %q: expands to %s, reads %q, and expands to %s", template, values, uri, read, again)
			return
		}
		uri = again
	}
	t.Errorf("%s with %q: expands to another URI each time, at last %s", template, values, uri)
}

// TestReadsBack tries every pair of expressions, with all kinds of text between
// them and all kinds of values: the pair is refused, or it is read back.
func TestReadsBack(t *testing.T) {
	operators := []string{"", "+", "#", ".", "/", ";", "?", "&"}
	between := []string{"", "2", "/x", "!", ";a", ".", ",", "&", "&b=", "?", "%2C", "C"}
	lists := [][]string{nil, {""}, {"x2"}, {"x,y", "C"}, {"a.b/x"}, {"%2C%41%"}, {"?#&b=;"}}
	accepted := 0
	for _, left := range operators {
		for _, right := range operators {
			for _, form := range []string{"t:{La}T{Rb}", "t:{La*}T{Rb}", "t:{La}T{Rb,c}", "t:{La,c*}T{Rb*}"} {
				for _, text := range between {
					source := strings.NewReplacer("L", left, "R", right, "T", text).Replace(form)
					template, err := uritemplate.Parse(source)
					if err != nil {
						continue
					}
					accepted++
					keepsSimpleValues(t, template)
					for _, a := range lists {
						for _, b := range lists {
							readsBack(t, template, uritemplate.Values{"a": a, "b": b, "c": {"z"}})
						}
					}
				}
			}
		}
	}
	if accepted < 1000 {
		t.Errorf("only %d templates are accepted", accepted)
	}
}

// keepsSimpleValues checks that values without anything special are read as
// they were, list or not.
func keepsSimpleValues(t *testing.T, template *uritemplate.Template) {
	t.Helper()
	values := uritemplate.Values{}
	for i, name := range template.Names() {
		values[name] = []string{strings.Repeat("p", i+1)}
	}
	uri := template.Expand(values)
	if read, ok := template.Match(uri); !ok || !maps.EqualFunc(read, values, slices.Equal) {
		t.Errorf("%s with %q: expands to %s, and reads %q there", template, values, uri, read)
	}
}

// A template in an order that URIs do not have, and text that could be part of
// a value, are refused: the sentence says what to change.
func TestParseRefusesUnreadable(t *testing.T) {
	tests := []struct{ template, want string }{
		{"a:{&h}{?q}", "{?q} cannot be read back after {&h}"}, {"a:{?h}x{?q}", "{?q} cannot be read back after {?h}"},
		{"a:{?q}{/p}", "{/p} cannot be read back after {?q}"}, {"a:{?q}/x{/p}", "{/p} cannot be read back after {?q}"},
		{"a:{#f}{?q}", "{?q} cannot be read back after {#f}"}, {"a:{#f}x{#g}", "{#g} cannot be read back after {#f}"},
		{"a:{&h}{&q}", "cannot be told apart"}, {"a:{;h}{;q}", "cannot be told apart"}, {"a:{;h}{.q}", "cannot be told apart"},
		{"a:{/h}{;p}{/q}", "{/h} and {/q} cannot be told apart"},
		{"a:{?h}x{&q}", `the text "x" between {?h} and {&q} cannot be told from a value; begin it with &`},
		{"a:{;h}x{b}", `the text "x" between {;h} and {b} cannot be told from a value; begin it with ;`},
		{"a:{a},{b,c}", "the comma between {a} and {b,c}"}, {"a:{&h}&q={&q}", "sets one of their variables"},
	}
	for _, test := range tests {
		if _, err := uritemplate.Parse(test.template); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got error %v, want one with %q", test.template, err, test.want)
		}
	}
}

// An escape belongs to one value as a whole.
func TestMatchKeepsEscapes(t *testing.T) {
	tests := []struct {
		template string
		values   uritemplate.Values
		uri      string
	}{
		{"t://{a}2{b}", uritemplate.Values{"a": {"q"}, "b": {"x,y"}}, "t://q2x%2Cy"},
		{"t://{a}C{b}", uritemplate.Values{"a": {"x,y"}, "b": {"z"}}, "t://x%2CyCz"},
		{"t://{+a}{?b}", uritemplate.Values{"a": {"x?y#z"}, "b": {"1"}}, "t://x%3Fy%23z?b=1"},
		{"t://{+a}", uritemplate.Values{"a": {"x%FFy"}}, "t://x%25FFy"},
		{"t://{+a}{;b}", uritemplate.Values{"a": {"x;b=2"}, "b": {"1"}}, "t://x%3Bb=2;b=1"},
		{"t:{/a,b}", uritemplate.Values{"a": {"x"}, "b": {""}}, "t:/x/"},
		{"t:{a,b}", uritemplate.Values{"a": {""}, "b": {"5"}}, "t:,5"},
		{"t:{a,b}", uritemplate.Values{"a": {"1"}, "b": {"2", "3"}}, "t:1,2,3"},
		{"t:{;a*}", uritemplate.Values{"a": {"", "x"}}, "t:;a;a=x"},
	}
	for _, test := range tests {
		template, err := uritemplate.Parse(test.template)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := template.Expand(test.values); got != test.uri {
			t.Errorf("%s with %q: got %s, want %s", test.template, test.values, got, test.uri)
		}
		if got, ok := template.Match(test.uri); !ok || !maps.EqualFunc(got, test.values, slices.Equal) {
			t.Errorf("%s: read %q, want %q", test.uri, got, test.values)
		}
	}
}

// FuzzRoundTrip: what a template expands to it matches, and reads back. Lines
// of values are the values of one variable after the other, with | between
// those of a list.
func FuzzRoundTrip(f *testing.F) {
	f.Add("t://{id}/f/{+path}{?q}", "7\na/b\nx")
	f.Add("t://{id}/f/{+path}{?q}", "..\n%2e\nö&=#")
	f.Add("t://{a}2{b}", "x,y\nx,y")
	f.Add("t:{a,b,c}{.ext*}{;v,w*}{?q,r*}{&s}{#f}", "1\n2|3\n\nx|y\n;\n=|&\n?\n\n#\n%2C\n%")
	f.Add("{/dirs*}/-/{name}{.ext}", "a,b|c|\nx.y\nz")
	f.Add("{+a,b}!{c}?x=1{&d*}", "a,b\nc|d\n!\n&d=|?")
	f.Fuzz(func(t *testing.T, text, lines string) {
		template, err := uritemplate.Parse(text)
		if err != nil || len(text)+len(lines) > 300 {
			t.Skip("no template")
		}
		values := uritemplate.Values{}
		names := template.Names()
		for line := range strings.SplitSeq(lines, "\n") {
			if len(names) == 0 {
				break
			}
			values[names[0]], names = strings.Split(line, "|"), names[1:]
		}
		readsBack(t, template, values)
	})
}
