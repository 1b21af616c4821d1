package inspector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/protocol"
)

// asking has a tool that asks a model, and one that wants an address visited.
func asking(t *testing.T) *mcp.Server {
	t.Helper()
	s := mcp.NewServer(mcp.Info{Name: "asking", Version: "1"}, nil)
	err := s.Add(
		mcp.Tool("think", func(f *mcp.Frame, _ struct{}) (string, error) {
			answer, err := frame.Sample(f, "s", protocol.SampleParams{MaxTokens: 7, SystemPrompt: "be\u202e brief",
				Messages: []protocol.SampleMessage{{Role: protocol.RoleUser, Content: []protocol.Content{protocol.TextContent{Text: "which?"}}}}})
			if fault, ok := errors.AsType[*protocol.Error](err); ok {
				return fmt.Sprintf("refused with %d", fault.Code), nil
			}
			if err != nil {
				return "", err
			}
			return answer.Text() + " by " + answer.Model, nil
		}),
		mcp.Tool("visit", func(f *mcp.Frame, in struct {
			Address string `json:"address"`
		}) (string, error) {
			answer, err := mcp.ElicitURL(f, "u", "Sign in", in.Address)
			return fmt.Sprint(answer.Accepted()), err
		}),
	)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// answered calls a tool, answers the question that it asks, each answer until one is
// taken, and returns the question and the end of the call.
func answered(t *testing.T, i *Inspector, tool, arguments string, answers ...answer) (question, call) {
	t.Helper()
	text, err := json.Marshal(map[string]string{"tool": tool, "arguments": arguments})
	if err != nil {
		t.Fatal(err)
	}
	var started struct{ Call call }
	ask(t, i, "POST", "/api/call", string(text), &started)
	until(t, i, func() bool { return len(snapshot(i).Questions) == 1 })
	q := *snapshot(i).Questions[0]
	for n, a := range answers {
		a.ID = q.ID
		body, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		want := http.StatusBadRequest
		if n == len(answers)-1 {
			want = http.StatusOK
		}
		if code := ask(t, i, "POST", "/api/questions", string(body), nil); code != want {
			t.Errorf("%s: %d", body, code)
		}
	}
	var c call
	until(t, i, func() bool {
		c = call{}
		ask(t, i, "GET", fmt.Sprintf("/api/calls/%d", started.Call.ID), "", &c)
		return c.State != "running"
	})
	return q, c
}

// TestSampling: a person answers in the place of a model, with JSON, or refuses, in
// both eras. What is no answer is not sent.
func TestSampling(t *testing.T) {
	i := inspect(t, client.Local(asking(t).ServeConn), "")
	for n, revision := range []string{"2026-07-28", "2025-11-25", "2025-06-18", "2024-11-05"} {
		ask(t, i, "POST", "/api/connect", `{"revision":"`+revision+`"}`, nil)
		until(t, i, func() bool { s := snapshot(i); return s.State == "ready" && s.Connection == n+2 })
		good := strings.Replace(sampleTemplate, `"text": ""`, `"text": "Rome"`, 1)
		q, c := answered(t, i, "think", `{}`, answer{Action: "accept", Content: "Rome"}, answer{Action: "accept", Content: `{"role":"assistant","content":[]}`},
			answer{Action: "accept", Content: `{"role":"boss","model":"m","content":{"type":"text","text":"x"}}`}, answer{Action: "accept", Content: good})
		if q.Kind != "sample" || q.Message != "be\ufffd brief" || !strings.Contains(q.Params, `"which?"`) || !strings.Contains(q.Params, `"maxTokens": 7`) || q.Template != sampleTemplate {
			t.Errorf("%s: %+v", revision, q)
		}
		if !strings.Contains(c.Result, "Rome by a person") {
			t.Errorf("%s: %+v %+v", revision, c, c.Error)
		}
		if _, c := answered(t, i, "think", `{}`, answer{Action: "decline"}); !strings.Contains(c.Result+fmt.Sprint(c.Error), "refused") {
			t.Errorf("%s: %+v %+v", revision, c, c.Error)
		}
	}
}

// TestSampleTools: the model that a person stands for may use tools.
func TestSampleTools(t *testing.T) {
	r, err := sampleRead(`{"role":"assistant","model":"m","stopReason":"toolUse","content":[{"type":"tool_use","id":"1","name":"find","input":{"n":9007199254740993}}]}`)
	if err != nil {
		t.Fatal(err)
	}
	if use, ok := r.Content[0].(protocol.ToolUseContent); !ok || string(use.Input) != `{"n":9007199254740993}` {
		t.Errorf("%+v", r.Content)
	}
	q := questions{beat: func() {}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := q.sample(ctx, &client.SampleParams{SystemPrompt: strings.Repeat("x", 2*maxSent)}); !errors.Is(err, context.Canceled) || len(q.list) != 0 {
		t.Errorf("%v, %d wait", err, len(q.list))
	}
}

// TestLongQuestions: the server makes what waits only so long, and what waits is not
// written anew for each look at it.
func TestLongQuestions(t *testing.T) {
	i := connected(t)
	ctx, cancel := context.WithCancel(t.Context())
	refused := make(chan error, maxQuestions+1)
	n := 0
	for len(refused) == 0 {
		n++
		go func() {
			_, err := i.asked.sample(ctx, &client.SampleParams{SystemPrompt: strings.Repeat("x", 1<<20)})
			refused <- err
			i.pulse.beat()
		}()
		until(t, i, func() bool { return len(i.asked.waiting())+len(refused) == n })
	}
	if n < 2 || n > maxQuestions/2 {
		t.Errorf("question %d is too much", n)
	}
	p := pages{Inspector: i}
	one, other := p.members(), p.members()
	for _, name := range []string{"questions", "capabilities"} {
		if len(one[name]) == 0 || &one[name][0] != &other[name][0] {
			t.Errorf("%s are written twice", name)
		}
	}
	if long := len(one["questions"]); long > maxAsked+n {
		t.Errorf("%d bytes wait", long)
	}
	cancel()
	for range n {
		if err := <-refused; err == nil {
			t.Error("nobody has answered")
		}
	}
}

// TestQuestionOptions: whoever answers a question finds any of its options.
func TestQuestionOptions(t *testing.T) {
	i := connected(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	var values strings.Builder
	for n := range 3 * mostDrawn {
		fmt.Fprintf(&values, `,"value %d"`, n)
	}
	go func() {
		_, err := i.asked.elicit(ctx, &client.ElicitParams{RequestedSchema: json.RawMessage(`{"type":"object","properties":{"e":{"enum":[` + values.String()[1:] + `]}}}`)})
		ended <- err
	}()
	until(t, i, func() bool { return len(i.asked.waiting()) == 1 })
	one := i.asked.waiting()[0]
	var found []option
	ask(t, i, "GET", fmt.Sprintf("/api/form?question=%d&list=%d&text=VALUE+5999", one.ID, one.Form.Fields[0].List), "", &found)
	if len(found) != 1 || found[0].Value != `"value 5999"` {
		t.Errorf("%+v", found)
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("nobody has answered")
	}
}

// TestVisit asks a user to visit an address. An address of another scheme than http and https is not shown.
func TestVisit(t *testing.T) {
	i := inspect(t, client.Local(asking(t).ServeConn), "")
	for n, revision := range []string{"2026-07-28", "2025-11-25"} {
		ask(t, i, "POST", "/api/connect", `{"revision":"`+revision+`"}`, nil)
		until(t, i, func() bool { s := snapshot(i); return s.State == "ready" && s.Connection == n+2 })
		if q, c := answered(t, i, "visit", `{"address":"https://bank.example/in?a=1"}`, answer{Action: "accept"}); q.URL != "https://bank.example/in?a=1" || !strings.Contains(c.Result, "true") {
			t.Errorf("%s: %+v %+v", revision, q, c)
		}
		if c := finished(t, i, "visit", `{"address":"https://bank.example@evil.example/"}`); c.State != "failed" {
			t.Errorf("%s: %+v", revision, c)
		}
	}
}
