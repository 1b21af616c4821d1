package share_test

import (
	"errors"
	"testing"

	"github.com/talaria-go/mcp/internal/share"
)

// takes returns how many a principal gets before it is refused, up to 1,000, and
// the error.
func takes(s *share.Shares, principal string) (n int, full *share.FullError) {
	for n < 1000 {
		if err := s.Take(principal, 1); err != nil {
			errors.As(err, &full)
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
		steps      []step
	}{
		"a tenth each":              {100, 0, []step{{"alice", 10, share.FullError{What: "places", Limit: 10, Own: true}}, {"bob", 10, share.FullError{What: "places", Limit: 10, Own: true}}}},
		"one at least":              {2, 0, []step{{"alice", 1, share.FullError{What: "places", Limit: 1, Own: true}}, {"bob", 1, share.FullError{What: "places", Limit: 2}}}},
		"as it is set":              {10, 3, []step{{"alice", 3, share.FullError{What: "places", Limit: 3, Own: true}}}},
		"no limit of its own":       {10, -1, []step{{"alice", 10, share.FullError{What: "places", Limit: 10}}, {"", 0, share.FullError{What: "places", Limit: 10}}}},
		"anonymous clients alone":   {10, 0, []step{{"", 10, share.FullError{What: "places", Limit: 10}}}},
		"anonymous clients, beside": {10, 3, []step{{"alice", 3, share.FullError{What: "places", Limit: 3, Own: true}}, {"", 5, share.FullError{What: "places", Limit: 5, Own: true}}, {"bob", 2, share.FullError{What: "places", Limit: 10}}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := share.New("places", tt.limit, tt.own)
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
			if err := s.Take("carol", 1); err != nil {
				t.Errorf("when all is given back: %v", err)
			}
		})
	}
}
