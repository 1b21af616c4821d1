package servers

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/protocol"
)

// TestStrangers uses servers in other languages, each in every revision that it
// speaks. E2E_STRANGERS has a line "NAME REVISION,… COMMAND…" for each of them;
// e2e/run LANGUAGE sets it. The command serves standard input and output with the
// argument stdio, and /mcp on a port of 127.0.0.1 with http PORT. What it offers
// is what gosdk and mcpgo have, and some more.
func TestStrangers(t *testing.T) {
	strangers := testdep.Env(t, "E2E_STRANGERS", "e2e/run LANGUAGE installs servers in other languages")
	for line := range strings.Lines(strangers) {
		fields := strings.Fields(line)
		if len(fields) < 3 {
			t.Fatalf("E2E_STRANGERS: %q has no NAME REVISION,… COMMAND…", line)
		}
		server := program{fields[2], fields[3:]}
		for _, kind := range []string{"stdio", "http"} {
			for name := range strings.SplitSeq(fields[1], ",") {
				t.Run(fields[0]+" server "+name+" "+kind, func(t *testing.T) {
					t.Parallel()
					stranger(t, server, kind, revision(t, name), takesTasks[fields[0]])
				})
			}
		}
	}
}

// takesTasks has the servers with the extension io.modelcontextprotocol/tasks,
// whose tools are two more.
var takesTasks = map[string]bool{"rust": true, "fastmcp": true}

// stranger uses one server with one revision.
func stranger(t *testing.T, server program, kind string, want protocol.Revision, tasks bool) {
	var transport client.Transport
	if kind == "http" {
		port := freePort(t)
		server.start(t, port, nil, "http", strconv.Itoa(port))
		transport = client.HTTP(fmt.Sprintf("http://127.0.0.1:%d/mcp", port), nil)
	} else {
		transport = server.stdio("stdio")
	}
	s := connect(t, transport, newUser(), want)
	if s.Revision() != want {
		t.Fatalf("got revision %v, want %v", s.Revision(), want)
	}
	t.Run("hello", s.strangerHello)
	t.Run("tools", func(t *testing.T) { s.strangerTools(t, tasks) })
	t.Run("pages", s.strangerPages)
	t.Run("structured content", s.strangerStructured)
	t.Run("tools that fail", func(t *testing.T) { s.fails(t, "fail", nil, "this tool fails always") })
	t.Run("a tool that is not there", func(t *testing.T) {
		if _, err := s.Call(within(t), "no_such_tool", nil); code(err) != protocol.CodeInvalidParams {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a prompt that is not there", func(t *testing.T) {
		if _, err := s.GetPrompt(within(t), "no_such_prompt", nil); code(err) != protocol.CodeInvalidParams {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a resource that is not there", func(t *testing.T) {
		if _, err := s.Read(within(t), "e2e://nothing"); !errors.Is(err, client.ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound", err)
		}
	})
	t.Run("an unknown method", func(t *testing.T) {
		if err := s.Request(within(t), "e2e/nothing", nil, nil); code(err) != protocol.CodeMethodNotFound || !errors.Is(err, client.ErrUnsupported) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("resources", func(t *testing.T) {
		equal(t, "resource", s.read(t, "e2e://4").Text, "This is e2e://4")
	})
	t.Run("templates", func(t *testing.T) {
		equal(t, "templates", s.templates(t), []string{"e2e://words/{word}"})
		equal(t, "word", s.read(t, "e2e://words/hi").Text, "HI")
	})
	t.Run("prompts", func(t *testing.T) {
		equal(t, "prompts", s.promptNames(t), []string{"letter"})
		equal(t, "prompt", messageText(t, s.prompt(t, "letter", map[string]string{"city": "Rome"}), 0), "Write to Rome")
	})
	t.Run("completion", func(t *testing.T) {
		s.completes(t, client.Completion{Prompt: "letter", Argument: "city", Value: "R"}, "Rome")
	})
	if want.Has(protocol.FeatureElicitation) { // which came with it
		t.Run("completion by another argument", func(t *testing.T) {
			s.completes(t, client.Completion{Prompt: "letter", Argument: "city", Context: map[string]string{"country": "France"}}, "Lyon", "Paris")
		})
	}
	t.Run("log", s.strangerLog)
	t.Run("progress and cancel", s.frameworkCancel)
	if want.Has(protocol.FeatureElicitation) {
		t.Run("questions", func(t *testing.T) { s.frameworkQuestions(t, quirks{}) })
	}
	if tasks && want.Modern() && !s.behind(t, "tasks do not pass") {
		t.Run("a task", s.strangerTask)
		t.Run("tasks that fail", s.strangerTasksFail)
		t.Run("a task that asks", s.strangerTaskAsks)
		t.Run("a task that is cancelled", s.strangerTaskCancelled)
		t.Run("a task whose call is given up", s.strangerTaskGivenUp)
		t.Run("a task that is not there", func(t *testing.T) {
			if _, err := s.Task(within(t), "nothing"); !errors.Is(err, client.ErrNotFound) {
				t.Errorf("got %v, want ErrNotFound", err)
			}
		})
	}
	t.Run("subscriptions", func(t *testing.T) { s.frameworkSubscriptions(t, quirks{}) })
	t.Run("changed lists", s.strangerChanges)
	t.Run("many at once", s.strangerMany)
}

func (s session) strangerHello(t *testing.T) {
	if !s.behind(t, "instructions are its own") {
		equal(t, "instructions", s.Server().Instructions, "Try everything.")
	}
	caps := s.Server().Capabilities
	if caps.Tools == nil || caps.Prompts == nil || caps.Resources == nil {
		t.Errorf("got capabilities %+v", caps)
	}
	if err := s.Ping(within(t)); err != nil {
		t.Error(err)
	}
}

func (s session) strangerTools(t *testing.T, tasks bool) {
	want := []string{"ask", "cancelled", "count", "fail", "grow", "log", "shrink", "touch", "wait"}
	if tasks {
		want = []string{"ask", "cancelled", "count", "errand", "fail", "grow", "log", "release", "shrink", "touch", "wait"}
	}
	equal(t, "tools", s.toolNames(t), want)
	tool, err := s.Tool(within(t), "count")
	if err != nil {
		t.Fatal(err)
	}
	contains(t, "schema", string(tool.InputSchema), `"name"`)
}

// strangerPages reads a list page by page, and all at once.
func (s session) strangerPages(t *testing.T) {
	var sizes []int
	for page := range s.resourcePages(t) {
		sizes = append(sizes, len(page))
	}
	equal(t, "all", s.resourceURIs(t), []string{"e2e://1", "e2e://2", "e2e://3", "e2e://4", "e2e://5"})
	if !s.behind(t, "pages are its own") {
		equal(t, "sizes", sizes, []int{2, 2, 1})
	}
}

// strangerStructured has structured content where the revision has it, which the
// client then checks with the output schema.
func (s session) strangerStructured(t *testing.T) {
	got, err := client.Call[struct {
		Letters int `json:"letters"`
	}](within(t), s, "count", args{"name": "größer"})
	if s.Revision().Has(protocol.FeatureStructuredContent) {
		if err != nil || got.Letters != 6 {
			t.Errorf("got %+v, %v", got, err)
		}
	}
	contains(t, "text", s.call(t, "count", args{"name": "größer"}).Text(), "6")
}

// strangerLog hears what is logged, from its level on.
func (s session) strangerLog(t *testing.T) {
	if s.Revision().Modern() && s.behind(t, "log messages of a connection without session are in its log") {
		return
	}
	if err := s.SetLevel(within(t), protocol.LevelInfo); err != nil {
		t.Fatal(err)
	}
	s.says(t, "log", nil, "logged")
	if got := s.user.reads(t, "All is well"); got.Level != protocol.LevelInfo || got.Logger != "e2e" {
		t.Errorf("got %+v", got)
	}
	if got := s.user.reads(t, "All is lost"); got.Level != protocol.LevelError {
		t.Errorf("got %+v", got)
	}
}

// strangerChanges sees the server grow and shrink.
func (s session) strangerChanges(t *testing.T) {
	heard := make(chan client.Notification, 10)
	sub, err := s.Listen(within(t), protocol.SubscriptionFilter{ToolsListChanged: true, ResourcesListChanged: true}, func(e client.Notification) { offer(heard, e) })
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range []string{"grow", "shrink"} {
		s.call(t, tool, args{"name": "fresh"})
		for _, method := range []string{protocol.MethodToolsChanged, protocol.MethodResourcesChanged} {
			await(t, heard, method, func(e client.Notification) bool { return e.Method == method })
		}
		there := tool == "grow"
		if there {
			s.says(t, "fresh", nil, "I am new")
		}
		if slices.Contains(s.toolNames(t), "fresh") != there || slices.Contains(s.resourceURIs(t), "e2e://new/fresh") != there {
			t.Errorf("after %s: got tools %v, resources %v", tool, s.toolNames(t), s.resourceURIs(t))
		}
	}
	if err := sub.Close(); err != nil {
		t.Error(err)
	}
}

// strangerMany reads words at once.
func (s session) strangerMany(t *testing.T) {
	ctx := within(t)
	faults := make(chan error)
	for i := range 50 {
		go func() {
			r, err := s.Read(ctx, fmt.Sprintf("e2e://words/n%d", i))
			if want := fmt.Sprintf("N%d", i); err == nil && (len(r.Contents) != 1 || r.Contents[0].Text != want) {
				err = fmt.Errorf("got %+v, want %s", r.Contents, want)
			}
			faults <- err
		}()
	}
	for range 50 {
		if err := <-faults; err != nil {
			t.Error(err)
		}
	}
}
