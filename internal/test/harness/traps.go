package harness

import (
	"bytes"
	"context"
	"io"
	"runtime"
	"strings"
	"sync"

	"github.com/invopop/jsonschema"
	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/schema"
)

// SecretText is what users' code panics with here. No peer may hear it.
const SecretText = "pa55phrase"

// Ways are how code may fail to return.
var Ways = map[string]func(){
	"panic":  func() { panic(SecretText) },
	"goexit": runtime.Goexit,
}

// LogText is a log that may be read while it is written.
type LogText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *LogText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *LogText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// The traps fail as their value says, wherever they are used.
type (
	trapText   struct{}
	trapJSON   struct{}
	trapStruct struct {
		Way string `json:"way"`
	}
	trapAnswer struct{ way string }
	trapError  struct{ way string }
)

func (t *trapText) UnmarshalText(text []byte) error { Ways[string(text)](); return nil }

func (t *trapJSON) UnmarshalJSON(text []byte) error {
	Ways[strings.Trim(string(text), `"`)]()
	return nil
}

func (trapJSON) JSONSchema() *jsonschema.Schema { return &jsonschema.Schema{Type: "string"} }

func (trapAnswer) JSONSchema() *jsonschema.Schema { return &jsonschema.Schema{Type: "object"} }

func (t trapAnswer) MarshalJSON() ([]byte, error) { Ways[t.way](); return []byte("{}"), nil }

func (t trapError) Error() string { Ways[t.way](); return "" }

type wayIn struct {
	Way string `json:"way"`
}

// TrapServer returns a server whose tools do not return, and one that does.
func TrapServer(log io.Writer, opts mcp.Options, how ...mcp.ToolOption) *mcp.Server {
	if opts.Logger == nil {
		logger := zerolog.New(log)
		opts.Logger = &logger
	}
	if opts.Schema == nil {
		opts.Schema = &schema.Options{}
	}
	opts.Schema = &schema.Options{
		Localize: opts.Schema.Localize,
		Formats:  map[string]func(string) bool{"never": func(way string) bool { Ways[way](); return true }},
		Rules: []schema.Rule{schema.NewRule("never", func(_ context.Context, way, _ string) error {
			Ways[way]()
			return nil
		}, schema.Describe("never returns")), schema.NewStructRule("never returns", func(_ context.Context, v *trapStruct) error {
			Ways[v.Way]()
			return nil
		})},
	}
	s := mcp.NewServer(mcp.Info{Name: "traps", Version: "1"}, &opts)
	s.MustAdd(
		mcp.Tool("fine", func(*mcp.Frame, struct{}) (string, error) { return "all is well", nil }),
		mcp.Tool("handler", func(_ *mcp.Frame, in wayIn) (string, error) { Ways[in.Way](); return "", nil }, how...),
		mcp.Tool("text", func(*mcp.Frame, struct {
			Way trapText `json:"way"`
		}) (string, error) {
			return "", nil
		}, how...),
		mcp.Tool("json", func(*mcp.Frame, struct {
			Way trapJSON `json:"way"`
		}) (string, error) {
			return "", nil
		}, how...),
		mcp.Tool("structrule", func(*mcp.Frame, trapStruct) (string, error) { return "", nil }, how...),
		mcp.Tool("rule", func(*mcp.Frame, struct {
			Way string `json:"way" validate:"never"`
		}) (string, error) {
			return "", nil
		}, how...),
		mcp.Tool("format", func(*mcp.Frame, struct {
			Way string `json:"way" jsonschema:"format=never"`
		}) (string, error) {
			return "", nil
		}, how...),
		mcp.Tool("result", func(_ *mcp.Frame, in wayIn) (struct {
			X trapAnswer `json:"x"`
		}, error) {
			return struct {
				X trapAnswer `json:"x"`
			}{trapAnswer{in.Way}}, nil
		}, how...),
		mcp.Tool("error", func(_ *mcp.Frame, in wayIn) (string, error) { return "", trapError{in.Way} }, how...),
		mcp.Tool("data", func(_ *mcp.Frame, in wayIn) (string, error) {
			return "", &mcp.Error{Code: 1, Message: "no", Data: trapAnswer{in.Way}}
		}, how...),
	)
	return s
}
