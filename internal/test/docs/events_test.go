package docs_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/mcptest"
)

type Watch struct {
	Document string `json:"document" validate:"required" jsonschema_description:"id of the document to watch"`
}

type Comment struct {
	Document string `json:"document"`
	Text     string `json:"text"`
}

func concerns(f *mcp.Frame, in Watch, c Comment) (bool, error) {
	return in.Document == c.Document, nil
}

func TestEvents(t *testing.T) {
	s := mcp.NewServer(mcp.Info{Name: "docs", Version: "1.0.0"}, &mcp.Options{Webhooks: &mcp.WebhookOptions{}})
	s.MustAdd(mcp.EventType("comment.created", concerns, mcp.Doc("A comment was added")))
	s.MustAdd(mcp.Tool("add_comment", func(ctx context.Context, in Comment) (string, error) {
		err := s.Emit(ctx, mcp.Occurrence{Name: "comment.created", Data: Comment{"doc_1", "Hello"}, ID: "comment-17"})
		return "added", err
	}))
	c := mcptest.New(t, s)
	w := c.Watch("comment.created", Watch{"doc_1"})
	c.Call("add_comment", Comment{"doc_1", "Hello"})
	event := w.Next()
	w.None()
	if event.ID != "comment-17" {
		t.Errorf("received %+v", event)
	}
}

func load() string { return "" }

func save(string) {}

// watch is the loop of the page. It compiles, and mcptest does what it does.
func watch(ctx context.Context, c *client.Client) error {
	from := &client.WatchOptions{Cursor: load(), Moved: func(cursor string, missed bool) { save(cursor) }}
	for event, err := range c.Watch(ctx, "comment.created", Watch{"doc_1"}, from) {
		if err != nil {
			return err
		}
		fmt.Printf("%s %s\n", event.Time, event.Data)
		save(event.Cursor)
	}
	return nil
}

var _ = watch
