package harness

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
)

type AddIn struct {
	A int `json:"a" jsonschema_description:"first summand"`
	B int `json:"b" jsonschema_description:"second summand"`
}

type SumOut struct {
	Sum int `json:"sum"`
}

type SearchIn struct {
	Query  string   `json:"query" validate:"required,max=80" jsonschema_description:"what to look for"`
	Limit  int      `json:"limit,omitempty" validate:"min=1,max=100" jsonschema:"default=10"`
	Sort   string   `json:"sort,omitempty" validate:"oneof=date title"`
	Tags   []string `json:"tags,omitempty" validate:"max=5"`
	Region string   `json:"region,omitempty" mcp:"header=Region"`
}

type row struct {
	ID    int    `json:"id"`
	Title string `json:"title"`
}

// Fixture returns a server with a tool for each behaviour.
func Fixture(t testing.TB, opts *mcp.Options, middleware ...mcp.Middleware) *mcp.Server {
	t.Helper()
	if opts == nil {
		opts = &mcp.Options{Instructions: "Use the tools."}
	}
	if opts.Logger == nil {
		quiet := zerolog.Nop()
		opts.Logger = &quiet
	}
	s := mcp.NewServer(mcp.Info{Name: "fixture", Title: "Fixture", Version: "1.2.3", WebsiteURL: "https://example.com"}, opts)
	if opts.Store != nil { // then it has goroutines of its own
		t.Cleanup(func() { _ = s.Shutdown(context.Background()) })
	}
	s.Use(middleware...)
	s.MustAdd(
		mcp.Tool("add", func(_ *mcp.Frame, in AddIn) (SumOut, error) { return SumOut{in.A + in.B}, nil },
			mcp.Doc("Adds two integers"), mcp.Title("Addition"), mcp.ReadOnly(), mcp.Icons(protocol.Icon{Src: "https://example.com/add.png"})),
		mcp.Tool("search", func(_ *mcp.Frame, in SearchIn) ([]row, error) {
			rows := []row{}
			for i := range min(in.Limit, 2) {
				rows = append(rows, row{i + 1, in.Query})
			}
			return rows, nil
		}, mcp.Doc("Searches"), mcp.Meta("com.example/cost", 1)),
		mcp.Tool("greet", func(_ context.Context, in struct {
			Name string `json:"name"`
		}) (string, error) {
			return "Hello, " + in.Name + "!", nil
		}),
		mcp.Tool("nothing", func(*mcp.Frame, struct{}) (struct{}, error) { return struct{}{}, nil }),
		mcp.Tool("media", func(*mcp.Frame, struct{}) (*mcp.Result, error) {
			return mcp.NewResult().Text("see").Image([]byte("png"), "image/png").Audio([]byte("wav"), "audio/wav").
				Add(mcp.ResourceLink{URI: "file:///a.txt", Name: "a.txt"}).
				Add(mcp.EmbeddedResource{Resource: mcp.ResourceContents{URI: "file:///b.txt", Text: "b"}}).Meta("com.example/k", "v"), nil
		}),
		mcp.Tool("fail", func(*mcp.Frame, struct{}) (string, error) { return "", errors.New("disk full") }),
		mcp.Tool("refuse", func(*mcp.Frame, struct{}) (string, error) {
			return "", fmt.Errorf("wrapped: %w", &mcp.Error{Code: 4711, Message: "not today", Data: map[string]int{"retryAfter": 60}})
		}),
		mcp.Tool("panic", func(*mcp.Frame, struct{}) (string, error) { panic("secret") }),
		mcp.Tool("progress", func(f *mcp.Frame, _ struct{}) (string, error) {
			for i := 1; i <= 2; i++ {
				if err := f.Progress(float64(i), 2, fmt.Sprintf("step %d", i)); err != nil {
					return "", err
				}
			}
			return "done", nil
		}),
		mcp.Tool("log", func(f *mcp.Frame, _ struct{}) (string, error) {
			_ = f.Log(protocol.LevelDebug, "fine detail")
			_ = f.Log(protocol.LevelWarning, map[string]any{"free": 3}, "disk")
			return "logged", nil
		}),
		mcp.Tool("count", func(f *mcp.Frame, _ struct{}) (int, error) {
			return counter.Update(f, func(n int) int { return n + 1 }), nil
		}),
		mcp.Tool("slow", func(f *mcp.Frame, _ struct{}) (string, error) {
			<-f.Done()
			return "", context.Cause(f)
		}, mcp.Timeout(time.Minute)),
	)
	s.MustAdd(offerFixture()...)
	return s
}

var counter = mcp.NewKey[int]("counter")
