package schema

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/invopop/jsonschema"
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
	if got := TimeOfDayOf(time.Date(2024, 1, 1, 9, 30, 0, 7, time.UTC)); got.SinceMidnight() != 9*time.Hour+30*time.Minute+7 || got.Nanosecond() != 7 {
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
	moment := func(s string) error {
		_, fault := parseRFC3339([]byte(s))
		if fault == "" {
			return nil
		}
		return fmt.Errorf("%s", fault)
	}
	goDuration := func(s string) error { _, err := parseGoDuration(s); return err }
	iso := func(s string) error { _, err := parseISODuration(s); return err }
	tests := []struct {
		parse    func(string) error
		in, want string
	}{
		{date, "2024-1-1", "2006-01-02"}, {date, "2024-13-01", "01 to 12"}, {date, "2023-02-29", "February 2023 has 28 days"}, {date, "2024-00-10", "01 to 12"}, {date, "20x4-01-01", "digits"},
		{date, strings.Repeat("9", 100), "…"},
		{clock, "9:30", "two digits"}, {clock, "24:00", "00 to 23"}, {clock, "10:60", "00 to 59"}, {clock, "10:00:60", "00 to 59"},
		{clock, "10:00Z", "zone"}, {clock, "10:00:00+01:00", "zone"}, {clock, "10:00:00,5", "point"}, {clock, "10:00:00.1234567890", "nine"}, {clock, "10:00:00.", "fraction"}, {clock, "10:00:0", "two digits"}, {clock, "", "two digits"}, {clock, "1x:00", "two digits"},
		{naive, "2024-01-01T10:00:00Z", "zone"}, {naive, "2024-01-01 10:00", "put a T"}, {naive, "2024-01-01", "the time is missing"}, {naive, "2024-02-30T10:00", "February 2024 has 29 days"},
		{moment, "2024-01-01T10:00:00", "add Z"}, {moment, "2024-01-01", "T00:00:00Z"}, {moment, "2024-01-01 10:00:00Z", "put a T"}, {moment, "2024-01-01T24:00:00Z", "next day"},
		{moment, "2016-12-31T23:59:60Z", "leap"}, {moment, "2024-01-01T10:00:00,5Z", "point"}, {moment, "2024-01-01T1:00:00Z", "two digits"}, {moment, "2024-01-01T10:00:00+24:00", "23:59"},
		{moment, "2024-01-01T10:00:00+0100", "+02:00"}, {moment, "2024-01-01T10:00:00.Z", "digit must follow"}, {moment, "2024-01-01T10:00:61Z", "00 to 59"}, {moment, "x", "2006"}, {moment, "2024-01-01T10:00:00+aa:bb", "+02:00"},
		{goDuration, "30", "add a unit: 30s"}, {goDuration, "1 h", "spaces"}, {goDuration, "1d", "48h"}, {goDuration, "PT1H", "ISO"}, {goDuration, "", "a number and a unit"}, {goDuration, "300000000h", "292"}, {goDuration, "5x", "units"},
		{iso, "1h", "start with P"}, {iso, "P1Y", "years and months"}, {iso, "P1M", "years and months"}, {iso, "PT1.5S", "whole"}, {iso, "PT1H1S", "gaps"}, {iso, "P", "order"}, {iso, "P99999999999W", "292"}, {iso, "PT99999999999999999999S", "292"},
	}
	for _, tt := range tests {
		if err := tt.parse(tt.in); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: got %v, want %q", tt.in, err, tt.want)
		}
	}
}

func TestParseRFC3339(t *testing.T) {
	for _, s := range []string{"2024-02-29T23:59:59Z", "2024-02-29t23:59:59.123456789z", "0000-01-01T00:00:00-00:00", "9999-12-31T23:59:59+23:59", "2024-01-01T00:00:00.5+02:00"} {
		got, fault := parseRFC3339([]byte(s))
		want, err := time.Parse(time.RFC3339Nano, strings.ToUpper(s))
		if fault != "" || err != nil || !got.Equal(want) || got.Format(time.RFC3339Nano) != want.Format(time.RFC3339Nano) {
			t.Errorf("%s: got %s %q, want %s", s, got, fault, want)
		}
	}
	if got, fault := parseRFC3339([]byte("2024-01-01T00:00:00.1234567899Z")); fault != "" || got.Nanosecond() != 123456789 {
		t.Errorf("ten digits: got %s %q", got, fault)
	}
}

// TestLocalPatterns holds the patterns to the parsers, and the formats to an
// independent validator.
func TestLocalPatterns(t *testing.T) {
	accepts := func(_ any, err error) bool { return err == nil }
	cases := []struct {
		name    string
		parse   func(string) bool
		valid   func(string) bool
		samples []string
	}{
		{"time of day", func(s string) bool { return accepts(ParseTimeOfDay(s)) }, regexp.MustCompile(timeOfDayPattern).MatchString, []string{"23:59", "00:00:00.123456789", "19:05:59"}},
		{"local", func(s string) bool { return accepts(ParseNaiveDateTime(s)) }, regexp.MustCompile(naivePattern).MatchString, []string{"2024-02-29T23:59", "1900-02-28T00:00:00.1", "1999-12-31T10:00", "2000-04-30T10:00", "0000-02-29T00:00"}},
		{"Go duration", func(s string) bool { return accepts(parseGoDuration(s)) }, regexp.MustCompile(goDurationPattern).MatchString, []string{"1h30m", "-1.5s", ".5µs", "0"}},
		{"ISO duration", func(s string) bool { return accepts(parseISODuration(s)) }, regexp.MustCompile(isoDurationPattern).MatchString, []string{"P1DT1H1M1S", "PT1H", "P3W", "PT5M1S"}},
		{"date", func(s string) bool { return accepts(ParseDate(s)) }, formatOracle(t, "date"), []string{"2024-02-29", "1999-12-31"}},
	}
	rng := rand.New(rand.NewPCG(6, 7))
	for _, c := range cases {
		for i := range 4000 {
			s := c.samples[i%len(c.samples)]
			if i >= len(c.samples) {
				s = mutate(rng, s)
			}
			if len(s) < 30 && c.parse(s) != c.valid(s) {
				t.Errorf("%s %q: the parser says %v, the schema %v", c.name, s, c.parse(s), c.valid(s))
			}
		}
	}
	iso, moment := formatOracle(t, "duration"), formatOracle(t, "date-time")
	for range 3000 {
		if s := mutate(rng, "P1DT1H1M1S"); accepts(parseISODuration(s)) && !iso(s) {
			t.Errorf("%q: accepted, but invalid by format:duration", s)
		}
		s := mutate(rng, "2024-02-29T23:59:59.5+02:00")
		// The oracle takes a sign in place of a digit, and leap seconds.
		signed := strings.ContainsAny(strings.Replace(s[min(len(s), 10):], "+", "", 1), "+-")
		if _, fault := parseRFC3339([]byte(s)); (fault == "") != moment(s) && !signed && !strings.Contains(s, ":60") {
			t.Errorf("%q: fault %q, format:date-time says %v", s, fault, moment(s))
		}
	}
}

func formatOracle(t *testing.T, format string) func(string) bool {
	s := compileOracle(t, &jsonschema.Schema{Format: format})
	return func(text string) bool { return s.Validate(text) == nil }
}

func TestISODuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "PT0S", 90 * time.Second: "PT1M30S", 3601 * time.Second: "PT1H0M1S", 25 * time.Hour: "PT25H", time.Minute: "PT1M", 61 * time.Minute: "PT1H1M", 5 * time.Second: "PT5S",
	} {
		got, err := formatISODuration(d)
		back, backErr := parseISODuration(got)
		if err != nil || got != want || backErr != nil || back != d {
			t.Errorf("%s: got %s, %v; back %s, %v", d, got, err, back, backErr)
		}
	}
	for _, d := range []time.Duration{-time.Second, time.Millisecond} {
		if _, err := formatISODuration(d); err == nil {
			t.Errorf("%s has an ISO 8601 form", d)
		}
	}
	if d, err := parseISODuration("P1W"); err != nil || d != 7*24*time.Hour {
		t.Errorf("a week is %s, %v", d, err)
	}
}
