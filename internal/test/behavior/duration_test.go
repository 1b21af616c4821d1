package behavior_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/schema"
	"github.com/talaria-go/mcp/schema/raw"
)

// pauses is both what tools take and what they give.
type pauses struct {
	Plain  time.Duration              `json:"plain" validate:"max=2h"`
	Ptr    *time.Duration             `json:"ptr"`
	Unit   time.Duration              `json:"unit" mcp:"unit=s" validate:"min=1s"`
	ISO    time.Duration              `json:"iso" jsonschema:"format=duration"`
	List   []time.Duration            `json:"list"`
	ISOs   []time.Duration            `json:"isos" jsonschema:"format=duration"`
	ByKey  map[time.Duration]int      `json:"byKey"`
	Values map[string]*time.Duration  `json:"values"`
	Opt    schema.Null[time.Duration] `json:"opt" jsonschema:"format=duration"`
	Any    any                        `json:"any" jsonschema_description:"Anything."`
	Inner  innerWait                  `json:"inner"`
	innerWaits
}

type innerWait struct {
	In time.Duration `json:"in,omitempty" mcp:"unit=ms"`
}

type innerWaits struct {
	More []innerWait `json:"more"`
}

const pausesText = `{"plain":"1m30s","ptr":"1.5µs","unit":90,"iso":"PT1H30M","list":["-1s","0s"],"isos":["PT25H"],` +
	`"byKey":{"1h0m0s":1,"1s":2},"values":{"x":"1ms"},"opt":"PT1M","any":"1m0s","inner":{"in":5},"more":[{"in":1500},{}]}`

func pausesValue() pauses {
	ptr := func(d time.Duration) *time.Duration { return &d }
	return pauses{Plain: 90 * time.Second, Ptr: ptr(1500), Unit: 90 * time.Second, ISO: 90 * time.Minute,
		List: []time.Duration{-time.Second, 0}, ISOs: []time.Duration{25 * time.Hour}, ByKey: map[time.Duration]int{time.Hour: 1, time.Second: 2},
		Values: map[string]*time.Duration{"x": ptr(time.Millisecond)}, Opt: schema.NullOf(time.Minute), Any: time.Minute,
		Inner: innerWait{5 * time.Millisecond}, innerWaits: innerWaits{[]innerWait{{1500 * time.Millisecond}, {}}}}
}

func pausesServer(*testing.T) *mcp.Server { return pausesServerOf(mcp.Options{}) }

func pausesServerOf(opts mcp.Options) *mcp.Server {
	s := harness.Bare(opts)
	s.MustAdd(
		mcp.Tool("echo", func(_ *mcp.Frame, in pauses) (pauses, error) { return in, nil }),
		mcp.Tool("built", func(_ *mcp.Frame, in pauses) (*mcp.Result, error) { return mcp.NewResult().Structured(in), nil }),
		mcp.Tool("made", func(*mcp.Frame, struct{}) (pauses, error) { return pausesValue(), nil }),
		mcp.Tool("unfit", func(*mcp.Frame, struct{}) (pauses, error) {
			w := pausesValue()
			w.Unit = 1500 * time.Millisecond
			return w, nil
		}),
		mcp.Method("acme/pauses", func(_ *mcp.Frame, in pauses) (pauses, error) { return in, nil }),
		mcp.Resource("pauses://all", func(*mcp.Frame) (pauses, error) { return pausesValue(), nil }),
		mcp.Template("pauses://after/{after}", func(_ *mcp.Frame, in struct {
			After time.Duration `json:"after"`
		}) (pauses, error) {
			w := pausesValue()
			w.Plain = in.After
			return w, nil
		}),
	)
	return s
}

// A struct that is both argument and result has one form, over every
// transport and in every revision, and its schema says that form.
func TestDurationsBothWays(t *testing.T) {
	harness.Everywhere(t, pausesServer, func(t *testing.T, c *harness.Talker) {
		for _, tool := range []string{"echo", "built", "made"} {
			arguments := pausesText
			if tool == "made" {
				arguments = "{}"
			}
			answer := c.Ask("tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, arguments))
			var m struct {
				Result struct {
					StructuredContent json.RawMessage
					Content           []struct{ Text string }
				}
			}
			if err := json.Unmarshal([]byte(answer), &m); err != nil || len(m.Result.Content) != 1 || m.Result.Content[0].Text != pausesText {
				t.Errorf("%s: the text is not %s:\n%s", tool, pausesText, answer)
			}
			if got := string(m.Result.StructuredContent); got != pausesText && c.Rev.Has(protocol.FeatureStructuredContent) {
				t.Errorf("%s: got  %s\nwant %s", tool, got, pausesText)
			}
		}
		var read struct {
			Result struct{ Contents []struct{ Text string } }
		}
		for uri, want := range map[string]string{"pauses://all": pausesText, "pauses://after/20s": strings.Replace(pausesText, "1m30s", "20s", 1)} {
			answer := c.Ask("resources/read", fmt.Sprintf(`{"uri":%q}`, uri))
			if err := json.Unmarshal([]byte(answer), &read); err != nil || len(read.Result.Contents) != 1 || read.Result.Contents[0].Text != want {
				t.Errorf("%s: %s", uri, answer)
			}
		}
		if answer := c.Ask("acme/pauses", pausesText); !strings.Contains(answer, strings.Trim(pausesText, "{}")) {
			t.Errorf("method: %s", answer)
		}
		answer := c.Ask("tools/call", `{"name":"unfit","arguments":{}}`)
		if strings.Contains(answer, "structuredContent") || strings.Contains(answer, `"unit":1`) {
			t.Errorf("a duration was rounded: %s", answer)
		}
	})
}

// The output schema admits what is written, and is the exact input schema but for
// what results alone can be.
func TestDurationSchemas(t *testing.T) {
	c := mcptest.New(t, pausesServerOf(mcp.Options{ExactSchemas: true}))
	for _, tool := range c.Tools() {
		if tool.Name != "echo" {
			continue
		}
		for _, text := range []json.RawMessage{tool.InputSchema, tool.OutputSchema} {
			s, err := raw.Compile(text)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Check([]byte(pausesText)); err != nil {
				t.Errorf("%v\n%s", err, text)
			}
			for _, bad := range []string{`"plain":90000000000`, `"plain":"90"`, `"unit":"90s"`, `"iso":"1h30m"`, `"byKey":{"1":1}`, `"opt":60000000000`, `"list":[1]`} {
				name, _, _ := strings.Cut(bad, ":")
				var members map[string]json.RawMessage
				if err := json.Unmarshal([]byte(pausesText), &members); err != nil {
					t.Fatal(err)
				}
				if err := json.Unmarshal([]byte("{"+bad+"}"), &members); err != nil {
					t.Fatal(err)
				}
				doc, err := json.Marshal(members)
				if err != nil {
					t.Fatal(err)
				}
				if s.Check(doc) == nil {
					t.Errorf("the schema admits %s at %s\n%s", bad, name, text)
				}
			}
		}
		var in, out struct{ Properties map[string]json.RawMessage }
		if err := json.Unmarshal(tool.InputSchema, &in); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(tool.OutputSchema, &out); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"plain", "unit", "iso", "list", "isos", "byKey", "opt", "inner", "more"} {
			if len(in.Properties[name]) == 0 || !bytes.Equal(in.Properties[name], out.Properties[name]) {
				t.Errorf("%s: in %s\nout %s", name, in.Properties[name], out.Properties[name])
			}
		}
	}
	var out pauses
	c.Call("made", nil).Structured(&out)
	if out.Plain != 90*time.Second || out.Unit != 90*time.Second || out.ISO != 90*time.Minute || out.More[0].In != 1500*time.Millisecond || out.Opt.Value != time.Minute {
		t.Errorf("%+v", out)
	}
}
