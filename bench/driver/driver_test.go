package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func answerText(t *testing.T, id int, structured, twin any) string {
	t.Helper()
	text, err := json.Marshal(twin)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "result": map[string]any{
		"content": []any{map[string]any{"type": "text", "text": string(text)}}, "structuredContent": structured}})
	if err != nil {
		t.Fatal(err)
	}
	return string(whole)
}

func TestChecker(t *testing.T) {
	_, good := arguments("add")
	bad := map[string]int{"sum": 1}
	first := answerText(t, firstID, good, good)
	for _, tt := range []struct {
		name, text string
		id         int // 0: an error is wanted
	}{
		{"same", first, firstID},
		{"other id", answerText(t, firstID+77, good, good), firstID + 77},
		{"other order", `{"result":` + first[strings.Index(first, `"result":`)+9:len(first)-1] + `,"id":1000000005}`, firstID + 5},
		{"wrong result", answerText(t, firstID, bad, good), 0},
		{"wrong twin", answerText(t, firstID, good, bad), 0},
		{"error", `{"jsonrpc":"2.0","id":1000000000,"error":{"code":-32603,"message":"no"}}`, 0},
		{"half", first[:len(first)-1], 0},
	} {
		for _, warm := range []bool{false, true} {
			c := newChecker("add")
			if _, err := c.check([]byte(first)); warm && err != nil {
				t.Fatal(err)
			}
			id, err := c.check([]byte(tt.text))
			if id != tt.id || (err == nil) != (tt.id != 0) {
				t.Errorf("%s, warm %v: id %d, error %v", tt.name, warm, id, err)
			}
		}
	}
}

func TestRoundTrip(t *testing.T) {
	long := strings.Repeat("x", 5000)
	mux := http.NewServeMux()
	srv := httptest.NewServer(mux)
	defer srv.Close()
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch r.Header.Get("Mcp-Name") {
		case "length":
			w.Header().Set("Mcp-Session-Id", "s-1")
			w.Write(body)
		case "chunks":
			fmt.Fprint(w, long)
			w.(http.Flusher).Flush()
			fmt.Fprint(w, long)
		case "events":
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "event: message\ndata: {}\n\nid: 2\ndata: {\"last\":1}\n\n")
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	})
	addr := srv.Listener.Addr().String()
	c, err := dialHTTP(addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, tt := range []struct {
		name, want string
		status     int
	}{
		{"length", string(callMessage("modern", "search").text), 200}, {"chunks", long + long, 200},
		{"events", `{"last":1}`, 200}, {"none", "", 202}, {"chunks", long + long, 200},
	} {
		request := post(addr, "Mcp-Name: "+tt.name+"\r\n", callMessage("modern", "search"))
		status, err := c.roundTrip(request.text)
		if err != nil || status != tt.status || string(c.body) != tt.want {
			t.Errorf("%s: status %d, error %v, body %.100q", tt.name, status, err, c.body)
		}
	}
	if c.session != "s-1" {
		t.Errorf("session %q", c.session)
	}
}

func TestRatios(t *testing.T) {
	cpu := func(us ...int) (samples []sample) {
		for _, n := range us {
			samples = append(samples, sample{rate: 1, cpu: time.Duration(n) * time.Microsecond})
		}
		return samples
	}
	tb := table{name: "http/modern/add", servers: servers,
		samples: map[string][]sample{"floor": cpu(20, 20, 20), "talaria": cpu(21, 23, 30), "sdk": cpu(100)}}
	if r := tb.ratio("talaria", "floor"); r != 1.15 {
		t.Errorf("ratio %v, want the middle of 1.05, 1.15 and 1.5", r)
	}
	if r := tb.ratio("talaria", "mcp-go"); r != 0 {
		t.Errorf("ratio to a server without samples is %v", r)
	}
	var out strings.Builder
	tb.print(&out)
	if !strings.Contains(out.String(), "mcp-go") || !strings.Contains(out.String(), "23.0") {
		t.Errorf("table:\n%s", out.String())
	}
	if !printLimits(io.Discard, []table{tb}) {
		t.Error("1.15 is over the limit of 1.15")
	}
	tb.samples["talaria"] = cpu(20, 24, 30)
	if printLimits(io.Discard, []table{tb}) {
		t.Error("1.2 is within the limit of 1.15")
	}
}
