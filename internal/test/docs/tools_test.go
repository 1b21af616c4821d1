package docs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/schema"
)

type SearchIn struct {
	Query string `json:"query" validate:"max=80" jsonschema_description:"words to look for"`
	Limit int    `json:"limit,omitempty" validate:"min=1,max=100" jsonschema:"default=10" jsonschema_description:"how many notes at most"`
	Sort  string `json:"sort,omitempty" validate:"oneof=date title"`
}

type Note struct {
	ID   int    `json:"id"`
	Text string `json:"text"`
}

type SearchOut struct {
	Notes []Note `json:"notes"`
}

func search(ctx context.Context, in SearchIn) (SearchOut, error) {
	var out SearchOut
	for _, note := range notes {
		if strings.Contains(note.Text, in.Query) && len(out.Notes) < in.Limit {
			out.Notes = append(out.Notes, note)
		}
	}
	return out, nil
}

func notesServer() *mcp.Server {
	s := mcp.NewServer(mcp.Info{Name: "notes", Version: "1.0.0"}, nil)
	s.MustAdd(mcp.Tool("search_notes", search, mcp.Doc("Finds notes by their text"), mcp.ReadOnly()))
	return s
}

type Stats struct {
	Mean float64 `json:"mean"`
}

func chart(ctx context.Context, in ChartIn) (*mcp.ResultOf[Stats], error) {
	r := &mcp.ResultOf[Stats]{Value: Stats{Mean: mean(in.Values)}}
	r.Image(draw(in.Values), "image/png")
	return r, nil
}

func chartTool() mcp.Component {
	return mcp.Tool("chart", chart, mcp.Text(func(out Stats) string { return fmt.Sprintf("The mean is %.1f.", out.Mean) }))
}

type Payment interface{ pay() string }

type Card struct {
	Number string `json:"number" validate:"credit_card" mcp:"secret"`
}

type Invoice struct {
	Company string `json:"company" validate:"customer"`
}

func (c Card) pay() string    { return "by card" }
func (i Invoice) pay() string { return "by invoice to " + i.Company }

func payments() *mcp.Server {
	return mcp.NewServer(mcp.Info{Name: "shop", Version: "1.0.0"}, &mcp.Options{Schema: &schema.Options{
		Unions: []schema.UnionType{
			schema.Union[Payment]("by", schema.Variant("card", Card{}), schema.Variant("invoice", Invoice{})),
		},
		Rules: []schema.Rule{
			schema.NewRule("customer", func(ctx context.Context, name, _ string) error {
				if !isCustomer(name) {
					return errors.New("is no customer of ours")
				}
				return nil
			}, schema.Describe("the name of a customer")),
		},
	}})
}

var money = &schema.Options{
	Types: []schema.TypeSchema{
		schema.Declare[big.Float](&jsonschema.Schema{Type: "string", Pattern: `^[0-9]+\.[0-9]{2}$`}),
	},
	Formats: map[string]func(string) bool{
		"phone":       func(text string) bool { return strings.HasPrefix(text, "+") },
		"postal-code": nil,
	},
}

var notes = []Note{{1, "buy milk"}, {2, "buy bread"}, {3, "call Ann"}}

type ChartIn struct {
	Values []float64 `json:"values" validate:"min=1"`
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

func draw([]float64) []byte { return []byte("\x89PNG") }

type AccountIn struct {
	Account int `json:"account"`
}

func allowed(account int) bool { return account != 7 }

func isCustomer(name string) bool { return name == "Acme" }

// transfer returns the two kinds of errors.
func transfer(db *struct{}) func(context.Context, AccountIn) (string, error) {
	return func(ctx context.Context, in AccountIn) (string, error) {
		if !allowed(in.Account) {
			return "", fmt.Errorf("account %d is closed; choose another one", in.Account) // the model reads this
		}
		if db == nil {
			return "", mcp.Errorf(mcp.CodeInternal, "the database is down") // the client's program reads this
		}
		return "done", nil
	}
}

type PayIn struct {
	Payment Payment `json:"payment"`
}

// The page shows the schema that a client gets.
func TestToolsSchema(t *testing.T) {
	c := mcptest.New(t, notesServer())
	tool := c.Tools()[0]
	shown := regexp.MustCompile("(?s)```json\n(.*?)```").FindStringSubmatch(page(t, "tools.md"))
	var got, want map[string]any
	if err := json.Unmarshal(tool.InputSchema, &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(shown[1]), &want); err != nil {
		t.Fatal(err)
	}
	delete(got, "$schema")
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the schema is %s", tool.InputSchema)
	}
	var out SearchOut
	c.Call("search_notes", map[string]any{"query": "buy", "limit": "1"}).Structured(&out)
	if want := []Note{{1, "buy milk"}}; !reflect.DeepEqual(out.Notes, want) {
		t.Errorf("got %v", out)
	}
	if r := c.Call("search_notes", map[string]any{"query": "buy", "limit": 500}); !r.IsError || !strings.Contains(r.Text(), "/limit") {
		t.Errorf("got %q", r.Text())
	}
}

func TestTools(t *testing.T) {
	s := payments()
	s.MustAdd(
		chartTool(),
		mcp.Tool("transfer", transfer(&struct{}{})),
		mcp.Tool("transfer_without", transfer(nil)),
		mcp.Tool("pay", func(_ context.Context, in PayIn) (string, error) { return in.Payment.pay(), nil }),
	)
	c := mcptest.New(t, s)
	drawn := c.Call("chart", ChartIn{[]float64{1, 2}})
	if len(drawn.Content) != 2 || string(drawn.Value) != `{"mean":1.5}` {
		t.Errorf("got %s", drawn.Raw)
	}
	if r := c.Call("transfer", AccountIn{7}); !r.IsError || r.Text() != "account 7 is closed; choose another one" {
		t.Errorf("got %q", r.Text())
	}
	_, err := c.TryCall("transfer_without", AccountIn{8})
	if fault, ok := errors.AsType[*mcp.Error](err); !ok || fault.Code != mcp.CodeInternal {
		t.Errorf("got %v", err)
	}
	for _, tt := range []struct{ payment, want string }{
		{`{"by":"invoice","company":"Acme"}`, "by invoice to Acme"},
		{`{"by":"invoice","company":"Nobody"}`, "is no customer of ours"},
		{`{"by":"card","number":"4111111111111111"}`, "by card"},
		{`{"by":"card","number":"4111111111111112"}`, "/payment/number"},
		{`{"by":"cheque"}`, "/payment"},
	} {
		if got := c.Call("pay", json.RawMessage(fmt.Sprintf(`{"payment":%s}`, tt.payment))).Text(); !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.payment, got, tt.want)
		}
	}
	if legacy := mcptest.New(t, s, mcptest.Revision(protocol.V20241105)).Call("chart", ChartIn{[]float64{1, 2}}); legacy.Value != nil || legacy.Text() != "The mean is 1.5." {
		t.Errorf("got %s", legacy.Raw)
	}
}

func TestDeclaredTypesAndFormats(t *testing.T) {
	type order struct {
		Price big.Float `json:"price"`
		Phone string    `json:"phone" jsonschema:"format=phone"`
		Code  string    `json:"code" jsonschema:"format=postal-code"`
	}
	say := func(in order) string { return in.Price.Text('f', 2) + " " + in.Phone + " " + in.Code }
	s := mcp.NewServer(mcp.Info{Name: "shop", Version: "1.0.0"}, &mcp.Options{Schema: money})
	s.MustAdd(
		mcp.Tool("buy", func(_ *mcp.Frame, in order) (string, error) { return say(in), nil }),
		mcp.Prompt("sell", func(_ *mcp.Frame, in order) (string, error) { return say(in), nil }),
		mcp.Template("offer:///{price}/{phone}/{code}", func(_ *mcp.Frame, in order) (string, error) { return say(in), nil }),
	)
	for _, rev := range protocol.Revisions() {
		c := mcptest.New(t, s, mcptest.Revision(rev))
		good := map[string]string{"price": "7.50", "phone": "+1", "code": "x"}
		if got := c.Call("buy", good).Text(); got != "7.50 +1 x" {
			t.Errorf("%s: tool: got %q", rev, got)
		}
		if got := c.GetPrompt("sell", good); len(got.Messages) != 1 || got.Messages[0].Content.(mcp.TextContent).Text != "7.50 +1 x" {
			t.Errorf("%s: prompt: got %+v", rev, got)
		}
		if got := c.Read("offer:///7.50/%2B1/x"); len(got) != 1 || got[0].Text != "7.50 +1 x" {
			t.Errorf("%s: template: got %+v", rev, got)
		}
		wrong := map[string]string{"price": "7.5", "phone": "1", "code": ""}
		if got := c.Call("buy", wrong); !got.IsError || strings.Contains(got.Text(), "/code") || !strings.Contains(got.Text(), "/price") || !strings.Contains(got.Text(), "/phone") {
			t.Errorf("%s: tool: got %q", rev, got.Text())
		}
		_, err := c.TryGetPrompt("sell", wrong)
		_, err2 := c.TryRead("offer:///7.5/1/x")
		for what, err := range map[string]error{"prompt": err, "template": err2} {
			if fault, ok := errors.AsType[*mcp.Error](err); !ok || fault.Code != mcp.CodeInvalidParams || !strings.Contains(err.Error(), "/price") {
				t.Errorf("%s: %s: got %v", rev, what, err)
			}
		}
	}
}
