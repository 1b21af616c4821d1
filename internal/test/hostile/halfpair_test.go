package hostile_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
)

// halfPair is the escape of half a surrogate pair, which no text of Unicode has.
const halfPair = `{"text":"a\ud83d","\udc00":1}`

// Half a surrogate pair is never written, whoever has put it into raw JSON: it becomes
// U+FFFD, or the result is an error.
func TestHalfPairsAreNotWritten(t *testing.T) {
	raw := json.RawMessage(halfPair)
	for _, rev := range []protocol.Revision{protocol.V20250618, protocol.V20260728} {
		for _, tr := range harness.TransportsOf(rev) {
			s := harness.Fixture(t, nil)
			s.MustAdd(
				mcp.Tool("raw", func(*mcp.Frame, struct{}) (json.RawMessage, error) { return raw, nil }),
				mcp.Tool("member", func(*mcp.Frame, struct{}) (struct{ A any }, error) { return struct{ A any }{raw}, nil }),
				mcp.Tool("fault", func(*mcp.Frame, struct{}) (string, error) {
					return "", &protocol.Error{Code: protocol.CodeInvalidParams, Message: "x", Data: raw}
				}),
				mcp.Tool("structured", func(*mcp.Frame, struct{}) (*mcp.Result, error) { return mcp.NewResult().Structured(raw), nil }),
				mcp.Tool("says", func(f *mcp.Frame, _ struct{}) (string, error) {
					_ = f.Log(protocol.LevelError, raw)
					return "said", f.Notify("notifications/acme/said", raw)
				}),
				mcp.Tool("told", func(f *mcp.Frame, _ struct{}) (string, error) {
					return "told", s.NotifyAll("notifications/acme/told", raw)
				}),
				mcp.Tool("whole", func(*mcp.Frame, struct{}) (string, error) { return "", nil }),
				mcp.Method("acme/own", func(*mcp.Frame, struct{}) (json.RawMessage, error) { return raw, nil }),
			)
			s.Use(func(next mcp.Handler) mcp.Handler {
				return func(f *mcp.Frame) (protocol.Result, error) {
					result, err := next(f)
					if _, name := f.Labels(); name == "whole" {
						return protocol.RawResult(`{"resultType":"complete","content":[{"type":"text","text":"a\ud83d"}],"_meta":{"x/y":` + halfPair + `}}`), nil
					}
					return result, err
				}
			})
			p := harness.Join(t, tr, rev, s)
			for _, name := range []string{"raw", "member", "fault", "structured", "says", "told", "whole"} {
				for _, line := range p.C.Say(p.Request("7", "tools/call", `"name":"`+name+`"`)) {
					if strings.Contains(line, `\ud83d`) || strings.Contains(line, `\udc00`) {
						t.Errorf("%s, %s, %s: %s", tr.Name, rev, name, line)
					}
				}
			}
			if line := p.Ask("acme/own", ""); strings.Contains(line, `\ud83d`) {
				t.Errorf("%s, %s: %s", tr.Name, rev, line)
			}
		}
	}
}

// Text of a peer is read as encoding/json does: half a surrogate pair, and a byte that is
// not UTF-8, is U+FFFD, wherever it stands. It costs no call.
func TestForeignText(t *testing.T) {
	type any4 struct {
		S string            `json:"s"`
		M map[string]string `json:"m"`
		A any               `json:"a"`
		R json.RawMessage   `json:"r"`
	}
	for _, rev := range []protocol.Revision{protocol.V20250326, protocol.V20250618, protocol.V20260728} {
		for _, tr := range harness.TransportsOf(rev) {
			s := harness.Fixture(t, nil)
			s.MustAdd(mcp.Tool("echo", func(_ *mcp.Frame, in any4) (any4, error) { return in, nil }))
			p := harness.Join(t, tr, rev, s)
			for _, part := range []string{`a\ud83d`, `\udc00b`, `\uDE00\uD83D`, `\ud83d\n`, `\ud83d\ud83d\ude00`, `\\ud83d`, "a\xffb", "\xed\xa0\xbd", "\xe2\x82", "\xc0\x80", "\xff\\ud83d"} {
				if strings.Contains(strings.ToLower(tr.Name), "websocket") && !utf8.ValidString(part) {
					continue // RFC 6455, section 8.1: the endpoint "MUST _Fail the WebSocket Connection_"
				}
				text := strings.ReplaceAll(`{"s":"X","m":{"kX":"X"},"a":{"kX":["X"]},"r":{"kX":["X"]}}`, "X", part)
				var want any4
				if err := json.Unmarshal([]byte(text), &want); err != nil {
					t.Fatal(err)
				}
				var got struct {
					Result struct{ Content []struct{ Text string } }
				}
				line := p.Ask("tools/call", `"name":"echo","arguments":`+text)
				if err := json.Unmarshal([]byte(line), &got); err != nil || len(got.Result.Content) != 1 || !utf8.ValidString(line) {
					t.Errorf("%s, %s, %q: %q, %v", tr.Name, rev, part, line, err)
					continue
				}
				var echo any4
				if err := json.Unmarshal([]byte(got.Result.Content[0].Text), &echo); err != nil || echo.S != want.S || !reflect.DeepEqual(echo.M, want.M) || !reflect.DeepEqual(echo.A, want.A) {
					t.Errorf("%s, %s, %q: %+v, %v; want %+v", tr.Name, rev, part, echo, err, want)
				}
			}
		}
	}
}
