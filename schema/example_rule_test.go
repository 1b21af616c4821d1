package schema_test

import (
	"context"
	"fmt"
	"reflect"

	"github.com/invopop/jsonschema"
	"github.com/talaria-go/mcp/schema"
	"github.com/talaria-go/mcp/schema/civil"
)

// A rule of one's own says to the schema what it can, and the rest in words.
func ExampleNewRule() {
	stock := map[string]bool{"ABC-0001": true}
	sku := schema.NewRule("sku",
		func(_ context.Context, v string, _ string) error {
			if !stock[v] {
				return fmt.Errorf("%s is not in stock", v)
			}
			return nil
		},
		schema.Emit(func(_ string, s *jsonschema.Schema) { s.Pattern = `^[A-Z]{3}-[0-9]{4}$` }),
		schema.Describe("an article in stock"),
	)
	type Order struct {
		Article string `json:"article" validate:"sku"`
	}
	plan, err := schema.Compile(reflect.TypeFor[Order](), &schema.Options{Rules: []schema.Rule{sku}})
	if err != nil {
		fmt.Println(err)
		return
	}
	var in Order
	fmt.Println(plan.Decode(context.Background(), []byte(`{"article":"XYZ-9999"}`), &in))
	fmt.Println(plan.Decode(context.Background(), []byte(`{"article":"ABC-0001"}`), &in), in.Article)
	// Output:
	// /article: XYZ-9999 is not in stock
	// <nil> ABC-0001
}

func ExampleDate() {
	d, err := civil.ParseDate("2024-02-28")
	fmt.Println(d.AddDays(2), d.Weekday(), err)
	_, err = civil.ParseDate("2023-02-29")
	fmt.Println(err)
	// Output:
	// 2024-03-01 Wednesday <nil>
	// date "2023-02-29": February 2023 has 28 days
}
