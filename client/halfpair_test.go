package client

import (
	"strings"
	"testing"

	"github.com/talaria-go/mcp/protocol"
)

// A result with half of a surrogate pair is a result: the half is U+FFFD. So is a byte
// that is not UTF-8.
func TestHalfOfAPair(t *testing.T) {
	for _, rev := range []protocol.Revision{protocol.LatestLegacy, protocol.Latest} {
		for _, half := range []string{`\ud83d`, `\udc00`, "\xff", "\xe2"} {
			halfOfAPair(t, rev, half)
		}
	}
}

func halfOfAPair(t *testing.T, rev protocol.Revision, half string) {
	t.Helper()
	tr := scripted(t, func(s *script) {
		if rev.Modern() {
			s.modernHello()
		} else {
			s.legacyHello(rev.String())
		}
		for h := s.next(); h != nil; h = s.next() {
			result := strings.ReplaceAll(`{"content":[{"type":"text","text":"cut HALF"}],"structuredContent":{"HALF":"HALFx"}`, "HALF", half)
			if rev.Modern() {
				result += `,"resultType":"complete"`
			}
			s.result(h, result+"}")
		}
	})
	c := connect(t, tr, only(rev))
	r, err := c.Call(t.Context(), "cut", nil)
	if err != nil || r.Text() != "cut \uFFFD" {
		t.Fatalf("%v: %+v, %v", rev, r, err)
	}
	var out map[string]string
	if err := r.Decode(&out); err != nil || !strings.HasPrefix(out["\uFFFD"], "\uFFFD") {
		t.Errorf("%v: %v, %v", rev, out, err)
	}
}
