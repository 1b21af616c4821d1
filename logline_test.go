package mcp_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/middleware"
	"github.com/talaria-go/mcp/protocol"
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
