package civil

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestDate(t *testing.T) {
	d := NewDate(2024, time.February, 29)
	if d.String() != "2024-02-29" || d.Weekday() != time.Thursday || d.AddDays(1) != NewDate(2024, 3, 1) {
		t.Errorf("got %s %s %s", d, d.Weekday(), d.AddDays(1))
	}
	if NewDate(2024, 4, 31) != NewDate(2024, 5, 1) || d.DaysSince(NewDate(2023, 3, 1)) != 365 {
		t.Error("days are counted wrongly")
	}
	if (Date{}).String() != "0001-01-01" || !(Date{}).IsZero() || DateOf(time.Time{}) != (Date{}) {
		t.Errorf("zero value is %s", Date{})
	}
	newYork := time.FixedZone("", -5*3600)
	if got := d.In(newYork); got != time.Date(2024, 2, 29, 0, 0, 0, 0, newYork) || DateOf(got) != d {
		t.Errorf("in New York: %s", got)
	}
	if d.Compare(d) != 0 || d.Compare(d.AddDays(1)) != -1 || d.Compare(d.AddDays(-1)) != +1 {
		t.Error("Compare is wrong")
	}
	if _, err := NewDate(10000, 1, 1).MarshalText(); err == nil {
		t.Error("the year 10000 has a text form")
	}
	// Across all years the text form reads back.
	for year := minYear; year <= maxYear; year += 7 {
		d := NewDate(year, time.Month(1+year%12), 1+year%28)
		back, err := ParseDate(d.String())
		if err != nil || back != d {
			t.Fatalf("%s reads back as %s, %v", d, back, err)
		}
	}
}

func TestLocalTypesJSON(t *testing.T) {
	type all struct {
		D Date
		T TimeOfDay
		N NaiveDateTime
	}
	in := all{NewDate(2024, 1, 31), NewTimeOfDay(9*time.Hour + 30*time.Minute + 1), NaiveDateTimeOf(time.Date(2024, 1, 31, 23, 59, 58, 5e8, time.UTC))}
	const want = `{"D":"2024-01-31","T":"09:30:00.000000001","N":"2024-01-31T23:59:58.5"}`
	text, err := json.Marshal(in)
	if err != nil || string(text) != want {
		t.Fatalf("got %s, %v", text, err)
	}
	var out all
	if err := json.Unmarshal(text, &out); err != nil || out != in {
		t.Errorf("got %+v, %v", out, err)
	}
	if err := json.Unmarshal([]byte(`{"T":"25:00"}`), &out); err == nil || out != in {
		t.Errorf("a fault changes the value: %+v, %v", out, err)
	}
}

func TestTimeOfDay(t *testing.T) {
	for in, want := range map[string]string{"09:30": "09:30:00", "23:59:59": "23:59:59", "00:00:00.10": "00:00:00.1", "12:00:00.123456789": "12:00:00.123456789"} {
		got, err := ParseTimeOfDay(in)
		if err != nil || got.String() != want {
			t.Errorf("%s: got %s, %v", in, got, err)
		}
	}
	if NewTimeOfDay(25*time.Hour).String() != "01:00:00" || NewTimeOfDay(-time.Hour).String() != "23:00:00" || (TimeOfDay{}).String() != "00:00:00" {
		t.Error("NewTimeOfDay does not wrap")
	}
	if got := TimeOfDayOf(time.Date(2024, 1, 1, 9, 30, 0, 7, time.UTC)); got.SinceMidnight() != 9*time.Hour+30*time.Minute+7 {
		t.Errorf("got %s", got)
	}
}

func TestNaiveDateTime(t *testing.T) {
	n, err := ParseNaiveDateTime("2024-02-29T09:30")
	if err != nil || n.String() != "2024-02-29T09:30:00" || n.Date() != NewDate(2024, 2, 29) || n.TimeOfDay() != NewTimeOfDay(9*time.Hour+30*time.Minute) {
		t.Fatalf("got %s, %v", n, err)
	}
	zone := time.FixedZone("", 7200)
	if got := n.In(zone); !got.Equal(time.Date(2024, 2, 29, 7, 30, 0, 0, time.UTC)) || NaiveDateTimeOf(got) != n {
		t.Errorf("got %s", got)
	}
	if n.Compare(n) != 0 || n.Compare(NaiveDateTime{}) != 1 || !(NaiveDateTime{}).IsZero() {
		t.Error("Compare or IsZero is wrong")
	}
}

// TestParseFaults wants the fix in each message.
func TestParseFaults(t *testing.T) {
	date := func(s string) error { _, err := ParseDate(s); return err }
	clock := func(s string) error { _, err := ParseTimeOfDay(s); return err }
	naive := func(s string) error { _, err := ParseNaiveDateTime(s); return err }
	tests := []struct {
		parse    func(string) error
		in, want string
	}{
		{date, "2024-1-1", "2006-01-02"}, {date, "2024-13-01", "01 to 12"}, {date, "2023-02-29", "February 2023 has 28 days"}, {date, "2024-00-10", "01 to 12"}, {date, "20x4-01-01", "2006-01-02"},
		{date, strings.Repeat("9", 100), "…"},
		{clock, "9:30", "two digits"}, {clock, "24:00", "00 to 23"}, {clock, "10:60", "00 to 59"}, {clock, "10:00:60", "00 to 59"},
		{clock, "10:00Z", "zone"}, {clock, "10:00:00+01:00", "zone"}, {clock, "10:00:00,5", "point"}, {clock, "10:00:00.1234567890", "nine"}, {clock, "10:00:00.", "fraction"}, {clock, "10:00:0", "two digits"}, {clock, "", "two digits"}, {clock, "1x:00", "two digits"},
		{naive, "2024-01-01T10:00:00Z", "zone"}, {naive, "2024-01-01 10:00", "put a T"}, {naive, "2024-01-01", "the time is missing"}, {naive, "2024-02-30T10:00", "February 2024 has 29 days"},
	}
	for _, tt := range tests {
		err := tt.parse(tt.in)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: got %v, want %q", tt.in, err, tt.want)
		}
		if parse, ok := errors.AsType[*ParseError](err); !ok || parse.Value != tt.in {
			t.Errorf("%q: the error is a %T", tt.in, err)
		}
	}
}
