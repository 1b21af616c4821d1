package scale

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// answering is a Store that returns what a test says.
type answering struct {
	entries  []Entry
	messages []Message
	rev      Rev
	err      error
}

func (a *answering) Get(context.Context, ...GetOp) ([]Entry, error) { return a.entries, a.err }
func (a *answering) Put(context.Context, ...Write) ([]Entry, error) { return a.entries, a.err }

func (a *answering) ClaimDue(context.Context, string, string, string, int, time.Duration) ([]Entry, error) {
	return a.entries, a.err
}

func (a *answering) Append(context.Context, AppendOp) (Rev, string, error) { return a.rev, "", a.err }

func (a *answering) Read(context.Context, string, Rev, string) ([]Message, string, error) {
	return a.messages, "", a.err
}

func (a *answering) Take(context.Context, Take) (Box, error) { return Box{Given: a.rev}, a.err }

func (a *answering) Watch(func(string, Message), func()) Watcher { return nil }

// Whatever a Store returns, its caller gets as much as it has asked for, or an error
// that tells what is wrong with the Store.
func TestCheckedAnswers(t *testing.T) {
	a, b, x := Key{"p", "a"}, Key{"p", "b"}, []byte("x")
	get := func(s Store) ([]Entry, error) { return s.Get(t.Context(), GetOp{Key: a}, GetOp{Key: b, Known: 7}) }
	put := func(s Store) ([]Entry, error) {
		return s.Put(t.Context(), Write{Key: a, Value: x, TTL: 1}, Write{Key: b, Prev: 7})
	}
	due := func(s Store) ([]Entry, error) { return s.ClaimDue(t.Context(), "p", "i", "me", 1, 1) }
	post := func(s Store) ([]Entry, error) {
		_, _, err := s.Append(t.Context(), AppendOp{Box: "b"})
		return nil, err
	}
	read := func(s Store) ([]Entry, error) {
		messages, _, err := s.Read(t.Context(), "b", 7, "")
		return make([]Entry, len(messages)), err
	}
	take := func(s Store) ([]Entry, error) {
		_, err := s.Take(t.Context(), Take{Box: "b", Reader: "r", TTL: 1})
		return nil, err
	}
	away := Entry{Err: ErrUnavailable}
	for _, tt := range []struct {
		name   string
		do     func(s Store) ([]Entry, error)
		store  answering
		n      int    // entries that the caller gets
		away   bool   // the error is that of the Store
		wanted string // in the error; none without
	}{
		{"Get", get, answering{entries: []Entry{{Key: a}, {Key: b, Rev: 7}}}, 2, false, ""},
		{"Get of what has changed", get, answering{entries: []Entry{{Key: a, Rev: 1, Value: x}, {Key: b, Rev: 8, Value: []byte{}}}}, 2, false, ""},
		{"Get in part", get, answering{entries: []Entry{{Key: a}, away}, err: ErrUnavailable}, 2, true, ""},
		{"Get in vain", get, answering{err: ErrUnavailable}, 0, true, ""},
		{"Get of none", get, answering{}, 0, false, "answers Get of 2 with 0"},
		{"Get of fewer", get, answering{entries: []Entry{{Key: a}}}, 0, false, "answers Get of 2 with 1"},
		{"Get of more", get, answering{entries: make([]Entry, 3)}, 0, false, "answers Get of 2 with 3"},
		{"Get of fewer, and an error", get, answering{entries: []Entry{away}, err: ErrUnavailable}, 0, true, "answers Get of 2 with 1"},
		{"Get with an error of none", get, answering{entries: []Entry{{Key: a}, {Key: b}}, err: ErrUnavailable}, 0, true, "of no entry"},
		{"Get without the error of one", get, answering{entries: []Entry{{Key: a}, away}}, 2, true, ""},
		{"Get of others", get, answering{entries: []Entry{{Key: b}, {Key: a}}}, 0, false, "a look at {p a} with {p b}"},
		{"Get without a Rev", get, answering{entries: []Entry{{Key: a, Rev: -1}, {Key: b}}}, 0, false, "Rev -1"},
		{"Get without the value", get, answering{entries: []Entry{{Key: a}, {Key: b, Rev: 8}}}, 0, false, "a value: false"},

		{"Put", put, answering{entries: []Entry{{Key: a, Rev: 9}, {Key: b}}}, 2, false, ""},
		{"Put that is refused", put, answering{entries: []Entry{{Key: a, Err: ErrFull}, {Key: b, Rev: 8, Value: x, Err: ErrChanged}}}, 2, false, ""},
		{"Put in part", put, answering{entries: []Entry{{Key: a, Rev: 9}, away}, err: ErrUnavailable}, 2, true, ""},
		{"Put in vain", put, answering{err: ErrUnavailable}, 0, true, ""},
		{"Put of none", put, answering{}, 0, false, "answers Put of 2 with 0"},
		{"Put of fewer, and an error", put, answering{entries: []Entry{away}, err: ErrUnavailable}, 0, true, "answers Put of 2 with 1"},
		{"Put with an error of none", put, answering{entries: []Entry{{Key: a, Rev: 9}, {Key: b}}, err: ErrUnavailable}, 0, true, "of no entry"},
		{"Put without the error of one", put, answering{entries: []Entry{away, {Key: b}}}, 2, true, ""},
		{"Put of another", put, answering{entries: []Entry{{Key: b, Rev: 9}, {Key: b}}}, 0, false, "a write of {p a} with Prev 0 with {p b}"},
		{"Put without a Rev", put, answering{entries: []Entry{{Key: a}, {Key: b}}}, 0, false, "Rev 0"},
		{"Put that deletes nothing", put, answering{entries: []Entry{{Key: a, Rev: 9}, {Key: b, Rev: 9}}}, 0, false, "a write of {p b}"},
		{"Put that has not changed", put, answering{entries: []Entry{{Key: a, Rev: 9}, {Key: b, Rev: 7, Value: x, Err: ErrChanged}}}, 0, false, "with Prev 7"},
		{"Put that does not say what", put, answering{entries: []Entry{{Key: a, Rev: 9}, {Key: b, Rev: 8, Err: ErrChanged}}}, 0, false, "a value: false"},

		{"Due", due, answering{entries: []Entry{{Key: a, Rev: 9, Value: x}}}, 1, false, ""},
		{"Due of none", due, answering{}, 0, false, ""},
		{"Due in vain", due, answering{entries: []Entry{{}}, err: ErrUnavailable}, 0, true, ""},
		{"Due of more", due, answering{entries: make([]Entry, 2)}, 0, false, "2 entries that are due, of 1"},
		{"Due of another part", due, answering{entries: []Entry{{Key: Key{"q", "a"}, Rev: 9, Value: x}}}, 0, false, "{q a}"},
		{"Due of nothing", due, answering{entries: []Entry{{Key: a}}}, 0, false, "Rev 0"},
		{"Due with an error", due, answering{entries: []Entry{{Key: a, Rev: 9, Value: x, Err: ErrUnavailable}}}, 0, true, "as due"},

		{"Append", post, answering{rev: 1}, 0, false, ""},
		{"Append in vain", post, answering{err: ErrUnavailable}, 0, true, ""},
		{"Append without a Rev", post, answering{}, 0, false, "the Rev 0"},

		{"Take", take, answering{rev: 1}, 0, false, ""},
		{"Take in vain", take, answering{err: ErrUnavailable}, 0, true, ""},
		{"Take of less than nothing", take, answering{rev: -1}, 0, false, "given up to -1"},
		{"Read", read, answering{messages: []Message{{Rev: 9, Prev: 8}, {Rev: 10, Prev: 9}}}, 2, false, ""},
		{"Read of none", read, answering{}, 0, false, ""},
		{"Read in vain", read, answering{messages: make([]Message, 1), err: ErrUnavailable}, 0, true, ""},
		{"Read of what was read", read, answering{messages: []Message{{Rev: 7}}}, 0, false, "Rev 7 and Prev 0 after Rev 7"},
		{"Read in no order", read, answering{messages: []Message{{Rev: 9}, {Rev: 8}}}, 0, false, "Rev 8 and Prev 0 after Rev 9"},
		{"Read of what follows itself", read, answering{messages: []Message{{Rev: 9, Prev: 9}}}, 0, false, "Prev 9"},
	} {
		es, err := tt.do(Checked(&tt.store))
		if len(es) != tt.n || errors.Is(err, ErrUnavailable) != tt.away || (err != nil) != (tt.away || tt.wanted != "") {
			t.Errorf("%s: %+v, %v", tt.name, es, err)
		}
		if tt.wanted != "" && (err == nil || !strings.Contains(err.Error(), tt.wanted) || !strings.Contains(err.Error(), "fault of the Store")) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.wanted)
		}
	}
}

// A Store that makes no Watcher has one that says so.
func TestCheckedWatcher(t *testing.T) {
	w := Checked(&answering{}).Watch(func(string, Message) {}, func() {})
	if err := w.Add(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "has no Watcher") {
		t.Errorf("Add: %v", err)
	}
	w.Remove("a")
	w.Close()
}
