package mcp_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/auth"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/spectest"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/middleware"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
)

var goBlock = regexp.MustCompile("(?s)```go\n(.*?)```\n")

// Every piece of Go in the README must stand in this file as it is there, so
// that it compiles. Whole programs are built by a test of cmd/example.
func TestReadmeCompiles(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	here, err := os.ReadFile("readme_test.go")
	if err != nil {
		t.Fatal(err)
	}
	blocks := goBlock.FindAllStringSubmatch(strings.ReplaceAll(string(readme), "\r\n", "\n"), -1)
	if len(blocks) < 6 {
		t.Errorf("found %d blocks only", len(blocks))
	}
	for _, block := range blocks {
		if strings.HasPrefix(block[1], "package main\n") {
			continue
		}
		if !standsIn(strings.ReplaceAll(string(here), "\r\n", "\n"), block[1]) {
			t.Errorf("the README has a block that is not in readme_test.go as it is there:\n%s", block[1])
		}
	}
}

// standsIn reports whether code is in text, indented by up to two tabs.
func standsIn(text, code string) bool {
	for _, indent := range []string{"", "\t", "\t\t"} {
		var indented strings.Builder
		for line := range strings.Lines(code) {
			if line != "\n" {
				indented.WriteString(indent)
			}
			indented.WriteString(line)
		}
		if strings.Contains(text, "\n"+indented.String()) {
			return true
		}
	}
	return false
}

// The pieces work, too.
func TestReadmeRuns(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	weather := mcp.NewServer(mcp.Info{Name: "weather", Version: "1"}, nil)
	weather.MustAdd(mcp.Tool("forecast", refund))

	s := readmeSessions()
	readmeOffers(s, root)
	readmeChanges(s)
	if err := readmeAround(s, weather, zerolog.Nop()); err != nil {
		t.Error(err)
	}
	s.MustAdd(mcp.Tool("remove", remove))
	c := mcptest.New(t, s, mcptest.Trace(spectest.New(t).Hear), mcptest.OnElicit(func(mcptest.Elicitation) mcptest.Answer { return mcptest.Accept(Confirm{Sure: true}) }))
	var names []string
	for _, tool := range c.Tools() {
		names = append(names, tool.Name)
	}
	if got := strings.Join(names, " "); got != "import remove weather.forecast" {
		t.Errorf("got the tools %s", got)
	}
	if got := c.Read("file:///docs/a.txt")[0].Text; got != "hello" {
		t.Errorf("got %q", got)
	}
	if got := c.Complete("review", "library", "lib007", nil); len(got) != 1 || got[0] != "lib007" {
		t.Errorf("got %q", got)
	}
	if got := c.Call("remove", RemoveIn{Name: filepath.Join(dir, "a.txt")}).Text(); got != "deleted" {
		t.Errorf("got %q", got)
	}

	deleting := mcp.NewServer(mcp.Info{Name: "files", Version: "1"}, nil)
	deleting.MustAdd(mcp.Tool("delete", func(f *mcp.Frame, in struct {
		Note int `json:"note"`
	}) (string, error) {
		answer, err := mcp.Elicit[Confirm](f, "sure", fmt.Sprint("Delete note ", in.Note, "?"))
		if err == nil && !answer.Value.Sure {
			return "kept", nil
		}
		return "deleted", err
	}))
	readmeTest(t, deleting)

	over, end := context.WithCancel(t.Context())
	end()
	for _, use := range []func(context.Context) error{readmeClient, readmePool, readmeMany} {
		if err := use(over); err == nil {
			t.Error("a server that is not there was used")
		}
	}

	notes, r := mcp.NewServer(mcp.Info{Name: "notes", Version: "1"}, nil), chi.NewRouter()
	if err := readmeAuth(r, notes); err != nil {
		t.Fatal(err)
	}
	answer := httptest.NewRecorder()
	r.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/mcp", nil))
	if answer.Code != http.StatusUnauthorized || answer.Header().Get("WWW-Authenticate") == "" {
		t.Errorf("without a token: %d %v", answer.Code, answer.Header())
	}
}

// readmeAuth protects a server.
func readmeAuth(r chi.Router, s *mcp.Server) error {
	verifier, err := auth.NewJWT("https://auth.example.com", "https://notes.example.com/mcp", nil)
	if err != nil {
		return err
	}
	protection := &auth.Options{
		Resource:             "https://notes.example.com/mcp",
		AuthorizationServers: []string{"https://auth.example.com"},
		Scopes:               []string{"notes:read"},
	}
	auth.HandleMetadata(r, protection)
	r.With(auth.Bearer(verifier, protection)).Mount("/mcp", s.Handler())

	s.MustAdd(mcp.Tool("add_note", addNote, mcp.Scopes("notes:write")))
	return nil
}

// What the pieces use, beside the fixture of resources and prompts.
type (
	readmeUser struct {
		ID int `json:"id"`
	}
	RemoveIn struct {
		Name string `json:"name"`
	}
)

func readConfig(*mcp.Frame, struct{}) (string, error)            { return "{}", nil }
func readProfile(_ *mcp.Frame, u readmeUser) (readmeUser, error) { return u, nil }
func stock(*mcp.Frame, struct{}) (map[string]int, error)         { return map[string]int{"left": 7}, nil }
func refund(*mcp.Frame, struct{}) (string, error)                { return "refunded", nil }
func isManager(f *mcp.Frame) bool                                { return f.Principal() == "ada" }

func addNote(*mcp.Frame, struct{}) (string, error) { return "added", nil }

func importFile(f *mcp.Frame, in RemoveIn) (string, error) {
	return in.Name, f.Progress(1, 1, "done")
}

func readmeOffers(s *mcp.Server, root *os.Root) {
	s.MustAdd(
		mcp.Resource("config://app", readConfig, mcp.MIME("application/json")),
		mcp.Resource("users://{id}/profile", readProfile), // braces make a template
		mcp.Directory("file:///docs/", root.FS()),         // root is an *os.Root
		mcp.Prompt("review", review, mcp.Complete("library", libraries)),
	)
}

type Confirm struct {
	Sure bool `json:"sure" jsonschema_description:"there is no way back"`
}

func remove(f *mcp.Frame, in RemoveIn) (string, error) {
	answer, err := mcp.Elicit[Confirm](f, "sure", "Delete "+in.Name+"?")
	if err != nil {
		return "", err
	}
	if !answer.Accepted() || !answer.Value.Sure {
		return "nothing was deleted", nil
	}
	return "deleted", os.Remove(in.Name)
}

func readmeChanges(s *mcp.Server) {
	s.MustAdd(mcp.Tool("import", importFile, mcp.AsTask(mcp.TaskOptions{PollInterval: time.Second})))
	s.RemoveTools("legacy_import")    // clients that watch the list hear of it
	s.ResourceUpdated("config://app") // and those that watch this resource
}

func readmeSessions() *mcp.Server {
	var cart = mcp.NewKey[[]string]("cart")

	s := mcp.NewServer(mcp.Info{Name: "shop", Version: "1.0.0"}, &mcp.Options{
		Init: func(f *mcp.Frame) error {
			cart.Set(f, []string{"a free sample"})
			return nil
		},
		Terminate: func(f *mcp.Frame, reason error) { log.Println("a session ended:", reason) },
		Sessions:  session.Config{Idle: time.Hour, Max: 50_000},
	})
	return s
}

func readmeAround(s, weather *mcp.Server, logger zerolog.Logger) error {
	s.Use(middleware.Logging(logger), middleware.RateLimit(middleware.RateLimits{Rate: 5}))
	s.MustAdd(mcp.Tool("refund", refund, mcp.VisibleTo(isManager))) // for others it does not exist
	s.MustAdd(mcp.Method("shop/stock", stock))                      // a method of your own, with checked params
	err := s.Mount("weather", weather)                              // another server's tools as weather.forecast
	return err
}

type (
	Place struct {
		City string `json:"city"`
	}
	Forecast struct {
		Degrees int `json:"degrees"`
	}
)

func askUser(context.Context, *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	return client.Decline()
}

func readmeClient(ctx context.Context) error {
	c, err := client.Connect(ctx, client.HTTP("https://weather.example.com/mcp", nil), &client.Options{Elicit: askUser})
	if err != nil {
		return err
	}
	defer c.Close()
	for tool, err := range c.Tools(ctx) { // all pages of them
		if err != nil {
			return err
		}
		fmt.Println(tool.Name, tool.Description)
	}
	forecast, err := client.Call[Forecast](ctx, c, "forecast", Place{City: "Oslo"}, client.Timeout(time.Minute))
	fmt.Println(forecast)
	return err
}

func readmePool(ctx context.Context) error {
	pool := client.NewPool(client.HTTP("https://weather.example.com/mcp", nil), &client.PoolOptions{Size: 8})
	defer pool.Close()
	forecast, err := client.Call[Forecast](ctx, pool, "forecast", Place{City: "Oslo"})
	fmt.Println(forecast)
	return err
}

func readmeMany(ctx context.Context) error {
	config, err := client.ReadConfig(".mcp.json", nil)
	if err != nil {
		return err
	}
	many := client.NewMany(nil)
	defer many.Close()
	if err := many.AddConfig(config, nil); err != nil {
		log.Print(err) // says what is wrong with some of them; the others work
	}
	result, err := many.Call(ctx, "weather.forecast", Place{City: "Oslo"})
	fmt.Println(result)
	return err
}

func readmeTest(t *testing.T, server *mcp.Server) {
	c := mcptest.New(t, server, mcptest.OnElicit(func(q mcptest.Elicitation) mcptest.Answer {
		return mcptest.Accept(map[string]bool{"sure": true})
	}))
	if got := c.Call("delete", map[string]int{"note": 1}).Text(); got != "deleted" {
		t.Errorf("got %q", got)
	}
}
