package record

import (
	"fmt"
	"testing"
	"time"

	"github.com/talaria-go/mcp/internal/recording"
)

// BenchmarkRows searches a store that is full, for what is in one message of a
// hundred, and for what is in none.
func BenchmarkRows(b *testing.B) {
	s := NewStore(func() {})
	defer s.Close()
	pad := fmt.Sprintf("%0800d", 0)
	for i := range 64_000 { // of a kilobyte
		word := "Nothing"
		if i%100 == 0 {
			word = "Needle"
		}
		s.take(recording.Entry{At: time.Unix(int64(i), 0), Dir: recording.Out, Text: []byte(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"%s %s %d"}}`, pad, word, i))})
	}
	for _, text := range []string{"needle", "nowhere"} {
		b.Run(text, func(b *testing.B) {
			for b.Loop() {
				if page := s.Rows(Query{Text: text, Limit: 100}); (len(page.Rows) > 0) != (text == "needle") {
					b.Fatal(len(page.Rows))
				}
			}
		})
	}
}
