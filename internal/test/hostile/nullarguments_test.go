package hostile_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/schema"
)

// color is a type with a text form and a list of values.
type color int

func (c color) MarshalText() ([]byte, error) { return []byte([]string{"none", "red"}[c]), nil }

func (c *color) UnmarshalText(text []byte) error {
	for i, name := range []string{"none", "red"} {
		if name == string(text) {
			*c = color(i)
			return nil
		}
	}
	return fmt.Errorf("%q is no color", text)
}

func (color) Enum() []any { return []any{color(0), color(1)} }

// nullable has a member of each kind. Those whose names begin with "must" have to be
// there; those with "value" take null for a value.
type nullable struct {
	Pointer     *int                      `json:"pointer"`
	Text        string                    `json:"text,omitempty" validate:"omitempty,min=2"`
	Zero        int                       `json:"zero,omitzero"`
	Default     int                       `json:"default" jsonschema:"default=20,minimum=1"`
	True        *bool                     `json:"true" jsonschema:"default=true"`
	Sorted      string                    `json:"sorted" jsonschema:"default=asc" validate:"oneof=asc desc"`
	List        []string                  `json:"list,omitempty"`
	ListDefault []int                     `json:"listDefault" jsonschema:"default=[1,2]"`
	Bytes       []byte                    `json:"bytes,omitempty"`
	Map         map[string]int            `json:"map,omitempty"`
	Object      *struct{ A int }          `json:"object"`
	Inner       struct{ B *int }          `json:"inner,omitzero"`
	Enum        color                     `json:"enum,omitempty"`
	Choice      string                    `json:"choice,omitempty" validate:"omitempty,oneof=a b"`
	When        time.Time                 `json:"when,omitzero"`
	Wait        time.Duration             `json:"wait,omitempty"`
	Address     netip.Addr                `json:"address,omitzero"`
	Raw         json.RawMessage           `json:"raw,omitempty"`
	Any         any                       `json:"any,omitempty"`
	If          string                    `json:"if,omitempty" validate:"required_if=Sorted desc"`
	Value       schema.Null[int]          `json:"value,omitzero"`
	ValueText   *string                   `json:"valueText" jsonschema:"nullable"`
	MustText    string                    `json:"mustText"`
	MustList    []string                  `json:"mustList"`
	MustPointer *int                      `json:"mustPointer" validate:"required"`
	Values      map[string]map[string]int `json:"values,omitempty"`
}

// nullPrompt is what a prompt takes, and a method of a program's own.
type nullPrompt struct {
	Must  string `json:"must"`
	Limit int    `json:"limit" jsonschema:"default=5"`
	Note  string `json:"note"  validate:"omitempty"`
}

// A model writes null for an argument that it does not set: for whatever is optional this
// is the same as none, so that defaults apply and no rule runs. What has to be there is
// named, as is a null within a list or a map. A tool that is Strict refuses
// all of them, and so does a method of a program's own, whose callers are programs.
func TestNullArguments(t *testing.T) {
	const must = `"mustText":"x","mustList":[],"mustPointer":1`
	optional := []string{
		"pointer", "text", "zero", "default", "true", "sorted", "list", "listDefault", "bytes", "map", "object", "inner",
		"enum", "choice", "when", "wait", "address", "if", "values",
	}
	tools := func(opts ...mcp.ToolOption) *mcp.Server {
		s := harness.Fixture(t, nil)
		s.MustAdd(
			mcp.Tool("typed", func(_ *mcp.Frame, in nullable) (json.RawMessage, error) {
				text, err := json.Marshal(in)
				return text, err
			}, opts...),
			mcp.Tool("untyped", func(_ *mcp.Frame, in map[string]any) (json.RawMessage, error) { return json.Marshal(in) },
				append(opts, mcp.InputSchema(json.RawMessage(`{"type":"object","required":["must"],"properties":{
					"must":{"type":"string"},"limit":{"type":"integer","default":5},"list":{"type":"array","items":{"type":"integer"}},
					"mode":{"enum":["a","b"]},"union":{"anyOf":[{"type":"string"},{"type":"integer"}]},"value":{"type":["integer","null"]},
					"inner":{"type":"object","properties":{"n":{"type":"integer","default":1}}}}}`)))...),
		)
		s.MustAdd(
			mcp.Prompt("asked", func(_ *mcp.Frame, in nullPrompt) (string, error) {
				return fmt.Sprintf("%v %v %v", in.Must, in.Limit, in.Note), nil
			}),
			mcp.Method("acme/own", func(_ *mcp.Frame, in nullPrompt) (nullPrompt, error) { return in, nil }),
		)
		return s
	}
	for _, rev := range []protocol.Revision{protocol.V20250618, protocol.V20260728} {
		for _, tr := range harness.TransportsOf(rev) {
			s := tools()
			p := harness.Join(t, tr, rev, s)
			call := func(tool, arguments string) string {
				return p.Ask("tools/call", `"name":"`+tool+`","arguments":{`+arguments+`}`)
			}
			none := call("typed", must)
			p.Want(none, `\"default\":20`, `\"true\":true`, `\"sorted\":\"asc\"`, `\"listDefault\":[1,2]`)
			for _, name := range optional {
				if got := call("typed", must+`,"`+name+`":null`); answered(got) != answered(none) {
					t.Errorf("%s, %s: null for %s is not the same as none:\n%s\n%s", tr.Name, rev, name, got, none)
				}
			}
			p.Want(call("typed", must+`,"raw":null,"any":null,"value":null,"valueText":null`), `\"raw\":null`, `\"mustPointer\":1`)
			p.Want(call("typed", must+`,"inner":{"B":null},"object":{"A":1}`), `\"object\":{\"A\":1}`)
			for arguments, place := range map[string]string{
				`"mustText":null,"mustList":[],"mustPointer":1`:   "mustText",
				`"mustText":"x","mustList":null,"mustPointer":1`:  "mustList",
				`"mustText":"x","mustList":[],"mustPointer":null`: "mustPointer",
				must + `,"list":["a",null]`:                       "list/1",
				must + `,"map":{"a":null}`:                        "map/a",
				must + `,"values":{"a":null}`:                     "values/a",
				must + `,"object":{"A":null}`:                     "object/A",
				must + `,"sorted":"desc","if":null`:               "if",
			} {
				p.Want(call("typed", arguments), `"isError":true`, place)
			}
			p.Want(call("untyped", `"must":"x","limit":null,"list":null,"mode":null,"union":null,"value":null,"inner":{"n":null}`),
				`{\"inner\":{\"n\":1},\"limit\":5,\"must\":\"x\",\"value\":null}`)
			p.Want(call("untyped", `"must":null`), `"isError":true`, "must")

			p.Want(p.Ask("prompts/get", `"name":"asked","arguments":{"must":"x","limit":null,"note":null}`), `"text":"x 5 "`)
			p.Want(p.Ask("prompts/get", `"name":"asked","arguments":{"must":null}`), `"code":-32602`, "must")
			p.Want(p.Ask("acme/own", `"must":"x"`), `"must":"x","limit":5,"note":""`)
			p.Want(p.Ask("acme/own", `"must":"x","limit":null,"note":null`), `"code":-32602`, "/limit", "/note")

			p = harness.Join(t, tr, rev, tools(mcp.Strict()))
			for _, name := range optional {
				p.Want(call("typed", must+`,"`+name+`":null`), `"isError":true`, name)
			}
			p.Want(call("untyped", `"must":"x","limit":null`), `"isError":true`, "limit")
		}
	}
}

// answered is an answer without its id.
func answered(answer string) string {
	var m struct{ Result json.RawMessage }
	_ = json.Unmarshal([]byte(answer), &m)
	return string(m.Result)
}
