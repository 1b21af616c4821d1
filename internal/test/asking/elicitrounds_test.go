package asking_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
)

// rounder is a hostile client of the modern revision: it puts into each round
// what it wants.
type rounder struct {
	t      *testing.T
	c      harness.Conversation
	target string // the method and params of the request, but for what changes
	id     int
}

// round sends the request with a state and responses, "" for none. It returns
// the keys that are asked, "" if none is, the next state, and the text of the
// answer, which may be an error.
func (r *rounder) round(state, responses string) (asked, next, text string) {
	r.t.Helper()
	r.id++
	method, params, _ := strings.Cut(r.target, " ")
	if state != "" {
		params += fmt.Sprintf(`,"requestState":%q`, state)
	}
	if responses != "" {
		params += `,"inputResponses":` + responses
	}
	heard := r.c.Say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`, r.id, method, params))
	var answer struct {
		Result struct {
			ResultType, RequestState string
			InputRequests            map[string]json.RawMessage
		}
		Error *protocol.Error
	}
	text = heard[len(heard)-1]
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		r.t.Fatalf("%s: %v", text, err)
	}
	for key := range answer.Result.InputRequests {
		asked += key
	}
	return asked, answer.Result.RequestState, text
}

func amount(key string, n int) string {
	return fmt.Sprintf(`{%q:{"action":"accept","content":{"amount":%d}}}`, key, n)
}

// roundsServer pays what the first answer says, and ships it when the second
// is there. price makes the text of a third question.
func roundsServer(t *testing.T, price *int) *mcp.Server {
	s := harness.Fixture(t, nil)
	pay := func(f *mcp.Frame, _ struct{}) (string, error) {
		first, err := mcp.Elicit[harness.AmountForm](f, "amount", "How much?")
		if err != nil {
			return "", err
		}
		charged, err := mcp.Once(f, "charge", func() (int, error) { return first.Value.Amount, nil })
		if err != nil {
			return "", err
		}
		ok, err := mcp.Elicit[harness.AmountForm](f, "ok", "And now?")
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("charged %d, shipped %d, ok %d", charged, first.Value.Amount, ok.Value.Amount), nil
	}
	buy := func(f *mcp.Frame, _ struct{}) (string, error) {
		cost := *price
		if _, err := mcp.Elicit[harness.AmountForm](f, "sure", fmt.Sprintf("Buy for %d?", cost)); err != nil {
			return "", err
		}
		_, err := mcp.Elicit[harness.AmountForm](f, "where", "Where to?")
		return fmt.Sprintf("bought for %d", cost), err
	}
	s.MustAdd(
		mcp.Tool("pay", pay), mcp.Prompt("pay", pay), mcp.Resource("pay://now", func(f *mcp.Frame) (string, error) { return pay(f, struct{}{}) }),
		mcp.Tool("buy", buy), mcp.Prompt("buy", buy), mcp.Resource("buy://now", func(f *mcp.Frame) (string, error) { return buy(f, struct{}{}) }),
	)
	return s
}

// eachRounder runs a test as each method that may ask, over each transport.
func eachRounder(t *testing.T, name string, test func(t *testing.T, r *rounder, price *int)) {
	for _, transport := range harness.Transports {
		for _, target := range []string{`tools/call "name":"` + name + `"`, `prompts/get "name":"` + name + `"`, `resources/read "uri":"` + name + `://now"`} {
			method, _, _ := strings.Cut(target, " ")
			t.Run(transport.Name+"/"+method, func(t *testing.T) {
				price := 5
				s := roundsServer(t, &price)
				test(t, &rounder{t: t, c: transport.Open(t, s, protocol.Latest), target: target}, &price)
			})
		}
	}
}

// An answer is given once. A later round that has the key again changes
// nothing, and what was done with the answer stays true.
func TestAnswersAreGivenOnce(t *testing.T) {
	eachRounder(t, "pay", func(t *testing.T, r *rounder, _ *int) {
		asked, state, text := r.round("", "")
		if asked != "amount" {
			t.Fatal(text)
		}
		if asked, state, text = r.round(state, amount("amount", 5)); asked != "ok" {
			t.Fatal(text)
		}
		last := strings.TrimSuffix(amount("ok", 1), "}") + "," + strings.TrimPrefix(amount("amount", 999999), "{")
		if _, _, text = r.round(state, last); !strings.Contains(text, "charged 5, shipped 5, ok 1") {
			t.Error(text)
		}
	})
}

// Only what the round before has asked is answered: neither what was never
// asked, nor what will be asked only later.
func TestAnswersToNothingAsked(t *testing.T) {
	eachRounder(t, "pay", func(t *testing.T, r *rounder, _ *int) {
		both := strings.TrimSuffix(amount("ok", 1), "}") + "," + strings.TrimPrefix(amount("amount", 5), "{")
		asked, state, text := r.round("", "")
		if asked != "amount" {
			t.Fatal(text)
		}
		if asked, state, text = r.round(state, both); asked != "ok" {
			t.Fatalf("the second answer before its question: %s", text)
		}
		// A round that lacks the answer asks again, and what came before is kept.
		if asked, state, text = r.round(state, `{"nothing":{"action":"accept"}}`); asked != "ok" {
			t.Fatalf("without the answer: %s", text)
		}
		if _, _, text = r.round(state, amount("ok", 2)); !strings.Contains(text, "charged 5, shipped 5, ok 2") {
			t.Error(text)
		}
	})
}

// A client may answer ahead in a first round, which undoes nothing; the
// answers are sealed as any.
func TestAnswersAhead(t *testing.T) {
	eachRounder(t, "pay", func(t *testing.T, r *rounder, _ *int) {
		asked, state, text := r.round("", amount("amount", 5))
		if asked != "ok" {
			t.Fatal(text)
		}
		last := strings.TrimSuffix(amount("ok", 1), "}") + "," + strings.TrimPrefix(amount("amount", 999999), "{")
		if _, _, text = r.round(state, last); !strings.Contains(text, "charged 5, shipped 5, ok 1") {
			t.Error(text)
		}
	})
}

// Consent is to what the user has read: a question that has changed under its
// key is asked again, whether its answer has just come or came rounds ago.
func TestAnswersBelongToTheirQuestion(t *testing.T) {
	eachRounder(t, "buy", func(t *testing.T, r *rounder, price *int) {
		_, state, _ := r.round("", "")
		*price = 500
		asked, state, text := r.round(state, amount("sure", 1))
		if asked != "sure" || !strings.Contains(text, "Buy for 500?") {
			t.Fatalf("the price has changed: %s", text)
		}
		if asked, state, text = r.round(state, amount("sure", 1)); asked != "where" {
			t.Fatalf("the same price: %s", text)
		}
		*price = 5000
		asked, state, text = r.round(state, amount("where", 1))
		if !strings.Contains(asked, "sure") || !strings.Contains(text, "Buy for 5000?") {
			t.Fatalf("the price has changed after the answer: %s", text)
		}
		if _, _, text = r.round(state, amount("sure", 1)); !strings.Contains(text, "bought for 5000") {
			t.Error(text)
		}
	})
}
