package browsertest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
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

// aPath is one of more values than a form shows at once.
type aPath string

func (aPath) Enum() []aPath {
	list := make([]aPath, 300)
	for n := range list {
		list[n] = aPath(fmt.Sprint("path-", n))
	}
	return list
}

type pathIn struct {
	Path aPath `json:"path" validate:"required"`
}

// odd is what an event says that is hard to show: names of JavaScript, signs that are not seen, markup, and much.
func odd(n int) map[string]any {
	data := map[string]any{"__proto__": n, "constructor": "pay\u202enoisrev", "a pay\u202enoisrev": "<img src=x onerror=alert(1)>", "": nil}
	for i := range 50 {
		data[fmt.Sprint("member ", i)] = []any{map[string]any{"toString": i}}
	}
	return data
}

// comments is how many events of a document a server has for those who watch it.
const comments = 12

// serveEvents is a server that emits an event ten times a second. More can be paths, for a second
// event type whose argument has many values, or odd, for one whose events are hard to show.
func serveEvents(more string) {
	s := mcp.NewServer(mcp.Info{Name: "docs", Version: "1.0.0"}, nil)
	var had atomic.Int64
	s.MustAdd(mcp.EventType("comment.created", func(_ *mcp.Frame, in watchIn, c comment) (bool, error) {
		return in.Document == c.Document && had.Add(1) <= comments, nil
	}, mcp.Doc("A comment was added")))
	if more == "odd" {
		s.MustAdd(mcp.EventType("odd", func(*mcp.Frame, struct{}, map[string]any) (bool, error) { return true, nil }))
	}
	if more == "paths" {
		s.MustAdd(mcp.EventType("file.changed", func(*mcp.Frame, pathIn, comment) (bool, error) { return true, nil }))
	}
	ctx := context.Background()
	go func() {
		n := 0
		for range time.Tick(100 * time.Millisecond) {
			n++
			if err := s.Emit(ctx, mcp.Occurrence{Name: "comment.created", Data: comment{"doc_1", fmt.Sprint("Comment ", n)}, ID: fmt.Sprint("comment-", n)}); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
			if more == "odd" {
				if err := s.Emit(ctx, mcp.Occurrence{Name: "odd", Data: odd(n), ID: fmt.Sprint("<b>odd</b>", n)}); err != nil {
					fmt.Fprintln(os.Stderr, err)
				}
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
	b.until(fmt.Sprintf(`document.querySelector('.result[data-state=running] .view table')?.rows.length > %d`, comments))
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
		t.Error("the first event has no time")
	}
}

// TestEventForm: values of an argument are found among many, and what was typed over the arguments of a link stays
// when the user comes back to it.
func TestEventForm(t *testing.T) {
	t.Parallel()
	b := inspectPage(t, fixture(t, "events", "paths"))
	typed := func(into, text string) {
		eval[bool](b, `(e => { e.value = `+quote(text)+`; return e.dispatchEvent(new Event('input', { bubbles: true })) })(document.querySelector(`+quote(into)+`))`)
	}
	b.until(`document.querySelectorAll('section[aria-label=Events] button[data-tool]').length === 2`)
	b.open(eval[string](b, `location.href.split('#')[0]`) + `#event=comment.created&arguments={"document":"doc_1"}`)
	b.until(`document.querySelector('.ask h2')?.innerText === 'comment.created' && document.querySelector('.ask input')?.value === 'doc_1'`)
	typed(".ask input", "doc_2")
	eval[bool](b, `([...document.querySelectorAll('section[aria-label=Events] button[data-tool]')].find(e => e.innerText.includes('file.changed')).click(), true)`)
	b.until(`document.querySelector('.combo select')?.options.length === 50`)
	typed(".combo input", "path-299")
	b.until(`document.querySelector('.combo select').options.length === 1 && document.querySelector('.combo select').innerText.includes('path-299')`)
	eval[bool](b, `(history.back(), true)`)
	b.until(`document.querySelector('.ask h2')?.innerText === 'comment.created' && document.querySelector('.ask input')`)
	b.until(`document.querySelector('.ask input').value === 'doc_2'`)
}

// TestHostileEvents: events that are hard to show are shown, as text and in few elements.
func TestHostileEvents(t *testing.T) {
	t.Parallel()
	b := inspectPage(t, fixture(t, "events", "odd"))
	b.until(`document.querySelectorAll('section[aria-label=Events] button[data-tool]').length === 2`)
	b.few()
	b.call("odd")
	b.until(`document.querySelector('.result[data-state=running] .view')?.innerText.includes('member 0')`)
	b.until(`+/(\d+) events received/.exec(document.querySelector('.result').innerText)?.[1] > 30`)
	b.few()
	shown := eval[string](b, `document.querySelector('.view').innerText`)
	for _, want := range []string{"__proto__", "constructor", "pay�noisrev", "<img src=x onerror=alert(1)>"} {
		if !strings.Contains(shown, want) {
			t.Errorf("%q is not shown: %.500s", want, shown)
		}
	}
	if strings.ContainsRune(shown, '\u202e') {
		t.Error("a sign that turns the direction of writing is shown")
	}
}
