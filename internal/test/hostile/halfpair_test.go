package hostile_test

import (
	"encoding/json"
	"strings"
	"testing"

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
