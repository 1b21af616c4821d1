package toolsearch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/auth"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/middleware"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/toolsearch"
)

type noteIn struct {
	Text string `json:"text" validate:"max=20" jsonschema_description:"what it says"`
}

// fn returns what it was called with.
func fn(_ context.Context, in noteIn) (string, error) { return "did " + in.Text, nil }

func newServer(opts *mcp.Options) *mcp.Server {
	if opts == nil {
		opts = &mcp.Options{}
	}
	log := zerolog.Nop()
	opts.Logger = &log
	return mcp.NewServer(mcp.Info{Name: "notes", Version: "1"}, opts)
}

// notes returns a server with some tools, and those of this package.
func notes(t testing.TB, o *toolsearch.Options) *mcp.Server {
	t.Helper()
	return notesOf(t, newServer(nil), o)
}

func notesOf(t testing.TB, s *mcp.Server, o *toolsearch.Options) *mcp.Server {
	t.Helper()
	s.MustAdd(
		mcp.Tool("notes_create", fn, mcp.Doc("Create a note.")),
		mcp.Tool("notes_delete", fn, mcp.Doc("Delete a note."), mcp.Destructive(true)),
		mcp.Tool("notes_list", fn, mcp.Doc("List all notes."), mcp.ReadOnly()),
		mcp.Tool("calendar_create_event", fn, mcp.Doc("Create an event in the calendar.")),
		mcp.Tool("calendar_list_events", fn, mcp.Doc("List the events of a day."), mcp.ReadOnly()),
		mcp.Tool("invoices_send", fn, mcp.Doc("Send an invoice to a customer.")),
		mcp.Tool("fail", func(context.Context, noteIn) (string, error) { return "", fmt.Errorf("it is broken") }, mcp.Doc("Fails.")),
	)
	if err := toolsearch.Add(s, o); err != nil {
		t.Fatal(err)
	}
	return s
}

// namesOf returns the names of a list.
func namesOf(c *mcptest.Client) (names []string) {
	for _, tool := range c.Tools() {
		names = append(names, tool.Name)
	}
	return names
}

// find returns the answer of a search, and the names in it.
func find(c *mcptest.Client, query string) (answer string, names []string) {
	answer = c.Call("search_tools", map[string]string{"query": query}).Text()
	for _, line := range strings.Split(answer, "\n")[1:] {
		var hit struct{ Name string }
		if json.Unmarshal([]byte(line), &hit) == nil {
			names = append(names, hit.Name)
		}
	}
	return answer, names
}

func target(name string, args any) map[string]any {
	return map[string]any{"name": name, "arguments": args}
}

func TestAdd(t *testing.T) {
	mcptest.Each(t, func() *mcp.Server { return notes(t, &toolsearch.Options{Pinned: []string{"notes_list", "coming"}}) }, func(t *testing.T, c *mcptest.Client) {
		if got, want := namesOf(c), []string{"call_read_tool", "call_tool", "notes_list", "search_tools"}; !slices.Equal(got, want) {
			t.Errorf("the list has %v, want %v", got, want)
		}
		for _, tool := range c.Tools() {
			if tool.Meta["anthropic/alwaysLoad"] != true {
				t.Errorf("_meta of %s is %v", tool.Name, tool.Meta)
			}
			if tool.Name == "search_tools" && !strings.Contains(tool.Description, "There are 7 tools, about: notes, calendar, fail, invoices.") {
				t.Errorf("search_tools says %q", tool.Description)
			}
		}
		answer, names := find(c, "please make a new note")
		if len(names) == 0 || names[0] != "notes_create" || !strings.Contains(answer, `"readOnly":false,"description":"Create a note.","inputSchema":{"type":"object"`) {
			t.Errorf("the answer is %s", answer)
		}
		if answer, names = find(c, "NOTES_DELETE "); len(names) == 0 || names[0] != "notes_delete" || strings.HasPrefix(answer, "No tool") {
			t.Errorf("by its name: %s", answer)
		}
		if answer, names = find(c, "order a pizza for the customer"); !strings.HasPrefix(answer, "No tool has the words: order, pizza. The nearest by the others; search again in other words:\n") ||
			names[0] != "invoices_send" {
			t.Errorf("the answer is %s", answer)
		}
		if answer, _ = find(c, "quantum chromodynamics"); answer != "No tool has the words: quantum, chromodynamics. Search again in other words." {
			t.Errorf("the answer is %s", answer)
		}
		if answer, _ = find(c, "delete invoice calendar list"); !strings.HasPrefix(answer, "No tool has all of these words; the nearest lacks: ") {
			t.Errorf("each word is of some tool: %s", answer)
		}
		for _, query := range []string{"", "the", "?!", "what is it", "\u0301"} {
			if answer, _ = find(c, query); !strings.HasPrefix(answer, "The query has no words to search for.") {
				t.Errorf("%q: %s", query, answer)
			}
		}
	})
}

// TestCalls: both tools return what a call by name does, and refuse what they should.
func TestCalls(t *testing.T) { calls(t, nil, "it is broken") }

// TestCallsMasked: a server that masks errors of tools says what a model did wrong.
func TestCallsMasked(t *testing.T) { calls(t, &mcp.Options{MaskErrors: true}, `Tool "fail" failed.`) }

func calls(t *testing.T, opts *mcp.Options, broken string) {
	mcptest.Each(t, func() *mcp.Server { return notesOf(t, newServer(opts), nil) }, func(t *testing.T, c *mcptest.Client) {
		for _, row := range []struct {
			by   string
			args any
			want string // the text; if it is an error, with "!" before it
		}{
			{"call_tool", target("notes_create", noteIn{"it"}), "did it"},
			{"call_tool", target("notes_list", noteIn{"it"}), "did it"},
			{"call_read_tool", target("notes_list", noteIn{"it"}), "did it"},
			{"call_read_tool", target("notes_list", `{"text":"it"}`), "did it"}, // as some models send it
			{"call_read_tool", target("notes_create", noteIn{"it"}), "!notes_create changes things: use call_tool"},
			{"call_tool", target("fail", noteIn{"it"}), "!" + broken},
			{"call_tool", target("nothing", nil), `!there is no tool "nothing": find its name with search_tools`},
			{"call_read_tool", target("", nil), `!there is no tool "": find its name with search_tools`},
			{"call_tool", target("call_tool", target("notes_create", noteIn{"it"})), "!call_tool cannot be called by another tool: call it directly"},
			{"call_tool", map[string]any{"name": "notes_create"}, "!- /text: is required"},
			{"call_tool", target("notes_create", noteIn{strings.Repeat("long", 9)}), "!- /text: "},
		} {
			r := c.Call(row.by, row.args)
			want, failed := strings.CutPrefix(row.want, "!")
			if r.IsError != failed || !strings.Contains(r.Text(), want) {
				t.Errorf("%s %v: %v %s, want %s", row.by, row.args, r.IsError, r.Text(), row.want)
			}
			if has, should := strings.Contains(r.Text(), `The input schema of notes_create:`), strings.HasPrefix(want, "- /text"); has != should {
				t.Errorf("%s %v: the schema is there: %v; %s", row.by, row.args, has, r.Text())
			}
		}
		if direct, by := c.Call("notes_create", noteIn{"it"}), c.Call("call_tool", target("notes_create", noteIn{"it"})); string(direct.Raw) != string(by.Raw) {
			t.Errorf("the result is %s, and by call_tool %s", direct.Raw, by.Raw)
		}
	})
}

func TestFaults(t *testing.T) {
	taken := newServer(nil)
	taken.MustAdd(mcp.Tool("call_tool", fn, mcp.Doc("Calls.")))
	for _, row := range []struct {
		server *mcp.Server
		opts   toolsearch.Options
		want   string
	}{
		{nil, toolsearch.Options{}, "toolsearch: Add: the server is nil"},
		{taken, toolsearch.Options{}, `"call_tool" is registered already`},
		{newServer(nil), toolsearch.Options{Pinned: []string{"a", ""}}, "toolsearch: Options.Pinned has an empty name"},
		{newServer(nil), toolsearch.Options{Words: map[string]string{"-": "issue"}}, `toolsearch: invalid Options.Words key "-": it has 0 words; use 1 to 8`},
		{newServer(nil), toolsearch.Options{Words: map[string]string{"a b c d e f g h i": "issue"}}, `it has 9 words`},
		{newServer(nil), toolsearch.Options{Words: map[string]string{"ticket": "issue,"}}, `toolsearch: invalid Options.Words value "issue,": each part between commas needs a word`},
	} {
		if err := toolsearch.Add(row.server, &row.opts); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("the error is %v, want %s", err, row.want)
		}
		if row.server != nil && len(slices.Collect(row.server.Tools(nil))) > 1 {
			t.Errorf("%s: tools were added", row.want)
		}
	}
}

// TestRemove: without search_tools the list is whole again.
func TestRemove(t *testing.T) {
	s := notes(t, nil)
	s.Remove(mcp.KindTool, "search_tools", "call_tool", "call_read_tool")
	if got := namesOf(mcptest.New(t, s)); len(got) != 7 {
		t.Errorf("the list has %v", got)
	}
}

// TestWhen: a host that searches itself has the whole list, without these tools.
func TestWhen(t *testing.T) {
	s := notes(t, &toolsearch.Options{Pinned: []string{"fail"}, When: func(f *mcp.Frame) bool { return f.ClientInfo().Name != "claude-code" }})
	for _, rev := range protocol.Revisions() {
		short := mcptest.New(t, s, mcptest.Revision(rev), mcptest.Info(protocol.Implementation{Name: "other", Version: "1"}))
		whole := mcptest.New(t, s, mcptest.Revision(rev), mcptest.Info(protocol.Implementation{Name: "claude-code", Version: "1"}))
		if got := namesOf(short); len(got) != 4 {
			t.Errorf("%s: the short list is %v", rev, got)
		}
		if got := namesOf(whole); len(got) != 7 || slices.Contains(got, "search_tools") {
			t.Errorf("%s: the whole list is %v", rev, got)
		}
		for _, tool := range whole.Tools() {
			if _, marked := tool.Meta["anthropic/alwaysLoad"]; marked != (tool.Name == "fail") {
				t.Errorf("%s: _meta of %s is %v", rev, tool.Name, tool.Meta)
			}
		}
		if _, err := whole.TryCall("search_tools", map[string]string{"query": "note"}); err == nil {
			t.Errorf("%s: the host that searches itself calls search_tools", rev)
		}
	}
}

// TestWhenThatDoesNotReturn: code of users that panics or ends its goroutine costs its request.
func TestWhenThatDoesNotReturn(t *testing.T) {
	for name, end := range map[string]func(){"panic": func() { panic("when") }, "Goexit": runtime.Goexit} {
		broken := true
		var mu sync.Mutex
		s := notes(t, &toolsearch.Options{When: func(*mcp.Frame) bool {
			mu.Lock()
			defer mu.Unlock()
			if broken {
				end()
			}
			return true
		}})
		c := mcptest.New(t, s)
		for _, method := range []string{"tools/list", "tools/call"} {
			if _, err := c.TryRequest(method, map[string]any{"name": "search_tools", "arguments": map[string]string{"query": "note"}}); err == nil || !strings.Contains(err.Error(), "panicked") {
				t.Errorf("%s: %s ends with %v", name, method, err)
			}
		}
		mu.Lock()
		broken = false
		mu.Unlock()
		if _, names := find(c, "note"); len(names) == 0 {
			t.Errorf("%s: the server finds nothing afterwards", name)
		}
	}
}

// TestHidden: tools that a client does not see change no byte of what it gets.
func TestHidden(t *testing.T) {
	testdep.NoRace(t, "lists and searches, one after the other")
	random := rand.New(rand.NewPCG(1, 2))
	texts := []string{"create a note", "delete an invoice", "list events of a calendar", "send a message to a customer", "archive mail", "search contacts"}
	for range testdep.Rounds(30, 200) {
		visible := map[string]bool{}
		with := newServer(&mcp.Options{Filter: func(_ *mcp.Frame, _ mcp.Kind, name string) bool { return !strings.Contains(name, "filtered") }})
		without := newServer(nil)
		for i := range 20 {
			doc := mcp.Doc(texts[random.IntN(len(texts))] + fmt.Sprintf(" number %d", random.IntN(9)))
			name := fmt.Sprintf("%s_%d", []string{"notes", "mail", "calendar", "filtered"}[random.IntN(4)], i)
			switch {
			case strings.Contains(name, "filtered"):
				with.MustAdd(mcp.Tool(name, fn, doc))
			case random.IntN(3) == 0:
				with.MustAdd(mcp.Tool(name, fn, doc, mcp.VisibleTo(func(*mcp.Frame) bool { return false })))
			case random.IntN(3) == 0:
				with.MustAdd(mcp.Tool(name, fn, doc, mcp.Scopes("admin")))
			default:
				visible[name] = true
				with.MustAdd(mcp.Tool(name, fn, doc))
				without.MustAdd(mcp.Tool(name, fn, doc))
			}
			if visible[name] {
				continue
			}
			visible[name] = false
		}
		for _, s := range []*mcp.Server{with, without} {
			if err := toolsearch.Add(s, nil); err != nil {
				t.Fatal(err)
			}
		}
		one, two := mcptest.New(t, with), mcptest.New(t, without)
		same := func(method string, params any) {
			t.Helper()
			a, errA := one.TryRequest(method, params)
			b, errB := two.TryRequest(method, params)
			text := func(raw json.RawMessage, err error) string { return fmt.Sprint(string(raw), err) }
			private := strings.NewReplacer(`"cacheScope":"private"`, "", `"cacheScope":"public"`, "")
			if x, y := private.Replace(text(a, errA)), private.Replace(text(b, errB)); x != y {
				t.Fatalf("%s %v: with hidden tools %s, without %s", method, params, x, y)
			}
		}
		same("tools/list", nil)
		for _, query := range append(slices.Sorted(maps.Keys(visible)), texts...) {
			same("tools/call", map[string]any{"name": "search_tools", "arguments": map[string]string{"query": query}})
			for _, by := range []string{"call_tool", "call_read_tool"} {
				same("tools/call", map[string]any{"name": by, "arguments": target(query, noteIn{"x"})})
			}
		}
		one.Close()
		two.Close()
	}
}

// TestMounted: a server around this one lists all, and its rights count.
func TestMounted(t *testing.T) {
	mcptest.Each(t, func() *mcp.Server {
		outer := newServer(&mcp.Options{Filter: func(_ *mcp.Frame, _ mcp.Kind, name string) bool { return name != "in_notes_delete" }})
		if err := outer.Mount("in", notes(t, &toolsearch.Options{Pinned: []string{"fail"}})); err != nil {
			t.Fatal(err)
		}
		return outer
	}, func(t *testing.T, c *mcptest.Client) {
		if got := namesOf(c); len(got) != 9 || !slices.Contains(got, "in_search_tools") {
			t.Errorf("the list has %v", got)
		}
		for _, tool := range c.Tools() {
			if tool.Meta != nil {
				t.Errorf("_meta of %s is %v", tool.Name, tool.Meta)
			}
		}
		answer := c.Call("in_search_tools", map[string]string{"query": "delete a note"}).Text()
		if strings.Contains(answer, "notes_delete") || !strings.Contains(answer, `"name":"notes_create"`) {
			t.Errorf("the answer is %s", answer)
		}
		if r := c.Call("in_call_tool", target("notes_create", noteIn{"it"})); r.Text() != "did it" {
			t.Errorf("the call returns %s", r.Text())
		}
		if r := c.Call("in_call_tool", target("notes_delete", noteIn{"it"})); !r.IsError || !strings.Contains(r.Text(), "there is no tool") {
			t.Errorf("the call of a hidden tool returns %s", r.Text())
		}
	})
}

// TestSet: what is enabled for a session is found there, and in no other.
func TestSet(t *testing.T) {
	for _, rev := range protocol.Revisions() {
		if rev.Has(protocol.FeaturePerRequestMeta) {
			continue // it has no sessions
		}
		s := notes(t, nil)
		if err := s.AddSet("admin", mcp.Tool("backups_restore", fn, mcp.Doc("Restore a backup."))); err != nil {
			t.Fatal(err)
		}
		s.MustAdd(mcp.Tool("enable", func(f *mcp.Frame, _ struct{}) (string, error) { return "enabled", s.EnableSet(f, "admin") }, mcp.Doc("Enable more.")),
			mcp.Tool("own", func(f *mcp.Frame, _ struct{}) (string, error) {
				return "added", s.AddToSession(f, mcp.Tool("rockets_launch", fn, mcp.Doc("Launch a rocket.")))
			}, mcp.Doc("Add one.")))
		one, two := mcptest.New(t, s, mcptest.Revision(rev)), mcptest.New(t, s, mcptest.Revision(rev))
		one.Call("call_tool", target("enable", nil))
		one.Call("call_tool", target("own", nil))
		for query, name := range map[string]string{"restore the backup": "backups_restore", "launch rockets": "rockets_launch"} {
			if _, names := find(one, query); len(names) == 0 || names[0] != name {
				t.Errorf("%s: the session of the set finds %v", rev, names)
			}
			if _, names := find(two, query); slices.Contains(names, name) {
				t.Errorf("%s: another session finds %v", rev, names)
			}
			if r := one.Call("call_tool", target(name, noteIn{"it"})); r.Text() != "did it" {
				t.Errorf("%s: %s returns %s", rev, name, r.Text())
			}
		}
		if got := namesOf(one); len(got) != 3 {
			t.Errorf("%s: the list has %v", rev, got)
		}
	}
}

// TestScopes: a caller with a scope finds and calls what needs it.
func TestScopes(t *testing.T) {
	s := notes(t, nil)
	s.MustAdd(mcp.Tool("vault_open", fn, mcp.Doc("Open the vault."), mcp.Scopes("vault")))
	for scope, want := range map[string]bool{"vault": true, "other": false} {
		c := mcptest.New(t, s, mcptest.As(auth.Identity{Subject: "a", Scopes: []string{scope}}))
		if _, names := find(c, "vault"); slices.Contains(names, "vault_open") != want {
			t.Errorf("with %s: finds %v", scope, names)
		}
		if r := c.Call("call_tool", target("vault_open", noteIn{"it"})); r.IsError == want {
			t.Errorf("with %s: the call returns %s", scope, r.Text())
		}
	}
}

// TestAround: middleware has the call within, and limits count it as Server.Call says.
func TestAround(t *testing.T) {
	s := notes(t, nil)
	var mu sync.Mutex
	var calls []string
	s.Use(middleware.ConcurrencyLimit(1, time.Second), func(next mcp.Handler) mcp.Handler {
		return func(f *mcp.Frame) (protocol.Result, error) {
			if f.Request().Method == protocol.MethodToolsCall {
				mu.Lock()
				calls = append(calls, fmt.Sprintf("%s %v", f.Request().Params.Name, f.Outer() != nil))
				mu.Unlock()
			}
			return next(f)
		}
	})
	c := mcptest.New(t, s)
	if r := c.Call("call_read_tool", target("notes_list", noteIn{"it"})); r.Text() != "did it" {
		t.Errorf("the call returns %s", r.Text())
	}
	if want := []string{"call_read_tool false", "notes_list true"}; !slices.Equal(calls, want) {
		t.Errorf("middleware had %v, want %v", calls, want)
	}
}

type yes struct {
	Sure bool `json:"sure"`
}

// TestQuestion: a tool that asks the user does so when it is called by call_tool.
func TestQuestion(t *testing.T) {
	mcptest.Each(t, func() *mcp.Server {
		s := notes(t, nil)
		s.MustAdd(mcp.Tool("ask", func(f *mcp.Frame, _ struct{}) (string, error) {
			in, err := mcp.Elicit[yes](f, "sure", "Sure?")
			return fmt.Sprint(in.Value.Sure), err
		}, mcp.Doc("Asks.")))
		return s
	}, func(t *testing.T, c *mcptest.Client) {
		if !c.Supports("elicitation") {
			return
		}
		if r := c.Call("call_tool", target("ask", nil)); r.Text() != "true" {
			t.Errorf("the result is %s", r.Text())
		}
	}, mcptest.Accepting(yes{true}))
}

// TestSizes: an answer stays within its size, whatever the tools say.
func TestSizes(t *testing.T) {
	testdep.NoRace(t, "one goroutine reads much")
	s := newServer(nil)
	for i := range 30 {
		long := strings.Repeat("日本 wide ", 100*i)
		s.MustAdd(mcp.Tool(fmt.Sprintf("gadget_%d", i), func(context.Context, json.RawMessage) (string, error) { return "", fmt.Errorf("no") }, mcp.Doc("Turn a gadget. "+long),
			mcp.InputSchema(json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer","description":"`+long+`"}}}`))))
	}
	if err := toolsearch.Add(s, nil); err != nil {
		t.Fatal(err)
	}
	c := mcptest.New(t, s)
	for _, query := range []string{"turn a gadget", "gadget_29", "wide", "日本", "every gadget on the moon of tomorrow"} {
		answer, _ := find(c, query)
		if len(answer) > 25_000 || !utf8.ValidString(answer) || !strings.Contains(answer, "gadget_") {
			t.Errorf("%s: %d bytes: %.300s", query, len(answer), answer)
		}
	}
	if answer, _ := find(c, "gadget_29"); !strings.Contains(answer, "There is no room for the schemas of these") {
		t.Errorf("a schema that is too long: %.300s", answer)
	}
	if r := c.Call("call_tool", target("gadget_29", map[string]any{"a": "x"})); !r.IsError || len(r.Text()) > 25_000 {
		t.Errorf("the error of a tool with a large schema has %d bytes", len(r.Text()))
	}
	if _, err := c.TryCall("search_tools", map[string]any{"query": strings.Repeat("x", 1<<20)}); err != nil {
		t.Errorf("a huge query is a protocol error: %v", err)
	}
}

// TestNoTools: a server without tools of its own.
func TestNoTools(t *testing.T) {
	s := newServer(nil)
	if err := toolsearch.Add(s, nil); err != nil {
		t.Fatal(err)
	}
	c := mcptest.New(t, s)
	if answer, _ := find(c, "anything"); answer != "There are no tools to search." {
		t.Errorf("the answer is %s", answer)
	}
	if got := namesOf(c); len(got) != 3 {
		t.Errorf("the list has %v", got)
	}
}

// TestChanges: clients search while tools come and go, with several sets of rights.
func TestChanges(t *testing.T) {
	s := notes(t, nil)
	for i := range 20 {
		s.MustAdd(mcp.Tool(fmt.Sprintf("secret_%d", i), fn, mcp.Doc("A secret."), mcp.VisibleTo(func(f *mcp.Frame) bool { return f.ClientInfo().Name == fmt.Sprint(i) })))
	}
	var clients sync.WaitGroup
	for i := range 20 {
		c := mcptest.New(t, s, mcptest.Info(protocol.Implementation{Name: fmt.Sprint(i), Version: "1"}))
		clients.Go(func() {
			for range 10 {
				r, err := c.TryCall("search_tools", map[string]string{"query": "a secret"})
				if err != nil || strings.Count(r.Text(), "secret_") != 1 || !strings.Contains(r.Text(), fmt.Sprintf(`"secret_%d"`, i)) {
					t.Errorf("client %d: %v, %v", i, err, r)
					return
				}
			}
		})
	}
	for i := range 20 {
		s.MustAdd(mcp.Tool(fmt.Sprintf("more_%d", i), fn, mcp.Doc("More.")))
		if i%2 == 0 {
			s.Remove(mcp.KindTool, fmt.Sprintf("more_%d", i))
		}
	}
	clients.Wait()
}

// TestLanguages: tools and queries in other languages than English.
func TestLanguages(t *testing.T) {
	for language, row := range map[string]struct {
		tools   []string // descriptions; their names say nothing
		queries map[string]int
		none    []string
	}{
		"Russian": {
			[]string{"Удалить файл из хранилища", "Создать новый заказ для клиента", "Показать список всех счетов", "Отправить письмо сотруднику"},
			map[string]int{"удали файлы": 0, "как создать заказ": 1, "список счетов": 2, "письма сотрудникам": 3, "УДАЛЕНИЕ ФАЙЛА": 0},
			[]string{"погода в Москве завтра", "билет на самолёт"},
		},
		"German": {
			[]string{"Löscht eine Datei aus dem Speicher", "Legt eine neue Bestellung für einen Kunden an", "Zeigt alle offenen Rechnungen", "Schickt eine Nachricht an Mitarbeiter"},
			map[string]int{"Dateien löschen": 0, "eine Bestellung anlegen": 1, "offene Rechnung zeigen": 2, "Nachrichten an einen Mitarbeiter": 3},
			[]string{"Wetter in Hamburg", "Flug nach Rom buchen"},
		},
		"Japanese": {
			[]string{"ファイルを削除します", "顧客の注文を作成します", "請求書の一覧を表示します", "メールを送信します"},
			map[string]int{"ファイルの削除": 0, "新しい注文を作成": 1, "請求書一覧": 2, "ﾒｰﾙを送る": 3},
			[]string{"明日の天気", "航空券を予約する"},
		},
		"Korean": {
			[]string{"파일을 삭제합니다", "고객의 주문을 생성합니다", "청구서 목록을 표시합니다", "메일을 보냅니다"},
			map[string]int{"파일 삭제": 0, "주문 생성": 1, "청구서 목록": 2, "메일을 보내기": 3},
			[]string{"내일 날씨", "비행기 예약"},
		},
	} {
		s := newServer(nil)
		for i, doc := range row.tools {
			s.MustAdd(mcp.Tool(fmt.Sprintf("t%d", i), fn, mcp.Doc(doc)))
		}
		if err := toolsearch.Add(s, nil); err != nil {
			t.Fatal(err)
		}
		c := mcptest.New(t, s)
		for query, want := range row.queries {
			if answer, names := find(c, query); len(names) == 0 || names[0] != fmt.Sprintf("t%d", want) {
				t.Errorf("%s: %q finds %s, want t%d", language, query, answer, want)
			}
		}
		for _, query := range row.none {
			if answer, _ := find(c, query); !strings.HasPrefix(answer, "No tool has the words: ") {
				t.Errorf("%s: %q finds %s", language, query, answer)
			}
		}
	}
}
