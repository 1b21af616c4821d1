package record

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/internal/tooling/recording"
)

// shownRows are the rows of a store as a person sees them, the oldest first, and how
// many of them are among the errors.
func shownRows(s *Store) (text string, errors int) {
	var lines []string
	for _, r := range s.Rows(Query{From: 1, Limit: 100}).Rows {
		line := []string{r.Kind, r.Method, r.Level, r.Name, r.Status}
		if r.HTTP != 0 {
			line = append(line, fmt.Sprint(r.HTTP))
		}
		lines = append(lines, strings.Join(strings.Fields(strings.Join(line, " ")), " "))
	}
	for i, j := 0, len(lines)-1; i < j; i, j = i+1, j-1 {
		lines[i], lines[j] = lines[j], lines[i]
	}
	return strings.Join(lines, "\n"), len(s.Rows(Query{Kinds: []string{"errors"}, Limit: 100}).Rows)
}

// TestNegotiation: what a client tries to find out what a server speaks is no fault of
// the server, on any transport; what fails later, or for another reason, is one.
func TestNegotiation(t *testing.T) {
	const probe = `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{}}`
	const begin = `{"jsonrpc":"2.0","id":2,"method":"initialize","params":{}}`
	out := func(text string) any { return recording.Entry{Dir: recording.Out, Conn: "1", Text: []byte(text)} }
	in := func(text string) any { return recording.Entry{Dir: recording.In, Conn: "1", Text: []byte(text)} }
	note := func(id string, status int) any {
		return recording.Entry{Dir: recording.Note, Conn: "1", ID: json.RawMessage(id), HTTP: status, Text: []byte("a status")}
	}
	type exchange struct {
		body string
		Exchange
	}
	http := func(method, body string, status int) any {
		return exchange{body, Exchange{Method: method, Status: status}}
	}
	for _, c := range []struct {
		name   string
		steps  []any
		want   string
		errors int
	}{
		{"stdio, method not found", []any{out(probe), in(`{"id":1,"error":{"code":-32601}}`)}, "request server/discover version negotiation", 0},
		{"stdio, any other code", []any{out(probe), in(`{"id":1,"error":{"code":-32000}}`)}, "request server/discover version negotiation", 0},
		{"stdio, without an id", []any{out(probe), in(`{"id":null,"error":{"code":-32600}}`)}, "request server/discover version negotiation", 0},
		{"stdio, the id is left out", []any{out(probe), in(`{"error":{"code":-32600}}`)}, "request server/discover version negotiation", 0},
		{"another modern revision", []any{out(probe), in(`{"id":1,"error":{"code":-32022}}`)}, "request server/discover version negotiation", 0},
		{"back to the modern one", []any{out(begin), in(`{"id":2,"error":{"code":-32022}}`)}, "request initialize version negotiation", 0},
		{"the probe is answered late, and initialize is refused after it", []any{out(probe), out(begin), in(`{"id":1,"result":{}}`), in(`{"id":2,"error":{"code":-32602}}`)},
			"request server/discover ok\nrequest initialize version negotiation", 0},
		{"and before it", []any{out(probe), out(begin), in(`{"id":2,"error":{"code":-32601}}`), in(`{"id":1,"result":{}}`)},
			"request server/discover ok\nrequest initialize version negotiation", 0},
		{"the probe is refused late", []any{out(probe), out(begin), in(`{"id":2,"result":{}}`), in(`{"id":1,"error":{"code":-32601}}`)},
			"request server/discover version negotiation\nrequest initialize ok", 0},
		{"HTTP 400 with an error without an id", []any{out(probe), http("POST", probe, 400), in(`{"id":null,"error":{"code":-32000}}`)}, "request server/discover version negotiation 400", 0},
		{"HTTP 404 with a page", []any{out(probe), http("POST", probe, 404)}, "request server/discover version negotiation 404", 0},
		{"HTTP 405", []any{out(probe), http("POST", probe, 405)}, "request server/discover version negotiation 405", 0},
		{"the same in a recording", []any{out(probe), note("1", 400)}, "request server/discover version negotiation 400\nnote a status version negotiation 400", 0},
		{"HTTP+SSE", []any{out(begin), http("POST", begin, 405), http("GET", "", 200)}, "request initialize version negotiation 405\nhttp GET 200", 0},
		{"no stream and no end of sessions", []any{http("GET", "", 405), http("DELETE", "", 405)}, "http GET not offered 405\nhttp DELETE not offered 405", 0},

		{"resources without templates", []any{out(`{"id":4,"method":"resources/templates/list"}`), in(`{"id":4,"error":{"code":-32601}}`)}, "request resources/templates/list not offered", 0},

		{"templates that fail", []any{out(`{"id":4,"method":"resources/templates/list"}`), in(`{"id":4,"error":{"code":-32603}}`)}, "request resources/templates/list error", 1},
		{"credentials", []any{out(probe), http("POST", probe, 401)}, "request server/discover 401", 1},
		{"too many requests", []any{out(probe), http("POST", probe, 429)}, "request server/discover 429", 1},
		{"the server fails", []any{out(probe), http("POST", probe, 503)}, "request server/discover 503", 1},
		{"a modern fault", []any{out(probe), http("POST", probe, 400), in(`{"id":1,"error":{"code":-32020}}`)}, "request server/discover error 400", 1},
		{"initialize fails", []any{out(begin), http("POST", begin, 404)}, "request initialize 404", 1},
		{"initialize is refused", []any{out(begin), in(`{"id":2,"error":{"code":-32602}}`)}, "request initialize error", 1},
		{"initialize after the probe was answered", []any{out(probe), in(`{"id":1,"result":{}}`), out(begin), in(`{"id":2,"error":{"code":-32601}}`)},
			"request server/discover ok\nrequest initialize error", 1},
		{"initialize a second time", []any{out(probe), out(begin), in(`{"id":2,"result":{}}`), out(strings.Replace(begin, "2,", "3,", 1)), in(`{"id":3,"error":{"code":-32600}}`), in(`{"id":1,"result":{}}`)},
			"request server/discover ok\nrequest initialize ok\nrequest initialize error", 1},
		{"a ping by discover, later", []any{out(probe), in(`{"id":1,"result":{}}`), out(strings.Replace(probe, "1,", "7,", 1)), in(`{"id":7,"error":{"code":-32603}}`)},
			"request server/discover ok\nrequest server/discover error", 1},
		{"GET fails", []any{http("GET", "", 500)}, "http GET 500", 1},
		{"POST is not allowed", []any{http("POST", "", 405)}, "http POST 405", 1},
		{"an error without an id for a call that HTTP refuses", []any{out(`{"id":3,"method":"tools/list"}`), http("POST", `{"id":3,"method":"tools/list"}`, 404), in(`{"id":null,"error":{"code":-32001}}`)},
			"request tools/list error 404", 1},
		{"an error for nothing", []any{in(`{"id":null,"error":{"code":-32700}}`)}, `broken an answer to no request: {"id":null,"error":{"code":-32700}}`, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := filled(t)
			for _, step := range c.steps {
				switch step := step.(type) {
				case recording.Entry:
					s.take(step)
				case exchange:
					s.exchange(recording.Entry{Conn: "1", Text: []byte(step.body)}, &step.Exchange)
				}
			}
			if got, errors := shownRows(s); got != c.want || errors != c.errors {
				t.Errorf("got %d errors\n%s\nwant %d\n%s", errors, got, c.errors, c.want)
			}
		})
	}
}

// TestNotices: the row of a notification says what it says.
func TestNotices(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{`{"method":"notifications/message","params":{"level":"warning","logger":"db","data":"slow query"}}`, "log notifications/message warning db: slow query"},
		{`{"method":"notifications/message","params":{"level":"info","data":"a\nb \u202e"}}`, "log notifications/message info a b �"},
		{`{"method":"notifications/message","params":{"level":"error","logger":"db","data":{"code":5,"text":"gone"}}}`, `log notifications/message error db: {"code":5,"text":"gone"}`},
		{`{"method":"notifications/message","params":{"level":5,"logger":[],"data":null}}`, "log notifications/message 5 []:"},
		{`{"method":"notifications/message","params":"none"}`, "log notifications/message"},
		{`{"method":"notifications/progress","params":{"progressToken":1,"progress":3,"total":10,"message":"third"}}`, "notification notifications/progress 3 of 10 third"},
		{`{"method":"notifications/cancelled","params":{"requestId":1,"reason":"too slow"}}`, "notification notifications/cancelled too slow"},
		{`{"method":"notifications/resources/updated","params":{"uri":"x://y"}}`, "notification notifications/resources/updated x://y"},
		{`{"method":"notifications/tasks/status","params":{"taskId":"t1","status":"working","statusMessage":"x"}}`, "notification notifications/tasks/status t1 working"},
		{`{"id":1,"method":"elicitation/create","params":{"message":"Delete it?"}}`, "request elicitation/create Delete it?"},
		{`{"method":"notifications/message","params":{"level":"debug","data":["a",1,null]}}`, `log notifications/message debug ["a",1,null]`},
		{`{"method":"notifications/message","params":{"level":"notice","data":true}}`, "log notifications/message notice true"},
		{`{"method":"notifications/message","params":{"level":"info","logger":"","data":"x"}}`, "log notifications/message info x"},
		{`{"method":"notifications/message","params":{"level":"info","logger":null,"data":"x"}}`, "log notifications/message info x"},
		{`{"method":"notifications/message","params":{"level":"info","logger":"a\u001b[31m","data":"\u0000"}}`, "log notifications/message info a␛[31m: ␀"},
		{`{"method":"notifications/message","params":{"level":"info"}}`, "log notifications/message info"},
		{`{"method":"notifications/message"}`, "log notifications/message"},
		{`{"method":"notifications/message","params":{"level":"INFO","data":1e400}}`, "log notifications/message INFO 1e400"},
		{`{"method":"notifications/progress","params":{"progressToken":"a","progress":0.5,"total":1}}`, "notification notifications/progress 0.5 of 1"},
		{`{"method":"notifications/progress","params":{"progressToken":"a","progress":"half"}}`, "notification notifications/progress half"},
		{`{"method":"notifications/progress","params":{}}`, "notification notifications/progress"},
		{`{"method":"notifications/cancelled","params":{"requestId":"x"}}`, "notification notifications/cancelled"},
		{`{"method":"notifications/elicitation/complete","params":{"elicitationId":"e1"}}`, "notification notifications/elicitation/complete e1"},
		{`{"method":"notifications/tools/list_changed"}`, "notification notifications/tools/list_changed"},
		{`{"method":"notifications/events/event","params":{"name":"comment.created","data":{"a":1}}}`, "notification notifications/events/event comment.created"},
		{`{"id":"a","method":"elicitation/create","params":{"mode":"url","elicitationId":"e1","message":"Sign in","url":"https://example.com"}}`, "request elicitation/create Sign in e1"},
		{`{"id":2,"method":"roots/list"}`, "request roots/list"},
		{`{"method":"notifications/message","params":{"level":"info","data":"` + strings.Repeat("x", 9000) + `"}}`, "log notifications/message info xxx"},
	} {
		s := filled(t)
		s.take(recording.Entry{Dir: recording.In, Text: []byte(c.text)})
		if got, _ := shownRows(s); !strings.HasPrefix(got, c.want) || len(got) > len(c.want)+maxName+100 {
			t.Errorf("%s\ngot  %s\nwant %s", c.text, got, c.want)
		}
	}
}

// TestIndented: a line of standard error keeps its indentation.
func TestIndented(t *testing.T) {
	s := filled(t)
	for _, line := range []string{"Traceback:", `  File "a.py", line 1`, "\tat  run()\r\n", "10 %\r20 %", "  \x1b[31mred"} {
		s.take(recording.Entry{Dir: recording.Err, Text: []byte(line)})
	}
	var got []string
	for _, r := range s.Rows(Query{Limit: 10}).Rows {
		got = append(got, r.Name)
	}
	if want := fmt.Sprintf("%q", []string{"  ␛[31mred", "10 % 20 %", "\tat  run()", `  File "a.py", line 1`, "Traceback:"}); fmt.Sprintf("%q", got) != want {
		t.Errorf("got  %q\nwant %s", got, want)
	}
}
