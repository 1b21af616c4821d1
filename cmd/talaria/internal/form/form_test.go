package form

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/cmd/talaria/internal/arguments"
	"github.com/talaria-go/mcp/protocol"
)

// script is an Asker that types lines and keeps what is on the screen. ^C and
// ^D are the keys.
type script struct {
	lines  []string
	screen strings.Builder
}

func (s *script) Ask(prompt string, _ func(string) []string) (string, error) {
	if len(s.lines) == 0 {
		return "", fmt.Errorf("nothing left to type at %q", prompt)
	}
	line := s.lines[0]
	s.lines = s.lines[1:]
	fmt.Fprintf(&s.screen, "%s%s\n", prompt, line)
	switch line {
	case "^C":
		return "", ErrCancel
	case "^D":
		return "", ErrDecline
	}
	return line, nil
}

func (s *script) Say(line string) { s.screen.WriteString(line + "\n") }

const booking = `{"type":"object","required":["name","seats"],"properties":{
	"name":{"type":"string","title":"Your name","minLength":2},
	"seats":{"type":"integer","minimum":1,"maximum":4,"default":2},
	"class":{"type":"string","enum":["first","second"],"enumNames":["First class","Second class"]},
	"window":{"type":"boolean","description":"beside a window"},
	"meals":{"type":"array","items":{"type":"string","enum":["fish","rice","soup"]},"maxItems":2},
	"mail":{"type":"string","format":"email"}}}`

func TestElicit(t *testing.T) {
	for _, test := range []struct {
		name, typed, action, content string
	}{
		{"everything", "Ada|3|first|yes|fish,rice|a@b.org|y", "accept",
			`{"name":"Ada","seats":3,"class":"first","window":true,"meals":["fish","rice"],"mail":"a@b.org"}`},
		{"defaults and gaps", "Ada||||||y", "accept", `{"name":"Ada","seats":2}`},
		{"corrections", "|A|Ada|five|9|1|third|second|maybe|n|cake|soup|nowhere|a@b.org|y", "accept",
			`{"name":"Ada","seats":1,"class":"second","window":false,"meals":["soup"],"mail":"a@b.org"}`},
		{"by title", "Ada||Second class||||y", "accept", `{"name":"Ada","seats":2,"class":"second"}`},
		{"edited", "Ada||||||e|Bob|4|||||y", "accept", `{"name":"Bob","seats":4}`},
		{"asked again", "Ada||||||what?|d", "decline", ""},
		{"cancelled at the end", "Ada||||||c", "cancel", ""},
		{"Ctrl-D", "Ada|^D", "decline", ""},
		{"Ctrl-C", "^C", "cancel", ""},
	} {
		s := &script{lines: strings.Split(test.typed, "|")}
		got, err := Elicit(s, &protocol.ElicitParams{Message: "Book?", RequestedSchema: json.RawMessage(booking)})
		if err != nil || string(got.Action) != test.action || string(got.Content) != test.content || len(s.lines) > 0 {
			t.Errorf("%s: got %+v, %v, %d lines left, want %s %s\n%s", test.name, got, err, len(s.lines), test.action, test.content, s.screen.String())
		}
	}
}

func TestScreen(t *testing.T) {
	s := &script{lines: []string{"A", "Ada", "9", "", "", "", "", "", "y"}}
	if _, err := Elicit(s, &protocol.ElicitParams{Message: "Book\x1b[2J?\nNow", RequestedSchema: json.RawMessage(booking)}); err != nil {
		t.Fatal(err)
	}
	const want = `the server asks: Book␛[2J?
  Now
(Ctrl-D declines, Ctrl-C cancels)
name, Your name
  (string, at least 2 characters)
  name: A
  must be at least 2 characters long; got 1 character
  name: Ada
seats
  (integer, 1..4, default 2)
  seats [2]: 9
  must be at most 4; got 9
  seats [2]: 
class
  (string, first (First class) | second (Second class), optional)
  class: 
window: beside a window
  (boolean, optional)
  window: 
meals
  (list of string, at most 2 items, fish | rice | soup, optional)
  meals: 
mail
  (string, format email, optional)
  mail: 
{"name":"Ada","seats":2}
send this? [y]es, [e]dit, [d]ecline, [c]ancel: y
`
	if got := s.screen.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestElicitWithoutFields(t *testing.T) {
	s := &script{lines: []string{"", "e", "y"}}
	got, err := Elicit(s, &protocol.ElicitParams{Message: "Sure?"})
	if err != nil || got.Action != protocol.ElicitAccept || string(got.Content) != "{}" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestElicitURL(t *testing.T) {
	for typed, want := range map[string]protocol.ElicitAction{"y": "accept", "d": "decline", "^C": "cancel", "^D": "decline"} {
		s := &script{lines: []string{typed}}
		got, err := Elicit(s, &protocol.ElicitParams{Mode: "url", Message: "Log in", URL: "https://example.com/\x1b]8;;x"})
		if err != nil || got.Action != want || got.Content != nil || !strings.Contains(s.screen.String(), "https://example.com/␛]8") {
			t.Errorf("%s: got %+v, %v\n%s", typed, got, err, s.screen.String())
		}
	}
	broken := errors.New("broken")
	if _, err := outcome(broken); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestFill(t *testing.T) {
	object, err := arguments.ReadObject(json.RawMessage(`{"required":["a","b"],"properties":{
		"x":{"type":"string"},"a":{"type":"string"},"b":{"type":"integer"},"y":{"type":"integer","default":7}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, given, typed, want string }{
		{"required first", "", "n|text|5", `{"a":"text","b":5}`},
		{"optional, too", "", "y|text|5|some|", `{"a":"text","b":5,"x":"some"}`},
		{"some are given", `{"a":"A"}`, "5", `{"a":"A","b":5}`},
		{"nothing to ask", `{"a":"A","b":1}`, "", `{"a":"A","b":1}`},
		{"empty text", "", `n|""|5`, `{"a":"","b":5}`},
	} {
		s := &script{}
		if test.typed != "" {
			s.lines = strings.Split(test.typed, "|")
		}
		got, err := Fill(s, object, json.RawMessage(test.given), false)
		if err != nil || string(got) != test.want || len(s.lines) > 0 {
			t.Errorf("%s: got %s, %v, want %s\n%s", test.name, got, err, test.want, s.screen.String())
		}
	}
}

func TestAnswers(t *testing.T) {
	params := &protocol.ElicitParams{Message: "Book?", RequestedSchema: json.RawMessage(booking)}
	for _, test := range []struct{ answers, action, content, note string }{
		{"name=Ada|seats=3|other=1", "accept", `{"seats":3,"name":"Ada"}`, `answered {"seats":3,"name":"Ada"}`},
		{"name=Ada", "accept", `{"seats":2,"name":"Ada"}`, "answered"},
		{"seats=1", "cancel", "", "--answer name=value"},
		{"name=Ada|seats=9", "cancel", "", "name, seats, class"},
		{"", "cancel", "", "nobody is there"},
		{"nmae=Ada|seats=3", "cancel", "", "the form has no field nmae (did you mean --answer name=value?), so it was cancelled. Its fields: name, seats"},
		{"name=Ada|Seats=3", "cancel", "", "the form has no field Seats (did you mean --answer seats=value?)"},
		{"name=Ada|seats=3|seat=4", "accept", `{"seats":3,"name":"Ada"}`, "answered"}, // that of another form
		{"id=1|sure=yes", "cancel", "", "the form has no field id or sure, so it was cancelled. Its fields: name"},
	} {
		var a Answers
		if test.answers != "" {
			a = strings.Split(test.answers, "|")
		}
		got := a.Elicit(params)
		if string(got.Result.Action) != test.action || string(got.Result.Content) != test.content || !strings.Contains(got.Note, test.note) || !got.Form {
			t.Errorf("%q: got %+v %q", test.answers, got.Result, got.Note)
		}
	}
	if got := (Answers{"a=1"}).Elicit(&protocol.ElicitParams{Mode: "url", URL: "https://example.com"}); got.Result.Action != protocol.ElicitCancel || got.Form {
		t.Errorf("a page: got %+v", got)
	}
}

// A form whose only field has a default is not accepted for names that it does
// not have.
func TestAnswersDefaults(t *testing.T) {
	sure := json.RawMessage(`{"type":"object","properties":{"delete":{"type":"boolean","default":false}}}`)
	for _, test := range []struct {
		answers, schema, action, fit string
	}{
		{"delte=true", string(sure), "cancel", ""},
		{"other=true", string(sure), "cancel", ""},
		{"delete=true|other=1|other=2", string(sure), "accept", "delete"},
		{"sure=yes|other=1", `{"type":"object","properties":{}}`, "accept", "sure other"}, // there is nothing to misspell
	} {
		got := Answers(strings.Split(test.answers, "|")).Elicit(&protocol.ElicitParams{Message: "Sure?", RequestedSchema: json.RawMessage(test.schema)})
		if string(got.Result.Action) != test.action || strings.Join(got.Fit, " ") != test.fit {
			t.Errorf("%s: got %+v", test.answers, got)
		}
	}
}

func TestValues(t *testing.T) {
	object, err := arguments.ReadObject(json.RawMessage(booking))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ field, typed, want string }{
		{"class", "", "first second"}, {"class", "se", "second"}, {"window", "t", "true"}, {"seats", "", "2"},
		{"meals", "fish,r", "fish,rice"}, {"name", "", ""}, {"file", "", `\@/etc/passwd`}, {"handle", `\@a`, `\@anna`}, {"handle", "b", "bert"},
	} {
		f, _ := object.Field(test.field)
		switch test.field { // a server may name files that it wants
		case "file":
			f = arguments.Field{Name: "file", Types: []string{"string"}, Default: json.RawMessage(`"@/etc/passwd"`)}
		case "handle":
			f = arguments.Field{Name: "handle", Options: []arguments.Option{{Value: json.RawMessage(`"@anna"`)}, {Value: json.RawMessage(`"bert"`)}}}
		}
		if got := strings.Join(Values(f, test.typed), " "); got != test.want {
			t.Errorf("%s %q: got %q, want %q", test.field, test.typed, got, test.want)
		}
	}
}
