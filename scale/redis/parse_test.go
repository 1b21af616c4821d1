package redis

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/talaria-go/mcp/scale"
)

// The slots of keys that the specification of clusters names, and of those that
// share one.
func TestSlot(t *testing.T) {
	for key, want := range map[string]int{"123456789": 0x31C3, "": 0, "foo": 12182, "{foo}bar": 12182, "a{foo}{bar}": 12182, "{}foo": slot("{}foo")} {
		if got := slot(key); got != want {
			t.Errorf("%q is in slot %d, want %d", key, got, want)
		}
	}
	if slot("{}foo") == slot("{}bar") || slot("a{b") == slot("c{b") {
		t.Error("braces with nothing in them, and one alone, count")
	}
}

// The boxes of echoes are in all ranges.
func TestEchoBoxes(t *testing.T) {
	e := newEcho(&watcher{engine: &engine{prefix: "talaria:shop:"}})
	for i, box := range e.boxes {
		if got := rangeOf("{talaria:shop:" + box + "}:b"); got != i {
			t.Errorf("box %s is in range %d, want %d", box, got, i)
		}
	}
	at, seen := 0, map[int]bool{}
	for range ranges {
		seen[at] = true
		at = (at + echoStride) % ranges
	}
	if len(seen) != ranges {
		t.Errorf("%d of %d ranges have their turn", len(seen), ranges)
	}
}

// A machine that left the cluster is detected while another refuses commands, and the gap
// of a machine that comes back is called once for all its ranges.
func TestEchoRounds(t *testing.T) {
	w := &watcher{engine: &engine{}, todo: make(chan struct{}, 1), subjects: map[string]*subject{}}
	w.echo = newEcho(w)
	w.subjects[w.echo.subject] = &subject{state: subscribed}
	const ok, lost, refused = 0, 1, 2
	var machines [3]int // of the ranges
	w.echo.tell = func(_ context.Context, box, _, text string) error {
		switch machines[slices.Index(w.echo.boxes[:], box)*3/ranges] {
		case ok:
			w.echo.receive(scale.Message{Data: []byte(text)})
		case refused:
			return errors.New("refused")
		}
		return nil
	}
	rounds := func(n int) (gaps int, deaf bool) {
		for range n {
			if !w.echo.listens() {
				return gaps, true
			}
			if w.echo.round(t.Context()) {
				gaps++
			}
		}
		return gaps, false
	}
	if gaps, deaf := rounds(2 * ranges); gaps != 0 || deaf {
		t.Errorf("while all work: %d gaps, deaf %v", gaps, deaf)
	}
	machines[2] = refused
	if gaps, deaf := rounds(2 * ranges); gaps != 0 || deaf {
		t.Errorf("while one is away: %d gaps, deaf %v", gaps, deaf)
	}
	machines[2] = ok
	if gaps, deaf := rounds(2 * ranges); gaps != 1 || deaf {
		t.Errorf("after it is back: %d gaps, want 1, deaf %v", gaps, deaf)
	}
	for name, now := range map[string][3]int{
		"of two machines":                     {ok, lost, lost},
		"of one":                              {ok, lost, ok},
		"of one while another refuses echoes": {ok, refused, lost},
	} {
		machines = now
		w.echo.expected, w.echo.missing = 0, 0
		if _, deaf := rounds(12); !deaf {
			t.Errorf("that nothing comes back %s is not detected", name)
		}
	}
}

// What nobody publishes as a script does is no hint.
func TestParseHint(t *testing.T) {
	for text, want := range map[string]scale.Message{
		"m12 7 ":        {Rev: 12, Prev: 7, Data: []byte{}},
		"m12 0 a b\x00": {Rev: 12, Data: []byte("a b\x00")},
		"k0 7 p n":      {Prev: 7, Key: scale.Key{Partition: "p", Name: "n"}},
	} {
		m, ok := parseHint(text)
		if !ok || m.Rev != want.Rev || m.Prev != want.Prev || m.Key != want.Key || string(m.Data) != string(want.Data) {
			t.Errorf("%q is %+v, %v", text, m, ok)
		}
	}
	for _, text := range []string{"", "m", "m1", "m1 2", "mx 2 ", "m1 x ", "k1 2 p", "x1 2 3", "m12"} {
		if m, ok := parseHint(text); ok {
			t.Errorf("%q is taken for %+v", text, m)
		}
	}
}

// Times are rounded up, so that none ends early.
func TestTimes(t *testing.T) {
	for d, want := range map[time.Duration][2]string{
		0: {"0", "0"}, 1: {"1", "1"}, time.Microsecond: {"1", "1"}, time.Millisecond: {"1", "1000"}, time.Millisecond + 1: {"2", "1001"},
		1<<63 - 1: {"3153600000000", "3153600000000000"},
	} {
		if got := [2]string{millis(d), micros(d)}; got != want {
			t.Errorf("%v is %v, want %v", d, got, want)
		}
	}
	if got := micros(-5); got != "-1" {
		t.Errorf("less than nothing is %s", got)
	}
}

// A breaker opens with the third failure in a row, tells it once, and lets calls
// through when it is closed.
func TestBreaker(t *testing.T) {
	var b breaker
	for i, answered := range []bool{false, false, true, false, false, false, true, false} {
		if opened := b.note(answered); opened != (i == 5) || b.allows() != (i < 5) {
			t.Errorf("after %d: opened %v, allows %v", i, opened, b.allows())
		}
	}
	if b.close(); !b.allows() || b.note(false) {
		t.Error("it does not close")
	}
}
