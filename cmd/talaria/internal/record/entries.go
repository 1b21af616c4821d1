package record

import (
	"slices"
	"time"

	"github.com/talaria-go/mcp/internal/tooling/recording"
)

// Entries returns what the rows were made of, the oldest first: the newest of them, as far as
// their texts have most bytes. The headers of HTTP are left out. The texts must not be changed.
func (s *Store) Entries(most int) []recording.Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []recording.Entry
	for _, r := range slices.Backward(s.rows) {
		if r == nil {
			continue
		}
		if most -= len(r.texts[0]) + len(r.texts[1]); most < 0 {
			break
		}
		dir, back := recording.Out, recording.In
		if r.From == "server" {
			dir, back = back, dir
		}
		switch r.Kind {
		case "stderr":
			dir = recording.Err
		case "note":
			dir = recording.Note
		case "http":
			continue // an exchange without a message
		}
		e := recording.Entry{At: r.At, Dir: dir, Conn: r.conn, Text: r.texts[0]}
		if r.Kind == "note" {
			e.HTTP = r.HTTP
		}
		list = append(list, e)
		if r.HTTP != 0 && r.Kind != "note" && dir == recording.Out {
			list = append(list, recording.Entry{At: r.At, Dir: recording.Note, Conn: r.conn, HTTP: r.HTTP})
		}
		if r.texts[1] != nil {
			list = append(list, recording.Entry{At: r.At.Add(time.Duration(r.Took * float64(time.Millisecond))), Dir: back, Conn: r.conn, Text: r.texts[1]})
		}
	}
	slices.SortStableFunc(list, func(a, b recording.Entry) int { return a.At.Compare(b.At) })
	return list
}
