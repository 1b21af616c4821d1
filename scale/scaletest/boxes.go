package scaletest

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/scale"
)

// boxChecks are about Append and Read.
var boxChecks = []check{
	{"Messages", checkMessages},
	{"After", checkAfter},
	{"Take", checkTake},
	{"TakeAtOnce", checkTakeAtOnce},
	{"DropOldest", checkDropOldest},
	{"Refuse", checkRefuse},
	{"RefuseAtOnce", checkRefuseAtOnce},
	{"TooLong", checkTooLong},
	{"BoxTTL", checkBoxTTL},
	{"ReadBytes", checkReadBytes},
	{"Handover", checkHandover},
	{"Given", checkGiven},
	{"Leave", checkLeave},
	{"DeleteBox", checkDeleteBox},
	{"Recent", checkRecent},
	{"ReaderLives", checkReaderLives},
	{"TellReader", checkTellReader},
	{"Resume", checkResume},
	{"PostFrom", checkPostFrom},
}

// checkMessages checks that messages come out as they went in, in their order, for any
// reader.
func checkMessages(k *kit) {
	if ms, before := k.read(k.a, 0, "", 0); len(ms) != 0 || before != "" {
		k.Errorf("a box that is not there has %v and the reader %q", ms, before)
	}
	var revs []scale.Rev
	data := []string{"", "one", "\x00\r\n\xff", string(text(4000)), "last"}
	for i, d := range data {
		rev, reader := k.post([]scale.Store{k.a, k.b}[i%2], scale.AppendOp{Data: []byte(d)})
		if reader != "" {
			k.Errorf("the reader of a box that nobody took is %q", reader)
		}
		revs = append(revs, rev)
	}
	k.post(k.a, scale.AppendOp{Box: "other", Data: []byte("other")})
	for _, s := range []scale.Store{k.a, k.b, k.a} {
		ms, _ := k.read(s, 0, "", 0)
		if len(ms) != len(data) {
			k.Fatalf("read %d messages of %d", len(ms), len(data))
		}
		for i, m := range ms {
			if string(m.Data) != data[i] || m.Rev != revs[i] || m.Key != (scale.Key{}) {
				k.Errorf("message %d is %q, Rev %d, Key %v; want %q, Rev %d", i, m.Data, m.Rev, m.Key, data[i], revs[i])
			}
		}
		if ms[0].Prev != 0 {
			k.Errorf("there is something before the first message: Rev %d", ms[0].Prev)
		}
	}
}

// checkAfter checks that messages are read that follow, and that nothing seems
// to be missing where nothing is.
func checkAfter(k *kit) {
	var revs []scale.Rev
	for i := range 5 {
		rev, _ := k.post(k.a, scale.AppendOp{Data: []byte(strconv.Itoa(i))})
		revs = append(revs, rev)
	}
	for i, want := range []string{"[1 2 3 4]", "[2 3 4]", "[3 4]", "[4]", "[]"} {
		for _, after := range []scale.Rev{revs[i], revs[i] + 1} {
			ms, _ := k.read(k.b, after, "", 0)
			if texts(ms) != want && (after == revs[i] || i == 4 || revs[i+1] > after) {
				k.Errorf("after Rev %d there are %s, want %s", after, texts(ms), want)
			}
			if len(ms) > 0 && ms[0].Prev > after {
				k.Errorf("after Rev %d something seems to be missing, up to Rev %d", after, ms[0].Prev)
			}
		}
	}
}

// checkTake checks that one reader has a box, and who that is.
func checkTake(k *kit) {
	first, _ := k.post(k.a, scale.AppendOp{Data: []byte("1")})
	if ms, before := k.read(k.a, 0, "c.1", long); texts(ms) != "[1]" || before != "" {
		k.Errorf("the first reader got %s and %q", texts(ms), before)
	}
	if _, reader := k.post(k.b, scale.AppendOp{Data: []byte("2")}); reader != "c.1" {
		k.Errorf("the reader is %q, want c.1", reader)
	}
	if _, reader, err := k.b.Append(k.Context(), scale.AppendOp{Box: "box", Data: []byte("told")}); reader != "c.1" || err != nil {
		k.Errorf("the reader is %q, %v, want c.1", reader, err)
	}
	if ms, before := k.read(k.b, first, "d.1", long); texts(ms) != "[2]" || before != "c.1" {
		k.Errorf("the second reader got %s and %q", texts(ms), before)
	}
	for _, reader := range []string{"c.1", "d.10"} {
		ms, before, err := k.a.Read(k.Context(), "box", 0, reader)
		if !errors.Is(err, scale.ErrNotReader) || len(ms) != 0 || before != "d.1" {
			k.Errorf("reader %q got %s, %q, %v, want ErrTaken", reader, texts(ms), before, err)
		}
	}
	if ms, before := k.read(k.a, 0, "", 0); texts(ms) != "[1 2]" || before != "d.1" {
		k.Errorf("who is not a reader got %s and %q", texts(ms), before)
	}
	if ms, before := k.read(k.a, 0, "d.1", 0); texts(ms) != "[1 2]" || before != "d.1" {
		k.Errorf("the reader got %s and %q", texts(ms), before)
	}
	if _, before := k.read(k.a, first, "d.1", long); before != "d.1" {
		k.Errorf("taking again tells of %q", before)
	}
	if _, _, err := k.a.Read(k.Context(), "none", 0, "c.1"); !errors.Is(err, scale.ErrNotReader) {
		k.Errorf("reading what was never taken as somebody: %v, want ErrTaken", err)
	}
	if found := k.take(k.a, scale.Take{Box: "empty", Reader: "c.1", TTL: long}); found != (scale.Box{}) {
		k.Errorf("taking what is not there returns %+v", found)
	}
	if _, reader := k.post(k.b, scale.AppendOp{Box: "empty"}); reader != "c.1" {
		k.Errorf("the reader of the empty box is %q", reader)
	}
}

// checkTakeAtOnce checks that of many which take a box at once each gets another as the
// reader before, so that all except the last detect their loss.
func checkTakeAtOnce(k *kit) {
	const readers = 20
	var mu sync.Mutex
	succeeded := map[string]string{} // the reader before each
	k.each(readers, func(i int, s scale.Store) error {
		name := fmt.Sprint("r.", i)
		found, err := s.Take(k.Context(), scale.Take{Box: "box", Reader: name, TTL: long})
		before := found.Reader
		mu.Lock()
		defer mu.Unlock()
		if other := succeeded[before]; other != "" {
			return fmt.Errorf("%s and %s both came after %q", other, name, before)
		}
		succeeded[before] = name
		return err
	})
	last, n := "", 0
	for ; succeeded[last] != ""; n++ {
		last = succeeded[last]
	}
	if _, reader := k.post(k.a, scale.AppendOp{}); reader != last || n != readers {
		k.Errorf("the reader is %q, want %q, the last of %d", reader, last, n)
	}
}

// checkDropOldest checks that a box keeps the newest that it has room for, and
// shows that others are missing.
func checkDropOldest(k *kit) {
	const room = 10 * (100 + 64)
	var revs []scale.Rev
	for i := range 25 {
		rev, _ := k.post(k.a, scale.AppendOp{Keep: room, Data: fmt.Appendf(nil, "%100d", i)})
		revs = append(revs, rev)
	}
	ms, _ := k.read(k.b, 0, "", 0)
	if len(ms) != 10 || ms[0].Rev != revs[15] || ms[9].Rev != revs[24] || ms[0].Prev != revs[14] {
		k.Fatalf("%d messages are kept, want the newest 10, and Prev of the first", len(ms))
	}
	if ms, _ := k.read(k.b, revs[10], "", 0); len(ms) != 10 || ms[0].Prev <= revs[10] {
		k.Errorf("what is missing does not show: %d messages", len(ms))
	}
	k.post(k.b, scale.AppendOp{Keep: room, Data: text(room - 64 - 1)})
	if ms, _ := k.read(k.a, 0, "", 0); len(ms) != 1 || ms[0].Prev != revs[24] {
		k.Errorf("a long message leaves %d others", len(ms)-1)
	}
	for range 25 {
		k.post(k.b, scale.AppendOp{Keep: room})
	}
	if ms, _ := k.read(k.a, 0, "", 0); len(ms) != room/64 && len(ms) != 25 {
		k.Errorf("%d empty messages are kept, want %d", len(ms), room/64)
	}
}

// checkRefuse checks that nothing is dropped that the reader does not have.
func checkRefuse(k *kit) {
	const room = 3 * (10 + 64)
	full := func(data string) scale.AppendOp {
		return fill(scale.AppendOp{Keep: room, Data: fmt.Appendf(nil, "%10s", data), Refuse: true})
	}
	var revs []scale.Rev
	for i := range 3 {
		rev, _ := k.post(k.a, full(strconv.Itoa(i)))
		revs = append(revs, rev)
	}
	refused := func(when string) {
		k.Helper()
		if _, _, err := k.b.Append(k.Context(), full("x")); !errors.Is(err, scale.ErrFull) {
			k.Errorf("%s, a full box says %v", when, err)
		}
	}
	refused("at first")
	k.read(k.a, revs[2], "", 0)
	refused("when it was read by nobody in particular")
	k.read(k.a, 0, "me", long)
	refused("when it was taken by who has nothing yet")
	k.read(k.a, revs[2], "", 0)
	refused("when it was read by who is not the reader")
	k.read(k.a, revs[0], "me", 0)
	k.post(k.b, full("3"))
	refused("when there was room for one")
	if ms, _ := k.read(k.a, revs[0], "me", 0); len(ms) != 3 || ms[0].Prev > revs[0] || ms[0].Rev != revs[1] {
		k.Errorf("the reader finds %s, and something missing up to Rev %d", texts(ms), ms[0].Prev)
	}
	p := full("newest")
	p.Refuse = false
	k.post(k.b, p)
	if ms, _ := k.read(k.a, revs[0], "me", 0); len(ms) != 3 || ms[0].Prev <= revs[0] {
		k.Errorf("without Refuse, there are %s after Rev %d", texts(ms), ms[0].Prev)
	}
}

// checkRefuseAtOnce checks that every message that was not refused is read once,
// with many who append and one who reads.
func checkRefuseAtOnce(k *kit) {
	const writers, each = 4, 40
	var appended sync.Map
	var done atomic.Int64
	read := make(chan error, 1)
	k.take(k.b, scale.Take{Reader: "me", TTL: long})
	go func() {
		var after scale.Rev
		seen := 0
		stop := time.Now().Add(timeLimit)
		for finished := false; !finished || seen < writers*each; {
			finished = done.Load() == writers
			ms, _, err := k.b.Read(k.Context(), "box", after, "me")
			if err != nil || len(ms) > 0 && ms[0].Prev > after || time.Now().After(stop) {
				read <- fmt.Errorf("the reader has %d messages: %w", seen, err)
				return
			}
			for _, m := range ms {
				after = m.Rev
				if _, again := appended.LoadOrStore(string(m.Data), true); again {
					read <- fmt.Errorf("%s was read twice", m.Data)
					return
				}
				seen++
			}
			if len(ms) == 0 {
				time.Sleep(time.Millisecond)
			}
		}
		read <- nil
	}()
	k.each(writers, func(i int, s scale.Store) error {
		defer done.Add(1)
		stop := time.Now().Add(timeLimit)
		for n := 0; n < each && time.Now().Before(stop); {
			_, _, err := s.Append(k.Context(), fill(scale.AppendOp{Keep: 800, Data: fmt.Append(nil, i, "/", n), Refuse: true}))
			if errors.Is(err, scale.ErrFull) {
				time.Sleep(time.Millisecond)
				continue
			}
			if err != nil {
				return err
			}
			n++
		}
		return nil
	})
	if err := <-read; err != nil {
		k.Error(err)
	}
}

// checkTooLong checks that what is longer than the box is refused and drops
// nothing.
func checkTooLong(k *kit) {
	if _, _, err := k.a.Append(k.Context(), fill(scale.AppendOp{Keep: 100, Data: text(37)})); !errors.Is(err, scale.ErrFull) {
		k.Errorf("a message that is too long for a box that is not there: %v", err)
	}
	k.post(k.a, scale.AppendOp{Keep: 100, Data: text(36)})
	for _, refuse := range []bool{false, true} {
		if _, _, err := k.a.Append(k.Context(), fill(scale.AppendOp{Keep: 100, Data: text(37), Refuse: refuse})); !errors.Is(err, scale.ErrFull) {
			k.Errorf("a message that is too long, Refuse %v: %v", refuse, err)
		}
	}
	if ms, _ := k.read(k.b, 0, "", 0); len(ms) != 1 {
		k.Errorf("%d messages are kept, want 1", len(ms))
	}
}

// checkBoxTTL checks that a box is kept for the longest TTL of its calls, and no longer.
func checkBoxTTL(k *kit) {
	start := time.Now()
	for _, box := range []string{"brief", "long", "first", "taken"} {
		k.post(k.a, scale.AppendOp{Box: box, TTL: brief})
	}
	k.post(k.b, scale.AppendOp{Box: "long", TTL: long})
	k.post(k.b, scale.AppendOp{Box: "long", TTL: brief})
	read := func(box, reader string, take time.Duration) (n int, before string) {
		if take > 0 {
			k.take(k.a, scale.Take{Box: box, Reader: reader, TTL: take})
		}
		ms, before, err := k.a.Read(k.Context(), box, 0, reader)
		if err != nil {
			k.Errorf("reading %s: %v", box, err)
		}
		return len(ms), before
	}
	read("taken", "me", long)
	read("first", "me", brief)
	read("none", "", 0)
	intime := time.Since(start) < brief
	k.sleep(brief)
	for box, want := range map[string]int{"brief": 0, "first": 0, "none": 0, "long": 3, "taken": 1} {
		reader := ""
		if box == "taken" {
			reader = "me"
		}
		if n, _ := read(box, reader, 0); n != want && intime {
			k.Errorf("the box %s has %d messages, want %d", box, n, want)
		}
	}
	if _, reader := k.post(k.a, scale.AppendOp{Box: "first"}); reader != "" {
		k.Errorf("a box that is gone has the reader %q", reader)
	}
	if n, _ := read("first", "", 0); n != 1 {
		k.Errorf("a box that was made again has %d messages", n)
	}
}

// checkReadBytes checks that one call does not return too much, and all calls
// everything.
func checkReadBytes(k *kit) {
	sizes := []int{scale.MaxValue, 600 << 10, 500 << 10, 400 << 10, 10}
	for _, n := range sizes {
		k.post(k.a, scale.AppendOp{Keep: 8 * scale.MaxValue, Data: text(n)})
	}
	var after scale.Rev
	found, calls := 0, 0
	for ; calls < 20; calls++ {
		ms, _ := k.read(k.b, after, "", 0)
		if len(ms) == 0 {
			break
		}
		sum := 0
		for _, m := range ms {
			after, sum = m.Rev, sum+len(m.Data)
		}
		if found += len(ms); sum > 2*scale.MaxValue {
			k.Errorf("%d messages of %d bytes were read at once", len(ms), sum)
		}
	}
	if found != len(sizes) || calls < 2 {
		k.Errorf("%d of %d were read in %d calls", found, len(sizes), calls)
	}
}
