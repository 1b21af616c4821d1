package share_test

import (
	"testing"

	"github.com/talaria-go/mcp/internal/share"
)

// takes returns how many a principal gets before it is refused, up to 1,000, and
// the error.
func takes(s *share.Shares, principal string) (n int, full *share.FullError) {
	for n < 1000 {
		if full = s.Take(principal, 1); full != nil {
			return n, full
		}
		n++
	}
	return n, nil
}

func TestShares(t *testing.T) {
	type step struct {
		principal string
		gets      int
		full      share.FullError
	}
	for name, tt := range map[string]struct {
		limit, own int
		anonymous  share.Anonymous
		steps      []step
	}{
		"a tenth each":                {100, 0, share.Half, []step{{"alice", 10, share.FullError{What: "places", Limit: 10, Own: true}}, {"bob", 10, share.FullError{What: "places", Limit: 10, Own: true}}}},
		"one at least":                {2, 0, share.Half, []step{{"alice", 1, share.FullError{What: "places", Limit: 1, Own: true}}, {"bob", 1, share.FullError{What: "places", Limit: 2}}}},
		"as it is set":                {10, 3, share.Half, []step{{"alice", 3, share.FullError{What: "places", Limit: 3, Own: true}}}},
		"no limit of its own":         {10, -1, share.Half, []step{{"alice", 10, share.FullError{What: "places", Limit: 10}}, {"", 0, share.FullError{What: "places", Limit: 10}}}},
		"anonymous clients alone":     {10, 0, share.Half, []step{{"", 10, share.FullError{What: "places", Limit: 10}}}},
		"anonymous clients, beside":   {10, 3, share.Half, []step{{"alice", 3, share.FullError{What: "places", Limit: 3, Own: true}}, {"", 5, share.FullError{What: "places", Limit: 5, Own: true}}, {"bob", 2, share.FullError{What: "places", Limit: 10}}}},
		"anonymous clients, the same": {10, 3, share.Same, []step{{"alice", 3, share.FullError{What: "places", Limit: 3, Own: true}}, {"", 3, share.FullError{What: "places", Limit: 3, Own: true}}}},
		"anonymous clients, always":   {10, 3, share.Always, []step{{"alice", 3, share.FullError{What: "places", Limit: 3, Own: true}}, {"", 7, share.FullError{What: "places", Limit: 10}}}},
		"both limits at once":         {3, 3, share.Half, []step{{"alice", 3, share.FullError{What: "places", Limit: 3}}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := share.New("places", tt.limit, tt.own, tt.anonymous)
			for _, step := range tt.steps {
				got, full := takes(s, step.principal)
				if got != step.gets || full == nil || *full != step.full {
					t.Errorf("%q gets %d, then %v; want %d, %v", step.principal, got, full, step.gets, &step.full)
				}
			}
			for _, step := range tt.steps {
				for range step.gets {
					s.Give(step.principal, 1)
				}
			}
			if full := s.Take("carol", 1); full != nil || s.Used() != 1 || s.Of("carol") != 1 {
				t.Errorf("when all is given back: %v, %d used", full, s.Used())
			}
		})
	}
}
