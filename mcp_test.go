package mcp

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/tasks"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// ServeStdioOver is ServeStdio over other streams.
func (s *Server) ServeStdioOver(ctx context.Context, in io.Reader, out io.Writer) error {
	return s.serveStdio(ctx, in, out)
}

// LogForPeople is the default log of a server whose standard error is a
// terminal.
func LogForPeople(out io.Writer) io.Writer { return forPeople(out) }

// Zero numbers stand for the defaults, and negative ones for no limit: each
// knob that a transport or a store does not complete itself is completed.
func TestOptionsComplete(t *testing.T) {
	// Those whose zero and negative values mean something below, as they are.
	passed := map[string]bool{
		"ConnectionsPerPrincipal": true, "SubscriptionsPerPrincipal": true, "SessionsPerPrincipal": true, "History": true, "TasksPerPrincipal": true, "TasksRunningPerPrincipal": true,
		"Call": true, "Read": true, "Write": true, "KeepAlive": true, "EventLog": true, "Session": true, "StreamAge": true,
	}
	var zero, none Options
	for _, group := range []reflect.Value{reflect.ValueOf(&none.Limits).Elem(), reflect.ValueOf(&none.Timeouts).Elem()} {
		for i := range group.NumField() {
			group.Field(i).SetInt(-1)
		}
	}
	if err := safely.Try(func() error { none.complete(); return nil }); err == nil {
		t.Error("a negative EventLog is no error")
	}
	none.Limits.EventLog = 0
	zero.complete()
	none.complete()
	for _, group := range []string{"Limits", "Timeouts"} {
		standard, unlimited := reflect.ValueOf(zero).FieldByName(group), reflect.ValueOf(none).FieldByName(group)
		for i := range standard.NumField() {
			name, got, free := standard.Type().Field(i).Name, standard.Field(i).Int(), unlimited.Field(i).Int()
			switch {
			case passed[name] || name == "Grace":
			case got <= 0 || got == noLimit:
				t.Errorf("the default of %s.%s is %d", group, name, got)
			case free != noLimit && time.Duration(free) != noTimeout:
				t.Errorf("%s.%s = -1 stands for %d", group, name, free)
			}
		}
	}
	if zero.Timeouts.Grace != 10*time.Second || none.Timeouts.Grace >= 0 {
		t.Errorf("Grace: %v and %v", zero.Timeouts.Grace, none.Timeouts.Grace)
	}
}

// Lists may be kept for as long as ListTTL says, by the client alone unless
// they are public.
func TestListCache(t *testing.T) {
	for _, tt := range []struct {
		opts   Options
		ttl    time.Duration
		public bool
	}{
		{Options{}, 0, true}, // nobody keeps them
		{Options{ListTTL: time.Second}, time.Second, false},
		{Options{ListTTL: time.Second, ListPublic: true}, time.Second, true},
	} {
		if got := tt.opts.listCache(); got.TTL != tt.ttl || got.Public != tt.public {
			t.Errorf("%v, %v: %+v", tt.opts.ListTTL, tt.opts.ListPublic, got)
		}
	}
}

// The tables of limits in pages have the defaults.
func TestOptionsOfPages(t *testing.T) {
	var standard Options
	standard.complete()
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile("(?m)^\\| [^|]+ \\| ([0-9][0-9,]*) ?(KiB|MiB|s|min|)[^|]* \\| `(Limits|Timeouts)\\.(\\w+)`(?:: ([0-9,]+))?")
	units := map[string]int64{"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "s": int64(time.Second), "min": int64(time.Minute)}
	total := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range row.FindAllStringSubmatch(string(text), -1) {
			if found[5] != "" { // the first number is of something else
				found[1], found[2] = found[5], ""
			}
			number, err := strconv.ParseInt(strings.ReplaceAll(found[1], ",", ""), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			field := reflect.ValueOf(standard).FieldByName(found[3]).FieldByName(found[4])
			if !field.IsValid() {
				t.Errorf("%s: there is no %s.%s", page, found[3], found[4])
			} else if want := field.Int(); want != 0 { // 0 is what another package takes for its default
				total++
				if number*units[found[2]] != want {
					t.Errorf("%s: %s.%s is %d, not %s %s", page, found[3], found[4], want, found[1], found[2])
				}
			}
		}
	}
	if total < 15 {
		t.Errorf("found %d limits only", total)
	}
}

// The states of a task are told in the order in which the store got them, whatever
// the clocks of the replicas say that made them.
func TestStatesOfTaskInOrder(t *testing.T) {
	quiet := zerolog.Nop()
	s := NewServer(Info{Name: "x", Version: "1"}, &Options{Store: scale.NewLocal(), StateKeys: [][]byte{[]byte("a secret of 32 bytes, or even more")}, Logger: &quiet})
	defer func() { _ = s.Shutdown(t.Context()) }()
	task, err := s.tasks.Create("", 0, 0, func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	id := task.Record().ID
	x := &taskExtension{server: s, told: map[string]told{id: {}}} // as of a subscriber
	state := func() (r tasks.Record) {
		r, _, err := s.tasks.Look(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	news := func(r tasks.Record) bool {
		change, err := (tasks.State{Record: r}).Change()
		if err != nil {
			t.Fatal(err)
		}
		return x.isNews(&r, change)
	}
	working := state()
	if err := task.Finish(protocol.TaskCompleted, []byte(`{}`), nil); err != nil {
		t.Fatal(err)
	}
	s.tasks.Told(id)
	ended := state()
	ended.Updated = working.Updated.Add(-5 * time.Millisecond) // of a replica whose clock is late
	if !news(working) || !news(ended) || news(working) || news(ended) {
		t.Error("the end is not told, or something is told twice")
	}
}
