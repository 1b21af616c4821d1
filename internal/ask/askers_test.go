package ask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/schema"
)

type name struct {
	Name string `json:"name" validate:"required"`
}

var keyA, keyB = []byte("0123456789abcdef-a"), []byte("0123456789abcdef-b")

func sealer(t *testing.T, keys ...[]byte) *seal.Sealer {
	t.Helper()
	s, err := seal.New(seal.Rounds, keys...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

type sink struct{}

func (sink) Send([]byte) error { return nil }

// round makes the frame of one request.
func round(a *Askers, ctx context.Context, method, tool, args, state, responses string) *frame.Frame {
	p := protocol.Params{Name: tool, Arguments: []byte(args), RequestState: state,
		Meta: protocol.Meta{ClientCapabilities: []byte(`{"elicitation":{},"roots":{},"sampling":{}}`)}}
	if responses != "" {
		p.InputResponses = []byte(responses)
	}
	return frame.Internal(facts.Private{}).New(ctx, core.Config{Request: &core.Request{ID: protocol.NewID(1), Method: method, Params: p}, Askers: a.Asker, Peer: sink{}})
}

// required returns the state of the answer that asks the client.
func required(t *testing.T, f *frame.Frame) string {
	t.Helper()
	result, err := frame.Internal(facts.Private{}).InputRequired(f)
	if err != nil {
		t.Fatal(err)
	}
	return result.(*protocol.InputRequiredResult).State
}

func defaults(core.QuestionRequest) *schema.Options { return nil }

func askName(f *frame.Frame) (frame.Elicited[name], error) {
	return Elicit[name](defaults, f, "who", "Who are you?")
}

const yes = `{"who":{"action":"accept","content":{"name":"Ada"}}}`

func TestRoundTrip(t *testing.T) {
	a := NewAskers(sealer(t), AskersConfig{})
	ctx := context.Background()
	f := round(a, ctx, "tools/call", "greet", `{"x":1,"y":2}`, "", "")
	if _, err := askName(f); !errors.Is(err, wire.ErrInputRequired) {
		t.Fatalf("err = %v", err)
	}
	result, err := frame.Internal(facts.Private{}).InputRequired(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := wire.AppendResult(nil, result, wire.To{Revision: protocol.Latest})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"resultType":"input_required","inputRequests":{"who":{"method":"elicitation/create","params":{"mode":"form","message":"Who are you?",` +
		`"requestedSchema":{"type":"object","properties":{"name":{"type":"string","minLength":1}},"required":["name"]}}}},"requestState":"`
	if !strings.HasPrefix(string(text), want) {
		t.Errorf("got  %s\nwant %s…", text, want)
	}
	state := result.(*protocol.InputRequiredResult).State
	if strings.Contains(state, "who") {
		t.Error("the state can be read")
	}
	// The same arguments, written another way.
	got, err := askName(round(a, ctx, "tools/call", "greet", `{ "y":2, "x":1 }`, state, yes))
	if err != nil || !got.Accepted() || got.Value.Name != "Ada" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestStateIsRefused(t *testing.T) {
	a := NewAskers(sealer(t, keyA), AskersConfig{})
	ctx := context.Background()
	state := func() string {
		f := round(a, core.WithPrincipal(ctx, "ada"), "tools/call", "greet", `{"x":1}`, "", "")
		_, _ = askName(f)
		return required(t, f)
	}()
	flip := func(i int) string {
		b := []byte(state)
		if b[i]++; b[i] == 'z'+1 {
			b[i] = 'a'
		}
		return string(b)
	}
	ada := core.WithPrincipal(ctx, "ada")
	for _, tt := range []struct {
		name   string
		askers *Askers
		f      func(a *Askers) *frame.Frame
	}{
		{"tampered at the start", a, func(a *Askers) *frame.Frame { return round(a, ada, "tools/call", "greet", `{"x":1}`, flip(2), yes) }},
		{"tampered in the middle", a, func(a *Askers) *frame.Frame {
			return round(a, ada, "tools/call", "greet", `{"x":1}`, flip(len(state)/2), yes)
		}},
		{"something appended", a, func(a *Askers) *frame.Frame {
			return round(a, ada, "tools/call", "greet", `{"x":1}`, state+"-TAMPERED", yes)
		}},
		{"cut off", a, func(a *Askers) *frame.Frame { return round(a, ada, "tools/call", "greet", `{"x":1}`, state[:20], yes) }},
		{"made up", a, func(a *Askers) *frame.Frame { return round(a, ada, "tools/call", "greet", `{"x":1}`, "hello", yes) }},
		{"other arguments", a, func(a *Askers) *frame.Frame { return round(a, ada, "tools/call", "greet", `{"x":2}`, state, yes) }},
		{"other tool", a, func(a *Askers) *frame.Frame { return round(a, ada, "tools/call", "other", `{"x":1}`, state, yes) }},
		{"other method", a, func(a *Askers) *frame.Frame { return round(a, ada, "prompts/get", "greet", `{"x":1}`, state, yes) }},
		{"other principal", a, func(a *Askers) *frame.Frame {
			return round(a, core.WithPrincipal(ctx, "eve"), "tools/call", "greet", `{"x":1}`, state, yes)
		}},
		{"no principal", a, func(a *Askers) *frame.Frame { return round(a, ctx, "tools/call", "greet", `{"x":1}`, state, yes) }},
		{"other process", NewAskers(sealer(t), AskersConfig{}), func(a *Askers) *frame.Frame { return round(a, ada, "tools/call", "greet", `{"x":1}`, state, yes) }},
		{"oversized", NewAskers(sealer(t, keyA), AskersConfig{MaxState: 10}), func(a *Askers) *frame.Frame { return round(a, ada, "tools/call", "greet", `{"x":1}`, state, yes) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := askName(tt.f(tt.askers))
			fault, ok := errors.AsType[*protocol.Error](err)
			if !ok || fault.Code != protocol.CodeInvalidParams || !strings.Contains(fault.Message, "requestState is refused") {
				t.Errorf("err = %v", err)
			}
		})
	}
	if got, err := askName(round(a, ada, "tools/call", "greet", `{"x":1}`, state, yes)); err != nil || got.Value.Name != "Ada" {
		t.Errorf("the right one: %+v, %v", got, err)
	}
}

func TestStateExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := NewAskers(sealer(t), AskersConfig{Expiry: time.Minute})
		f := round(a, t.Context(), "tools/call", "greet", "", "", "")
		_, _ = askName(f)
		state := required(t, f)
		time.Sleep(59 * time.Second)
		if _, err := askName(round(a, t.Context(), "tools/call", "greet", "", state, yes)); err != nil {
			t.Errorf("after 59 s: %v", err)
		}
		time.Sleep(time.Second)
		if _, err := askName(round(a, t.Context(), "tools/call", "greet", "", state, yes)); err == nil || !strings.Contains(err.Error(), "has expired") {
			t.Errorf("after a minute: %v", err)
		}
	})
}

// Two processes that share keys serve the rounds of one request, also while a
// key is being replaced.
func TestKeyRing(t *testing.T) {
	old, both, next := NewAskers(sealer(t, keyA), AskersConfig{}), NewAskers(sealer(t, keyB, keyA), AskersConfig{}), NewAskers(sealer(t, keyB), AskersConfig{})
	start := func(a *Askers) string {
		f := round(a, context.Background(), "tools/call", "greet", "", "", "")
		_, _ = askName(f)
		return required(t, f)
	}
	for _, tt := range []struct {
		name     string
		from, to *Askers
		ok       bool
	}{{"old to both", old, both, true}, {"both to next", both, next, true}, {"both to old", both, old, false}, {"old to next", old, next, false}} {
		_, err := askName(round(tt.to, context.Background(), "tools/call", "greet", "", start(tt.from), yes))
		if (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if _, err := seal.New(seal.Rounds, []byte("short")); err == nil {
		t.Error("a short key must be refused")
	}
}

func TestSeveralRounds(t *testing.T) {
	a := NewAskers(sealer(t), AskersConfig{})
	charged := 0
	handler := func(f *frame.Frame) (string, error) {
		receipt, err := Once(f, "charge", func() (string, error) { charged++; return "r-1", nil })
		if err != nil {
			return "", err
		}
		first, err := Elicit[name](defaults, f, "first", "First?")
		if err != nil {
			return "", err
		}
		var second frame.Elicited[name]
		var roots []protocol.Root
		if err := All(f, ElicitQuestion(defaults, "second", "Second?", &second), frame.RootsQuestion("roots", &roots)); err != nil {
			return "", err
		}
		return receipt + first.Value.Name + second.Value.Name + roots[0].URI, nil
	}
	state, responses := "", ""
	for i, next := range []string{
		`{"first":{"action":"accept","content":{"name":"A"}}}`,
		`{"second":{"action":"accept","content":{"name":"B"}},"unknown":{}}`, // one of two
		`{"roots":{"roots":[{"uri":"file:///r"}]}}`,
	} {
		f := round(a, context.Background(), "tools/call", "t", "", state, responses)
		if got, err := handler(f); !errors.Is(err, wire.ErrInputRequired) {
			t.Fatalf("round %d: %q, %v", i, got, err)
		}
		before := state
		if state = required(t, f); state == before {
			t.Error("the state did not change")
		}
		responses = next
	}
	got, err := handler(round(a, context.Background(), "tools/call", "t", "", state, responses))
	if err != nil || got != "r-1ABfile:///r" || charged != 1 {
		t.Errorf("got %q, %v, charged %d times", got, err, charged)
	}
}

func TestBadAnswers(t *testing.T) {
	a := NewAskers(sealer(t), AskersConfig{})
	first := round(a, context.Background(), "tools/call", "t", "", "", "")
	if _, err := askName(first); !errors.Is(err, wire.ErrInputRequired) {
		t.Fatal(err)
	}
	state := required(t, first)
	for responses, want := range map[string]string{
		`{"who":12345}`:               "not valid",
		`{"who":null}`:                "action must be",
		`{"who":{"action":"maybe"}}`:  "action must be",
		`{"who":{"action":"accept"}}`: "/name: is required",
		`{"who":{"action":"accept","content":{"name":""}}}`:        "/name",
		`{"who":{"action":"accept","content":{"name":"a","b":1}}}`: "/b",
	} {
		_, err := askName(round(a, context.Background(), "tools/call", "t", "", state, responses))
		fault, ok := errors.AsType[*protocol.Error](err)
		if !ok || fault.Code != protocol.CodeInvalidParams || !strings.Contains(fault.Message, want) {
			t.Errorf("%s: %v, want %q", responses, err, want)
		}
	}
	for _, declined := range []string{"decline", "cancel"} {
		got, err := askName(round(a, context.Background(), "tools/call", "t", "", state, `{"who":{"action":"`+declined+`"}}`))
		if err != nil || got.Accepted() || string(got.Action) != declined {
			t.Errorf("%s: %+v, %v", declined, got, err)
		}
	}
	for _, state := range []string{"", state} {
		if _, err := askName(round(a, context.Background(), "tools/call", "t", "", state, `{"other":{"action":"accept"}}`)); !errors.Is(err, wire.ErrInputRequired) {
			t.Errorf("an answer to nothing that was asked: %v", err)
		}
	}
}

func TestLimits(t *testing.T) {
	a := NewAskers(sealer(t), AskersConfig{MaxRounds: 2, MaxState: 400})
	state := ""
	for i := range 3 {
		f := round(a, context.Background(), "tools/call", "t", "", state, "")
		_, _ = askName(f)
		result, err := frame.Internal(facts.Private{}).InputRequired(f)
		if i == 2 {
			if err == nil || !strings.Contains(err.Error(), "the limit") {
				t.Errorf("a third round: %v", err)
			}
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		state = result.(*protocol.InputRequiredResult).State
	}
	f := round(a, context.Background(), "tools/call", "t", "", "", "")
	_, _ = Once(f, "big", func() (string, error) { return strings.Repeat("x", 500), nil })
	_, _ = askName(f)
	if _, err := frame.Internal(facts.Private{}).InputRequired(f); err == nil || !strings.Contains(err.Error(), "over the limit of 400") {
		t.Errorf("a large state: %v", err)
	}
	f = round(a, context.Background(), "tools/list", "", "", "", "")
	if _, err := askName(f); err == nil || errors.Is(err, wire.ErrInputRequired) {
		t.Errorf("asking during tools/list: %v", err)
	}
}

func TestMissingCapability(t *testing.T) {
	a := NewAskers(sealer(t), AskersConfig{})
	f := frame.Internal(facts.Private{}).New(context.Background(), core.Config{Askers: a.Asker, Peer: sink{}, Request: &core.Request{Method: "tools/call",
		Params: protocol.Params{Meta: protocol.Meta{ClientCapabilities: []byte(`{}`)}}}})
	_, err := frame.Sample(f, "s", protocol.SampleParams{})
	fault, ok := errors.AsType[*protocol.Error](err)
	if !ok || fault.Code != protocol.CodeMissingCapability {
		t.Fatalf("err = %v", err)
	}
	data, err := json.Marshal(fault.Data)
	if err != nil || string(data) != `{"requiredCapabilities":{"sampling":{}}}` {
		t.Errorf("data = %s, %v", data, err)
	}
}

// What Once did counts from the next round on: a round that comes twice has it
// done twice, which the server alone can tell.
func TestOnceInARepeatedRound(t *testing.T) {
	a := NewAskers(sealer(t), AskersConfig{})
	charged := 0
	pay := func(f *frame.Frame) (string, error) {
		if _, err := Elicit[name](defaults, f, "name", "Who are you?"); err != nil {
			return "", err
		}
		n, err := Once(f, "charge", func() (int, error) { charged++; return charged, nil })
		return fmt.Sprint(n), err
	}
	first := round(a, context.Background(), "tools/call", "pay", "", "", "")
	if _, err := pay(first); !errors.Is(err, wire.ErrInputRequired) {
		t.Fatal(err)
	}
	state := required(t, first)
	for n := range 2 {
		again := round(a, context.Background(), "tools/call", "pay", "", state, `{"name":{"action":"accept","content":{"name":"A"}}}`)
		if got, err := pay(again); err != nil || got != fmt.Sprint(n+1) {
			t.Errorf("time %d: %q, %v", n+1, got, err)
		}
	}
}
