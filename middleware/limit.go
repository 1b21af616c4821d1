package middleware

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// ConcurrencyLimit allows at most limit concurrent requests, over all clients; less than
// 1 counts as 1. Those beyond that wait for as long as wait and are then refused; 0
// refuses them at once. Only requests that run handlers count: the handshake, lists and
// subscriptions do not. A handler that waits for its client's answer, in legacy
// revisions, keeps its place. A call that a handler makes with mcp.Server.Call runs in
// the place of that.
func ConcurrencyLimit(limit int, wait time.Duration) mcp.Middleware {
	places := make(chan struct{}, max(1, limit))
	return func(next mcp.Handler) mcp.Handler {
		return func(f *mcp.Frame) (protocol.Result, error) {
			if !runsHandler(f) || f.Outer() != nil {
				return next(f)
			}
			if err := enter(f, places, wait); err != nil {
				return nil, err
			}
			defer func() { <-places }()
			return next(f)
		}
	}
}

// enter takes a place, waiting for one if need be. It returns an error if none
// becomes free in time.
func enter(f *mcp.Frame, places chan struct{}, wait time.Duration) error {
	select {
	case places <- struct{}{}:
		return nil
	default:
	}
	full := busy(0, "The server has %d requests in progress, the limit", cap(places))
	if wait <= 0 {
		return full
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case places <- struct{}{}:
		return nil
	case <-timer.C:
		return full
	case <-f.Done():
		return context.Cause(f)
	}
}

// ResultSizeLimit bounds the results of handlers to limit bytes on the wire. Text of a
// tool is cut at the end of a line, or of a character, and says so:
//
//	[cut: 40,000 of 1,203,551 bytes; ask for less, with a filter or a limit]
//
// Structured content would not match its schema any more, and media could not be read:
// such a result of a tool becomes one that tells the model its size, and results of
// others become an error. mcp.Page makes results that fit. 0 or less means no limit. The
// result is encoded before it is measured: this guards clients, and the model's context,
// not the server's memory. Results of tasks are not measured.
func ResultSizeLimit(limit int) mcp.Middleware {
	return func(next mcp.Handler) mcp.Handler {
		if limit <= 0 {
			return next
		}
		return func(f *mcp.Frame) (protocol.Result, error) {
			result, err := next(f)
			if err != nil || result == nil || !runsHandler(f) {
				return result, err
			}
			return &sized{Result: result, limit: limit, method: f.Request().Method}, nil
		}
	}
}

// sized is a result with a limit, which is applied when it is encoded: how long
// a result is depends on the revision, and encoding it here as well would do
// the work twice. Other middleware that looks at results has to unwrap it (wire.Unwrap).
type sized struct {
	protocol.Result
	limit  int
	method string
}

// Append implements wire.Result. What exceeds the limit is overwritten: dst
// then has nothing but the result that takes its place.
func (r *sized) Append(dst []byte, to wire.To) ([]byte, error) {
	start := len(dst)
	grown, err := wire.AppendResult(dst, r.Result, to)
	if err != nil || len(grown)-start <= r.limit {
		return grown, err
	}
	text := fmt.Sprintf("The result has %d bytes, over the limit of %d. Ask for less.", len(grown)-start, r.limit)
	if r.method != protocol.MethodToolsCall {
		return nil, protocol.Errorf(protocol.CodeInternal, "%s", text)
	}
	if short, ok := shortened(grown[start:], r.limit); ok {
		return append(dst[:start], short...), nil
	}
	return wire.AppendResult(dst[:start], failed(text), to)
}

// Unwrap implements wire.Wrapper.
func (r *sized) Unwrap() protocol.Result { return r.Result }

// shownResult is the JSON of a tool's result.
type shownResult struct {
	ResultType json.RawMessage   `json:"resultType,omitempty"`
	Structured json.RawMessage   `json:"structuredContent,omitempty"`
	Content    []json.RawMessage `json:"content"`
	IsError    bool              `json:"isError,omitempty"`
	Meta       json.RawMessage   `json:"_meta,omitempty"`
}

// shownText is an item of content, as far as it is of interest; Text is nil in one that
// is not a text.
type shownText struct {
	Type        string          `json:"type"`
	Text        *string         `json:"text"`
	Annotations json.RawMessage `json:"annotations,omitempty"`
	Meta        json.RawMessage `json:"_meta,omitempty"`
}

// shortened returns the encoded result of a tool within limit bytes, with less text: that
// of the first items stays. ok is false if there is no text that could go.
func shortened(encoded []byte, limit int) (short []byte, ok bool) {
	var r shownResult
	d := json.NewDecoder(bytes.NewReader(encoded))
	d.DisallowUnknownFields()
	if d.Decode(&r) != nil || r.Structured != nil {
		return nil, false
	}
	items, whole := make([]shownText, len(r.Content)), 0
	others := shownResult{ResultType: r.ResultType, Content: []json.RawMessage{}, IsError: r.IsError, Meta: r.Meta}
	for i, raw := range r.Content {
		if json.Unmarshal(raw, &items[i]) != nil {
			return nil, false
		}
		if items[i].Type == "text" && items[i].Text != nil {
			whole += len(*items[i].Text)
			continue
		}
		items[i].Text = nil
		others.Content = append(others.Content, raw)
	}
	left := limit - len(plainJSON(others))
	shown, content, full := 0, r.Content[:0], false
	for i, raw := range r.Content {
		item := &items[i]
		switch mark := cutMark(whole, whole); {
		case item.Text == nil:
			content = append(content, raw)
		case full:
		case len(raw)+1+len(mark)+len(`{"type":"text","text":""},`) <= left:
			content = append(content, raw)
			shown += len(*item.Text)
			left -= len(raw) + 1
		default:
			full = true
			room := left - 2 - len(mark) - (len(raw) - escapedLen(*item.Text))
			if room < 0 {
				return nil, false
			}
			kept := fitting(*item.Text, room)
			kept += cutMark(shown+len(kept), whole)
			item.Text = &kept
			content = append(content, plainJSON(item))
		}
	}
	r.Content = content
	short = plainJSON(r)
	return short, full && len(short) <= limit
}

// cutMark returns the line that says how much of a text is there.
func cutMark(shown, whole int) string {
	return fmt.Sprintf("\n[cut: %s of %s bytes; ask for less, with a filter or a limit]", grouped(shown), grouped(whole))
}

// grouped returns a number with commas, as in 1,203,551.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// plainJSON encodes without the escapes that HTML needs. Its argument always
// encodes.
func plainJSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // what was decoded encodes, and a buffer takes it
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// fitting returns the beginning of a text whose JSON has room bytes at most. It ends with
// a line, unless that would be less than half.
func fitting(text string, room int) string {
	end := len(text)
	for i, r := range text {
		if room -= escaped(r, text[i:]); room < 0 {
			end = i
			break
		}
	}
	if line := strings.LastIndexByte(text[:end], '\n'); end < len(text) && line >= end/2 {
		end = line
	}
	return text[:end]
}

// escapedLen returns the length of a text in JSON, without its quotes.
func escapedLen(text string) (n int) {
	for i, r := range text {
		n += escaped(r, text[i:])
	}
	return n
}

// escaped returns the length of r in JSON; rest begins with it.
func escaped(r rune, rest string) int {
	switch {
	case r == '"' || r == '\\' || r == '\n' || r == '\r' || r == '\t' || r == '\b' || r == '\f':
		return 2
	case r < ' ' || r == '\u2028' || r == '\u2029':
		return 6
	case r == utf8.RuneError && !strings.HasPrefix(rest, "\ufffd"): // not UTF-8
		return 6
	}
	return utf8.RuneLen(r)
}
