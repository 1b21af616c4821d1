package programs_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/auth/authtest"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/internal/test/testexec"
)

// binaries are the programs, built for a test.
type binaries struct {
	dir      string // where they are
	notes    string // the address that the program of that name listens on
	issuer   *authtest.Server
	forecast string // what the program of that name has to print
}

// build builds the programs. What they name on the network is replaced by what the
// test has on this machine.
func build(t *testing.T) *binaries {
	t.Helper()
	tool := testdep.LookPath(t, "go")
	b := &binaries{dir: t.TempDir(), notes: testexec.FreeAddr(t), forecast: "7.5\n"}
	issuer, err := authtest.Start(&authtest.Options{
		Resource: "https://notes.example.com/mcp", Scopes: []authtest.Scope{{Name: "notes:read"}, {Name: "notes:write"}, {Name: "notes:admin"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = issuer.Close() }) // its clients are gone
	b.issuer = issuer

	s := mcp.NewServer(mcp.Info{Name: "weather", Version: "1.0.0"}, nil)
	s.MustAdd(mcp.Tool("forecast", func(_ context.Context, in struct {
		City string `json:"city" validate:"oneof=Oslo"`
	}) (map[string]float64, error) {
		return map[string]float64{"celsius": 7.5}, nil
	}))
	web := httptest.NewServer(s.Handler())
	t.Cleanup(web.Close)

	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for name, words := range map[string][]string{
		"notes":    {"127.0.0.1:8080", b.notes, "https://auth.example.com", issuer.Issuer()},
		"forecast": {"http://127.0.0.1:8080/mcp", web.URL},
	} {
		path, err := filepath.Abs(filepath.Join(name, "main.go"))
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		replaced := strings.NewReplacer(words...).Replace(string(text))
		for i := 0; i < len(words); i += 2 {
			if !strings.Contains(string(text), words[i]) {
				t.Fatalf("%s does not name %s", path, words[i])
			}
		}
		overlay.Replace[path] = filepath.Join(b.dir, name+".go")
		if err := os.WriteFile(overlay.Replace[path], []byte(replaced), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(b.dir, "overlay.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), tool, "build", "-overlay", file, "-o", b.dir+string(os.PathSeparator), "./...").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return b
}

// path returns the path of a program.
func (b *binaries) path(name string) string {
	found, _ := filepath.Glob(filepath.Join(b.dir, name+"*")) // with .exe, on some systems
	for _, path := range found {
		if ext := filepath.Ext(path); ext == "" || ext == ".exe" {
			return path
		}
	}
	return filepath.Join(b.dir, name)
}

// connect connects to a program that serves standard input and output.
func (b *binaries) connect(t *testing.T, name string, opts *client.Options) *client.Client {
	t.Helper()
	return connect(t, client.Command(b.path(name)), opts)
}

func connect(t *testing.T, to client.Transport, opts *client.Options) *client.Client {
	t.Helper()
	c, err := client.Connect(t.Context(), to, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// runs use each program once, as its user would.
var runs = map[string]func(t *testing.T, b *binaries){
	"hello": func(t *testing.T, b *binaries) {
		got, err := client.Call[string](t.Context(), b.connect(t, "hello", nil), "hello", map[string]string{"name": "Ada"})
		if err != nil || got != "Hello, Ada!" {
			t.Errorf("got %q, %v", got, err)
		}
	},
	"order": func(t *testing.T, b *binaries) {
		type placed struct {
			ID    string
			Items int
		}
		got, err := client.Call[placed](t.Context(), b.connect(t, "order", nil), "order", map[string]any{
			"items": []any{map[string]any{"sku": "12345678"}}, "email": "ada@example.com", "delivery": "2030-03-01",
		})
		if err != nil || got != (placed{"normal-1h0m0s", 1}) {
			t.Errorf("got %+v, %v", got, err)
		}
	},
	"chart": func(t *testing.T, b *binaries) {
		got, err := b.connect(t, "chart", nil).Call(t.Context(), "chart", map[string]any{"values": []int{1, 2, 3}})
		if err != nil {
			t.Fatal(err)
		}
		var stats struct{ Count int }
		if image, ok := got.Image(); !ok || image.MIMEType != "image/png" || got.Decode(&stats) != nil || stats.Count != 3 {
			t.Errorf("got %+v", got)
		}
	},
	"config": func(t *testing.T, b *binaries) {
		c := b.connect(t, "config", nil)
		for uri, want := range map[string]string{"config://app": `{"debug":true}`, "users://7?lang=de": `{"id":7,"lang":"de"}`} {
			if got, err := c.Read(t.Context(), uri); err != nil || len(got.Contents) != 1 || got.Contents[0].Text != want {
				t.Errorf("%s: got %+v, %v", uri, got, err)
			}
		}
	},
	"review": func(t *testing.T, b *binaries) {
		got, err := b.connect(t, "review", nil).GetPrompt(t.Context(), "review", map[string]string{"lang": "go", "code": "x := 1"})
		if err != nil || len(got.Messages) != 2 {
			t.Errorf("got %+v, %v", got, err)
		}
	},
	"remove": func(t *testing.T, b *binaries) {
		asked := ""
		c := b.connect(t, "remove", &client.Options{Elicit: func(_ context.Context, q *client.ElicitParams) (*client.ElicitResult, error) {
			asked = q.Message
			return client.Accept(map[string]bool{"sure": true})
		}})
		got, err := client.Call[string](t.Context(), c, "remove", map[string]string{"name": "a.txt"})
		if err != nil || got != "deleted a.txt" || asked != "Delete a.txt?" {
			t.Errorf("got %q after %q, %v", got, asked, err)
		}
	},
	"importing": func(t *testing.T, b *binaries) {
		last := 0.0
		got, err := client.Call[string](t.Context(), b.connect(t, "importing", nil), "import", map[string]int{"rows": 3},
			client.OnProgress(func(p client.Progress) { last = p.Progress }))
		if err != nil || got != "3 rows" || last != 3 {
			t.Errorf("got %q after %v, %v", got, last, err)
		}
	},
	"notes": func(t *testing.T, b *binaries) {
		testexec.Start(t, b.path("notes"), b.notes)
		for _, tt := range []struct {
			scopes []string
			tools  int
		}{{[]string{"notes:read", "notes:write"}, 1}, {[]string{"notes:read", "notes:write", "notes:admin"}, 2}} {
			token, err := b.issuer.Token("alice", tt.scopes...)
			if err != nil {
				t.Fatal(err)
			}
			c := connect(t, client.HTTP("http://"+b.notes+"/mcp", &client.HTTPOptions{Header: http.Header{"Authorization": {"Bearer " + token}}}), nil)
			if got, err := client.Call[string](t.Context(), c, "add_note", map[string]string{"text": "milk"}); err != nil || got != "kept for alice" {
				t.Errorf("got %q, %v", got, err)
			}
			tools := 0
			for _, err := range c.Tools(t.Context()) {
				if tools++; err != nil {
					t.Fatal(err)
				}
			}
			if tools != tt.tools {
				t.Errorf("%q: %d tools, want %d", tt.scopes, tools, tt.tools)
			}
		}
	},
	"forecast": func(t *testing.T, b *binaries) {
		if out, err := exec.CommandContext(t.Context(), b.path("forecast")).CombinedOutput(); err != nil || string(out) != b.forecast {
			t.Errorf("got %q, %v", out, err)
		}
	},
	"tested": func(t *testing.T, _ *binaries) {
		out, err := exec.CommandContext(t.Context(), testdep.LookPath(t, "go"), "test", "-count=1", "-v", "./tested").CombinedOutput()
		if err != nil || strings.Count(string(out), "--- PASS: TestServer/") < 5 {
			t.Errorf("%v\n%s", err, out)
		}
	},
}
