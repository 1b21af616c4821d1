package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
)

// TestInspectBrowser: from the command line to what the page asks, with servers
// that start and such as do not.
func TestInspectBrowser(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ target, want string }{
		{quoted(stdioExample(t, t.TempDir())), `"state":"ready"`},
		{quoted([]string{example, "-stdio", "-nonsense"}), `flag provided but not defined: -nonsense`},
		{"/no/such/command", `a command in quotes`},
		{"http://127.0.0.1:1/mcp", `nothing listens there`},
	} {
		api, end := browsed(t, c.target)
		state := settled(api, "/api/state")
		if !strings.Contains(state, c.want) {
			t.Errorf("%s: %s", c.target, state)
		}
		for strings.Contains(c.want, "ready") && !strings.Contains(api("GET", "/api/state", ""), `"name":"calculate"`) {
		}
		if got, out := end(); got != exitOK || out != "" {
			t.Errorf("%s: %d, %q", c.target, got, out)
		}
	}
	for _, args := range []string{"inspect x --no-open", "inspect x -b --json", "inspect x --origin https://a.example", "inspect --file x", "inspect -b --file /no/such/file", "inspect x -b --file x", "inspect -b", "inspect true -b --no-open --origin nonsense"} {
		if r := talaria(t, "", strings.Fields(args)...); r.code != exitUsage {
			t.Errorf("%s: %+v", args, r)
		}
	}
}

// browsed runs inspect -b with further arguments, and returns what asks its API, and
// what ends it and returns its exit code and what it has printed.
func browsed(t *testing.T, args ...string) (api func(method, path, body string) string, end func() (int, string)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var stdout, stderr syncBuffer
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, append([]string{"inspect", "-b", "--no-open"}, args...), &console.Console{In: strings.NewReader(""), Out: &stdout, Err: &stderr})
	}()
	page, key, _ := strings.Cut(stderr.wait(t, `http://127.0.0.1:\d+/#k=\w+`), "/#k=")
	api = func(method, path, body string) string { return askPage(t, page, key, method, path, body) }
	key = strings.Split(api("POST", "/api/key", `{"code":"`+key+`"}`)+`"""`, `"`)[3]
	return api, func() (int, string) {
		cancel()
		return <-code, stdout.String()
	}
}

// askPage makes a request as the page does, and returns the answer's text.
func askPage(t *testing.T, page, key, method, path, body string) string {
	t.Helper()
	r, err := http.NewRequest(method, page+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// settled is the state of a server when it is no longer being connected to.
func settled(api func(method, path, body string) string, path string) string {
	state := api("GET", path, "")
	for strings.Contains(state, `"state":"connecting"`) {
		state = api("GET", path, "")
	}
	return state
}

// TestInspectServers: all servers of a file, each with its own environment.
func TestInspectServers(t *testing.T) {
	t.Parallel()
	list := stdioExample(t, t.TempDir())
	words, err := json.Marshal(list[1:])
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "mcp.json")
	text := fmt.Sprintf(`{"inputs":[{"id":"sum","type":"promptString","default":"9"}],"servers":{
		"bench":{"command":%q,"args":%s},
		"off":{"command":"x","disabled":true},
		"gone":{"command":"/no/such/command","args":["${input:sum}"]},
		"asks":{"command":"x","args":["${input:none}"]}}}`, list[0], words)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	api, end := browsed(t, "--config", name)
	if got := api("GET", "/api/state", ""); strings.Count(got, `"state":"not opened"`) != 2 || strings.Contains(got, `"off"`) {
		t.Error(got)
	}
	for path, want := range map[string]string{"/api/state": `"state":"ready"`, "/api/1/state": "/no/such/command", "/api/2/state": "no input"} {
		if state := settled(api, path); !strings.Contains(state, want) {
			t.Errorf("%s: %s", path, state)
		}
	}
	if code, out := end(); code != exitOK || out != "" {
		t.Errorf("%d %q", code, out)
	}
	one, end := browsed(t, "--config", name, "bench")
	if got := one("GET", "/api/state", ""); !strings.Contains(got, `"target":"bench"`) || strings.Contains(got, `"servers"`) {
		t.Error(got)
	}
	end()
	for _, args := range [][]string{{"--config", name, "--token", "x"}, {"--config", name, "--env", "A=b"}, {"--config", name, "none"}, {"--config", name + "x"}} {
		if r := talaria(t, "", append([]string{"inspect", "-b", "--no-open"}, args...)...); r.code != exitUsage {
			t.Errorf("%s: %+v", args, r)
		}
	}
}

// TestVerdictOfLint: the Check tab of the inspector has the findings of lint, member by
// member.
func TestVerdictOfLint(t *testing.T) {
	t.Parallel()
	odd := mcp.NewServer(mcp.Info{Name: "odd", Version: "1"}, &mcp.Options{Instructions: strings.Repeat("long ", 600)})
	for _, name := range []string{"notes.find", "notes_find", "plain"} {
		odd.MustAdd(mcp.Tool(name, func(context.Context, struct {
			Many map[string]int `json:"many" jsonschema_description:"what there is"`
			At   string         `json:"at" jsonschema:"format=uri-reference"`
		}) (string, error) {
			return "", nil
		}))
	}
	web := httptest.NewServer(odd.Handler())
	t.Cleanup(web.Close)
	for _, target := range []string{quoted(stdioExample(t, t.TempDir())), web.URL} {
		api, end := browsed(t, target)
		for !strings.Contains(settled(api, "/api/state"), `"tool":{"entries"`) {
		}
		for _, as := range []string{"", strings.Repeat("x", 60)} {
			var want []map[string]any
			if r := talaria(t, "", "lint", target, "--json", "--notes", "--as", as); json.Unmarshal([]byte(r.stdout), &want) != nil {
				t.Fatalf("%+v", r)
			}
			var got struct{ Findings []map[string]any }
			if text := api("GET", "/api/verdict?as="+as, ""); json.Unmarshal([]byte(text), &got) != nil {
				t.Fatal(text)
			}
			for _, f := range got.Findings {
				delete(f, "name") // by which the page opens it
			}
			if !reflect.DeepEqual(got.Findings, want) || as != "" && len(want) == 0 {
				t.Errorf("%s as %q: the page has\n%v\nand lint\n%v", target, as, got.Findings, want)
			}
		}
		end()
	}
}
