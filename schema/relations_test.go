package schema

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-playground/validator/v10"
)

func TestCrossFields(t *testing.T) {
	type span struct {
		From  int       `json:"from,omitempty"`
		To    int       `json:"to,omitempty" validate:"gtfield=From"`
		Start time.Time `json:"start,omitempty"`
		End   time.Time `json:"end,omitempty" validate:"gtefield=start"`
		A     string    `json:"a,omitempty"`
		B     string    `json:"b,omitempty" validate:"eqfield=A"`
		C     string    `json:"c,omitempty" validate:"fieldcontains=A"`
		Land  string    `json:"land,omitempty"`
		Post  string    `json:"post,omitempty" validate:"postcode_iso3166_alpha2_field=Land"`
	}
	type args struct {
		Top  string `json:"top,omitempty"`
		In   span   `json:"in,omitempty"`
		List []struct {
			Low string `json:"low" validate:"ltcsfield=Top"`
			Num int    `json:"num,omitempty" validate:"ltecsfield=In.From"`
		} `json:"list,omitempty"`
	}
	p := compile[args](t, &Options{Validator: playground})
	tests := []struct {
		input  string
		issues []string
	}{
		{`{"in":{"from":1,"to":2}}`, nil},
		{`{"in":{"from":2,"to":2}}`, []string{"/in/to crossField"}},
		{`{"in":{"to":-5}}`, nil},
		{`{"in":{"start":"2026-01-02T00:00:00Z","end":"2026-01-01T00:00:00Z"}}`, []string{"/in/end crossField"}},
		{`{"in":{"a":"x","b":"y","c":"axb"}}`, []string{"/in/b crossField"}},
		{`{"in":{"a":"x","c":"b"}}`, []string{"/in/c crossField"}},
		{`{"in":{"land":"US","post":"12345"}}`, nil},
		{`{"in":{"land":"US","post":"1234"}}`, []string{"/in/post crossField"}},
		{`{"in":{"land":"US,required","post":"12345"}}`, []string{"/in/post crossField"}},
		{`{"top":"m","list":[{"low":"a"},{"low":"z"}]}`, []string{"/list/1/low crossField"}},
		{`{"list":[{"low":"z","num":5}],"in":{"from":4}}`, []string{"/list/0/num crossField"}},
		{`{"list":[{"low":"z","num":5}],"in":{}}`, nil},
		{`{"in":{"from":"x","to":1}}`, []string{"/in/from type"}},
	}
	for _, c := range tests {
		if got := listed(t, p.Check([]byte(c.input))); !reflect.DeepEqual(got, c.issues) {
			t.Errorf("%s: issues are %q, want %q", c.input, got, c.issues)
		}
	}
	if !strings.Contains(string(p.JSON()), "Must be greater than from.") {
		t.Errorf("the schema does not describe the rule: %s", p.JSON())
	}
}

type booking struct {
	Nights int `json:"nights"`
	Guests int `json:"guests"`
}

// A rule compares with the default of a member that is absent, which the function
// receives. An absent member itself has no rules.
func TestCrossFieldDefaults(t *testing.T) {
	type inner struct {
		Top int `json:"top,omitempty" jsonschema:"default=3"`
	}
	type args struct {
		From  int       `json:"from,omitempty" jsonschema:"default=3"`
		To    int       `json:"to,omitempty" validate:"gtfield=From" jsonschema:"default=9"`
		Ptr   *int      `json:"ptr" jsonschema:"default=3"`
		After int       `json:"after,omitempty" validate:"gtfield=Ptr"`
		Word  string    `json:"word,omitempty" jsonschema:"default=abc"`
		Part  string    `json:"part,omitempty" validate:"fieldcontains=Word"`
		Day   time.Time `json:"day,omitzero" jsonschema:"default=2026-01-02T00:00:00Z"`
		Next  time.Time `json:"next,omitzero" validate:"gtfield=Day"`
		In    inner     `json:"in,omitzero"`
		Low   int       `json:"low,omitempty" validate:"ltcsfield=In.Top"`
	}
	p := compile[args](t, nil)
	for input, issues := range map[string][]string{
		`{}`:                              nil,
		`{"to":2}`:                        {"/to crossField"},
		`{"to":4}`:                        nil,
		`{"from":null,"to":2}`:            {"/to crossField"},
		`{"from":20}`:                     nil, // to is absent
		`{"after":3}`:                     {"/after crossField"},
		`{"part":"xab"}`:                  {"/part crossField"},
		`{"next":"2026-01-01T00:00:00Z"}`: {"/next crossField"},
		`{"in":{},"low":5}`:               {"/low crossField"},
		`{"in":{},"low":2}`:               nil,
		`{"low":5}`:                       nil, // in is absent, and so is its top
	} {
		if got := listed(t, p.Check([]byte(input))); !reflect.DeepEqual(got, issues) {
			t.Errorf("%s: issues are %q, want %q", input, got, issues)
		}
	}
	err := p.Check([]byte(`{"to":2}`))
	if err == nil || !strings.Contains(err.Error(), "must be greater than from (3); got 2") {
		t.Errorf("error is %v", err)
	}
}

func TestStructRules(t *testing.T) {
	type args struct {
		B []booking `json:"b"`
	}
	few := NewStructRule("at most ten beds in all", func(_ context.Context, b *booking) error {
		if b.Nights*b.Guests > 10 {
			return errors.Join(FieldError("Guests", "are too many"), errors.New("is too large"))
		}
		return nil
	})
	odd := ValidatorStructRule[booking]("guests are even", func(sl validator.StructLevel) {
		if b := sl.Current().Interface().(booking); b.Guests%2 == 1 {
			sl.ReportError(b.Guests, "Guests", "Guests", "even", "")
		}
	})
	p := compile[args](t, &Options{Rules: []Rule{few, odd}})
	if got := listed(t, p.Check([]byte(`{"b":[{"nights":1,"guests":2},{"nights":6,"guests":2}]}`))); !reflect.DeepEqual(got, []string{"/b/1/guests custom", "/b/1 custom"}) {
		t.Errorf("issues are %q", got)
	}
	if got := listed(t, p.Check([]byte(`{"b":[{"nights":1,"guests":3}]}`))); !reflect.DeepEqual(got, []string{"/b/0/guests even"}) {
		t.Errorf("issues are %q", got)
	}
	if !strings.Contains(string(p.JSON()), "at most ten beds in all") {
		t.Errorf("the schema does not describe the rule: %s", p.JSON())
	}
	wild := NewStructRule("panics", func(context.Context, *booking) error { panic("boom") })
	defer func() {
		if p := recover(); p != "boom" {
			t.Errorf("a panic in a rule reaches the caller as %v", p)
		}
	}()
	err := compile[booking](t, &Options{Rules: []Rule{wild}}).Check([]byte(`{"nights":1,"guests":1}`))
	t.Errorf("a panic in a rule gives %v", err)
}

func TestCustomRules(t *testing.T) {
	sku := NewRule("sku", func(ctx context.Context, v, param string) error {
		if ctx.Value(customKey{}) != nil {
			return errors.New("is sold out")
		}
		return nil
	}, Describe("an existing SKU"))
	type args struct {
		S []string `json:"s" validate:"dive,sku"`
	}
	p := compile[args](t, &Options{Rules: []Rule{sku}})
	var in args
	if err := p.Decode(context.Background(), []byte(`{"s":["a"]}`), &in); err != nil {
		t.Error(err)
	}
	err := p.Decode(context.WithValue(t.Context(), customKey{}, true), []byte(`{"s":["a"]}`), &in)
	if err == nil || err.Error() != "/s/0: is sold out" {
		t.Errorf("error is %v", err)
	}
}

type customKey struct{}
