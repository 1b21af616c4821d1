package jsonx

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestTime(t *testing.T) {
	half := time.Date(2026, 11, 27, 2, 0, 0, 500e6, time.UTC)
	full := half.Truncate(time.Second)
	for text, want := range map[string]time.Time{
		`"2026-11-27T02:00:00Z"`:                       full,
		`"2026-11-27T02:00:00"`:                        full,
		`"2026-11-27T02:00:00.5"`:                      half,
		`"2026-11-27T02:00:00.500000"`:                 half,
		`"2026-11-27T02:00:00,5"`:                      half,
		`"2026-11-27 02:00:00.500000"`:                 half,
		`"2026-11-27 02:00:00+00:00"`:                  full,
		`"2026-11-27t02:00:00.5z"`:                     half,
		`"2026-11-27T04:00:00.5+02:00"`:                half,
		`"2026-11-27T04:00:00.5+0200"`:                 half,
		`"2026-11-26T23:00:00.5-03"`:                   half,
		`"2026-11-27T02:00"`:                           full,
		`"2026-11-27T02:00Z"`:                          full,
		`"2026-11-27"`:                                 full.Add(-2 * time.Hour),
		`"2026-11-27T02:00:00.123456789"`:              full.Add(123456789),
		`"2026-11-27T02:00:00.5+00:00Z"`:               half,
		`"2026-11-27 02:00:00.5 UTC"`:                  half,
		`"2026-11-27 04:00:00.5 +0200"`:                half,
		`"2026-11-26T23:00:00.5 -03:00"`:               half,
		`"2026-11-27T02:00:00.5Z[UTC]"`:                half,
		`"2026-11-27T03:00:00.5+01:00[Europe/Berlin]"`: half,
		`"20261127T020000Z"`:                           full,
		`null`:                                         {},
		`""`:                                           {},
	} {
		var got struct{ At Time }
		if err := json.Unmarshal([]byte(`{"At":`+text+`}`), &got); err != nil || !got.At.Equal(want) {
			t.Errorf("%s: got %v, %v", text, got.At, err)
		}
	}
	for _, text := range []string{
		`" "`, `"yesterday"`, `"2026-13-27T02:00:00"`, `"2026-11-27T25:00:00"`, `"2026-11-27T02:00:00+"`, `"2026-11-27T"`, `"2026-11-27 "`,
		`"2026-11-27T02:00:00+02:00Z"`, `"2026-11-27T02:00:00 EST"`, `"[UTC]"`, `"2026-11-27T02:00:00[UTC"`, `"2026-11-27T02:00:00 +"`, `"20261127"`,
		`1795744800`, `true`, `{}`, `[]`, `"` + strings.Repeat("9", 1000) + `"`,
	} {
		var got struct{ At Time }
		if err := json.Unmarshal([]byte(`{"At":`+text+`}`), &got); err == nil || len(err.Error()) > 200 || !strings.Contains(err.Error(), "2006-01-02T15:04:05Z") {
			t.Errorf("%.100s: got %v, %v", text, got.At, err)
		}
	}
}
