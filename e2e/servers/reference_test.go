package servers

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
)

// args are the arguments of a call.
type args = map[string]any

func TestFilesystem(t *testing.T) {
	server := npm(t, "server-filesystem")
	dir := realTempDir(t)
	u := newUser()
	transport := server.stdio(dir)
	opts := u.options()
	opts.Roots = nil // or the server would take them for the allowed directories
	opts.CheckArguments = true
	s := connectWith(t, transport, u, opts)
	in := func(name string) string { return filepath.Join(dir, name) }

	if got := s.toolNames(t); len(got) != 14 {
		t.Errorf("got %d tools, want 14: %q", len(got), got)
	}
	s.says(t, "list_allowed_directories", nil, dir)
	s.says(t, "write_file", args{"path": in("a.txt"), "content": "one\ntwo\nthree\n"}, "Successfully wrote")
	onDisk(t, in("a.txt"), "one\ntwo\nthree\n")
	equal(t, "file", s.checked(t, "read_text_file", args{"path": in("a.txt")}).Text(), "one\ntwo\nthree\n")
	equal(t, "head", s.checked(t, "read_text_file", args{"path": in("a.txt"), "head": 1}).Text(), "one")
	s.says(t, "edit_file", args{"path": in("a.txt"), "edits": []args{{"oldText": "two", "newText": "2"}}}, "-two", "+2")
	onDisk(t, in("a.txt"), "one\n2\nthree\n")
	s.says(t, "create_directory", args{"path": in("deep/er")}, "Successfully created")
	s.says(t, "move_file", args{"source": in("a.txt"), "destination": in("deep/b.txt")}, "Successfully moved")
	s.says(t, "list_directory", args{"path": dir}, "[DIR] deep")
	s.says(t, "list_directory_with_sizes", args{"path": in("deep"), "sortBy": "size"}, "[FILE] b.txt", "1 files, 1 directories")
	s.says(t, "search_files", args{"path": dir, "pattern": "**/*.txt"}, in("deep/b.txt"))
	s.says(t, "get_file_info", args{"path": in("deep/b.txt")}, "size: 12", "isFile: true")
	s.says(t, "read_multiple_files", args{"paths": []string{in("deep/b.txt"), in("gone")}}, "three", "gone: Error")

	var tree []struct {
		Name     string
		Children []struct{ Name, Type string }
	}
	if err := json.Unmarshal([]byte(s.checked(t, "directory_tree", args{"path": dir}).Text()), &tree); err != nil {
		t.Fatal(err)
	}
	if len(tree) != 1 || tree[0].Name != "deep" || len(tree[0].Children) != 2 {
		t.Errorf("got tree %+v", tree)
	}

	if err := os.WriteFile(in("pixel.gif"), []byte("GIF89a..."), 0o600); err != nil {
		t.Fatal(err)
	}
	image := item[protocol.ImageContent](t, s.checked(t, "read_media_file", args{"path": in("pixel.gif")}).Content, 0)
	equal(t, "image", image, protocol.ImageContent{MIMEType: "image/gif", Data: []byte("GIF89a...")})

	s.fails(t, "read_text_file", args{"path": "/etc/passwd"}, "outside allowed directories")
	s.fails(t, "read_text_file", args{"path": in("gone")}, "ENOENT")
	sent := s.Stats().Requests
	_, err := s.Call(within(t), "read_text_file", args{"path": 7})
	if err == nil || !strings.Contains(err.Error(), "path") || s.Stats().Requests != sent {
		t.Errorf("wrong arguments: got %v, %d requests more", err, s.Stats().Requests-sent)
	}
}

// TestFilesystemRoots lets the roots of the client say what the server may see.
func TestFilesystemRoots(t *testing.T) {
	server := npm(t, "server-filesystem")
	first, second := realTempDir(t), realTempDir(t)
	for _, dir := range []string{first, second} {
		if err := os.WriteFile(filepath.Join(dir, "f"), []byte("in "+dir), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	u := newUser()
	opts := u.options()
	opts.Roots = []protocol.Root{{URI: "file://" + first}}
	s := connectWith(t, server.stdio(), u, opts)
	s.mayRead(t, first)
	s.says(t, "read_text_file", args{"path": filepath.Join(first, "f")}, "in "+first)
	s.fails(t, "read_text_file", args{"path": filepath.Join(second, "f")}, "outside allowed directories")
	if err := s.SetRoots(within(t), append(s.Roots(), client.Root{URI: "file://" + second})); err != nil {
		t.Fatal(err)
	}
	s.mayRead(t, second)
	s.says(t, "read_text_file", args{"path": filepath.Join(second, "f")}, "in "+second)
}

// mayRead waits until the filesystem server has asked for the roots and got
// dir, which it does beside its other work.
func (s session) mayRead(t *testing.T, dir string) {
	t.Helper()
	ctx := within(t)
	for {
		if strings.Contains(s.call(t, "list_allowed_directories", nil).Text(), dir) {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("the server never got the root %s", dir)
		}
	}
}

// realTempDir returns a directory without symbolic links in its path.
func realTempDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func onDisk(t *testing.T, name, want string) {
	t.Helper()
	got, err := os.ReadFile(name)
	if err != nil || string(got) != want {
		t.Errorf("%s: got %q, %v, want %q", name, got, err, want)
	}
}

// graph is what the memory server keeps.
type graph struct {
	Entities  []entity   `json:"entities"`
	Relations []relation `json:"relations"`
}

type entity struct {
	Name         string   `json:"name"`
	EntityType   string   `json:"entityType"`
	Observations []string `json:"observations"`
}

type relation struct {
	From         string `json:"from"`
	To           string `json:"to"`
	RelationType string `json:"relationType"`
}

func TestMemory(t *testing.T) {
	const uri = "memory://knowledge-graph"
	server := npm(t, "server-memory").stdio()
	server.Env = []string{"MEMORY_FILE_PATH=" + filepath.Join(t.TempDir(), "memory.jsonl")}
	s := connect(t, server, newUser())
	if got := s.toolNames(t); len(got) != 9 {
		t.Errorf("got %d tools, want 9: %q", len(got), got)
	}
	equal(t, "resources", s.resourceURIs(t), []string{uri})
	s.subscribe(t, uri)
	want := graph{
		Entities:  []entity{{"Ada", "person", []string{"wrote a program"}}, {"Bob", "person", []string{}}},
		Relations: []relation{{"Ada", "Bob", "knows"}},
	}
	s.checked(t, "create_entities", args{"entities": want.Entities})
	s.user.hears(t, protocol.MethodResourceUpdated, uri)
	s.checked(t, "create_relations", args{"relations": want.Relations})
	s.user.hears(t, protocol.MethodResourceUpdated, uri)
	s.says(t, "add_observations", args{"observations": []args{{"entityName": "Bob", "contents": []string{"plays chess"}}}}, "plays chess")
	want.Entities[1].Observations = []string{"plays chess"}

	got, err := client.Call[graph](within(t), s, "read_graph", nil)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "graph", got, want)
	var read graph
	if err := json.Unmarshal([]byte(s.read(t, uri).Text), &read); err != nil {
		t.Fatal(err)
	}
	equal(t, "resource", read, want)
	s.says(t, "search_nodes", args{"query": "chess"}, "Bob")
	s.says(t, "open_nodes", args{"names": []string{"Ada"}}, "wrote a program")
	s.says(t, "delete_observations", args{"deletions": []args{{"entityName": "Bob", "observations": []string{"plays chess"}}}}, "deleted")
	s.says(t, "delete_relations", args{"relations": want.Relations}, "deleted")
	s.says(t, "delete_entities", args{"entityNames": []string{"Ada", "Bob"}}, "deleted")
	got, err = client.Call[graph](within(t), s, "read_graph", nil)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "empty graph", got, graph{[]entity{}, []relation{}})

	s.fails(t, "add_observations", args{"observations": []args{{"entityName": "Eve", "contents": []string{"x"}}}}, "Eve")
	_, err = s.GetPrompt(within(t), "any", nil)
	if !errors.Is(err, client.ErrUnsupported) && !s.behind(t, "it has prompts at any time") {
		t.Errorf("a prompt of a server that has none: got %v, want ErrUnsupported", err)
	}
}

func TestSequentialThinking(t *testing.T) {
	server := npm(t, "server-sequential-thinking").stdio()
	server.Env = []string{"DISABLE_THOUGHT_LOGGING=true"}
	s := connect(t, server, newUser())
	equal(t, "tools", s.toolNames(t), []string{"sequentialthinking"})
	type step struct {
		ThoughtNumber        int      `json:"thoughtNumber"`
		TotalThoughts        int      `json:"totalThoughts"`
		NextThoughtNeeded    bool     `json:"nextThoughtNeeded"`
		Branches             []string `json:"branches"`
		ThoughtHistoryLength int      `json:"thoughtHistoryLength"`
	}
	think := func(in args, want step) {
		t.Helper()
		got, err := client.Call[step](within(t), s, "sequentialthinking", in)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "step", got, want)
	}
	think(args{"thought": "First", "thoughtNumber": 1, "totalThoughts": 2, "nextThoughtNeeded": true}, step{1, 2, true, []string{}, 1})
	think(args{"thought": "Or else", "thoughtNumber": 2, "totalThoughts": 2, "nextThoughtNeeded": false,
		"branchFromThought": 1, "branchId": "b"}, step{2, 2, false, []string{"b"}, 2})
	s.fails(t, "sequentialthinking", args{"thought": "No number"}, "thoughtNumber")
}
