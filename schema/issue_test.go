package schema

import (
	"reflect"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/schema/internal/wording"
)

func TestErrorText(t *testing.T) {
	type filter struct {
		Lang string `json:"lang" validate:"len=2"`
	}
	type search struct {
		Query  string   `json:"query"`
		Limit  int      `json:"limit" validate:"min=1,max=100"`
		Sort   string   `json:"sort,omitempty"`
		Tags   []string `json:"tags,omitempty"`
		Since  string   `json:"since,omitempty"`
		Filter filter   `json:"filter"`
	}
	p := compile[search](t, nil)
	err := p.Check([]byte(`{"query":"q","limit":"ten","filter":{},"sortt":"asc"}`))
	const want = `Invalid arguments for tool "search" (3 problems). Fix them and call the tool again.
- /limit: must be an integer between 1 and 100; got "ten" (string)
- /filter/lang: is required (string, exactly 2 characters)
- /sortt: unknown property; did you mean /sort? Allowed: query, limit, sort, tags, since, filter`
	if got := err.(*Error).Text(`tool "search"`); got != want {
		t.Errorf("text is\n%s\nwant\n%s", got, want)
	}
	err = p.Check([]byte(`{"query":"q","limit":0,"filter":{"lang":"en"}}`))
	const one = `Invalid arguments for prompt "p" (1 problem). Fix it and try again.
- /limit: must be between 1 and 100; got 0`
	if got := err.(*Error).Text(`prompt "p"`); got != one {
		t.Errorf("text is\n%s\nwant\n%s", got, one)
	}
}

func TestErrorTextIsShort(t *testing.T) {
	p := compile[listRequired](t, &Options{Strict: true})
	err := p.Check([]byte(`{"l":[` + strings.Repeat("1,", 99) + `"` + strings.Repeat("é", 5000) + `"]}`))
	if n := len(err.(*Error).Issues); n != 99 {
		t.Fatalf("%d issues, want 99", n)
	}
	text := err.(*Error).Text("tool")
	if lines := strings.Count(text, "\n"); lines != 21 || !strings.HasSuffix(text, "…and 79 more") {
		t.Errorf("text has %d lines and ends in %q", lines, text[len(text)-20:])
	}
	err = compile[threeChars](t, nil).Check([]byte(`{"s":"` + strings.Repeat("é", 5000) + `"}`))
	if got := err.(*Error).Issues[0].Got; len([]rune(got)) > wording.GotRunes+4 {
		t.Errorf("got is %d characters long", len([]rune(got)))
	}
}

// TestMessages has one fault and the sentence that a model reads about it.
func TestMessages(t *testing.T) {
	type all struct {
		Own    string   `json:"own,omitempty" validate:"len=3" mcp:"msg=must be a code of {expected}\\, not {got}"`
		Rules  int      `json:"rules,omitempty" validate:"min=3,max=9" mcp:"msg.min=too low"`
		Secret string   `json:"secret,omitempty" validate:"min=8" mcp:"secret"`
		PIN    int      `json:"pin,omitempty" mcp:"secret"`
		Enum   string   `json:"enum,omitempty" validate:"oneof=a b"`
		Low    int      `json:"low,omitempty" validate:"min=3"`
		Small  int8     `json:"small,omitempty"`
		U      uint     `json:"u,omitempty"`
		List   []string `json:"list,omitempty" validate:"min=2"`
		F      float64  `json:"f,omitempty" validate:"gt=0,lt=1"`
		B      bool     `json:"b,omitempty"`
		Strict int      `json:"strict,omitempty" mcp:"strict"`
	}
	tests := []struct{ input, want string }{
		{`{"own":"x"}`, `/own: must be a code of exactly 3 characters long, not "x"`},
		{`{"rules":1}`, `/rules: too low`},
		{`{"rules":10}`, `/rules: must be between 3 and 9; got 10`},
		{`{"secret":"hunter2"}`, `/secret: must be at least 8 characters long`},
		{`{"pin":"hunter2"}`, `/pin: must be an integer`},
		{`{"enum":"c"}`, `/enum: must be one of "a", "b"; got "c"`},
		{`{"low":1}`, `/low: must be at least 3; got 1`},
		{`{"low":[1]}`, `/low: must be an integer of at least 3; got an array`},
		{`{"small":1000}`, `/small: must be between -128 and 127; got 1000`},
		{`{"u":-1}`, `/u: must be at least 0; got -1`},
		{`{"list":["a"]}`, `/list: must be an array of at least 2 items; got 1 item`},
		{`{"f":1.5}`, `/f: must be greater than 0 and less than 1; got 1.5`},
		{`{"b":"maybe"}`, `/b: must be true or false; got "maybe" (string)`},
		{`{"strict":"5"}`, `/strict: must be an integer; got "5" (string)`},
		{`{"low":3} x`, `(root): is not valid JSON: unexpected 'x' after the value at byte 10`},
		{`[]`, `(root): must be an object; got an array`},
	}
	p := compile[all](t, nil)
	for _, c := range tests {
		err := p.Check([]byte(c.input))
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: error is\n%v\nwant\n%s", c.input, err, c.want)
		}
	}
}

func TestLocalize(t *testing.T) {
	p := compile[limitOptional](t, &Options{Localize: func(is Issue) string {
		if is.Rule == "minimum" {
			return "muss " + is.Expected + " sein"
		}
		return ""
	}})
	err := p.Check([]byte(`{"limit":0,"x":1}`)).(*Error)
	if got := err.Issues[0].Message; got != "muss at least 1 sein" {
		t.Errorf("message is %q", got)
	}
	if got := err.Issues[1].Message; got != "unknown property" {
		t.Errorf("message without a translation is %q", got)
	}
}

func TestPointerEscapes(t *testing.T) {
	got := wording.Pointer([]wording.Step{wording.Member("a/b~c"), wording.Item(3), wording.Member("")})
	if want := "/a~1b~0c/3/"; got != want {
		t.Errorf("pointer is %q, want %q", got, want)
	}
}

func TestRegistrationErrorListsAll(t *testing.T) {
	type bad struct {
		Limit int    `json:"limit" validate:"min=1.5"`
		Name  string `json:"name" validate:"alpha=3" jsonschema:"minLenght=3"`
	}
	_, err := Compile(reflect.TypeFor[bad](), nil)
	const want = `schema: 3 problems in schema.bad
- schema.bad.Limit (json "limit"): validate:"min=1.5" - an integer rule needs an integer; did you mean gt=1 or a float64 field?
- schema.bad.Name (json "name"): jsonschema:"minLenght=3" - unknown keyword "minLenght"; did you mean minLength?
- schema.bad.Name (json "name"): validate:"alpha=3" - alpha takes no parameter; write alpha`
	if err == nil || err.Error() != want {
		t.Errorf("error is\n%v\nwant\n%s", err, want)
	}
}
