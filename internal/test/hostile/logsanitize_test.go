package hostile_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/middleware"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
	"github.com/talaria-go/mcp/transport"
)

// What a client names reaches the log without control characters, and not in
// any length.
func TestLogOfHostileNames(t *testing.T) {
	var log bytes.Buffer
	logger := zerolog.New(&log)
	s := mcp.NewServer(protocol.Implementation{Name: "s", Version: "1"}, &mcp.Options{Logger: &logger})
	s.Use(middleware.Logging(logger))
	s.MustAdd(mcp.Tool("fails", func(_ *mcp.Frame, in struct {
		Name string `json:"name"`
	}) (string, error) {
		return "", fmt.Errorf("no such thing: %s", in.Name)
	}), mcp.Tool("panics", func(_ *mcp.Frame, in struct {
		Name string `json:"name"`
	}) (string, error) {
		panic(in.Name)
	}))
	nasty, err := json.Marshal("x\u009b31m\u202e\u200b\u2028\x1b]0;" + strings.Repeat("y", 20_000))
	if err != nil {
		t.Fatal(err)
	}
	near, far := transport.Pipe()
	served := make(chan error, 1)
	go func() { served <- s.ServeConn(t.Context(), far) }()
	for i, line := range []string{
		`"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":%s,"version":"1"}}`,
		`"method":%s`, `"method":"tools/call","params":{"name":%s}`, `"method":"tools/call","params":{"name":"fails","arguments":{"name":%s}}`,
		`"method":"tools/call","params":{"name":"panics","arguments":{"name":%s}}`, `"method":"prompts/get","params":{"name":%s}`,
		`"method":"resources/read","params":{"uri":%s}`, `"method":"logging/setLevel","params":{"level":%s}`,
	} {
		if err := near.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,`+line+"}", i, nasty)); err != nil {
			t.Fatal(err)
		}
		if _, err := near.Read(); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if err := near.Write([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := near.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%s}`, nasty)); err != nil {
		t.Fatal(err)
	}
	_ = near.Close()
	if err := <-served; err != nil {
		t.Error(err)
	}
	lines := strings.Split(strings.TrimSuffix(log.String(), "\n"), "\n")
	if len(lines) < 10 {
		t.Errorf("only %d lines:\n%.3000s", len(lines), log.String())
	}
	for _, line := range lines {
		if len(line) > 10_000 && !strings.Contains(line, `"stack"`) || len(line) > 30_000 {
			t.Errorf("%d bytes: %.200q", len(line), line)
		}
		for _, r := range line {
			if unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Zl) {
				t.Errorf("%U in %.300q", r, line)
				break
			}
		}
	}
}

// No call that ended with an error of JSON-RPC is logged as a success, by the log at level
// debug or by middleware.Logging: whatever made the error, and after whichever middleware.
func TestLogHasTheCode(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		call       func(*mcp.Frame) (string, error)
		use        mcp.Middleware
	}{
		{"fine", ``, func(*mcp.Frame) (string, error) { return "x", nil }, nil},
		{"a failed tool", `"failed":true`, func(*mcp.Frame) (string, error) { return "", errors.New("x") }, nil},
		{"a protocol error", `"code":-32602`, func(*mcp.Frame) (string, error) {
			return "", mcp.Errorf(mcp.CodeInvalidParams, "x")
		}, nil},
		{"a wrapped error without a code", `"code":-32603`, func(*mcp.Frame) (string, error) {
			return "", fmt.Errorf("x: %w", &mcp.Error{Message: "y"})
		}, nil},
		{"a panic", `"code":-32603`, func(*mcp.Frame) (string, error) { panic("x") }, nil},
		{"middleware with a plain error", `"code":-32603`, nil, func(mcp.Handler) mcp.Handler {
			return func(*mcp.Frame) (protocol.Result, error) { return nil, errors.New("x") }
		}},
		{"a result that does not encode", `"code":-32603`, nil, func(mcp.Handler) mcp.Handler {
			return func(*mcp.Frame) (protocol.Result, error) {
				return protocol.JSONResult{Value: make(chan int)}, nil
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, level := range []zerolog.Level{zerolog.DebugLevel, zerolog.InfoLevel} {
				var log harness.LogText
				logger := zerolog.New(&log).Level(level)
				s := mcp.NewServer(protocol.Implementation{Name: "s", Version: "1"}, &mcp.Options{Logger: &logger})
				if level == zerolog.InfoLevel {
					s.Use(middleware.Logging(logger))
				}
				if tt.use != nil {
					s.Use(func(next mcp.Handler) mcp.Handler {
						own := tt.use(next)
						return func(f *mcp.Frame) (protocol.Result, error) {
							if f.Request().Method == protocol.MethodToolsCall {
								return own(f)
							}
							return next(f)
						}
					})
				}
				call := tt.call
				if call == nil {
					call = func(*mcp.Frame) (string, error) { return "", nil }
				}
				s.MustAdd(mcp.Tool("t", func(f *mcp.Frame, _ struct{}) (string, error) { return call(f) }))
				d := harness.Direct{T: t, S: s}
				id := d.Open("client")
				d.Do("POST", id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
				d.Do("POST", id, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"t","arguments":{}}}`)
				n := 0
				for line := range strings.SplitSeq(log.String(), "\n") {
					if strings.Contains(line, `"method":"tools/call"`) && (strings.Contains(line, `"message":"handled"`) || strings.Contains(line, `"message":"request"`)) {
						n++
						if !strings.Contains(line, tt.want) || tt.want == "" && (strings.Contains(line, `"code"`) || strings.Contains(line, `"failed"`)) {
							t.Errorf("%v: %s, want %s", level, line, tt.want)
						}
					}
				}
				if n != 1 {
					t.Errorf("%v: %d lines: %s", level, n, log.String())
				}
			}
		})
	}
}

// An answer to no question that waits is dropped, which the log says at level debug: once in
// a while, as clients can send any number.
func TestLogOfUnaskedAnswers(t *testing.T) {
	const answer = `{"jsonrpc":"2.0","id":"nobody","result":{}}`
	for name, send := range map[string]func(d harness.Direct){
		"a session of HTTP": func(d harness.Direct) {
			id := d.Open("client")
			for range 3 {
				d.Do("POST", id, answer)
			}
		},
		"a connection": func(d harness.Direct) {
			near, far := transport.Pipe()
			served := make(chan error, 1)
			go func() { served <- d.S.ServeConn(t.Context(), far) }()
			for _, line := range []string{harness.InitLine, answer, answer, answer} {
				if err := near.Write([]byte(line)); err != nil {
					t.Fatal(err)
				}
			}
			_ = near.Close()
			<-served
		},
	} {
		t.Run(name, func(t *testing.T) {
			var log harness.LogText
			logger := zerolog.New(&log)
			s := mcp.NewServer(protocol.Implementation{Name: "s", Version: "1"}, &mcp.Options{Logger: &logger})
			send(harness.Direct{T: t, S: s})
			if n := strings.Count(log.String(), `"id":"\"nobody\"","message":"an answer to no question that waits"`); n != 1 {
				t.Errorf("%d lines in %s", n, log.String())
			}
		})
	}
}

// A value that other replicas should get and that does not encode is reported once for a
// session, by name.
func TestLogOfUnsavedValues(t *testing.T) {
	var log harness.LogText
	logger := zerolog.New(&log)
	s := mcp.NewServer(protocol.Implementation{Name: "s", Version: "1"}, &mcp.Options{Logger: &logger, Store: scale.NewLocal(), StateKeys: harness.SharedKeys})
	t.Cleanup(func() { _ = s.Shutdown(t.Context()) })
	s.MustAdd(mcp.Tool("t", func(f *mcp.Frame, _ struct{}) (string, error) {
		f.Set("ratio", math.NaN())
		f.Set("fine", time.Now().String())
		return "", nil
	}))
	d := harness.Direct{T: t, S: s}
	id := d.Open("client")
	d.Do("POST", id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for i := range 3 {
		d.Do("POST", id, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"t","arguments":{}}}`, i+2))
	}
	if n := strings.Count(log.String(), `the value \"ratio\" does not encode`); n != 1 {
		t.Errorf("%d lines in %s", n, log.String())
	}
}
