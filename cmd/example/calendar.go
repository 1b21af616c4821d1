package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/schema/civil"
)

// Event is an entry of the calendar. It has no time zone: it takes place when
// the clock on the wall shows its start.
type Event struct {
	ID    int                 `json:"id" validate:"min=1" jsonschema_description:"number of the event"`
	Title string              `json:"title"`
	Start civil.NaiveDateTime `json:"start"`
	End   civil.NaiveDateTime `json:"end" validate:"gtfield=Start"`
}

func (e Event) number() int { return e.ID }

// overlaps reports whether two events take place at the same time. One may
// begin when the other ends.
func (e Event) overlaps(o Event) bool { return e.Start.Before(o.End) && o.Start.Before(e.End) }

func (e Event) String() string {
	return fmt.Sprintf("event %d %q, %s %s to %s %s", e.ID, e.Title,
		e.Start.Date(), e.Start.TimeOfDay(), e.End.Date(), e.End.TimeOfDay())
}

// Plan is when something takes place. Its tags are the rules for the tool's
// arguments and, in importing.go, for the rows of a file.
type Plan struct {
	Title    string          `json:"title" validate:"required,max=200" jsonschema_description:"what takes place"`
	Date     civil.Date      `json:"date" validate:"max=9999-12-24" jsonschema_description:"day on which it begins"`
	Start    civil.TimeOfDay `json:"start" jsonschema_description:"time of day at which it begins"`
	Duration time.Duration   `json:"duration,omitempty" validate:"min=1m,max=168h" jsonschema:"default=1h" jsonschema_description:"how long it takes"`
}

func (p Plan) event(id int) Event {
	start := p.Date.At(p.Start)
	return Event{ID: id, Title: p.Title, Start: start, End: start.Add(p.Duration)}
}

// addTo puts the event into the calendar, unless something else takes place at
// that time and that is not allowed.
func (p Plan) addTo(doc *document[Event], allowed bool) (Event, error) {
	i := slices.IndexFunc(doc.Records, p.event(0).overlaps)
	if i >= 0 && !allowed {
		return Event{}, fmt.Errorf("conflict with %s", doc.Records[i])
	}
	return doc.add(p.event), nil
}

// ScheduleIn is an event to put into the calendar.
type ScheduleIn struct {
	Plan
	AllowConflict bool `json:"allow_conflict,omitempty" jsonschema_description:"put it in even if something else takes place at that time"`
}

// ListEventsIn is a range of days.
type ListEventsIn struct {
	From  civil.Date `json:"from,omitzero" validate:"max=9999-12-01" jsonschema_description:"first day; today if left out"`
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
	err = c.file.Update(f, func(doc *document[Event]) error {
		if event, err = in.addTo(doc, in.AllowConflict); err != nil {
			return fmt.Errorf("%w; choose another time, or set allow_conflict to true", err)
		}
		return nil
	})
	return event, err
}

func (c *calendar) list(f *mcp.Frame, in ListEventsIn) (ListEventsOut, error) {
	const span = 30 // days
	from := in.From
	if from.IsZero() {
		from = civil.DateOf(c.now())
	}
	to := in.To
	if to.IsZero() {
		to = from.AddDays(span)
	}
	var midnight civil.TimeOfDay
	days := Event{Start: from.At(midnight), End: to.AddDays(1).At(midnight)}
	doc, err := c.file.Read(f)
	events := slices.DeleteFunc(doc.Records, func(e Event) bool { return !e.overlaps(days) })
	slices.SortFunc(events, func(a, b Event) int { return cmp.Or(a.Start.Compare(b.Start), a.ID-b.ID) })
	return ListEventsOut{From: from, To: to, Total: len(events), Events: events[:min(in.Limit, len(events))]}, err
}

func (c *calendar) cancel(f *mcp.Frame, in RecordIn) (event Event, err error) {
	err = c.file.Update(f, func(doc *document[Event]) error {
		event, err = doc.remove(in.ID)
		return err
	})
	return event, err
}
