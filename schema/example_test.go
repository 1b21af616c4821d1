package schema_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/talaria-go/mcp/schema"
)

type forecastArgs struct {
	City  string `json:"city" validate:"required,max=80" jsonschema_description:"City name, e.g. Oslo"`
	Days  int    `json:"days,omitempty" validate:"min=1,max=14" jsonschema:"default=3"`
	Units string `json:"units,omitempty" validate:"oneof=metric imperial" jsonschema:"default=metric"`
}

func ExampleCompile() {
	plan, err := schema.Compile(reflect.TypeFor[forecastArgs](), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(plan.JSON()))
	// Output:
	// {"type":"object","properties":{"city":{"type":"string","description":"City name, e.g. Oslo","maxLength":80,"minLength":1},"days":{"type":"integer","maximum":14,"minimum":1,"default":3},"units":{"type":"string","enum":["metric","imperial"],"default":"metric"}},"additionalProperties":false,"required":["city"]}
}

func ExamplePlan_Decode() {
	plan, err := schema.Compile(reflect.TypeFor[forecastArgs](), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	var args forecastArgs
	if err := plan.Decode(context.Background(), []byte(`{"city":"Oslo","days":"5"}`), &args); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%+v\n", args)

	err = plan.Decode(context.Background(), []byte(`{"town":"Oslo","days":30}`), &args)
	var faults *schema.Error
	if errors.As(err, &faults) {
		fmt.Println(faults.Text(`tool "forecast"`))
	}
	// Output:
	// {City:Oslo Days:5 Units:metric}
	// Invalid arguments for tool "forecast" (3 problems). Fix them and call the tool again.
	// - /town: unknown property; allowed: city, days, units
	// - /days: must be between 1 and 14; got 30
	// - /city: is required (string, 1 to 80 characters)
}

func ExampleFor() {
	type args struct {
		Limit int `json:"limit" validate:"min=1.5"`
	}
	_, err := schema.For[args](nil)
	fmt.Println(err)
	// Output:
	// schema: schema_test.args.Limit (json "limit"): validate:"min=1.5" - an integer rule needs an integer; did you mean gt=1 or a float64 field?
}

type shape interface{ Area() float64 }

type square struct {
	Side float64 `json:"side" validate:"gt=0"`
}

func (s square) Area() float64 { return s.Side * s.Side }

type disc struct {
	Radius float64 `json:"radius" validate:"gt=0"`
}

func (d disc) Area() float64 { return 3 * d.Radius * d.Radius }

func ExampleUnion() {
	type args struct {
		Shape shape `json:"shape"`
	}
	plan, err := schema.Compile(reflect.TypeFor[args](), &schema.Options{
		Unions: []schema.UnionType{schema.Union[shape]("kind", schema.Variant("square", square{}), schema.Variant("disc", disc{}))},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	var in args
	fmt.Println(plan.Decode(context.Background(), []byte(`{"shape":{"kind":"square","side":3}}`), &in), in.Shape.Area())
	fmt.Println(plan.Decode(context.Background(), []byte(`{"shape":{"kind":"disc","radius":0}}`), &in))
	// Output:
	// <nil> 9
	// /shape/radius: must be greater than 0; got 0
}

func ExampleNewStructRule() {
	type args struct {
		From int `json:"from"`
		To   int `json:"to"`
	}
	short := schema.NewStructRule("The range spans at most 100.", func(_ context.Context, a *args) error {
		if a.To-a.From > 100 {
			return schema.FieldError("To", "is more than 100 after from")
		}
		return nil
	})
	plan, err := schema.Compile(reflect.TypeFor[args](), &schema.Options{Rules: []schema.Rule{short}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(plan.Check([]byte(`{"from":1,"to":500}`)))
	// Output:
	// /to: is more than 100 after from
}
