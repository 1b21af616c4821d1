package gateway

import (
	"slices"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
)

// own gives each client of a legacy upstream a connection of its own by what it calls
// itself, as these have neither sessions nor principals.
func own(s *mcp.Server) func(f *mcp.Frame) (string, client.Transport, error) {
	return func(f *mcp.Frame) (string, client.Transport, error) { return f.ClientInfo().Name, local(s), nil }
}

// TestPasses calls everything that an upstream has, in all pairs of eras.
func TestPasses(t *testing.T) {
	for back, behind := range eras {
		for _, front := range []protocol.Revision{protocol.V20241105, protocol.V20250326, protocol.V20250618, protocol.V20251125, protocol.V20260728} {
			t.Run(back+"/"+front.String(), func(t *testing.T) {
				ups := map[string]Upstream{}
				for _, name := range []string{"one", "two"} {
					up := greeter(t, name, behind)
					ups[name] = Upstream{Transport: local(up), For: own(up)}
				}
				_, s := start(t, ups)
				c := connect(t, s, front, &client.Options{Info: client.Info{Name: "ada", Version: "1"}, Elicit: answers})
				want := []string{"one_echo", "one_fails", "one_greet", "one_steps", "two_echo", "two_fails", "two_greet", "two_steps"}
				if got := toolNames(t, c); !slices.Equal(got, want) {
					t.Errorf("got tools %q, want %q", got, want)
				}
				asks := front >= protocol.V20250618
				for _, name := range []string{"one", "two"} {
					for range 2 {
						got := text(c.Call(t.Context(), name+"_greet", greetIn{"Ada"}))
						want := name + " greets Ada: yes to " + name + ": Greet Ada?, yes to " + name + ": Really greet Ada?"
						if asks && got != want {
							t.Errorf("got %q, want %q", got, want)
						}
						if !asks && !strings.Contains(got, "elicitation") {
							t.Errorf("a client that cannot be asked got %q", got)
						}
					}
					r, err := c.Call(t.Context(), name+"_echo", greetIn{"Ada"})
					var out greetIn
					if err != nil || r.Decode(&out) != nil || out.Who != "Ada" {
						t.Errorf("echo: %v %v", text(r, err), out)
					}
					steps := 0
					r, err = c.Call(t.Context(), name+"_steps", greetIn{"Ada"}, client.OnProgress(func(client.Progress) { steps++ }))
					if got := text(r, err); got != "done" || steps != 3 {
						t.Errorf("steps: %q, progress %d times", got, steps)
					}
					r, err = c.Call(t.Context(), name+"_fails", greetIn{"Ada"})
					if err != nil || !r.IsError || r.Text() != "no luck" {
						t.Errorf("fails: %v %v", r, err)
					}
					if asks {
						p, err := c.GetPrompt(t.Context(), name+"_letter", map[string]string{"who": "Ada"})
						if err != nil || !strings.HasPrefix(p.Messages[0].Content.(protocol.TextContent).Text, name+" greets Ada: yes to "+name+": Greet") {
							t.Errorf("prompt: %v %v", p, err)
						}
						note, err := c.Read(t.Context(), "note://"+name+"/asked")
						if err != nil || !strings.HasPrefix(note.Contents[0].Text, name+" greets asked: yes to "+name+": Greet") {
							t.Errorf("resource: %v %v", note, err)
						}
					}
					found, err := c.Complete(t.Context(), client.Completion{Prompt: name + "_letter", Argument: "who", Value: "A"})
					if err != nil || !slices.Equal(found.Values, []string{"Ada"}) {
						t.Errorf("complete: %v %v", found, err)
					}
					for uri, want := range map[string]string{"note://" + name: "note of " + name, "note://" + name + "/Ada": "note to Ada"} {
						r, err := c.Read(t.Context(), uri)
						if err != nil || r.Contents[0].Text != want || r.Contents[0].URI != uri {
							t.Errorf("%s: %v %v", uri, r, err)
						}
					}
				}
				if got := text(c.Call(t.Context(), "one_nothing", nil)); !strings.Contains(got, "Unknown tool") {
					t.Errorf("a tool that is not there: %q", got)
				}
			})
		}
	}
}
