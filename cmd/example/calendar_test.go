package main

import (
	"fmt"
	"strings"
	"testing"
)

func TestSchedule(t *testing.T) {
	dir := t.TempDir()
	c := connect(t, newBench(t, dir))
	schedule := func(title, date, start, more string) string {
		return fmt.Sprintf(`{"title":%q,"date":%q,"start":%q%s}`, title, date, start, more)
	}
	got := must[Event](c, "schedule_event", schedule("Standup", "2030-03-04", "09:30", `,"duration":"20m"`))
	if s := got.String(); s != `event 1 "Standup", 2030-03-04 09:30:00 to 2030-03-04 09:50:00` {
		t.Errorf("got %s", s)
	}
	must[Event](c, "schedule_event", schedule("Review", "2030-03-04", "09:50", "")) // one ends, the other begins
	must[Event](c, "schedule_event", schedule("Night shift", "2030-03-04", "22:00", `,"duration":"8h"`))

	clash := schedule("Clash", "2030-03-05", "05:30", "")
	if got := c.fails("schedule_event", clash); !strings.Contains(got, `conflict with event 3 "Night shift"`) {
		t.Errorf("got %q", got)
	}
	must[Event](c, "schedule_event", strings.TrimSuffix(clash, "}")+`,"allow_conflict":true}`)
	c.close()

	c = connect(t, newBench(t, dir)) // events survive, too
	for _, test := range []struct{ arguments, want string }{
		{`{}`, "2030-03-01 2030-03-31: Standup, Review, Night shift, Clash"},
		{`{"from":"2030-03-05"}`, "2030-03-05 2030-04-04: Night shift, Clash"},
		{`{"from":"2030-03-04","to":"2030-03-04","limit":2}`, "2030-03-04 2030-03-04: Standup, Review"},
		{`{"from":"9999-12-01"}`, "9999-12-01 9999-12-31: "},
		{`{"to":"2030-02-01"}`, "2030-03-01 2030-02-01: "},
	} {
		out := must[ListEventsOut](c, "list_events", test.arguments)
		var titles []string
		for _, e := range out.Events {
			titles = append(titles, e.Title)
		}
		if got := fmt.Sprintf("%s %s: %s", out.From, out.To, strings.Join(titles, ", ")); got != test.want {
			t.Errorf("%s: got %s, want %s", test.arguments, got, test.want)
		}
	}
	if got := c.fails("list_events", `{"from":"9999-12-02"}`); !strings.Contains(got, "/from: must be 9999-12-01 or earlier") {
		t.Errorf("got %q", got)
	}
	must[Event](c, "cancel_event", `{"id":3}`)
	must[Event](c, "schedule_event", schedule("Run", "2030-03-04", "23:00", ""))
}
