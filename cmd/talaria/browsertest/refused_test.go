package browsertest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// docstring is a description as Python has it: broken where a line is full, and indented.
const docstring = `Draws a chart of the rows that are given, with one slice for each
    of them, and writes it to a file.

    Args:
        data: the rows
        title: what stands above`

// TestRefused: a call that is refused moves the focus to the first control with a problem, or to
// the button of an empty list. Descriptions flow. Lines of standard error are not messages.
func TestRefused(t *testing.T) {
	t.Parallel()
	b := inspectPage(t, fixture(t, "raw-says", `{"name":"sized","inputSchema":{"type":"object","required":["title","size"],"properties":{"title":{"type":"string"},"size":{"type":"integer"}}}},`+
		`{"name":"drawn","description":`+quote(docstring)+`,"inputSchema":{"type":"object","required":["title","data"],"properties":{"title":{"type":"string"},"data":{"type":"array","minItems":1,"items":{"type":"integer"}}}}}`))
	b.choose("sized")
	b.ctrl(enter)
	b.until(`document.activeElement.labels?.[0]?.innerText.startsWith('size') && document.activeElement.ariaInvalid === 'true'`)
	b.pick("drawn")
	if got, want := eval[string](b, `document.querySelector('.ask .description').innerText`), "Draws a chart of the rows that are given, with one slice for each of them, and writes it to a file.\n\nArgs:\n    data: the rows\n    title: what stands above"; got != want {
		t.Errorf("the description is %q, and not %q", got, want)
	}
	b.ctrl(enter)
	b.until(`document.activeElement.innerText === '+ add to data'`)
	b.press(enter)
	b.until(`document.activeElement.ariaLabel === 'data 0'`)
	b.press("7")
	b.ctrl(enter)
	b.until(`document.querySelector('[data-state=done]')`)
	b.until(`/^1 call, \d+ messages, 2 lines of stderr$/.test(document.querySelector('.traffic .bar .num').innerText)`)
	messages := eval[int](b, `+/(\d+) messages/.exec(document.querySelector('.traffic .bar').innerText)[1]`)
	b.tabTo("Traffic")
	b.press(enter)
	b.until(`document.querySelectorAll('.traffic tr.stderr').length === 2`)
	if rows := eval[int](b, `document.querySelectorAll('.traffic tbody tr:not(.stderr)').length`); rows != messages {
		t.Errorf("%d messages, and %d rows that are not lines of standard error", messages, rows)
	}
}

// TestBelow: a call moves the page to its result where that is below a long form.
func TestBelow(t *testing.T) {
	t.Parallel()
	var members []string
	for _, name := range strings.Split("abcdefghijklmnop", "") {
		members = append(members, quote(name)+`:{"type":"string"}`)
	}
	b := inspectPage(t, fixture(t, "raw-says", `{"name":"long","inputSchema":{"type":"object","properties":{`+strings.Join(members, ",")+`}}}`))
	b.choose("long")
	for n, width := range []int64{900, 320} {
		b.do(chromedp.EmulateViewport(width, 700))
		b.until(fmt.Sprintf(`innerWidth === %d && (document.querySelector('.ask h2').scrollIntoView(), document.querySelector('.side').getBoundingClientRect().top > innerHeight)`, width))
		b.ctrl(enter)
		b.until(fmt.Sprintf(`(r => r && r.top >= 0 && r.bottom <= innerHeight)(document.querySelector('.result[data-state=done][aria-label="Call %d"] .bar')?.getBoundingClientRect())`, n+1))
		b.until(`document.querySelector('.side').getBoundingClientRect().top < 100 && document.activeElement.closest('.ask')`) // still
	}
}
