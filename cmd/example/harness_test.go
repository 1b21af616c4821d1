package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/spectest"
	"github.com/talaria-go/mcp/transport"
)

// noon is when the workbench of a test takes place.
var noon = time.Date(2030, 3, 1, 12, 0, 0, 0, time.UTC)

// TestMain runs the command itself for tests that start it as a process.
func TestMain(m *testing.M) {
	if os.Getenv("EXAMPLE_COMMAND") != "" {
		main()
	}
	os.Exit(m.Run())
}

// newBench returns a workbench whose files are in dir.
func newBench(t *testing.T, dir string) *workbench {
	t.Helper()
	w, err := openWorkbench(options{
		notes: filepath.Join(dir, "notes.json"), events: filepath.Join(dir, "events.json"), files: dir,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	clock := func() time.Time { return noon }
	w.notes.now, w.calendar.now = clock, clock
	return w
}

func newServer(w *workbench) *mcp.Server {
	quiet := zerolog.Nop()
	return w.server(&quiet)
}

// client speaks to a server through a pipe, as a desktop client would.
type client struct {
	t     *testing.T
	in    io.WriteCloser
	out   *bufio.Reader
	id    int
	ended chan error
	watch *spectest.Watch
}

// connect serves w to a client that has initialized itself.
func connect(t *testing.T, w *workbench) *client {
	t.Helper()
	serverIn, clientOut := io.Pipe()
	clientIn, serverOut := io.Pipe()
	c := &client{t: t, in: clientOut, out: bufio.NewReader(clientIn), ended: make(chan error, 1), watch: spectest.New(t)}
	s := newServer(w)
	go func() { c.ended <- s.ServeConn(context.Background(), transport.NewStream(serverIn, serverOut, nil)) }()
	c.send(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	c.receive()
	c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	t.Cleanup(func() { c.close() })
	return c
}

// close ends the input and waits until the server has ended.
func (c *client) close() {
	c.t.Helper()
	if c.ended == nil {
		return
	}
	if err := c.in.Close(); err != nil {
		c.t.Error(err)
	}
	if err := <-c.ended; err != nil && !errors.Is(err, io.ErrClosedPipe) {
		c.t.Errorf("the server ended with %v", err)
	}
	c.ended = nil
}

func (c *client) send(message string) {
	c.t.Helper()
	c.watch.Hear(false, []byte(message))
	if _, err := io.WriteString(c.in, message+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// message is what a server sends.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Progress float64 `json:"progress"`
		Total    float64 `json:"total"`
	} `json:"params"`
	Result result `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// result is what a tool returned.
type result struct {
	Content []struct {
		Type     string `json:"type"`
		Text     string `json:"text"`
		Data     []byte `json:"data"`
		MIMEType string `json:"mimeType"`
	} `json:"content"`
	Structured json.RawMessage `json:"structuredContent"`
	IsError    bool            `json:"isError"`
}

func (c *client) receive() message {
	c.t.Helper()
	line, err := c.out.ReadBytes('\n')
	if err != nil {
		c.t.Fatal(err)
	}
	c.watch.Hear(true, line)
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		c.t.Fatalf("%v in %s", err, line)
	}
	return m
}

// start sends a call and does not wait for its answer.
func (c *client) start(tool, arguments string) (id int) {
	c.t.Helper()
	c.id++
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"progressToken":"p"}}}`, c.id, tool, arguments))
	return c.id
}

// call calls a tool and returns its result with the progress it told.
func (c *client) call(tool, arguments string) (r result, progress []message) {
	c.t.Helper()
	id := fmt.Sprint(c.start(tool, arguments))
	for {
		m := c.receive()
		switch {
		case m.Method == "notifications/progress":
			progress = append(progress, m)
		case string(m.ID) != id:
			c.t.Fatalf("an answer to %s, not to %s", m.ID, id)
		case m.Error != nil:
			c.t.Fatalf("%s %s: error %d: %s", tool, arguments, m.Error.Code, m.Error.Message)
		default:
			return m.Result, progress
		}
	}
}

// must calls a tool that should succeed and decodes what it returned.
func must[T any](c *client, tool, arguments string) T {
	c.t.Helper()
	r, _ := c.call(tool, arguments)
	if r.IsError {
		c.t.Fatalf("%s %s failed: %s", tool, arguments, r.Content[0].Text)
	}
	var out T
	if err := json.Unmarshal(r.Structured, &out); err != nil {
		c.t.Fatal(err)
	}
	return out
}

// fails calls a tool that should fail and returns what it says.
func (c *client) fails(tool, arguments string) string {
	c.t.Helper()
	r, _ := c.call(tool, arguments)
	if !r.IsError {
		c.t.Fatalf("%s %s succeeded: %s", tool, arguments, r.Structured)
	}
	return r.Content[0].Text
}

// refusals are calls that fail, each with a text that its message must have.
type refusals []struct{ tool, arguments, want string }
