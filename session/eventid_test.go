package session

import (
	"fmt"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/protocol"
)

// The id of an event names the request whose answer the stream is, so that an
// error can take the place of an answer that is lost. One that is too long is
// left out.
func TestEventIDNamesRequest(t *testing.T) {
	s := kept(t, protocol.V20251125, 0)
	s.history.node = 35
	long := strings.Repeat("x", maxRequestIDLen-2)
	for _, id := range []protocol.ID{protocol.NewID(7), protocol.NewID("a.b-c \n é"), protocol.NewID(long), protocol.NewID(long + "x"), {}} {
		var to sink
		s.OpenStream(&to, id).End(nil)
		text := strings.TrimSuffix(to.got[0], "=")
		want := id
		if id == protocol.NewID(long+"x") {
			want = protocol.ID{}
		}
		got, ok := parseEventID(text)
		if !ok || got.request != want || got.node != 35 || got.event != 1 {
			t.Errorf("%s: %q is %+v, %v", id, text, got, ok)
		}
	}
	if got := (eventID{node: 35, stream: 1, event: 2, request: protocol.NewID(7)}).String(); got != "1-2.z.Nw" {
		t.Errorf("id %q", got)
	}
	for _, text := range []string{
		"1-1.", "1-1.0", "1-1.z.", "1-1..Nw", "1-1.z.Nw.", "1-1.z.N", "1-1.z.Nx", "1-1.z.IDc", "1-1.z.bnVsbA", "1-1.z.N\nw", "0-1.z.Nw", "1-1.z." + strings.Repeat("N", 1<<20),
		"1-1.0.Nw", "1-1." + strings.Repeat("z", 20), "-1.z.Nw", "+1-1.z", "1--1.z",
	} {
		if id, ok := parseEventID(text); ok {
			t.Errorf("%.40q is taken for %+v", text, id)
		}
	}
}

// Whatever a client sends for the id of an event, what is read of it is bounded,
// and names one event.
func FuzzEventID(f *testing.F) {
	for _, text := range []string{"1-2", "1-2.z", "1-2.z.Nw", "0-1.z", "0a-1", "-", "1-1.zzzzzzzzzzzzz", fmt.Sprint("1-1.z.", strings.Repeat("A", 86))} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, ok := parseEventID(text)
		if !ok {
			if id != (eventID{}) {
				t.Errorf("%q is no id, and read as %+v", text, id)
			}
			return
		}
		short := id.String()
		if again, ok := parseEventID(short); !ok || again != id || len(short) > 4*14+86 || strings.ContainsAny(short, "\r\n\x00 ") {
			t.Errorf("%q is %+v, which is %q, which is %+v, %v", text, id, short, again, ok)
		}
	})
}
