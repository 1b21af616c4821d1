package replica_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/replica"
)

func TestContact(t *testing.T) {
	const ok, silence = 'o', '-' // anything else is a failure; each a second after the last
	for _, tt := range []struct {
		seconds string
		want    bool
	}{
		{"", false},
		{"oooooooooo", false},
		{"ooooooooooo", true},
		{"oooooooooooo", true},
		{"oooooooooooox", false},
		{"ooooooxooooooooo", false},
		{"ooooooxooooooooooo", true},
		{"oooo----oooo", true},
		{"oooo-----ooooo", false},
		{"oooo-----ooooooooooo", true},
		{"ooooooooooo-----", true},
		{"ooooooooooo------", false},
		{"x", false},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := replica.Health{Lease: 10 * time.Second}
			for i, what := range tt.seconds {
				if i > 0 {
					time.Sleep(time.Second)
				}
				if what != silence {
					c.Record(what == ok)
				}
			}
			if got := c.IsTrusted(); got != tt.want {
				t.Errorf("%s: %v", tt.seconds, got)
			}
		})
	}
}
