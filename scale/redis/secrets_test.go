//go:build unix

package redis

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/test/testcmd"
	"github.com/talaria-go/mcp/protocol"
)

type secretIn struct {
	Argument string `json:"argument"`
}

type secretForm struct {
	Answer string `json:"answer"`
}

// kept holds an argument in the session.
var kept = mcp.NewStoredKey[string]("example.com/kept")

// copied notes what a handler answers.
type copied struct {
	http.ResponseWriter
	mu  *sync.Mutex
	out *bytes.Buffer
}

func (c copied) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out.Write(b)
	return c.ResponseWriter.Write(b)
}

func (c copied) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// Nothing of what clients and servers say to each other, and no name by which
// anyone could take the place of a client, is in what the engine hears, has in
// memory or on disk.
func TestSecrets(t *testing.T) {
	engine := start(t, "--appendonly", "yes", "--appendfsync", "always")
	dir := ""
	for i, arg := range engine.args {
		if arg == "--dir" {
			dir = engine.args[i+1]
		}
	}
	conn, err := net.Dial("tcp", engine.address())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("MONITOR\r\n")); err != nil {
		t.Fatal(err)
	}
	heard := make(chan []byte, 1)
	go func() {
		all, _ := io.ReadAll(conn) // until it is closed
		heard <- all
	}()

	o := user(t, engine)
	var mu sync.Mutex
	var answers bytes.Buffer
	session := ""
	secrets := map[string]string{
		"principal": "the-principal-alice", "argument": "the-argument-of-a-call", "answer": "the-answer-to-a-question",
		"result": "the-result-of-a-call", "client": "the-name-of-a-client", "key": "a secret of 16 bytes or more", "resource": "config://the-resource",
	}
	var handlers []http.Handler
	var servers []*mcp.Server
	for range 2 {
		s := mcp.NewServer(mcp.Info{Name: "shop", Version: "1"}, &mcp.Options{Store: open(t, o), StateKeys: [][]byte{[]byte(secrets["key"])}})
		s.MustAdd(
			mcp.Tool("keep", func(f *mcp.Frame, in secretIn) (string, error) {
				mu.Lock()
				session = cmp.Or(f.SessionID(), session) // modern requests have none
				mu.Unlock()
				kept.Set(f, in.Argument)
				answer, err := mcp.Elicit[secretForm](f, "question", "Which?")
				return secrets["result"] + answer.Value.Answer, err
			}),
			mcp.Tool("work", func(f *mcp.Frame, _ secretIn) (string, error) {
				answer, err := mcp.Elicit[secretForm](f, "question", "Which?")
				return secrets["result"] + answer.Value.Answer, err
			}, mcp.AsTask(&mcp.TaskOptions{Wait: -1, PollInterval: 10 * time.Millisecond})),
			mcp.Resource(secrets["resource"], func(*mcp.Frame) (string, error) { return "x", nil }),
		)
		servers = append(servers, s)
		h := s.Handler()
		handlers = append(handlers, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.ServeHTTP(copied{w, &mu, &answers}, r.WithContext(core.WithPrincipal(r.Context(), secrets["principal"])))
		}))
	}
	web := httptest.NewServer(testcmd.RoundRobin(handlers...))
	t.Cleanup(web.Close)
	for _, rev := range []protocol.Revision{protocol.V20251125, protocol.V20260728} {
		c, err := client.Connect(t.Context(), client.HTTP(web.URL, nil), &client.Options{
			Revisions: []protocol.Revision{rev}, Timeout: time.Minute, Info: client.Info{Name: secrets["client"], Version: "1"},
			Elicit: func(context.Context, *client.ElicitParams) (*client.ElicitResult, error) {
				return client.Accept(secretForm{secrets["answer"]})
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range []string{"keep", "work"} {
			for range 3 {
				if r, err := c.Call(t.Context(), tool, secretIn{secrets["argument"]}); err != nil || r.Text() != secrets["result"]+secrets["answer"] {
					t.Fatalf("%v: %s: %v, %v", rev, tool, r, err)
				}
			}
		}
		listening, err := c.Listen(t.Context(), client.Filter{ResourceSubscriptions: []string{secrets["resource"]}}, func(client.Notification) {})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listening.Close() })
		for _, s := range servers {
			s.ResourceUpdated(secrets["resource"])
		}
	}
	engine.say("SAVE") // sessions and tasks are still there
	_ = conn.Close()
	seen := map[string][]byte{"MONITOR": <-heard}
	if err := filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			seen[name], err = os.ReadFile(name)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	full := 0 // places with the keys
	for _, content := range seen {
		if bytes.Contains(content, []byte("talaria:"+o.Prefix)) {
			full++
		}
	}
	if full != 3 {
		t.Errorf("the keys are in %d places, want those of MONITOR, the log and the dump", full)
	}
	mu.Lock()
	task := regexp.MustCompile(`"taskId":"([^"]+)"`).FindSubmatch(answers.Bytes())
	secrets["session"] = session
	mu.Unlock()
	if task == nil || session == "" {
		t.Fatalf("no task, or no session: %q", session)
	}
	secrets["task"] = string(task[1])
	for place, content := range seen {
		for what, secret := range secrets {
			for _, form := range []string{secret, hex.EncodeToString([]byte(secret)), strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(secret)), "=")[:16]} {
				if bytes.Contains(content, []byte(form)) {
					t.Errorf("%s: the %s is there, as %q", place, what, form)
				}
			}
		}
	}
}
