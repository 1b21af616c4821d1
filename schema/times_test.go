package schema

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/invopop/jsonschema"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/schema/civil"
	"github.com/talaria-go/mcp/schema/internal/lexical"
)

// TestTimeFaults wants the fix in each message.
func TestTimeFaults(t *testing.T) {
	moment := func(s string) error {
		_, fault := lexical.ParseRFC3339([]byte(s))
		if fault == "" {
			return nil
		}
		return fmt.Errorf("%s", fault)
	}
	goDuration := func(s string) error { _, err := lexical.ParseDuration(s); return err }
	iso := func(s string) error { _, err := lexical.ParseISODuration(s); return err }
	tests := []struct {
		parse    func(string) error
		in, want string
	}{
		{moment, "2024-01-01T10:00:00", "add Z"}, {moment, "2024-01-01", "T00:00:00Z"}, {moment, "2024-01-01 10:00:00Z", "put a T"}, {moment, "2024-01-01T24:00:00Z", "next day"},
		{moment, "2016-12-31T22:59:60Z", "leap second"}, {moment, "2016-12-31T23:59:60+01:00", "leap second"}, {moment, "2024-01-01T10:00:00,5Z", "point"}, {moment, "2024-01-01T1:00:00Z", "two digits"}, {moment, "2024-01-01T10:00:00+24:00", "23:59"},
		{moment, "2024-01-01T10:00:00+0100", "+02:00"}, {moment, "2024-01-01T10:00:00.Z", "digit must follow"}, {moment, "2024-01-01T10:00:61Z", "00 to 59"}, {moment, "x", "2006"}, {moment, "2024-01-01T10:00:00+aa:bb", "+02:00"},
		{goDuration, "30", "add a unit: 30s"}, {goDuration, "1 h", "write 1h"}, {goDuration, "1d", "48h"}, {goDuration, "PT1H", "ISO"}, {goDuration, "", "a number and a unit"}, {goDuration, "300000000h", "292"}, {goDuration, "5x", "units"},
		{iso, "1h", "write PT1H"}, {iso, "P1Y", "years and months"}, {iso, "P1M", "years and months"}, {iso, "PT1.5S", "whole"}, {iso, "PT1H1S", "gaps"}, {iso, "P", "order"}, {iso, "P99999999999W", "292"}, {iso, "PT99999999999999999999S", "292"},
	}
	for _, tt := range tests {
		if err := tt.parse(tt.in); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: got %v, want %q", tt.in, err, tt.want)
		}
	}
}

func TestParseRFC3339(t *testing.T) {
	for _, s := range []string{"2024-02-29T23:59:59Z", "2024-02-29t23:59:59.123456789z", "0000-01-01T00:00:00-00:00", "9999-12-31T23:59:59+23:59", "2024-01-01T00:00:00.5+02:00"} {
		got, fault := lexical.ParseRFC3339([]byte(s))
		want, err := time.Parse(time.RFC3339Nano, strings.ToUpper(s))
		if fault != "" || err != nil || !got.Equal(want) || got.Format(time.RFC3339Nano) != want.Format(time.RFC3339Nano) {
			t.Errorf("%s: got %s %q, want %s", s, got, fault, want)
		}
	}
	if got, fault := lexical.ParseRFC3339([]byte("2024-01-01T00:00:00.1234567899Z")); fault != "" || got.Nanosecond() != 123456789 {
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
		{"time of day", func(s string) bool { return accepts(civil.ParseTimeOfDay(s)) }, regexp.MustCompile(timeOfDayPattern).MatchString, []string{"23:59", "00:00:00.123456789", "19:05:59"}},
		{"local", func(s string) bool { return accepts(civil.ParseNaiveDateTime(s)) }, regexp.MustCompile(naivePattern).MatchString, []string{"2024-02-29T23:59", "1900-02-28T00:00:00.1", "1999-12-31T10:00", "2000-04-30T10:00", "0000-02-29T00:00"}},
		{"Go duration", func(s string) bool { return accepts(lexical.ParseDuration(s)) }, regexp.MustCompile(lexical.GoDurationPattern).MatchString, []string{"1h30m", "-1.5s", ".5µs", "0"}},
		{"ISO duration", func(s string) bool { return accepts(lexical.ParseISODuration(s)) }, regexp.MustCompile(lexical.IsoDurationPattern).MatchString, []string{"P1DT1H1M1S", "PT1H", "P3W", "PT5M1S"}},
		{"date", func(s string) bool { return accepts(civil.ParseDate(s)) }, formatOracle(t, "date"), []string{"2024-02-29", "1999-12-31"}},
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
		if s := mutate(rng, "P1DT1H1M1S"); accepts(lexical.ParseISODuration(s)) && !iso(s) {
			t.Errorf("%q: accepted, but invalid by format:duration", s)
		}
		s := mutate(rng, []string{"2024-02-29T23:59:59.5+02:00", "2016-12-31T23:59:60Z", "2017-01-01T01:29:60+01:30"}[rng.IntN(3)])
		// The oracle takes a sign in place of a digit.
		signed := strings.ContainsAny(strings.Replace(s[min(len(s), 10):], "+", "", 1), "+-")
		if _, fault := lexical.ParseRFC3339([]byte(s)); (fault == "") != moment(s) && !signed {
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
		got, err := jsonx.FormatISODuration(d)
		back, backErr := lexical.ParseISODuration(got)
		if err != nil || got != want || backErr != nil || back != d {
			t.Errorf("%s: got %s, %v; back %s, %v", d, got, err, back, backErr)
		}
	}
	for _, d := range []time.Duration{-time.Second, time.Millisecond} {
		if _, err := jsonx.FormatISODuration(d); err == nil {
			t.Errorf("%s has an ISO 8601 form", d)
		}
	}
	if d, err := lexical.ParseISODuration("P1W"); err != nil || d != 7*24*time.Hour {
		t.Errorf("a week is %s, %v", d, err)
	}
}
