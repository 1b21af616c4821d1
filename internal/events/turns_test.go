package events

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Principals take turns: four whose endpoints hang do not keep a fifth waiting for longer
// than one request, and none has more than its places.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns(postsAtOnce, postsOfOne)
		used, most := map[string]int{}, map[string]int{}
		total := 0
		hang := func(who string) {
			if err := turns.take(t.Context(), who); err != nil {
				t.Error(err)
				return
			}
			turns.mu.Lock()
			used[who]++
			most[who] = max(most[who], used[who])
			total = max(total, used["a"]+used["b"]+used["c"]+used["d"]+used["e"])
			turns.mu.Unlock()
			time.Sleep(postTimeout)
			turns.mu.Lock()
			used[who]--
			turns.mu.Unlock()
			turns.give(who)
		}
		for range 100 {
			for _, who := range []string{"a", "b", "c", "d"} {
				go hang(who)
			}
		}
		synctest.Wait()
		began := time.Now()
		if err := turns.take(t.Context(), "quick"); err != nil || time.Since(began) > postTimeout {
			t.Errorf("the fifth has waited %v: %v", time.Since(began), err)
		}
		turns.give("quick")
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if err := turns.take(gone, "gone"); err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		time.Sleep(100 * postTimeout)
		turns.mu.Lock()
		defer turns.mu.Unlock()
		if turns.free+len(turns.used) < postsAtOnce-1 || len(turns.waiting) > 0 || len(turns.order) > 0 {
			t.Errorf("left: %d free, %v used, %v wait", turns.free, turns.used, turns.order)
		}
		if most["a"] != postsOfOne || total != postsAtOnce {
			t.Errorf("%v at once of a principal, %d of all", most, total)
		}
	})
}
