package client

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"unicode"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp/protocol"
)

// spread is JSON with line breaks as white space, and what a terminal or a log
// reader could take for something else in its strings.
const spread = "{\"a\":\n\n{\"level\":\"info\",\"message\":\"forged\"}\n,\"b\":\"\u009b31m\u202e\u200b\x7f\"\n}"

// A line of the log belongs to the logger: a server can neither begin one nor
// put control characters into one, whatever it sends.
func TestLogLines(t *testing.T) {
	nasty := "x\u009b31m\u202e\u200b" + strings.Repeat("y", 100_000)
	synctest.Test(t, func(t *testing.T) {
		var log logText
		logger := zerolog.New(&log)
		tr := scripted(t, func(s *script) {
			s.legacyHello("2025-06-18")
			h := s.until("tools/list")
			for _, data := range []string{spread, "null", `"` + strings.Repeat("z", 100_000) + `"`, `"` + nasty + `"`} {
				s.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","logger":%q,"data":%s}}`, nasty, data)
			}
			s.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info"}}`)
			s.say(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":%q}}`, nasty)
			s.say("\u009b31m\u202e{ no message\n{\"level\":\"info\"}")
			s.say(`{"jsonrpc":"2.0","id":%q,"result":{}}`, nasty)
			s.say(`{"jsonrpc":"2.0","id":1,"method":%q}`, nasty)
			s.say(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
			s.result(h, `{"tools":[]}`)
			s.drain()
		})
		opts := *legacy
		opts.Logger = &logger
		c := connect(t, tr, &opts)
		if _, err := listTools(t.Context(), c, ""); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		judgeLog(t, log.String(), 7)
	})
}

// Server-sent events carry line breaks inside of a message.
func TestLogLinesOverSSE(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var m heard
		_ = json.Unmarshal(body, &m)
		switch m.Method {
		case "":
			w.WriteHeader(http.StatusMethodNotAllowed)
		case protocol.MethodInitialize:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"x","version":"1"}}}`, m.ID)
		case protocol.MethodInitialized:
			w.WriteHeader(http.StatusAccepted)
		default:
			w.Header().Set("Content-Type", "text/event-stream")
			message := `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":` + spread + `}}`
			fmt.Fprintf(w, "data: %s\n\n", strings.ReplaceAll(message, "\n", "\ndata: "))
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"tools\":[]}}\n\n", m.ID)
		}
	}))
	defer web.Close()
	var log logText
	logger := zerolog.New(&log)
	logged := make(chan struct{})
	opts := *legacy
	opts.Logger, opts.OnNotification = &logger, func(Notification) { close(logged) }
	c := connect(t, HTTP(web.URL, nil), &opts)
	if _, err := listTools(t.Context(), c, ""); err != nil {
		t.Fatal(err)
	}
	<-logged
	if err := c.Close(); err != nil { // waits for the logger
		t.Error(err)
	}
	judgeLog(t, log.String(), 1)
}

func judgeLog(t *testing.T, log string, least int) {
	t.Helper()
	lines := strings.Split(strings.TrimSuffix(log, "\n"), "\n")
	if len(lines) < least {
		t.Errorf("%d lines, want at least %d:\n%.2000s", len(lines), least, log)
	}
	for _, line := range lines {
		var entry struct{ Message string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil || entry.Message == "forged" || entry.Message == "" || len(line) > 20_000 {
			t.Errorf("not a line of the logger's (%v, %d bytes): %.300q", err, len(line), line)
		}
		for _, r := range line {
			if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
				t.Errorf("%U in %.300q", r, line)
				break
			}
		}
	}
}

// Roots that are declared without listChanged are not told to change.
func TestRootsWithoutChanges(t *testing.T) {
	for _, test := range []struct {
		name string
		opts Options
		want string
	}{
		{"declared by hand", Options{Capabilities: protocol.ClientCapabilities{Roots: &protocol.ListCapability{}}}, "ping"},
		{"with a list", Options{Roots: []protocol.Root{}, Capabilities: protocol.ClientCapabilities{Roots: &protocol.ListCapability{}}}, "ping"},
		{"as usual", Options{Roots: []protocol.Root{}}, "notifications/roots/list_changed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			next := make(chan string, 1)
			tr := scripted(t, func(s *script) {
				s.legacyHello("2025-06-18")
				h := s.next()
				next <- h.Method
				if h.Method != "ping" {
					h = s.until("ping")
				}
				s.result(h, `{}`)
				s.drain()
			})
			opts := test.opts
			opts.Revisions = legacy.Revisions
			c := connect(t, tr, &opts)
			if err := c.SetRoots(t.Context(), []Root{{URI: "file:///a"}}); err != nil {
				t.Error(err)
			}
			if err := c.Ping(t.Context()); err != nil {
				t.Error(err)
			}
			if got := <-next; got != test.want {
				t.Errorf("the client sent %s, want %s", got, test.want)
			}
		})
	}
}
