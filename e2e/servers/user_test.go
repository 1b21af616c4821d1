package servers

import (
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
)

// timeLimit is how long a server may take for one operation, and to start, on a
// machine with much else to do.
const timeLimit = time.Minute

// user answers what servers ask and hears what they tell.
type user struct {
	logs   chan client.LogEntry
	events chan client.Notification

	mu      sync.Mutex
	answer  func(q *protocol.ElicitParams) (*protocol.ElicitResult, error)
	asked   []*protocol.ElicitParams
	sampled []*protocol.SampleParams
}

func newUser() *user {
	return &user{logs: make(chan client.LogEntry, 1000), events: make(chan client.Notification, 1000)}
}

// options let a client ask the user everything.
func (u *user) options() *client.Options {
	return &client.Options{
		Info:    protocol.Implementation{Name: "e2e", Version: "1.0.0"},
		Timeout: timeLimit, // a server in another language may need more than the default to start
		Roots:   []protocol.Root{{URI: "file:///home/ada", Name: "home"}},
		Sample:  u.sample, Elicit: u.elicit, ElicitURL: u.elicit,
		OnLog:          func(l client.LogEntry) { offer(u.logs, l) },
		OnNotification: func(e client.Notification) { offer(u.events, e) },
	}
}

// offer puts what into a channel, unless that is full.
func offer[T any](queue chan<- T, what T) {
	select {
	case queue <- what:
	default:
	}
}

// answers sets how the user fills in forms from now on, and forgets what was
// asked.
func (u *user) answers(answer func(q *protocol.ElicitParams) (*protocol.ElicitResult, error)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.answer, u.asked, u.sampled = answer, nil, nil
}

// accepts fills in forms with content.
func (u *user) accepts(content any) {
	u.answers(func(*protocol.ElicitParams) (*protocol.ElicitResult, error) { return client.Accept(content) })
}

func (u *user) elicit(_ context.Context, q *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.asked = append(u.asked, q)
	if u.answer == nil {
		return client.Cancel()
	}
	return u.answer(q)
}

func (u *user) sample(_ context.Context, q *protocol.SampleParams) (*protocol.SampleResult, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.sampled = append(u.sampled, q)
	return &protocol.SampleResult{
		Role: "assistant", Model: "oracle", StopReason: "endTurn",
		Content: []protocol.Content{protocol.TextContent{Text: "Paris"}},
	}, nil
}

// questions returns what was asked since the answers were set.
func (u *user) questions() []*protocol.ElicitParams {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.asked)
}

// samples returns what the model was asked since the answers were set.
func (u *user) samples() []*protocol.SampleParams {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.sampled)
}

// hears waits for a notification whose params contain text.
func (u *user) hears(t *testing.T, method, text string) {
	t.Helper()
	if !u.heard(timeLimit, method, text) {
		t.Fatalf("did not hear %s with %q within %v", method, text, timeLimit)
	}
}

// heard says whether such a notification came in time.
func (u *user) heard(within time.Duration, method, text string) bool {
	limit := time.After(within)
	for {
		select {
		case e := <-u.events:
			if e.Method == method && strings.Contains(string(e.Params), text) {
				return true
			}
		case <-limit:
			return false
		}
	}
}

// tells changes something and waits until the user hears of it. A server that may
// lose what it tells right before an answer gets five goes; undo, if there is
// one, is called between two.
func (s session) tells(t *testing.T, q quirks, method, text string, change, undo func()) {
	t.Helper()
	change()
	for goes := 1; q.losesLast && goes < 5; goes++ {
		if s.user.heard(timeLimit/20, method, text) {
			return
		}
		t.Logf("%s with %q was lost", method, text)
		if undo != nil {
			undo()
		}
		change()
	}
	s.user.hears(t, method, text)
}

// reads waits for a log message that contains text.
func (u *user) reads(t *testing.T, text string) client.LogEntry {
	t.Helper()
	return await(t, u.logs, "a log message with "+text, func(l client.LogEntry) bool {
		return strings.Contains(l.Text(), text)
	})
}

// await takes from a channel until something is what is wanted.
func await[T any](t *testing.T, queue <-chan T, what string, wanted func(T) bool) T {
	t.Helper()
	limit := time.After(timeLimit)
	for {
		select {
		case got := <-queue:
			if wanted(got) {
				return got
			}
		case <-limit:
			t.Fatalf("did not hear %s within %v", what, timeLimit)
		}
	}
}

// session is a connected client and the tests' way to use it.
type session struct {
	*client.Client
	user  *user
	gated bool // the server is behind a gateway
}

// behind reports whether the server is behind a gateway, which is why something differs.
func (s session) behind(t *testing.T, why string) bool {
	if s.gated {
		t.Log("behind a gateway: " + why)
	}
	return s.gated
}

// within returns a context for one operation.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeLimit)
	t.Cleanup(cancel)
	return ctx
}

// checked calls a tool and checks its result against the tool's output schema.
func (s session) checked(t *testing.T, tool string, args any) *client.CallToolResult {
	t.Helper()
	r, err := client.Call[*client.CallToolResult](within(t), s.Client, tool, args)
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return r
}

// subscribe asks to be told of a resource.
func (s session) subscribe(t *testing.T, uri string) *client.Subscription {
	t.Helper()
	sub, err := s.Listen(within(t), client.Filter{ResourceSubscriptions: []string{uri}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return sub
}

// cancelAll gives up what is under way.
func (s session) cancelAll(t *testing.T, reason string) []client.Pending {
	t.Helper()
	list := s.Pending()
	for _, p := range list {
		if err := s.Cancel(p.ID, reason); err != nil {
			t.Error(err)
		}
	}
	return list
}

// resourcePages lists the resources page by page.
func (s session) resourcePages(t *testing.T) iter.Seq[[]client.Resource] {
	return func(yield func([]client.Resource) bool) {
		params := map[string]string{}
		for {
			var page struct {
				Resources  []client.Resource
				NextCursor string
			}
			if err := s.Request(within(t), protocol.MethodResourcesList, params, &page); err != nil {
				t.Fatal(err)
			}
			if !yield(page.Resources) || page.NextCursor == "" {
				return
			}
			params["cursor"] = page.NextCursor
		}
	}
}

// call calls a tool, which must not fail.
func (s session) call(t *testing.T, tool string, args any, options ...client.CallOption) *client.CallToolResult {
	t.Helper()
	r, err := s.Call(within(t), tool, args, options...)
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	if r.IsError {
		t.Fatalf("%s failed: %s", tool, r.Text())
	}
	return r
}

// says calls a tool and wants its text to contain all of texts.
func (s session) says(t *testing.T, tool string, args any, texts ...string) {
	t.Helper()
	contains(t, tool, s.call(t, tool, args).Text(), texts...)
}

// fails calls a tool and wants its result to be an error that contains text.
func (s session) fails(t *testing.T, tool string, args any, text string) {
	t.Helper()
	r, err := s.Call(within(t), tool, args)
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	if !r.IsError {
		t.Fatalf("%s did not fail: %s", tool, r.Text())
	}
	contains(t, tool, r.Text(), text)
}

// read reads a resource of one item.
func (s session) read(t *testing.T, uri string) protocol.ResourceContents {
	t.Helper()
	r, err := s.Read(within(t), uri)
	if err != nil {
		t.Fatalf("%s: %v", uri, err)
	}
	if len(r.Contents) != 1 || r.Contents[0].URI != uri {
		t.Fatalf("%s: got %+v, want one item of that URI", uri, r.Contents)
	}
	return r.Contents[0]
}

// prompt gets a prompt.
func (s session) prompt(t *testing.T, name string, args map[string]string) []protocol.PromptMessage {
	t.Helper()
	r, err := s.GetPrompt(within(t), name, args)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return r.Messages
}

// completes wants the values of a completion.
func (s session) completes(t *testing.T, q client.Completion, values ...string) {
	t.Helper()
	r, err := s.Complete(within(t), q)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, q.Argument, r.Values, values)
}

// names collects what of says of all items of a list.
func names[T any](t *testing.T, list func(yield func(T, error) bool), of func(T) string) []string {
	t.Helper()
	var found []string
	for item, err := range list {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, of(item))
	}
	slices.Sort(found)
	return found
}

func (s session) toolNames(t *testing.T) []string {
	return names(t, s.Tools(within(t)), func(v protocol.Tool) string { return v.Name })
}

func (s session) promptNames(t *testing.T) []string {
	return names(t, s.Prompts(within(t)), func(v protocol.Prompt) string { return v.Name })
}

func (s session) resourceURIs(t *testing.T) []string {
	return names(t, s.Resources(within(t)), func(v protocol.Resource) string { return v.URI })
}

func (s session) templates(t *testing.T) []string {
	return names(t, s.Templates(within(t)), func(v protocol.ResourceTemplate) string { return v.URITemplate })
}

// item returns the item of a list at index i as a T.
func item[T protocol.Content](t *testing.T, items []protocol.Content, i int) T {
	t.Helper()
	if i >= len(items) {
		t.Fatalf("%d items of content, want more than %d", len(items), i)
	}
	v, ok := items[i].(T)
	if !ok {
		t.Fatalf("item %d is a %T, want a %T", i, items[i], v)
	}
	return v
}

// messageText returns the text of a message.
func messageText(t *testing.T, messages []protocol.PromptMessage, i int) string {
	t.Helper()
	if i >= len(messages) {
		t.Fatalf("%d messages, want more than %d", len(messages), i)
	}
	return item[protocol.TextContent](t, []protocol.Content{messages[i].Content}, 0).Text
}

func contains(t *testing.T, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s: no %q in %q", what, part, text)
		}
	}
}

// equal compares what encodes to JSON.
func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	g, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	w, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if string(g) != string(w) {
		t.Errorf("%s: got %s, want %s", what, g, w)
	}
}

// includes wants all of wanted in a list.
func includes(t *testing.T, what string, list []string, wanted ...string) {
	t.Helper()
	for _, name := range wanted {
		if !slices.Contains(list, name) {
			t.Errorf("%s: no %q in %q", what, name, list)
		}
	}
}
