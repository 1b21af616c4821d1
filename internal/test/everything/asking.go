package everything

import (
	"fmt"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/protocol"
)

// The forms that the tools show.
type (
	nameForm struct {
		Name string `json:"name"`
	}
	okForm struct {
		OK bool `json:"ok"`
	}
	colorForm struct {
		Color string `json:"color"`
	}
	contextForm struct {
		Context string `json:"context"`
	}
	accountForm struct {
		Username string `json:"username" jsonschema_description:"User's response"`
		Email    string `json:"email" jsonschema_description:"User's email address"`
	}
	defaultsForm struct {
		Name     string  `json:"name" jsonschema:"default=John Doe"`
		Age      int     `json:"age" jsonschema:"default=30"`
		Score    float64 `json:"score" jsonschema:"default=95.5"`
		Status   string  `json:"status" validate:"oneof=active inactive pending" jsonschema:"default=active"`
		Verified bool    `json:"verified" jsonschema:"default=true"`
	}
	enumsForm struct {
		UntitledSingle string   `json:"untitledSingle,omitempty" validate:"oneof=option1 option2 option3"`
		TitledSingle   string   `json:"titledSingle,omitempty" validate:"oneof=value1 value2 value3" jsonschema_extras:"enumTitles=First Option,enumTitles=Second Option,enumTitles=Third Option"`
		LegacyEnum     string   `json:"legacyEnum,omitempty" validate:"oneof=opt1 opt2 opt3" jsonschema_extras:"enumNames=Option One,enumNames=Option Two,enumNames=Option Three"`
		UntitledMulti  []string `json:"untitledMulti,omitempty" validate:"dive,oneof=option1 option2 option3"`
		TitledMulti    []string `json:"titledMulti,omitempty" validate:"dive,oneof=value1 value2 value3" jsonschema_extras:"enumTitles=First Choice,enumTitles=Second Choice,enumTitles=Third Choice"`
	}
)

// askingTools ask the client while they work. In legacy revisions the questions
// are requests; in the modern one they are results.
func askingTools() []mcp.Component {
	return []mcp.Component{
		mcp.Tool("test_sampling", func(f *mcp.Frame, in struct {
			Prompt string `json:"prompt"`
		}) (string, error) {
			r, err := frame.Sample(f, "sample", prompt(in.Prompt))
			if err != nil {
				return "", err
			}
			return "LLM response: " + r.Text(), nil
		}, mcp.Doc("Asks the client's model")),
		mcp.Tool("test_elicitation", func(f *mcp.Frame, in struct {
			Message string `json:"message"`
		}) (string, error) {
			return elicited(mcp.Elicit[accountForm](f, "account", in.Message))
		}, mcp.Doc("Asks the user for an account")),
		mcp.Tool("test_elicitation_sep1034_defaults", func(f *mcp.Frame, _ none) (string, error) {
			return elicited(mcp.Elicit[defaultsForm](f, "defaults", "Please review and update the form fields with defaults"))
		}, mcp.Doc("Shows a form with defaults")),
		mcp.Tool("test_elicitation_sep1330_enums", func(f *mcp.Frame, _ none) (string, error) {
			return elicited(mcp.Elicit[enumsForm](f, "enums", "Please select options from the enum fields"))
		}, mcp.Doc("Shows a form with enums")),

		mcp.Tool("test_input_required_result_elicitation", func(f *mcp.Frame, _ none) (string, error) {
			who, err := mcp.Elicit[nameForm](f, "user_name", "What is your name?")
			return "Hello, " + who.Value.Name + "!", err
		}, mcp.Doc("Asks for a name first")),
		mcp.Tool("test_input_required_result_sampling", func(f *mcp.Frame, _ none) (string, error) {
			r, err := frame.Sample(f, "capital", prompt("What is the capital of France?"))
			if err != nil {
				return "", err
			}
			return "The model says: " + r.Text(), nil
		}, mcp.Doc("Asks the model first")),
		mcp.Tool("test_input_required_result_list_roots", func(f *mcp.Frame, _ none) (string, error) {
			roots, err := frame.Roots(f, "roots")
			return fmt.Sprintf("%d roots: %v", len(roots), roots), err
		}, mcp.Doc("Asks for the roots first")),
		mcp.Tool("test_input_required_result_request_state", confirmed, mcp.Doc("Asks for a confirmation, with state")),
		mcp.Tool("test_input_required_result_tampered_state", confirmed, mcp.Doc("Asks for a confirmation, with state that must not be changed")),
		mcp.Tool("test_input_required_result_multiple_inputs", multipleInputs, mcp.Doc("Asks three things at once")),
		mcp.Tool("test_input_required_result_multi_round", multiRound, mcp.Doc("Asks in two rounds")),
		mcp.Tool("test_input_required_result_capabilities", whatItCan, mcp.Doc("Asks what the client can be asked")),
	}
}

// askingPrompts ask the client before they are there.
func askingPrompts() []mcp.Component {
	return []mcp.Component{
		mcp.Prompt("test_input_required_result_prompt", func(f *mcp.Frame, _ none) (string, error) {
			answer, err := mcp.Elicit[contextForm](f, "user_context", "What context should the prompt use?")
			return "Use this context: " + answer.Value.Context, err
		}, mcp.Doc("Asks for its context first")),
	}
}

func prompt(text string) protocol.SampleParams {
	return protocol.SampleParams{MaxTokens: 100, Messages: []protocol.SampleMessage{{Role: mcp.RoleUser, Content: []mcp.Content{mcp.TextContent{Text: text}}}}}
}

func elicited[T any](answer mcp.Elicited[T], err error) (string, error) {
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Elicitation completed: action=%s, content=%+v", answer.Action, answer.Value), nil
}

func confirmed(f *mcp.Frame, _ none) (string, error) {
	if _, err := mcp.Elicit[okForm](f, "confirm", "Please confirm"); err != nil {
		return "", err
	}
	return "state-ok: confirmed", nil
}

func multipleInputs(f *mcp.Frame, _ none) (string, error) {
	var who mcp.Elicited[nameForm]
	var greeting protocol.SampleResult
	var roots []protocol.Root
	err := mcp.Ask(f,
		mcp.ElicitQuestion("user_name", "What is your name?", &who),
		frame.SampleQuestion("greeting", prompt("Generate a greeting"), &greeting),
		frame.RootsQuestion("client_roots", &roots),
	)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s, %s: %d roots", greeting.Text(), who.Value.Name, len(roots)), nil
}

func multiRound(f *mcp.Frame, _ none) (string, error) {
	who, err := mcp.Elicit[nameForm](f, "step1", "Step 1: What is your name?")
	if err != nil {
		return "", err
	}
	color, err := mcp.Elicit[colorForm](f, "step2", "Step 2: What is your favorite color?")
	return who.Value.Name + " likes " + color.Value.Color, err
}

func whatItCan(f *mcp.Frame, _ none) (string, error) {
	var questions []*mcp.Question
	can := f.ClientCapabilities()
	if can.Elicitation != nil {
		questions = append(questions, mcp.ElicitQuestion("user_name", "What is your name?", &mcp.Elicited[nameForm]{}))
	}
	if can.Sampling != nil {
		questions = append(questions, frame.SampleQuestion("greeting", prompt("Generate a greeting"), &protocol.SampleResult{}))
	}
	if err := mcp.Ask(f, questions...); err != nil {
		return "", err
	}
	return "asked all that it can be asked", nil
}
