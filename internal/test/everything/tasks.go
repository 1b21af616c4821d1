package everything

import (
	"fmt"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/pause"
	"github.com/talaria-go/mcp/protocol"
)

type confirmForm struct {
	Confirm bool   `json:"confirm"`
	Name    string `json:"name,omitempty"`
}

// poll is how often the suite should ask for the state of a task.
const poll = 50 * time.Millisecond

// taskTools run as tasks.
func taskTools() []mcp.Component {
	asTask := mcp.AsTask(&mcp.TaskOptions{PollInterval: poll, TTL: 5 * time.Minute, Wait: -1})
	return []mcp.Component{
		mcp.Tool("greet", func(_ *mcp.Frame, in struct {
			Name string `json:"name"`
		}) (string, error) {
			return "Hello, " + in.Name + "!", nil
		}, mcp.Doc("Greets at once")),
		mcp.Tool("slow_compute", func(f *mcp.Frame, in struct {
			Seconds float64 `json:"seconds" validate:"gte=0,lte=60"`
			Label   string  `json:"label,omitempty"`
		}) (string, error) {
			if err := pause.For(f, time.Duration(in.Seconds*float64(time.Second))); err != nil {
				return "", err
			}
			return "computed " + in.Label, nil
		}, mcp.Doc("Computes for some seconds"), asTask),
		mcp.Tool("failing_job", func(f *mcp.Frame, _ any) (string, error) {
			if err := pause.For(f, time.Second); err != nil {
				return "", err
			}
			return "", fmt.Errorf("the job failed")
		}, mcp.Doc("Fails after a second"), mcp.InputSchema([]byte(`{"type":"object"}`)),
			mcp.AsTask(&mcp.TaskOptions{PollInterval: poll, Required: true, Wait: -1})),
		mcp.Tool("protocol_error_job", func(f *mcp.Frame, _ any) (string, error) {
			return "", &mcp.Error{Code: protocol.CodeInternal, Message: "the job broke down"}
		}, mcp.Doc("Breaks down"), mcp.InputSchema([]byte(`{"type":"object"}`)), asTask),
		mcp.Tool("confirm_delete", func(f *mcp.Frame, in struct {
			Filename string `json:"filename"`
		}) (string, error) {
			answer, err := mcp.Elicit[confirmForm](f, "confirm", "Delete "+in.Filename+"?")
			if err != nil {
				return "", err
			}
			if !answer.Accepted() || !answer.Value.Confirm {
				return "kept " + in.Filename, nil
			}
			return "deleted " + in.Filename, nil
		}, mcp.Doc("Deletes a file once confirmed"), asTask),
		mcp.Tool("multi_input", func(f *mcp.Frame, _ any) (string, error) {
			var first, second mcp.Elicited[confirmForm]
			err := mcp.Ask(f, mcp.ElicitQuestion("first", "First?", &first), mcp.ElicitQuestion("second", "Second?", &second))
			return first.Value.Name + " and " + second.Value.Name, err
		}, mcp.Doc("Asks two things at once"), mcp.InputSchema([]byte(`{"type":"object"}`)), asTask),
		mcp.Tool("test_tool_with_task", func(f *mcp.Frame, _ none) (string, error) {
			who, err := mcp.Elicit[nameForm](f, "user_name", "What is your name?")
			if err != nil {
				return "", err
			}
			if err := f.Detach(); err != nil {
				return "", err
			}
			return "Hello from a task, " + who.Value.Name + "!", pause.For(f, 100*time.Millisecond)
		}, mcp.Doc("Asks for a name, then becomes a task"),
			mcp.AsTask(&mcp.TaskOptions{PollInterval: poll, Required: true, Manual: true})),
	}
}
