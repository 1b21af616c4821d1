package browsertest

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
)

type watchIn struct {
	Document string `json:"document" validate:"required" jsonschema_description:"id of the document to watch"`
}

type comment struct {
	Document string `json:"document"`
	Text     string `json:"text"`
}

// serveEvents is a server that emits an event ten times a second.
func serveEvents() {
	s := mcp.NewServer(mcp.Info{Name: "docs", Version: "1.0.0"}, nil)
	s.MustAdd(mcp.EventType("comment.created", func(_ *mcp.Frame, in watchIn, c comment) (bool, error) { return in.Document == c.Document, nil }, mcp.Doc("A comment was added")))
	ctx := context.Background()
	go func() {
		n := 0
		for range time.Tick(100 * time.Millisecond) {
			n++
			if err := s.Emit(ctx, mcp.Occurrence{Name: "comment.created", Data: comment{"doc_1", fmt.Sprint("Comment ", n)}, ID: fmt.Sprint("comment-", n)}); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}
	}()
	if err := s.ServeStdio(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// watchComments watches the events of a document.
func watchComments(b *tab) {
	b.until(`document.querySelector('section[aria-label=Events] button[data-tool]')?.innerText.includes('comment.created')`)
	b.until(`document.querySelector('.ask input')`) // a form that is open takes the arguments of a link, too
	b.open(eval[string](b, `location.href.split('#')[0]`) + `#event=comment.created&arguments={"document":"doc_1"}`)
	b.until(`document.querySelector('.ask h2')?.innerText === 'comment.created' && document.querySelector('.ask input')?.value === 'doc_1'`)
	b.ctrl(enter)
	b.until(`document.querySelector('.result[data-state=running] .view table')?.rows.length > 3`)
}

// TestEvents: events of a type are watched with its arguments, shown as they come, and kept when it is stopped.
func TestEvents(t *testing.T) {
	t.Parallel()
	b := inspectPage(t, fixture(t, "events"))
	watchComments(b)
	b.until(`document.querySelector('section[aria-label=Running] li').innerText.includes('events')`)
	b.reads("received. The newest come first.")
	b.tabTo("Cancel")
	b.press(enter)
	b.until(`document.querySelector('.result[data-state=done] .view table')?.rows.length > 3 && !document.querySelector('section[aria-label=Running]')`)
	if got := eval[string](b, `document.querySelector('.view tr:nth-child(1) td').innerText`); got == "" {
		t.Error("the first event has no id")
	}
}
