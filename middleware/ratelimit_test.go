package middleware_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/middleware"
)

// limiter calls through a RateLimit.
type limiter struct {
	t *testing.T
	h mcp.Handler
}

func newLimiter(t *testing.T, limits middleware.RateLimitOptions) *limiter {
	return &limiter{t, middleware.RateLimit(&limits)(answer(textResult("ok"), nil))}
}

// call returns how long to wait, 0 for a call that passed.
func (l *limiter) call(user, tool string) time.Duration {
	l.t.Helper()
	f := request(core.WithPrincipal(context.Background(), user), "tools/call", tool, "")
	r, err := l.h(f)
	if err == nil {
		return 0
	}
	var fault struct {
		Code    int
		Message string
		Data    struct{ RetryAfterMs int }
	}
	if err := json.Unmarshal([]byte(show(l.t, r, err)), &fault); err != nil {
		l.t.Fatal(err)
	}
	if fault.Code != 429 || !strings.Contains(fault.Message, tool) || fault.Data.RetryAfterMs < 1 {
		l.t.Errorf("the refusal says %+v", fault)
	}
	return time.Duration(fault.Data.RetryAfterMs) * time.Millisecond
}

func TestRateLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, middleware.RateLimitOptions{Rate: 2, Burst: 3})
		for i := range 3 {
			if wait := l.call("ada", "one"); wait != 0 {
				t.Fatalf("call %d of the burst must wait %v", i, wait)
			}
		}
		wait := l.call("ada", "one")
		if wait != 500*time.Millisecond {
			t.Errorf("the next must wait %v, want 500ms", wait)
		}
		for _, other := range [][2]string{{"ada", "two"}, {"bob", "one"}, {"", "one"}} {
			if wait := l.call(other[0], other[1]); wait != 0 {
				t.Errorf("%q suffers for another", other)
			}
		}
		for range 5 { // being refused costs nothing
			l.call("ada", "one")
		}
		time.Sleep(wait - time.Millisecond)
		if l.call("ada", "one") == 0 {
			t.Error("a call passed before its time")
		}
		time.Sleep(time.Millisecond)
		if wait := l.call("ada", "one"); wait != 0 {
			t.Errorf("after the wait there is another, of %v", wait)
		}
	})
}

func TestRateLimitOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, middleware.RateLimitOptions{Client: func(f *mcp.Frame) string { return "everybody" }})
		passed := 0
		for i := range 100 {
			if l.call(fmt.Sprint(i), "one") == 0 {
				passed++
			}
		}
		if passed != 20 {
			t.Errorf("%d calls passed, want the default burst of 20, for all clients together", passed)
		}
		for range 100 {
			if r, err := l.h(request(context.Background(), "tools/list", "", "")); err != nil {
				t.Fatal(show(t, r, err))
			}
		}
	})
}

// The table is bounded, and nobody gets a new budget by making others come.
func TestRateLimitBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, middleware.RateLimitOptions{Rate: 1, Burst: 1, MaxClients: 3})
		for _, client := range []string{"a", "b", "c", "d"} {
			if wait := l.call(client, "x"); wait != 0 {
				t.Errorf("%s must wait %v", client, wait)
			}
		}
		if l.call("e", "x") == 0 {
			t.Error("e has a budget of its own, beyond the bound")
		}
		if l.call("a", "x") == 0 {
			t.Error("a has a new budget")
		}
		time.Sleep(time.Second) // the budgets are full again: there are places
		for _, client := range []string{"e", "f", "g"} {
			if wait := l.call(client, "x"); wait != 0 {
				t.Errorf("%s must wait %v", client, wait)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, middleware.RateLimitOptions{Rate: 1, Burst: 1})
		l.call("a", "real")
		passed := 0
		for i := range 1000 {
			if l.call("a", fmt.Sprint("made up ", i)) == 0 {
				passed++
			}
		}
		if passed > 256 {
			t.Errorf("%d names were kept apart", passed)
		}
		if l.call("a", "real") == 0 {
			t.Error("names that were made up brought a new budget")
		}
		if l.call("b", "real") != 0 {
			t.Error("another client suffers")
		}
	})
}

// The names of tools that there cannot be are not kept: each may be as long as a
// message.
func TestRateLimitLongNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, middleware.RateLimitOptions{Rate: 1, Burst: 2})
		long := strings.Repeat("x", 1000)
		l.call("ada", long+"1")
		l.call("ada", long+"2")
		if l.call("ada", long+"3") == 0 {
			t.Error("names that no tool can have are kept apart")
		}
		if l.call("ada", "one") != 0 || l.call("bob", long+"4") != 0 {
			t.Error("others suffer for it")
		}
	})
}
