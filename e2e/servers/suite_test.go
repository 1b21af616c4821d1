package servers

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
)

// quirks are how a server differs from others.
type quirks struct {
	textFaults  bool // it answers unknown methods with HTTP status 400 and a line of text
	losesLast   bool // it may lose what it tells right before an answer
	codesAlone  bool // its error for a missing resource does not name the resource
	untagged    bool // its notifications do not name the subscription that they are for
	noUpdates   bool // it has no way to tell of a resource that has changed
	noQuestions bool // it cannot ask the client
}

// suite uses the servers with which others pass the official conformance suite:
// their tools, names and texts are those of its scenarios.
func (s session) suite(t *testing.T, q quirks) {
	t.Run("ping", func(t *testing.T) {
		if err := s.Ping(within(t)); err != nil {
			t.Error(err)
		}
	})
	t.Run("lists", s.suiteLists)
	t.Run("content", s.suiteContent)
	t.Run("errors", func(t *testing.T) { s.suiteErrors(t, q) })
	t.Run("resources", s.suiteResources)
	t.Run("prompts", s.suitePrompts)
	t.Run("progress", func(t *testing.T) { s.suiteProgress(t, q) })
	t.Run("log", func(t *testing.T) { s.suiteLog(t, q) })
	t.Run("many at once", s.suiteMany)
}

func (s session) suiteLists(t *testing.T) {
	includes(t, "tools", s.toolNames(t), "test_simple_text", "test_image_content", "test_error_handling",
		"test_elicitation_sep1330_enums", "test_tool_with_logging", "test_tool_with_progress")
	includes(t, "resources", s.resourceURIs(t), "test://static-text", "test://static-binary")
	equal(t, "templates", s.templates(t), []string{"test://template/{id}/data"})
	includes(t, "prompts", s.promptNames(t), "test_simple_prompt", "test_prompt_with_arguments",
		"test_prompt_with_embedded_resource", "test_prompt_with_image")
	for p, err := range s.Prompts(within(t)) {
		if err != nil {
			t.Fatal(err)
		}
		if p.Name == "test_prompt_with_arguments" && (len(p.Arguments) != 2 || p.Arguments[0].Name != "arg1" || !p.Arguments[0].Required) {
			t.Errorf("got prompt %+v", p)
		}
	}
}

func (s session) suiteContent(t *testing.T) {
	s.says(t, "test_simple_text", nil, "This is a simple text response for testing.")
	image := item[protocol.ImageContent](t, s.call(t, "test_image_content", nil).Content, 0)
	if image.MIMEType != "image/png" || !bytes.HasPrefix(image.Data, []byte("\x89PNG")) {
		t.Errorf("got image of type %s, %d bytes", image.MIMEType, len(image.Data))
	}
	sound := s.call(t, "test_audio_content", nil).Content
	if s.Revision() == protocol.V20241105 && s.behind(t, "audio becomes text for a revision without it") {
		item[protocol.TextContent](t, sound, 0)
	} else if audio := item[protocol.AudioContent](t, sound, 0); audio.MIMEType != "audio/wav" || !bytes.HasPrefix(audio.Data, []byte("RIFF")) {
		t.Errorf("got sound of type %s, %d bytes", audio.MIMEType, len(audio.Data))
	}
	inside := item[protocol.EmbeddedResource](t, s.call(t, "test_embedded_resource", nil).Content, 0).Resource
	contains(t, "embedded resource", inside.URI+inside.Text, "test://embedded-resource", "This is an embedded resource")
	mixed := s.call(t, "test_multiple_content_types", nil).Content
	item[protocol.TextContent](t, mixed, 0)
	item[protocol.ImageContent](t, mixed, 1)
	item[protocol.EmbeddedResource](t, mixed, 2)
}

func (s session) suiteErrors(t *testing.T, q quirks) {
	s.fails(t, "test_error_handling", nil, "intentionally returns an error")
	_, err := s.Call(within(t), "no_such_tool", nil)
	if code(err) != protocol.CodeInvalidParams {
		t.Errorf("a tool that is not there: got %v", err)
	}
	_, err = s.Read(within(t), "test://nothing")
	if !errors.Is(err, client.ErrNotFound) && (!q.codesAlone || code(err) != protocol.CodeInvalidParams) {
		t.Errorf("a resource that is not there: got %v, want ErrNotFound", err)
	}
	_, err = s.GetPrompt(within(t), "no_such_prompt", nil)
	if code(err) != protocol.CodeInvalidParams {
		t.Errorf("a prompt that is not there: got %v", err)
	}
	err = s.Request(within(t), "e2e/nothing", nil, nil)
	if q.textFaults && !s.gated {
		if client.StatusCode(err) != http.StatusBadRequest {
			t.Errorf("an unknown method: got %v, want status 400", err)
		}
		return
	}
	if code(err) != protocol.CodeMethodNotFound || !errors.Is(err, client.ErrUnsupported) {
		t.Errorf("an unknown method: got %v", err)
	}
}

func (s session) suiteResources(t *testing.T) {
	text := s.read(t, "test://static-text")
	equal(t, "text", text.MIMEType+": "+text.Text, "text/plain: This is the content of the static text resource.")
	if blob := s.read(t, "test://static-binary").Blob; !bytes.HasPrefix(blob, []byte("\x89PNG")) {
		t.Errorf("got %d bytes that are no PNG", len(blob))
	}
	contains(t, "template", s.read(t, "test://template/42/data").Text, "Data for ID: 42")
}

func (s session) suitePrompts(t *testing.T) {
	simple := s.prompt(t, "test_simple_prompt", nil)
	if got := messageText(t, simple, 0); got != "This is a simple prompt for testing." || simple[0].Role != "user" {
		t.Errorf("got %+v", simple)
	}
	filled := s.prompt(t, "test_prompt_with_arguments", map[string]string{"arg1": "one", "arg2": "two"})
	equal(t, "prompt", messageText(t, filled, 0), "Prompt with arguments: arg1='one', arg2='two'")
	resource := s.prompt(t, "test_prompt_with_embedded_resource", map[string]string{"resourceUri": "test://mine"})
	inside := item[protocol.EmbeddedResource](t, []protocol.Content{resource[0].Content}, 0)
	equal(t, "URI", inside.Resource.URI, "test://mine")
	image := s.prompt(t, "test_prompt_with_image", nil)
	item[protocol.ImageContent](t, []protocol.Content{image[0].Content}, 0)
}

func (s session) suiteProgress(t *testing.T, q quirks) {
	var told []float64
	s.call(t, "test_tool_with_progress", nil, client.OnProgress(func(p client.Progress) {
		if p.Total != 100 {
			t.Errorf("got total %v, want 100", p.Total)
		}
		told = append(told, p.Progress)
	}))
	if q.losesLast && len(told) == 2 {
		told = append(told, 100)
	}
	equal(t, "progress", told, []float64{0, 50, 100})
}

func (s session) suiteLog(t *testing.T, q quirks) {
	if err := s.SetLevel(within(t), protocol.LevelDebug); err != nil {
		t.Fatal(err)
	}
	s.says(t, "test_tool_with_logging", nil, "")
	if s.Revision().Modern() && s.behind(t, "log messages of a connection without session are in its log") {
		return
	}
	texts := []string{"Tool execution started", "Tool processing data", "Tool execution completed"}
	if q.losesLast {
		texts = texts[:2]
	}
	for _, text := range texts {
		if got := s.user.reads(t, text); got.Level != protocol.LevelInfo {
			t.Errorf("got level %v, want info", got.Level)
		}
	}
}

// suiteMany reads resources of different names at once.
func (s session) suiteMany(t *testing.T) {
	ctx := within(t)
	faults := make(chan error)
	for i := range 100 {
		go func() {
			uri, want := fmt.Sprintf("test://template/%d/data", i), fmt.Sprintf("Data for ID: %d\"", i)
			r, err := s.Read(ctx, uri)
			if err == nil && (len(r.Contents) != 1 || !strings.Contains(r.Contents[0].Text, want)) {
				err = fmt.Errorf("%s: got %+v", uri, r.Contents)
			}
			faults <- err
		}()
	}
	for range 100 {
		if err := <-faults; err != nil {
			t.Error(err)
		}
	}
}

// suiteQuestions answers what tools ask with requests of their own, as legacy
// servers do.
func (s session) suiteQuestions(t *testing.T) {
	s.user.answers(nil)
	s.says(t, "test_sampling", args{"prompt": "What is the capital of France?"}, "LLM response: Paris")
	if asked := s.user.samples(); len(asked) != 1 || asked[0].MaxTokens != 100 {
		t.Errorf("the model was asked %+v", asked)
	}
	s.user.accepts(args{"username": "ada", "email": "ada@example.com"})
	s.says(t, "test_elicitation", args{"message": "Who are you?"}, "action=accept", "ada")
	if asked := s.user.questions(); len(asked) != 1 || asked[0].Message != "Who are you?" {
		t.Errorf("got questions %+v", asked)
	}
	s.user.answers(func(*protocol.ElicitParams) (*protocol.ElicitResult, error) { return client.Decline() })
	s.says(t, "test_elicitation", args{"message": "Who are you?"}, "action=decline")
	// The form is all defaults, which the client fills in.
	s.user.accepts(args{"age": 31})
	s.says(t, "test_elicitation_sep1034_defaults", nil, "action=accept", "age:31", "name:John Doe", "score:95.5", "status:active", "verified:true")
}

// suiteEnums fills in a form with every sort of choice.
func (s session) suiteEnums(t *testing.T) {
	s.user.accepts(args{"untitledSingle": "option1", "titledSingle": "value2", "legacyEnum": "opt2",
		"untitledMulti": []string{"option1", "option2"}, "titledMulti": []string{"value1"}})
	s.says(t, "test_elicitation_sep1330_enums", nil, "legacyEnum:opt2", "titledMulti:[value1]", "untitledMulti:[option1 option2]")
	// What does not fit the form is not sent.
	s.user.accepts(args{"untitledSingle": "no such option"})
	s.fails(t, "test_elicitation_sep1330_enums", nil, "untitledSingle")
}
