package record

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp/internal/tooling/recording"
)

// fullStore is a store that keeps all it can of messages that are about so long: words
// of English, as JSON in JSON, with a needle in one of a hundred, and with one in the
// oldest alone.
func fullStore(b *testing.B, length int) *Store {
	b.Helper()
	s := NewStore(func() {})
	b.Cleanup(s.Close)
	r := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields(`the rate of interest is not the same in these states and there are reasons that the State has set out in "notes": "to those who invest",
		"name": "reader", "total": 1024.5, "items": [], "enteredAt": "2026-07-28T12:00:00Z", "description": "A tool that reads the entries of a ledger and returns them"`)
	row := func(n int, more string) {
		var text strings.Builder
		for text.Len() < length {
			text.WriteString(words[r.IntN(len(words))] + " ")
		}
		s.take(recording.Entry{At: time.Unix(int64(n), 0), Dir: recording.Out, Text: fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/message","params":{"data":%q}}`, text.String()+more)})
	}
	row(0, "Oldest")
	for n := 1; s.kept < maxKept-2*length-perRow; n++ {
		more := ""
		if n%100 == 1 {
			more = "Needle"
		}
		row(n, more)
	}
	if p := s.Rows(Query{Limit: 1}); int64(p.Kept) != p.Total || s.kept < maxKept*9/10 {
		b.Fatalf("%d of %d rows are kept, %d bytes", p.Kept, p.Total, s.kept)
	}
	return s
}

// BenchmarkRows searches a store that is full for what is in one message of a hundred,
// in the oldest alone, and in none: rare letters, common ones, and letters beyond ASCII.
func BenchmarkRows(b *testing.B) {
	for _, length := range []int{150, 1000, 1 << 20} {
		s := fullStore(b, length)
		for _, c := range []struct {
			text string
			rows int
		}{{"needle", 100}, {"oldest", 1}, {"zebra", 0}, {"eateries", 0}, {"tee", 0}, {"ése", 0}} {
			b.Run(fmt.Sprintf("%d/%s", length, c.text), func(b *testing.B) {
				for b.Loop() {
					s.search = "" // as if it was looked for the first time
					if page := s.Rows(Query{Text: c.text, Limit: 100}); len(page.Rows) > c.rows || (len(page.Rows) == 0) != (c.rows == 0) {
						b.Fatal(len(page.Rows))
					}
				}
				b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/search")
			})
		}
		b.Run(fmt.Sprintf("%d/again", length), func(b *testing.B) {
			for b.Loop() {
				s.Rows(Query{Text: "tee", Limit: 100})
			}
		})
	}
}
