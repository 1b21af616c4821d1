package shell

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/editor"
	"github.com/talaria-go/mcp/cmd/talaria/internal/render"
	"github.com/talaria-go/mcp/cmd/talaria/internal/terminal"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

type searchIn struct {
	Text string   `json:"text"`
	Sort string   `json:"sort,omitempty" validate:"oneof=newest oldest"`
	Tags []string `json:"tags,omitempty"`
	All  bool     `json:"all,omitempty"`
}

type greetIn struct {
	Style string `json:"style"`
	Name  string `json:"name,omitempty"`
}

func fixture() *mcp.Server {
	s := mcp.NewServer(mcp.Info{Name: "fixture", Version: "1"}, nil)
	s.MustAdd(
		mcp.Tool("search", func(*mcp.Frame, searchIn) (string, error) { return "found", nil }),
		mcp.Tool("send", func(*mcp.Frame, struct{}) (string, error) { return "sent", nil }),
		mcp.Tool("fail", func(*mcp.Frame, struct{}) (string, error) { return "", errors.New("no luck") }),
		mcp.Prompt("greet", func(_ *mcp.Frame, in greetIn) (string, error) { return in.Style + " " + in.Name, nil },
			mcp.CompleteFrom("style", "kind", "very kind", "rude")),
		mcp.Resource("note://1", func(*mcp.Frame) (string, error) { return "first", nil }),
		mcp.Resource("note://it's", func(*mcp.Frame) (string, error) { return "second", nil }),
	)
	return s
}

// open returns a shell that is connected to a server, and what it writes.
func open(t *testing.T, server *mcp.Server, script string) (*Shell, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	c := &console.Console{In: strings.NewReader(script), Out: &out, Err: &out}
	ed := editor.New(c, "")
	d := terminal.New(terminal.Options{Console: c, Editor: ed})
	s := New(Options{Console: c, Editor: ed, Terminal: d, Render: &render.Renderer{Console: c, Dir: t.TempDir()},
		Explain: func(err error) (string, string) { return err.Error(), "" }})
	var serving sync.WaitGroup
	s.Connect = func(ctx context.Context) (*client.Client, error) {
		o := &client.Options{Roots: []protocol.Root{}}
		d.Configure(o)
		o.OnNotification = s.Told
		return client.Connect(ctx, client.Conn(func(context.Context) (transport.Conn, error) {
			a, b := transport.Pipe()
			serving.Go(func() { _ = server.ServeConn(context.Background(), a) })
			return b, nil
		}), o)
	}
	t.Cleanup(func() {
		s.disconnect()
		serving.Wait()
	})
	return s, &out
}

func TestComplete(t *testing.T) {
	s, _ := open(t, fixture(), "")
	if err := s.connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		line, head string
		want       []string
	}{
		{"pi", "", []string{"ping "}},
		{"list_", "", []string{"list_tools ", "list_prompts ", "list_resources "}},
		{"zzz", "", nil},
		{"ping ", "ping ", nil},
		{"help call", "help ", []string{"call_tool "}},
		{"call_tool s", "call_tool ", []string{"search ", "send "}},
		{"call s", "call ", []string{"search ", "send "}},
		{"call_tool search ", "call_tool search ", []string{"text=", "sort=", "tags=", "all=", "--json "}},
		{"call_tool search text=x s", "call_tool search text=x ", []string{"sort="}},
		{"call_tool search text=x te", "call_tool search text=x ", nil},
		{"call_tool search tags=a ta", "call_tool search tags=a ", []string{"tags="}},
		{"call_tool search sort=", "call_tool search ", []string{"sort=newest ", "sort=oldest "}},
		{"call_tool search sort=o", "call_tool search ", []string{"sort=oldest "}},
		{"call_tool search all=t", "call_tool search ", []string{"all=true "}},
		{"call_tool nothing x", "call_tool nothing ", nil},
		{"get_prompt ", "get_prompt ", []string{"greet "}},
		{"get_prompt greet st", "get_prompt greet ", []string{"style="}},
		{"get_prompt greet style=k", "get_prompt greet ", []string{"style=kind "}},
		{"get_prompt greet style=ve", "get_prompt greet ", []string{"'style=very kind' "}},
		{"read_resource note", "read_resource ", []string{"note://1 ", `'note://it'\''s' `}},
		{"read_resource 'note://it", "read_resource ", []string{`'note://it'\''s' `}},
		{"complete greet na", "complete greet ", []string{"name "}},
		{"set_level e", "set_level ", []string{"error ", "emergency "}},
		{"roots r", "roots ", []string{"remove "}},
	} {
		head, got := s.commands.complete(test.line)
		if head != test.head || !slices.Equal(got, test.want) {
			t.Errorf("%q: got %q %q, want %q %q", test.line, head, got, test.head, test.want)
		}
	}
}

// A list that has changed is asked for again.
func TestCompleteAfterChange(t *testing.T) {
	server := fixture()
	s, _ := open(t, server, "")
	if err := s.connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.lists.toolNames(); len(got) != 3 {
		t.Fatalf("got %v", got)
	}
	server.Remove(mcp.KindTool, "send")
	s.Told(client.Notification{Method: protocol.MethodToolsChanged})
	if _, got := s.commands.complete("call_tool se"); !slices.Equal(got, []string{"search "}) {
		t.Errorf("got %v", got)
	}
}

// A change of the event types is shown, as those of other lists are.
func TestEventTypes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := fixture()
		event := func(name string) {
			server.MustAdd(mcp.EventType(name, func(*mcp.Frame, struct{}, map[string]any) (bool, error) { return true, nil }))
		}
		event("note.saved")
		s, out := open(t, server, "")
		if err := s.connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		event("note.lost")
		time.Sleep(time.Second)
		s.disconnect()
		synctest.Wait()
		if !strings.Contains(out.String(), "[the list of event types has changed]") {
			t.Errorf("got %s", out)
		}
	})
}

func TestRun(t *testing.T) {
	for _, test := range []struct {
		script string
		want   string // in the output
		failed bool
	}{
		{"send", "usage: call_tool send [NAME", true},
		{"sendd", `unknown command "sendd"`, true},
		{"pong", "did you mean ping?", true},
		{"call_tool send", "sent", false},
		{"call_tool send --json", `"text": "sent"`, false},
		{"call_tool", "tool is missing", true},
		{"call_tool sedn", "did you mean send?", true},
		{"call_tool fail", "no luck", true},
		{"call_tool search", "text: is required", true},
		{`call_tool search {"text": "it's"}`, "found", false},
		{`call_tool search {"text": "x"} --json`, `"text": "found"`, false},
		{`call_tool search {"text": }`, "invalid JSON", true},
		{"call_tool search @/no/such/file", "file not found", true},
		{"call_tool search txt=1", "did you mean text?", true},
		{"call_tool search text=x sort=up", "newest | oldest", true},
		{"call_tool search text='x", "a quote is not closed", true},
		{"list_tools", "found 3 tools", false},
		{"list_tools search", "newest | oldest", false},
		{"list_tools nothing", "has no tool", true},
		{"list_prompts", "found 1 prompt\n", false},
		{"list_prompts greet", `unexpected argument "greet"`, true},
		{"get_prompt greet style=kind name='two words'", "kind two words", false},
		{"get_prompt greet", "style: is required", true},
		{"get_prompt nothing", "nothing", true},
		{"list_resources", "note://it's", false},
		{"templates", "no resource templates", false},
		{"read_resource note://1", "first", false},
		{`read_resource "note://it's"`, "second", false},
		{"read_resource note://9", "not found", true},
		{"read_resource a b", `unexpected argument "b"`, true},
		{"complete greet style very", "very kind", false},
		{"complete greet", "what is to be completed?", true},
		{"complete greet style k name", "is not NAME=value", true},
		{"subscribe note://1\nunsubscribe note://1", "unsubscribed from note://1", false},
		{"unsubscribe note://1", "there is no subscription", true},
		{"set_level", "is no level", true},
		{"set_level error", "level error and worse", false},
		{"roots add .\nroots", "file://", false},
		{"roots sing", "not understood", true},
		{"request ping", "not supported", true}, // revision 2026-07-28 has no ping
		{`request tools/call {"name": "send", "arguments": {}}`, `"text": "sent"`, false},
		{"request", "METHOD is missing", true},
		{"notify notifications/x a=1", "", false},
		{"show_state", "2026-07-28", false},
		{"show_state -v", "messages that are none", false},
		{"show_state -x", "unexpected argument", true},
		{"timeout 5s", "within 5s", false},
		{"timeout 0", "no limit", false},
		{"timeout soon", "is no duration", true},
		{"help", "what it does", false},
		{"help call", "name:=JSON", false},
		{"help nothing", "unknown command", true},
		{"initialize\nping", "pong", false},
		{"history\nclear\n\n   \n# nothing", "connected", false},
		{"pong\nexit\nping", "did you mean", true},
	} {
		s, out := open(t, fixture(), test.script+"\n")
		err := s.Run(t.Context())
		if !strings.Contains(strings.ToLower(out.String()), strings.ToLower(test.want)) || (err != nil) != test.failed {
			t.Errorf("%q: got %v and\n%s\nwant %q", test.script, err, out.String(), test.want)
		}
	}
}

// Every command has a help, and none is found under two names.
func TestCommands(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range New(Options{}).commands {
		for _, name := range append([]string{c.name}, c.aliases...) {
			if seen[name] {
				t.Errorf("%s is there twice", name)
			}
			seen[name] = true
		}
		if c.short == "" || !strings.HasPrefix(c.usage, c.name) {
			t.Errorf("%s lacks a help", c.name)
		}
	}
}

// A notice shows the end of what a server wrote, which says why it ended.
func TestBrief(t *testing.T) {
	for text, want := range map[string]string{
		"":                 "",
		"a\nb\nc\nd":       "a\nb\nc\nd",
		"a\nb\nc\nd\ne\nf": "a\n       …\nd\ne\nf",
	} {
		if got := brief(text); got != want {
			t.Errorf("brief(%q) is %q, want %q", text, got, want)
		}
	}
}
