package httplink_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/client/internal/linktest"
	"github.com/talaria-go/mcp/internal/clients/origin"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// The answers that a server may give to a request.
func TestPostAnswers(t *testing.T) {
	const progress = `{"jsonrpc":"2.0","method":"notifications/progress"}`
	tests := []struct {
		name   string
		handle func(w http.ResponseWriter)
		want   []string
	}{
		{"JSON", func(w http.ResponseWriter) { writeJSON(w, answer) }, []string{answer}},
		{"no content type", func(w http.ResponseWriter) {
			w.Header()["Content-Type"] = nil
			fmt.Fprint(w, answer)
		}, []string{answer}},
		{"events", func(w http.ResponseWriter) {
			events(w, ": hello\n\nevent: message\nid: 1\ndata:\n\ndata: %s\n\ndata: %s\n\n", progress, answer)
		}, []string{progress, answer}},
		{"other events", func(w http.ResponseWriter) { events(w, "event: ping\ndata: x\n\ndata: %s\n\n", answer) }, []string{answer}},
		{"CRLF and lines", func(w http.ResponseWriter) {
			events(w, "data: {\"jsonrpc\":\"2.0\",\r\ndata: \"id\":1,\"result\":{}}\r\n\r\n")
		}, []string{"{\"jsonrpc\":\"2.0\",\n\"id\":1,\"result\":{}}"}},
		{"compressed", func(w http.ResponseWriter) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(zipped(answer))
		}, []string{answer}},
		{"compressed events", func(w http.ResponseWriter) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Type", "Text/Event-Stream;charset=utf-8")
			_, _ = w.Write(zipped("data: " + answer + "\n\n"))
		}, []string{answer}},
		{"status with an answer", func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"no"}}`)
		}, []string{`{"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"no"}}`}},
		{"garbage", func(w http.ResponseWriter) { writeJSON(w, "garbage") }, []string{"garbage"}},
	}
	for _, tt := range tests {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int) { tt.handle(w) })
		to, l := open(t, s.URL, origin.Options{}, false)
		m := call(protocol.V20260728)
		if err := l.Send(t.Context(), m); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if !slices.Equal(to.Texts(), tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, to.Texts(), tt.want)
		}
		for _, got := range to.Wait(len(tt.want)) {
			if got.During != m {
				t.Errorf("%s: not during the request", tt.name)
			}
		}
	}
}

// What is no answer is an error that says why, in bounded memory.
func TestPostFaults(t *testing.T) {
	endless := func(w http.ResponseWriter, kind, before, text string, n int) {
		w.Header().Set("Content-Type", kind)
		fmt.Fprint(w, before)
		for range n / len(text) {
			if _, err := io.WriteString(w, text); err != nil {
				return // refused, as it should be
			}
		}
	}
	mib := strings.Repeat("x", 1<<20)
	tests := []struct {
		name   string
		handle func(w http.ResponseWriter)
		want   string
	}{
		{"500", func(w http.ResponseWriter) { http.Error(w, "out of order", http.StatusInternalServerError) }, "HTTP status 500 Internal Server Error: out of order"},
		{"error of no request", func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: no session"}}`)
		}, "Bad Request: no session"},
		{"wrong type", func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<h1>Welcome</h1>")
		}, `Content-Type is "text/html", want application/json or text/event-stream; it begins with "<h1>Welcome</h1>"`},
		{"202", func(w http.ResponseWriter) { w.WriteHeader(http.StatusAccepted) }, "will not answer"},
		{"half JSON", func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "100")
			writeJSON(w, answer[:10])
		}, "broke off after 10 bytes"},
		{"half an event", func(w http.ResponseWriter) { events(w, "data: %s\n", answer) }, "broke off before the response"},
		{"no answer", func(w http.ResponseWriter) { events(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n") }, "broke off before the response"},
		{"answer to another", func(w http.ResponseWriter) {
			events(w, "data: %s\n\n", strings.Replace(answer, "1", "2", 1))
		}, "broke off before the response"},
		{"connection broken", func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, "EOF"},
		{"events broken", func(w http.ResponseWriter) {
			events(w, ": hello\n\n")
			panic(http.ErrAbortHandler)
		}, "broke off before the response"},
		{"100 MiB of JSON", func(w http.ResponseWriter) { endless(w, "application/json", "", mib, 100<<20) }, "longer than the limit of 1048576 bytes"},
		{"100 MiB line", func(w http.ResponseWriter) { endless(w, "text/event-stream", "data: ", mib, 100<<20) }, "longer than the limit of 1048576 bytes"},
		{"100 MiB announced", func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "104857600")
			writeJSON(w, "{")
		}, "longer than the limit of 1048576 bytes"},
		{"100 MiB compressed", func(w http.ResponseWriter) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(zipped(strings.Repeat(mib, 100)))
		}, "longer than the limit of 1048576 bytes"},
		{"100 MiB with a refusal", func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusBadGateway)
			endless(w, "text/plain", "", mib, 100<<20)
		}, "HTTP status 502 Bad Gateway"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if strings.Contains(tt.name, "compressed") {
				testdep.NoRace(t, "one goroutine compresses it")
			}
			s := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int) { tt.handle(w) })
			s.Config.ErrorLog = nil
			to, l := open(t, s.URL, origin.Options{MaxMessage: 1 << 20}, false)
			err := l.Send(t.Context(), call(protocol.V20260728))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("%v, want %q", err, tt.want)
			}
			if len(err.Error()) > 1000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			if strings.Contains(tt.name, "MiB") && len(to.Texts()) > 0 {
				t.Errorf("received %d messages", len(to.Texts()))
			}
		})
	}
}

// A body without end costs no memory.
func TestPostMemory(t *testing.T) {
	chunk := []byte(strings.Repeat("x", 1<<20))
	for _, kind := range []string{"application/json", "text/event-stream"} {
		var sent int
		s := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
			w.Header().Set("Content-Type", kind)
			fmt.Fprint(w, "data: ")
			for range 100 {
				n, err := w.Write(chunk)
				if sent += n; err != nil {
					return
				}
			}
		})
		_, l := open(t, s.URL, origin.Options{MaxMessage: 1 << 20}, false)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := l.Send(t.Context(), call(protocol.V20260728))
		runtime.ReadMemStats(&after)
		if _, long := errors.AsType[*transport.TooLongError](err); !long {
			t.Errorf("%s: %v", kind, err)
		}
		if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 {
			t.Errorf("%s: %d bytes of memory", kind, used)
		}
	}
}

func TestPostStatusError(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"jsonrpc":"2.0","error":{"code":-32022,"message":"no such version","data":{"supported":["2025-11-25"]}}}`)
	})
	_, l := open(t, s.URL, origin.Options{}, false)
	err := l.Send(t.Context(), call(protocol.V20260728))
	status, ok := errors.AsType[*origin.StatusError](err)
	if !ok || status.Code != http.StatusBadRequest || status.Header.Get("Retry-After") != "7" || !strings.Contains(string(status.Body), "supported") {
		t.Fatalf("%#v", err)
	}
	if fault, ok := errors.AsType[*protocol.Error](err); !ok || fault.Code != -32022 || fmt.Sprintf("%s", fault.Data) != `{"supported":["2025-11-25"]}` {
		t.Errorf("%#v", fault)
	}
}

// A server that never answers is given up when the context ends, which it sees;
// so does Close.
func TestPostNeverAnswered(t *testing.T) {
	for _, kind := range []string{"nothing", "headers", "comments"} {
		gone := make(chan bool, 2)
		s := serve(t, func(w http.ResponseWriter, r *http.Request, _ int) {
			switch kind {
			case "headers":
				events(w, "")
			case "comments":
				for r.Context().Err() == nil {
					events(w, ": still here\n\n")
				}
			}
			<-r.Context().Done()
			gone <- true
		})
		_, l := open(t, s.URL, origin.Options{}, false)
		ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("enough"))
		err := l.Send(ctx, call(protocol.V20260728))
		cancel()
		if err == nil || err.Error() != "enough" {
			t.Errorf("%s: %v", kind, err)
		}
		<-gone
		result := make(chan error, 1)
		go func() { result <- l.Send(t.Context(), call(protocol.V20260728)) }()
		for s.count() < 2 {
			runtime.Gosched()
		}
		if err := l.Close(t.Context()); err != nil {
			t.Errorf("%s: Close: %v", kind, err)
		}
		if err := <-result; !errors.Is(err, transport.ErrClosed) {
			t.Errorf("%s: Send while Close: %v", kind, err)
		}
		<-gone
	}
}

// The headers that each revision demands.
func TestPostHeaders(t *testing.T) {
	for _, rev := range protocol.Revisions() {
		s := serve(t, func(w http.ResponseWriter, r *http.Request, n int) {
			if rev.Modern() {
				writeJSON(w, answer)
			} else if !withSession(w, n) {
				if r.Method == http.MethodPost {
					writeJSON(w, answer)
				} else {
					w.WriteHeader(http.StatusMethodNotAllowed)
				}
			}
		})
		_, l := open(t, s.URL+"/mcp?x=1", origin.Options{Header: http.Header{"Authorization": {"Bearer t"}}}, true)
		first := 0
		if !rev.Modern() {
			initialize(t, l)
			initialized(t, l, rev)
			first = 2
			if r, _ := s.request(0); r.Header.Get("Mcp-Protocol-Version") != "" || r.Header.Get("Mcp-Session-Id") != "" {
				t.Errorf("%v: initialize has %v", rev, r.Header)
			}
		}
		m := call(rev)
		m.Name, m.Header = "größer", http.Header{"mcp-param-region": {"eu"}, "X-Call": {"1"}}
		if err := l.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		r, body := s.request(first)
		if r.Method != http.MethodPost || r.URL.String() != "/mcp?x=1" || body != string(m.Body) {
			t.Errorf("%v: %s %s with %s", rev, r.Method, r.URL, body)
		}
		want := map[string]string{
			"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer t",
			"X-Call": "1", "Mcp-Param-Region": "eu", "Mcp-Session-Id": session, "Mcp-Protocol-Version": "", "Mcp-Method": "", "Mcp-Name": "",
		}
		if rev.Has(protocol.FeatureVersionHeader) {
			want["Mcp-Protocol-Version"] = rev.String()
		}
		if rev.Modern() {
			want["Mcp-Session-Id"], want["Mcp-Method"], want["Mcp-Name"] = "", "tools/call", "=?base64?Z3LDtsOfZXI=?="
		}
		for name, value := range want {
			if got := r.Header.Get(name); got != value {
				t.Errorf("%v: %s is %q, want %q", rev, name, got, value)
			}
		}
	}
}

// Connections are used again, whatever was answered.
func TestPostReuse(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request, n int) {
		switch n % 5 {
		case 0:
			writeJSON(w, answer)
		case 1:
			events(w, "data: %s\n\n", answer)
		case 2:
			http.Error(w, "no", http.StatusBadRequest)
		case 3:
			w.WriteHeader(http.StatusAccepted)
		case 4:
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}
	})
	_, l := open(t, s.URL, origin.Options{}, false)
	for range 20 {
		_ = l.Send(t.Context(), call(protocol.V20260728)) // some are refused
	}
	first, _ := s.request(0)
	for n := range s.count() {
		if r, _ := s.request(n); r.RemoteAddr != first.RemoteAddr {
			t.Fatalf("request %d came over another connection", n)
		}
	}
}

// A stream that does not end after its answer keeps nobody.
func TestPostStreamStays(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		events(w, "data: %s\n\n", answer)
		<-r.Context().Done()
	})
	to, l := open(t, s.URL, origin.Options{}, false)
	if err := l.Send(t.Context(), call(protocol.V20260728)); err != nil || len(to.Texts()) != 1 {
		t.Errorf("%v, %q", err, to.Texts())
	}
}

// A batch ends with the last of its answers.
func TestPostBatch(t *testing.T) {
	const second = `{"jsonrpc":"2.0","id":2,"result":{}}`
	for name, write := range map[string]func(w http.ResponseWriter){
		"JSON":           func(w http.ResponseWriter) { writeJSON(w, "["+answer+","+second+"]") },
		"one event":      func(w http.ResponseWriter) { events(w, "data: [%s,%s]\n\n", answer, second) },
		"several events": func(w http.ResponseWriter) { events(w, "data: %s\n\ndata: [%s]\n\n", second, answer) },
	} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request, _ int) {
			write(w)
			if name != "JSON" {
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done() // more may come
			}
		})
		to, l := open(t, s.URL, origin.Options{}, false)
		one, two := call(protocol.V20250326), linktest.Call(protocol.V20250326, 2, "ping")
		batch := &link.Message{Body: fmt.Appendf(nil, "[%s,%s]", one.Body, two.Body), Revision: protocol.V20250326}
		if err := l.Send(t.Context(), batch); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := strings.Join(to.Texts(), ""); !strings.Contains(got, answer) || !strings.Contains(got, second) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// A refusal for want of rights keeps its status, with the answer in it.
func TestPostForbidden(t *testing.T) {
	for _, code := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
			w.WriteHeader(code)
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"error":{"code":4711,"message":"no"}}`)
		})
		to, l := open(t, s.URL, origin.Options{}, false)
		err := l.Send(t.Context(), call(protocol.V20260728))
		status, ok := errors.AsType[*origin.StatusError](err)
		fault, known := errors.AsType[*protocol.Error](err)
		if !ok || status.Code != code || !status.Answers || !known || fault.Code != 4711 || len(to.Texts()) != 0 {
			t.Errorf("%d: %#v, received %q", code, err, to.Texts())
		}
	}
}
