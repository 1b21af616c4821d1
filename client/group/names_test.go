package group_test

import (
	"bytes"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/client/group"
	"github.com/talaria-go/mcp/internal/test/backendtest"
)

// logText keeps what is logged; the zero value is empty.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// A full name belongs to the longest name of a server that it begins with,
// whichever was added first and whether it can be reached or not. What another
// server has under such a name is left out of lists, and logged once.
func TestGroupOwners(t *testing.T) {
	for _, order := range [][]string{{"git", "git_hub", "git.x"}, {"git.x", "git_hub", "git"}} {
		for _, separator := range []string{"", "_", "."} {
			var log logText
			logger := zerolog.New(&log)
			g := newGroup(t, &group.Options{Separator: separator, Client: &client.Options{Logger: &logger}})
			sep := separator
			if sep == "" {
				sep = "_"
			}
			servers := map[string]*backendtest.Backend{}
			for _, name := range order {
				servers[name] = backendtest.New(t, name, nil)
				if err := g.Add(name, servers[name].Transport(), nil); err != nil {
					t.Fatal(err)
				}
			}
			text := func(*mcp.Frame, struct{}) (string, error) { return "of git", nil }
			servers["git"].Server.MustAdd(mcp.Tool("hub", text), mcp.Tool("hub_echo", func(*mcp.Frame, backendtest.EchoIn) (string, error) { return "of git", nil }), mcp.Tool("x.echo", text),
				mcp.Prompt("hub_greet", func(*mcp.Frame, struct{}) (*mcp.Messages, error) { return mcp.NewMessages(), nil }),
				mcp.Bytes("x.notes://1", []byte("of git")), mcp.Template("x.notes://{id}", func(*mcp.Frame, struct {
					ID string `json:"id"`
				}) (string, error) {
					return "of git", nil
				}))
			if err := g.Warm(t.Context()); err != nil {
				t.Fatal(err)
			}
			lists := func() string {
				var all []string
				for tool, err := range g.Tools(t.Context()) {
					all = append(all, fmt.Sprint(tool.Name, err))
				}
				for prompt, err := range g.Prompts(t.Context()) {
					all = append(all, fmt.Sprint(prompt.Name, err))
				}
				for resource, err := range g.Resources(t.Context()) {
					all = append(all, fmt.Sprint(resource.URI, err))
				}
				for template, err := range g.Templates(t.Context()) {
					all = append(all, fmt.Sprint(template.URITemplate, err))
				}
				slices.Sort(all)
				return strings.ReplaceAll(strings.Join(all, " "), "<nil>", "")
			}
			var want []string
			for _, name := range order {
				uri := strings.ReplaceAll(name, "_", "+5f") + "."
				want = append(want, name+sep+"echo", name+sep+"sum", name+sep+"greet", uri+"notes://1", uri+"notes://{id}/text")
			}
			want = append(want, "git"+sep+"hub")
			if sep == "." { // then git_hub has nothing that git could have, and "git.x" begins with "git" and the separator
				want = append(want, "git.hub_echo", "git.hub_greet")
			} else {
				want = append(want, "git_x.echo")
			}
			slices.Sort(want)
			if got := lists(); got != strings.Join(want, " ") {
				t.Errorf("%v %q:\ngot  %s\nwant %s", order, sep, got, strings.Join(want, " "))
			}
			lists()
			for name, n := range map[string]int{"git_hub_echo": 1, "git_hub_greet": 1, "git.x.notes://1": 1, "git.x.notes://{id}": 1, "git.x.echo": 0} {
				if sep == "." {
					n = map[string]int{"git.x.echo": 1, "git.x.notes://1": 1, "git.x.notes://{id}": 1}[name]
				}
				if got := strings.Count(log.String(), fmt.Sprintf(`"name":%q`, name)); got != n {
					t.Errorf("%v %q: %s is logged %d times, want %d: %s", order, sep, name, got, n, log.String())
				}
			}
			if sep != "_" {
				continue
			}
			backendtest.Echo(t, g, "git_hub_echo", "x", "git_hub x")
			if err := g.Remove("git_hub"); err != nil {
				t.Fatal(err)
			}
			backendtest.Echo(t, g, "git_hub_echo", "x", "of git")
		}
	}
}

// The URIs of a group are URIs whatever its servers are called, no two servers
// have the same, and each can be read.
func TestGroupURIs(t *testing.T) {
	g := newGroup(t, nil)
	n := 0
	for _, name := range []string{"git", "git_hub", "git-hub", "1st", "x1st", "x+1st", "_1", "x_1", "a b", "köln", "Git", "a/b", "a:b", "%41", "."} {
		b := backendtest.New(t, name, nil)
		b.Server.MustAdd(mcp.Bytes("file:///x", []byte("x of "+name)))
		n++
		if err := g.Add(name, b.Transport(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Warm(t.Context()); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for resource, err := range g.Resources(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if u, err := url.Parse(resource.URI); err != nil || u.Scheme == "" || !strings.HasSuffix(u.Scheme, ".notes") && !strings.HasSuffix(u.Scheme, ".file") {
			t.Errorf("%s: %v", resource.URI, err)
		}
		if seen[resource.URI] {
			t.Errorf("%s is there twice", resource.URI)
		}
		seen[resource.URI] = true
		read, err := g.Read(t.Context(), resource.URI)
		if err != nil || read.Contents[0].URI != resource.URI || resource.Name == "" {
			t.Errorf("%s: got %+v, %v", resource.URI, read, err)
		} else if text := read.Contents[0].Text; seen[text] {
			t.Errorf("%s is %s, as is another one", resource.URI, text)
		} else {
			seen[text] = true
		}
	}
	if len(seen) != 2*2*n {
		t.Errorf("%d of %d resources are listed, each with a text of its own", len(seen)/2, 2*n)
	}
}
