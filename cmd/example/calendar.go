package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/schema/civil"
)

// Event is an entry of the calendar. It has no time zone: it takes place when
// the clock on the wall shows its start.
type Event struct {
	ID    int                 `json:"id" jsonschema_description:"number of the event"`
	Title string              `json:"title"`
	Start civil.NaiveDateTime `json:"start"`
	End   civil.NaiveDateTime `json:"end"`
}

func (e Event) number() int { return e.ID }

// overlaps tells whether two events take place at the same time. One may begin
// when the other ends.
func (e Event) overlaps(o Event) bool {
	return e.Start.Compare(o.End) < 0 && o.Start.Compare(e.End) < 0
}

func (e Event) String() string {
	return fmt.Sprintf("event %d %q, %s %s to %s %s", e.ID, e.Title,
		e.Start.Date(), e.Start.TimeOfDay(), e.End.Date(), e.End.TimeOfDay())
}

// Plan is when something takes place. Its tags are the rules for the tool's
// arguments and, in importing.go, for the rows of a file.
type Plan struct {
	Title    string          `json:"title" validate:"required,max=200" jsonschema_description:"what takes place"`
	Date     civil.Date      `json:"date" jsonschema_description:"day on which it begins"`
	Start    civil.TimeOfDay `json:"start" jsonschema_description:"time of day at which it begins"`
	Duration time.Duration   `json:"duration,omitempty" validate:"min=1m,max=168h" jsonschema:"default=1h" jsonschema_description:"how long it takes"`
}

// lastDay is the last that a Date can be written for.
var lastDay = civil.NewDate(9999, time.December, 31)

// check looks at what no tag says: whether the end is still in the calendar.
func (p Plan) check() error {
	if p.event(0).End.Date().Compare(lastDay) > 0 {
		return fmt.Errorf("the calendar ends on %s, before this event does; choose an earlier date", lastDay)
	}
	return nil
}

func (p Plan) event(id int) Event {
	start := p.Date.At(p.Start)
	// In UTC every day has 24 hours, as on a plain calendar.
	return Event{ID: id, Title: p.Title, Start: start, End: civil.NaiveDateTimeOf(start.In(time.UTC).Add(p.Duration))}
}

// ScheduleIn is an event to put into the calendar.
type ScheduleIn struct {
	Plan
	AllowConflict bool `json:"allow_conflict,omitempty" jsonschema_description:"put it in even if something else takes place at that time"`
}

// ListEventsIn is a range of days.
type ListEventsIn struct {
	From  civil.Date `json:"from,omitzero" jsonschema_description:"first day; today if left out"`
	To    civil.Date `json:"to,omitzero" validate:"gtefield=From" jsonschema_description:"last day; 30 days after the first if left out"`
	Limit int        `json:"limit,omitempty" validate:"min=1,max=500" jsonschema:"default=100" jsonschema_description:"how many events to return at most"`
}

// ListEventsOut are the events of a range of days, in their order.
type ListEventsOut struct {
	From   civil.Date `json:"from"`
	To     civil.Date `json:"to"`
	Total  int        `json:"total" jsonschema_description:"how many events there are, returned or not"`
	Events []Event    `json:"events"`
}

// span is how many days list_events shows after the first, unless told.
const span = 30

// calendar keeps events.
type calendar struct {
	file *file[Event]
	now  func() time.Time
}

func (c *calendar) components() []mcp.Component {
	return []mcp.Component{
		mcp.Tool("schedule_event", c.schedule, mcp.Title("Schedule an event"),
			mcp.Doc("Puts an event into the calendar, if nothing else takes place at that time"),
			mcp.Destructive(false), mcp.OpenWorld(false)),
		mcp.Tool("list_events", c.list, mcp.Title("List events"),
			mcp.Doc("Lists the events of a range of days"), mcp.ReadOnly(), mcp.OpenWorld(false)),
		mcp.Tool("cancel_event", c.cancel, mcp.Title("Cancel an event"),
			mcp.Doc("Takes an event out of the calendar and returns it"), mcp.Destructive(true), mcp.OpenWorld(false)),
	}
}

func (c *calendar) schedule(f *mcp.Frame, in ScheduleIn) (event Event, err error) {
	if err := in.check(); err != nil {
		return event, err
	}
	err = c.file.Update(f, func(doc *document[Event]) error {
		if clash := conflicts(doc.Records, in.event(0)); len(clash) > 0 && !in.AllowConflict {
			return fmt.Errorf("there is a conflict with %s; choose another time, or set allow_conflict to true", describe(clash))
		}
		event = doc.add(in.event)
		return nil
	})
	return event, err
}

// conflicts returns the events that take place at the time of e.
func conflicts(events []Event, e Event) []Event {
	var clash []Event
	for _, other := range events {
		if e.overlaps(other) {
			clash = append(clash, other)
		}
	}
	return clash
}

// describe names events in a message, the first few of them.
func describe(events []Event) string {
	const shown = 3
	var texts []string
	for _, e := range events[:min(shown, len(events))] {
		texts = append(texts, e.String())
	}
	text := strings.Join(texts, "; ")
	if more := len(events) - shown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

func (c *calendar) list(f *mcp.Frame, in ListEventsIn) (ListEventsOut, error) {
	out := ListEventsOut{From: in.From, To: in.To}
	if out.From.IsZero() {
		out.From = civil.DateOf(c.now())
	}
	if out.To.IsZero() {
		out.To = out.From.AddDays(min(span, lastDay.DaysSince(out.From)))
	}
	if out.To.Compare(out.From) < 0 {
		return out, fmt.Errorf("to (%s) is before from, which is today (%s) if left out; give from too", out.To, out.From)
	}
	var midnight civil.TimeOfDay
	events, err := c.file.Read(f)
	events = conflicts(events, Event{Start: out.From.At(midnight), End: out.To.AddDays(1).At(midnight)})
	slices.SortFunc(events, func(a, b Event) int { return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.ID, b.ID)) })
	out.Total, out.Events = len(events), append([]Event{}, events[:min(in.Limit, len(events))]...)
	return out, err
}

func (c *calendar) cancel(f *mcp.Frame, in DeleteIn) (event Event, err error) {
	err = c.file.Update(f, func(doc *document[Event]) error {
		var ok bool
		if event, ok = doc.remove(in.ID); !ok {
			return fmt.Errorf("there is no event %d; list_events shows the numbers", in.ID)
		}
		return nil
	})
	return event, err
}
