package middleware

import (
	"testing"
	"time"
)

// Clocks of replicas that differ leave the rate as it is. The one that is ahead lets
// as many calls more through, once, as the rate has in the difference, but no more than
// a burst; while it uses all of the rate, the others refuse everything. Where the
// difference is longer than a burst lasts, they do so for the rest of it after each
// call there.
func TestSkewedClocks(t *testing.T) {
	const lasts = time.Minute
	p := newPace(10, 20) // a full bucket lasts for two seconds
	for _, tt := range []struct {
		ahead   time.Duration
		more    int           // calls, in all
		refuses time.Duration // the other, after a call of the one that is ahead
	}{
		{0, 0, 0},
		{10 * time.Millisecond, 0, 0},
		{time.Second, 10, 0},
		{5 * time.Second, 20, 3200 * time.Millisecond},
	} {
		var due instant
		calls, others := 0, 0
		for now := instant(0); now <= instant(lasts); now = now.add(time.Millisecond) {
			for _, ahead := range []time.Duration{0, tt.ahead} {
				for p.wait(due, now.add(ahead)) == 0 {
					due = p.after(due, now.add(ahead), 1)
					if calls++; ahead == 0 {
						others++
					}
				}
			}
		}
		if want := 20 + 10*int(lasts.Seconds()) + tt.more; calls != want {
			t.Errorf("%v: %d calls, want %d", tt.ahead, calls, want)
		}
		if tt.ahead >= time.Second && others != 20 {
			t.Errorf("%v: %d of them at the one that is behind", tt.ahead, others)
		}
		if got := p.wait(p.after(0, instant(0).add(tt.ahead), 1), 0); got != tt.refuses {
			t.Errorf("%v: the other refuses for %v, want %v", tt.ahead, got, tt.refuses)
		}
	}
}
