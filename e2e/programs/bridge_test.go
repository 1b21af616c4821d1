package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// TestMain makes this binary its own stdio server.
func TestMain(m *testing.M) {
	if os.Getenv("BRIDGE_TEST_SERVER") != "" {
		serveStdio()
		return
	}
	os.Exit(m.Run())
}

// serveStdio answers each method in its own way, and counts its lines so that
// a test can tell processes apart.
func serveStdio() {
	lines := bufio.NewScanner(os.Stdin)
	for n := 1; lines.Scan(); n++ {
		var msg message
		if json.Unmarshal(lines.Bytes(), &msg) != nil || !msg.isCall() {
			continue
		}
		switch msg.Method {
		case "exit":
			return
		case "missing":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`+"\n", msg.ID)
		case "progress":
			fmt.Printf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s}}`+"\n", msg.Params.Meta["progressToken"])
			fallthrough
		default:
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"line":%d}}`+"\n", msg.ID, n)
		}
	}
}

func newTestFront(t *testing.T) string {
	t.Helper()
	t.Setenv("BRIDGE_TEST_SERVER", "1")
	front := newFront([]string{os.Args[0]})
	server := httptest.NewServer(front)
	t.Cleanup(func() { server.Close(); front.close() })
	return server.URL
}

func do(t *testing.T, method, url, session, body string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if session != "" {
		request.Header.Set(sessionHeader, session)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(text)
}

func TestModern(t *testing.T) {
	url := newTestFront(t)
	tests := []struct {
		name, body string
		status     int
		kind, want string
	}{
		{"first", "{\"id\":7,\n\"method\":\"echo\"}", 200, "application/json", `{"jsonrpc":"2.0","id":7,"result":{"line":1}}`},
		{"same process", `{"id":"x","method":"echo"}`, 200, "application/json", `{"jsonrpc":"2.0","id":"x","result":{"line":2}}`},
		{"notification", `{"method":"notifications/x"}`, 202, "", ""},
		{"stream", `{"id":8,"method":"progress","params":{"_meta":{"progressToken":"t"}}}`, 200, "text/event-stream",
			"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":\"t\"}}\n\n" +
				"data: {\"jsonrpc\":\"2.0\",\"id\":8,\"result\":{\"line\":4}}\n\n"},
		{"status", `{"id":9,"method":"missing"}`, 404, "application/json", `{"jsonrpc":"2.0","id":9,"error":{"code":-32601,"message":"no"}}`},
		{"no message", `{"id":`, 400, "text/plain; charset=utf-8", "the body is not one JSON-RPC message\n"},
		{"end", `{"id":10,"method":"exit"}`, 502, "text/plain; charset=utf-8", "the stdio process has ended\n"},
	}
	for _, test := range tests {
		response, text := do(t, "POST", url, "", test.body)
		if response.StatusCode != test.status || response.Header.Get("Content-Type") != test.kind || text != test.want {
			t.Errorf("%s: got %d %q %q", test.name, response.StatusCode, response.Header.Get("Content-Type"), text)
		}
	}
}

func TestLegacySessions(t *testing.T) {
	url := newTestFront(t)
	initialize := `{"id":1,"method":"initialize"}`
	first, _ := do(t, "POST", url, "", initialize)
	second, _ := do(t, "POST", url, "", initialize)
	session := first.Header.Get(sessionHeader)
	if session == "" || session == second.Header.Get(sessionHeader) {
		t.Fatalf("sessions %q and %q", session, second.Header.Get(sessionHeader))
	}
	response, text := do(t, "POST", url, session, `{"id":2,"method":"missing"}`)
	if response.StatusCode != 200 || !strings.Contains(text, "-32601") {
		t.Errorf("legacy error: got %d %q", response.StatusCode, text)
	}
	if _, text := do(t, "POST", url, session, `{"id":3,"method":"echo"}`); !strings.Contains(text, `"line":3`) {
		t.Errorf("third line of the first session: got %q", text)
	}
	if response, _ := do(t, "DELETE", url, session, ""); response.StatusCode != 204 {
		t.Errorf("DELETE: got %d", response.StatusCode)
	}
	if response, _ := do(t, "POST", url, session, `{"id":4,"method":"echo"}`); response.StatusCode != 404 {
		t.Errorf("after DELETE: got %d", response.StatusCode)
	}
	if response, _ := do(t, "GET", url, session, ""); response.StatusCode != 405 {
		t.Errorf("GET: got %d", response.StatusCode)
	}
}
