package middleware_test

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"regexp"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/time/rate"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/middleware"
)

type city struct {
	City string `json:"city,omitempty"`
}

// forecasts returns a server with one tool.
func forecasts(fn func(f *mcp.Frame, in city) (string, error)) *mcp.Server {
	quiet := zerolog.Nop()
	s := mcp.NewServer(mcp.Info{Name: "weather", Version: "1.0.0"}, &mcp.Options{Logger: &quiet})
	s.MustAdd(mcp.Tool("forecast", fn, mcp.ReadOnly()))
	return s
}

// ask calls that tool over HTTP and prints the answer.
func ask(s *mcp.Server) {
	r := httptest.NewRequest("POST", "/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call",`+
		`"params":{"name":"forecast","arguments":{"city":"Oslo"},"_meta":{`+
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`))
	for name, value := range map[string]string{"Content-Type": "application/json", "MCP-Protocol-Version": "2026-07-28",
		"Mcp-Method": "tools/call", "Mcp-Name": "forecast"} {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, r)
	answer, _, _ := strings.Cut(w.Body.String(), `,"_meta"`)
	answer, _, _ = strings.Cut(answer, " Try again in") // so many milliseconds
	fmt.Println(strings.TrimPrefix(answer, `{"jsonrpc":"2.0","id":1,`))
}

// The log names what was called and never what was said. Here the time, which
// differs from run to run, is taken out.
func ExampleLogging() {
	var log bytes.Buffer
	s := forecasts(func(*mcp.Frame, city) (string, error) { return "", &mcp.Error{Code: 4711, Message: "no data"} })
	s.Use(middleware.Logging(zerolog.New(&log)))

	ask(s)
	fmt.Print(regexp.MustCompile(`"ms":[0-9.e-]+`).ReplaceAllString(log.String(), `"ms":…`))
	// Output:
	// "error":{"code":4711,"message":"no data"}}
	// {"level":"info","method":"tools/call","name":"forecast","revision":"2026-07-28","ms":…,"code":4711,"message":"handled"}
}

func ExampleTiming() {
	s := forecasts(func(*mcp.Frame, city) (string, error) { return "sunny", nil })
	s.Use(middleware.Timing(func(f *mcp.Frame, took time.Duration, err error) {
		fmt.Println(f.Request().Method, took < time.Minute, err)
	}))

	ask(s)
	// Output:
	// tools/call true <nil>
	// "result":{"resultType":"complete","content":[{"type":"text","text":"sunny"}]
}

// Each client may call each tool once every five minutes.
func ExampleRateLimit() {
	s := forecasts(func(*mcp.Frame, city) (string, error) { return "sunny", nil })
	s.Use(middleware.RateLimit(&middleware.RateLimitOptions{Rate: rate.Every(5 * time.Minute), Burst: 1}))

	ask(s)
	ask(s)
	// Output:
	// "result":{"resultType":"complete","content":[{"type":"text","text":"sunny"}]
	// "error":{"code":429,"message":"Too many calls of tool \"forecast\": the limit is 1 in 5m0s.
}

// At most four calls run at a time; others wait for a second.
func ExampleConcurrencyLimit() {
	s := forecasts(func(*mcp.Frame, city) (string, error) { return "sunny", nil })
	s.Use(middleware.ConcurrencyLimit(4, time.Second))

	ask(s)
	// Output:
	// "result":{"resultType":"complete","content":[{"type":"text","text":"sunny"}]
}

func ExampleResultSizeLimit() {
	s := forecasts(func(*mcp.Frame, city) (string, error) { return strings.Repeat("rain\n", 40), nil })
	s.Use(middleware.ResultSizeLimit(256))

	ask(s)
	// Output:
	// "result":{"resultType":"complete","content":[{"type":"text","text":"rain\nrain\nrain\nrain\nrain\nrain\nrain\n[cut: 34 of 200 bytes; ask for less, with a filter or a limit]"}]
}

// The tool runs once; the second call gets what the first one got.
func ExampleCache() {
	s := forecasts(func(_ *mcp.Frame, in city) (string, error) {
		fmt.Println("asking the weather service")
		return "sunny in " + in.City, nil
	})
	s.Use(middleware.Cache(s, &middleware.CacheOptions{TTL: time.Minute}))

	ask(s)
	ask(s)
	// Output:
	// asking the weather service
	// "result":{"resultType":"complete","content":[{"type":"text","text":"sunny in Oslo"}]
	// "result":{"resultType":"complete","content":[{"type":"text","text":"sunny in Oslo"}]
}
