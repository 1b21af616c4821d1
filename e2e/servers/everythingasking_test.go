package servers

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
)

func (s session) everythingSampling(t *testing.T) {
	s.user.answers(nil)
	s.says(t, "trigger-sampling-request", map[string]any{"prompt": "What is the capital of France?", "maxTokens": 33},
		`"model": "oracle"`, `"text": "Paris"`, `"stopReason": "endTurn"`)
	asked := s.user.samples()
	if len(asked) != 1 || asked[0].MaxTokens != 33 || asked[0].SystemPrompt != "You are a helpful test server." {
		t.Fatalf("the model was asked %+v", asked)
	}
	contains(t, "question", item[protocol.TextContent](t, asked[0].Messages[0].Content, 0).Text, "capital of France")
}

func (s session) everythingElicitation(t *testing.T) {
	const tool = "trigger-elicitation-request"
	s.user.accepts(map[string]any{"name": "Ada", "integer": 7, "untitledMultipleSelectEnum": []string{"Piano", "Drums"}})
	// What the user leaves out is filled in with the form's defaults.
	s.says(t, tool, nil, "- Name: Ada", "- Favorite Integer: 7", "- Favorite Number: 3.14", `"Piano"`, `"legacyTitledEnum": "pet-1"`)
	asked := s.user.questions()
	if len(asked) != 1 || asked[0].Message != "Please provide inputs for the following fields:" {
		t.Fatalf("got questions %+v", asked)
	}
	contains(t, "schema", string(asked[0].RequestedSchema), "Green Lantern")
	s.user.answers(func(*protocol.ElicitParams) (*protocol.ElicitResult, error) { return client.Decline() })
	s.says(t, tool, nil, "User declined")
	s.user.answers(func(*protocol.ElicitParams) (*protocol.ElicitResult, error) { return client.Cancel() })
	s.says(t, tool, nil, "User cancelled")
}

func (s session) everythingURL(t *testing.T) {
	const tool = "trigger-url-elicitation"
	args := map[string]any{"url": "https://example.com/pay", "message": "Please pay", "elicitationId": "e-1"}
	s.user.accepts(nil)
	s.says(t, tool, args, "User completed the URL elicitation flow.")
	asked := s.user.questions()
	id := asked[0].ElicitationID == "e-1" || s.behind(t, "elicitations have ids of its own") && asked[0].ElicitationID != ""
	if len(asked) != 1 || asked[0].Mode != "url" || asked[0].URL != "https://example.com/pay" || !id {
		t.Fatalf("got questions %+v", asked)
	}
	args["errorPath"] = true
	// The server does not notify when the URL has been visited, so the call waits for its time.
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	_, err := s.Call(ctx, tool, args)
	if code(err) != -32042 {
		t.Fatalf("got %v, want the error that a URL must be visited first", err)
	}
	contains(t, "data", string(err.(*client.Error).Data), "https://modelcontextprotocol.io")
	s.says(t, tool, args, "User completed the URL elicitation flow.")
}

func (s session) everythingRoots(t *testing.T) {
	s.says(t, "get-roots-list", nil, "1 total", "home", "file:///home/ada")
	if err := s.SetRoots(within(t), append(s.Roots(), client.Root{URI: "file:///srv", Name: "srv"})); err != nil {
		t.Fatal(err)
	}
	s.user.reads(t, "Roots updated: 2")
	s.says(t, "get-roots-list", nil, "2 total", "file:///srv")
	if err := s.SetRoots(within(t), s.Roots()[:1]); err != nil {
		t.Fatal(err)
	}
	s.user.reads(t, "Roots updated: 1")
}

// everythingTasks drives a task of revision 2025-11-25 by hand: the client
// knows the extension of 2026-07-28, but sends whatever it is told to.
func (s session) everythingTasks(t *testing.T) {
	if s.behind(t, "tasks do not pass") {
		return
	}
	var created struct {
		Task struct{ TaskID, Status string }
	}
	params := map[string]any{"name": "simulate-research-query", "arguments": map[string]any{"topic": "mules"}, "task": map[string]int{"ttl": 60000}}
	if err := s.Request(within(t), protocol.MethodToolsCall, params, &created); err != nil {
		t.Fatal(err)
	}
	if created.Task.TaskID == "" || created.Task.Status != "working" {
		t.Fatalf("got task %+v", created)
	}
	id := map[string]string{"taskId": created.Task.TaskID}
	var task struct{ Status string }
	if err := s.Request(within(t), "tasks/get", id, &task); err != nil || task.Status != "working" {
		t.Errorf("got %+v, %v", task, err)
	}
	var result struct{ Content json.RawMessage } // waits until the task has ended
	if err := s.Request(within(t), "tasks/result", id, &result); err != nil {
		t.Fatal(err)
	}
	contains(t, "result", string(result.Content), "Research Report: mules")
}
