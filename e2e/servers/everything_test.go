package servers

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
)

func TestEverything(t *testing.T) {
	server := npm(t, "server-everything")
	for kind, argument := range map[string]string{"stdio": "stdio", "http": "streamableHttp", "sse": "sse"} {
		t.Run("typescript server 2025-11-25 "+kind, func(t *testing.T) {
			t.Parallel()
			var transport client.Transport = server.stdio(argument)
			if kind != "stdio" {
				transport = server.web(t, argument)
			}
			u := newUser()
			s := connect(t, transport, u)
			t.Run("hello", s.everythingHello)
			t.Run("tools", s.everythingTools)
			t.Run("content", s.everythingContent)
			t.Run("errors", s.everythingErrors)
			t.Run("resources", s.everythingResources)
			t.Run("changed lists", s.everythingChanges)
			t.Run("subscriptions", s.everythingSubscriptions)
			t.Run("prompts", s.everythingPrompts)
			t.Run("completion", s.everythingCompletion)
			t.Run("progress", s.everythingProgress)
			t.Run("cancel", s.everythingCancel)
			t.Run("log", s.everythingLog)
			t.Run("sampling", s.everythingSampling)
			t.Run("elicitation", s.everythingElicitation)
			t.Run("elicitation of a URL", s.everythingURL)
			t.Run("roots", s.everythingRoots)
			t.Run("tasks of 2025-11-25", s.everythingTasks)
			t.Run("many at once", func(t *testing.T) { s.manyAtOnce(t, "echo", "message", "Echo: ") })
		})
	}
}

// TestFallback points the transport of streamable HTTP at a server that has
// HTTP+SSE alone.
func TestFallback(t *testing.T) {
	server := npm(t, "server-everything")
	port := freePort(t)
	server.start(t, port, []string{"PORT=" + strconv.Itoa(port)}, "sse")
	s := connect(t, client.HTTP(fmt.Sprintf("http://127.0.0.1:%d/sse", port), nil), newUser())
	t.Run("hello", s.everythingHello)
	t.Run("tools", s.everythingTools)
	t.Run("sampling", s.everythingSampling)
	t.Run("roots", s.everythingRoots)
}

// TestRevisions speaks each legacy revision with the same server.
func TestRevisions(t *testing.T) {
	server := npm(t, "server-everything")
	for _, revision := range protocol.Revisions() {
		if revision.Modern() {
			continue
		}
		t.Run("typescript server "+revision.String()+" stdio", func(t *testing.T) {
			t.Parallel()
			s := connect(t, server.stdio("stdio"), newUser(), revision)
			if s.Revision() != revision {
				t.Errorf("got revision %v, want %v", s.Revision(), revision)
			}
			includes(t, "tools", s.toolNames(t), "echo", "get-sum")
			s.says(t, "echo", map[string]string{"message": "hello"}, "Echo: hello")
			contains(t, "prompt", messageText(t, s.prompt(t, "args-prompt", map[string]string{"city": "Oslo"}), 0), "Oslo")
			s.says(t, "trigger-sampling-request", map[string]any{"prompt": "capital?"}, "Paris")
		})
	}
}

func (s session) everythingHello(t *testing.T) {
	if s.behind(t, "info and instructions are its own") {
		equal(t, "name", s.Server().Info.Name, "gateway")
	} else if got := s.Server().Info; got.Name != "mcp-servers/everything" || got.Title != "Everything Reference Server" {
		t.Errorf("got server %+v", got)
	}
	if got := s.Revision().String(); got != "2025-11-25" {
		t.Errorf("got revision %s, want 2025-11-25", got)
	}
	if s.Server().Instructions == "" && !s.gated {
		t.Error("no instructions")
	}
	caps := s.Server().Capabilities
	if caps.Tools == nil || caps.Prompts == nil || caps.Resources == nil || !caps.Resources.Subscribe || caps.Logging == nil || caps.Completions == nil {
		t.Errorf("got capabilities %+v", caps)
	}
	if err := s.Ping(within(t)); err != nil {
		t.Error(err)
	}
}

// weather is what get-structured-content returns.
type weather struct {
	Temperature float64 `json:"temperature"`
	Conditions  string  `json:"conditions"`
	Humidity    float64 `json:"humidity"`
}

func (s session) everythingTools(t *testing.T) {
	includes(t, "tools", s.toolNames(t), "echo", "get-annotated-message", "get-env", "get-resource-links",
		"get-resource-reference", "get-structured-content", "get-sum", "get-tiny-image", "gzip-file-as-resource",
		"toggle-simulated-logging", "toggle-subscriber-updates", "trigger-long-running-operation",
		"get-roots-list", "trigger-elicitation-request", "trigger-sampling-request", "trigger-url-elicitation",
		"simulate-research-query")
	tool, err := s.Tool(within(t), "get-sum")
	if err != nil {
		t.Fatal(err)
	}
	if tool.Title != "Get Sum Tool" || tool.Annotations == nil || tool.Annotations.ReadOnlyHint == nil || !*tool.Annotations.ReadOnlyHint {
		t.Errorf("got tool %+v", tool)
	}
	contains(t, "schema", string(tool.InputSchema), `"First number"`)
	s.says(t, "echo", map[string]string{"message": "größer"}, "Echo: größer")
	s.says(t, "get-sum", map[string]float64{"a": 2.5, "b": 40}, "The sum of 2.5 and 40 is 42.5.")
	s.says(t, "get-env", nil, `"PATH"`)
	got, err := client.Call[weather](within(t), s, "get-structured-content", map[string]string{"location": "Chicago"})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "weather", got, weather{36, "Light rain / drizzle", 82})
}

func (s session) everythingContent(t *testing.T) {
	image := item[protocol.ImageContent](t, s.call(t, "get-tiny-image", nil).Content, 1)
	if image.MIMEType != "image/png" || !bytes.HasPrefix(image.Data, []byte("\x89PNG")) {
		t.Errorf("got image of type %s, %d bytes", image.MIMEType, len(image.Data))
	}
	annotated := s.call(t, "get-annotated-message", map[string]any{"messageType": "error", "includeImage": true})
	equal(t, "annotations", item[protocol.TextContent](t, annotated.Content, 0).Annotations,
		map[string]any{"audience": []string{"user", "assistant"}, "priority": 1})
	equal(t, "annotations", item[protocol.ImageContent](t, annotated.Content, 1).Annotations,
		map[string]any{"audience": []string{"user"}, "priority": 0.5})
	links := s.call(t, "get-resource-links", map[string]int{"count": 4}).Content
	if len(links) != 5 {
		t.Fatalf("got %d items, want a text and 4 links", len(links))
	}
	for i := range 4 {
		contains(t, "content of link", string(contentOf(s.read(t, item[protocol.ResourceLink](t, links, i+1).URI))), "This is a ")
	}
	inside := s.call(t, "get-resource-reference", map[string]any{"resourceType": "Blob", "resourceId": 7}).Content
	resource := item[protocol.EmbeddedResource](t, inside, 1).Resource
	contains(t, "resource", resource.URI+" "+string(resource.Blob), "demo://resource/dynamic/blob/7", "Resource 7: ")
}

func contentOf(c protocol.ResourceContents) []byte {
	if c.Blob != nil {
		return c.Blob
	}
	return []byte(c.Text)
}

func (s session) everythingErrors(t *testing.T) {
	s.fails(t, "get-sum", map[string]string{"a": "two"}, "expected number")
	if s.behind(t, "an unknown tool is a protocol error") {
		if _, err := s.Call(within(t), "no-such-tool", nil); code(err) != protocol.CodeInvalidParams {
			t.Errorf("a tool that is not there: got %v", err)
		}
	} else {
		s.fails(t, "no-such-tool", nil, "no-such-tool")
	}
	s.fails(t, "get-resource-reference", map[string]any{"resourceType": "Text", "resourceId": -1}, "Invalid resourceId")
	_, err := s.Read(within(t), "demo://nothing")
	if !errors.Is(err, client.ErrNotFound) && code(err) != protocol.CodeInvalidParams {
		t.Errorf("reading what is not there: got %v", err)
	}
	_, err = s.GetPrompt(within(t), "no-such-prompt", nil)
	if code(err) != protocol.CodeInvalidParams {
		t.Errorf("getting a prompt that is not there: got %v", err)
	}
	_, err = s.GetPrompt(within(t), "args-prompt", map[string]string{"state": "Texas"})
	if code(err) != protocol.CodeInvalidParams || !strings.Contains(err.Error(), "city") {
		t.Errorf("getting a prompt without its argument: got %v", err)
	}
	if err := s.Request(within(t), "e2e/nothing", nil, nil); code(err) != protocol.CodeMethodNotFound || !errors.Is(err, client.ErrUnsupported) {
		t.Errorf("an unknown method: got %v", err)
	}
}

// code returns the code of a server's error, 0 if err is no such.
func code(err error) protocol.Code {
	var fault *client.Error
	if errors.As(err, &fault) {
		return fault.Code
	}
	return 0
}

func (s session) everythingResources(t *testing.T) {
	const features = "demo://resource/static/document/features.md"
	includes(t, "resources", s.resourceURIs(t), features, "demo://resource/static/document/startup.md")
	equal(t, "templates", s.templates(t),
		[]string{"demo://resource/dynamic/blob/{resourceId}", "demo://resource/dynamic/text/{resourceId}"})
	static := s.read(t, features)
	contains(t, features, static.MIMEType+static.Text, "text/markdown", "# Everything Server - Features")
	contains(t, "text", s.read(t, "demo://resource/dynamic/text/3").Text, "Resource 3: This is a plaintext resource")
	contains(t, "blob", string(s.read(t, "demo://resource/dynamic/blob/4").Blob), "Resource 4: This is a base64 blob")
}

// everythingChanges makes the server offer a new resource.
func (s session) everythingChanges(t *testing.T) {
	r := s.call(t, "gzip-file-as-resource", map[string]string{"name": "hello.gz", "data": "data:text/plain,hello", "outputType": "resourceLink"})
	s.user.hears(t, protocol.MethodResourcesChanged, "")
	link := item[protocol.ResourceLink](t, r.Content, 0)
	includes(t, "resources", s.resourceURIs(t), link.URI)
	unzip, err := gzip.NewReader(bytes.NewReader(s.read(t, link.URI).Blob))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(unzip)
	if err != nil || string(text) != "hello" {
		t.Errorf("got %q, %v", text, err)
	}
}

func (s session) everythingSubscriptions(t *testing.T) {
	const uri = "demo://resource/dynamic/text/9"
	first := s.subscribe(t, uri)
	s.user.reads(t, "Received Subscribe Resource request for URI: "+uri)
	s.says(t, "toggle-subscriber-updates", nil, "Started")
	s.user.hears(t, protocol.MethodResourceUpdated, uri)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	s.user.reads(t, "Received Unsubscribe Resource request: "+uri)
	s.says(t, "toggle-subscriber-updates", nil, "Stopped")

	heard := make(chan client.Notification, 10)
	sub, err := s.Listen(within(t), protocol.SubscriptionFilter{ResourceSubscriptions: []string{uri}}, func(e client.Notification) { offer(heard, e) })
	if err != nil {
		t.Fatal(err)
	}
	s.says(t, "toggle-subscriber-updates", nil, "Started")
	await(t, heard, "an update", func(e client.Notification) bool { return strings.Contains(string(e.Params), uri) })
	if err := sub.Close(); err != nil {
		t.Error(err)
	}
	s.says(t, "toggle-subscriber-updates", nil, "Stopped")
}

func (s session) everythingPrompts(t *testing.T) {
	includes(t, "prompts", s.promptNames(t), "simple-prompt", "args-prompt", "completable-prompt", "resource-prompt")
	contains(t, "simple-prompt", messageText(t, s.prompt(t, "simple-prompt", nil), 0), "without arguments")
	city := s.prompt(t, "args-prompt", map[string]string{"city": "Austin", "state": "Texas"})
	if got := messageText(t, city, 0); got != "What's weather in Austin, Texas?" || city[0].Role != "user" {
		t.Errorf("got %+v", city)
	}
	both := s.prompt(t, "resource-prompt", map[string]string{"resourceType": "Text", "resourceId": "5"})
	if len(both) != 2 {
		t.Fatalf("got %d messages, want 2", len(both))
	}
	inside := item[protocol.EmbeddedResource](t, []protocol.Content{both[1].Content}, 0)
	contains(t, "resource-prompt", inside.Resource.Text, "Resource 5: ")
}

func (s session) everythingCompletion(t *testing.T) {
	s.completes(t, client.Completion{Prompt: "completable-prompt", Argument: "department", Value: "S"}, "Sales", "Support")
	s.completes(t, client.Completion{Prompt: "completable-prompt", Argument: "name", Context: map[string]string{"department": "Sales"}},
		"David", "Eve", "Frank")
	s.completes(t, client.Completion{Template: "demo://resource/dynamic/text/{resourceId}", Argument: "resourceId", Value: "12"}, "12")
}

func (s session) everythingProgress(t *testing.T) {
	var told []client.Progress
	r := s.call(t, "trigger-long-running-operation", map[string]any{"duration": 0.3, "steps": 3},
		client.OnProgress(func(p client.Progress) { told = append(told, p) }))
	contains(t, "result", r.Text(), "Steps: 3")
	equal(t, "progress", told, []client.Progress{{Progress: 1, Total: 3}, {Progress: 2, Total: 3}, {Progress: 3, Total: 3}})
}

// everythingCancel gives a call up, by Cancel and by its timeout.
func (s session) everythingCancel(t *testing.T) {
	long := map[string]any{"duration": 60, "steps": 600}
	start := time.Now()
	_, err := s.Call(within(t), "trigger-long-running-operation", long, client.OnProgress(func(client.Progress) {
		if ended := s.cancelAll(t, "the user is tired of waiting"); len(ended) != 1 || ended[0].Name != "trigger-long-running-operation" {
			t.Errorf("cancelled %+v, want the one call", ended)
		}
	}))
	if !errors.Is(err, client.ErrCancelled) {
		t.Errorf("got %v, want ErrCancelled", err)
	}
	_, err = s.Call(within(t), "trigger-long-running-operation", long, client.Timeout(200*time.Millisecond))
	if !errors.Is(err, client.ErrTimeout) {
		t.Errorf("got %v, want ErrTimeout", err)
	}
	if took := time.Since(start); took > timeLimit/2 {
		t.Errorf("giving up took %v", took)
	}
	s.says(t, "echo", map[string]string{"message": "still here"}, "still here")
}

func (s session) everythingLog(t *testing.T) {
	if err := s.SetLevel(within(t), protocol.LevelDebug); err != nil {
		t.Fatal(err)
	}
	s.says(t, "toggle-simulated-logging", nil, "Started")
	if got := s.user.reads(t, "evel"); got.Level < protocol.LevelDebug || !strings.Contains(strings.ToLower(got.Text()), got.Level.String()) {
		t.Errorf("got level %v with %q", got.Level, got.Text())
	}
	s.says(t, "toggle-simulated-logging", nil, "Stopped")
}

// manyAtOnce calls a tool that repeats its argument a hundred times at once.
func (s session) manyAtOnce(t *testing.T, tool, argument, prefix string) {
	type answer struct{ want, got string }
	answers := make(chan answer)
	ctx := within(t)
	for i := range 100 {
		go func() {
			text := strings.Repeat("x", i)
			r, err := s.Call(ctx, tool, map[string]string{argument: text})
			if err != nil {
				answers <- answer{prefix + text, err.Error()}
				return
			}
			answers <- answer{prefix + text, r.Text()}
		}()
	}
	for range 100 {
		if a := <-answers; a.got != a.want {
			t.Errorf("got %q, want %q", a.got, a.want)
		}
	}
}
