package events_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/events"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/scale"
)

// counting is a store that counts the messages that it returns.
type counting struct {
	scale.Store
	reads, messages int
}

func (s *counting) Read(ctx context.Context, box string, after scale.Rev, reader string) ([]scale.Message, string, error) {
	messages, now, err := s.Store.Read(ctx, box, after, reader)
	s.reads++
	s.messages += len(messages)
	return messages, now, err
}

// A reader that asks for few events at a time makes the store return each event about
// once, whether it is at the end of the log or far behind.
func TestFewAtATime(t *testing.T) {
	testdep.NoRace(t, "one goroutine reads all")
	synctest.Test(t, func(t *testing.T) {
		const many = 5000
		store := &counting{Store: scale.NewLocal()}
		l := logs(t, store, "key")
		cursor, text := read(t, l, "").Cursor, strings.Repeat("x", 500)
		for i := range many {
			add(t, l, fmt.Sprint(i, " ", text))
		}
		store.messages = 0
		for i := range many {
			page := read(t, l, cursor)
			if page.Truncated || len(page.Events) == 0 || !strings.HasPrefix(string(page.Events[0].Text), fmt.Sprint(i, " ")) {
				t.Fatalf("event %d: %d events, truncated %v", i, len(page.Events), page.Truncated)
			}
			cursor = page.Events[0].Cursor
		}
		if store.messages > 2*many {
			t.Errorf("the store returned %d messages for %d events", store.messages, many)
		}
	})
}

// Pages of logs that have events in memory are those of logs that have none, for readers at
// any position, with events that arrive at random.
func TestMemory(t *testing.T) {
	for seed := range uint64(max(2, testdep.Rounds(10, 100))) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 1))
				store := scale.NewLocal()
				warm, other := logs(t, &lossy{store, rand.New(rand.NewPCG(seed, 2))}, "key"), logs(t, store, "key")
				defer warm.Close(t.Context())
				if seed%2 == 0 { // a follower brings events into memory as they come
					defer warm.Follow("x", func() {})()
				}
				cursors := []string{read(t, warm, "").Cursor}
				whole := func(l *events.Logs, cursor string) (all []string, last string) {
					for {
						page := read(t, l, cursor)
						if page.Truncated {
							t.Error("truncated")
						}
						for _, e := range page.Events {
							all = append(all, string(e.Text[:8]))
						}
						if cursor = page.Cursor; !page.More {
							return all, cursor
						}
					}
				}
				for n := range 60 {
					for range random.IntN(12) {
						add(t, other, fmt.Sprintf("%08d", n)+strings.Repeat("x", random.IntN(100_000)))
					}
					time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
					if random.IntN(20) == 0 {
						time.Sleep(2 * time.Minute) // the memory is dropped
					}
					cursor := cursors[random.IntN(len(cursors))]
					if n > 20 && random.IntN(2) == 0 {
						cursor = cursors[len(cursors)-1]
					}
					got, last := whole(warm, cursor)
					want, _ := whole(logs(t, store, "key"), cursor)
					if fmt.Sprint(got) != fmt.Sprint(want) {
						t.Fatalf("step %d: %d events, want %d", n, len(got), len(want))
					}
					cursors = append(cursors, last)
					if page := read(t, warm, cursor); len(page.Events) > 0 {
						cursors = append(cursors, page.Events[random.IntN(len(page.Events))].Cursor)
					}
					if len(cursors) > 6 {
						cursors = cursors[len(cursors)-6:]
					}
				}
			})
		})
	}
}

// lossy is a store that loses one message of five on their way to a Watcher.
type lossy struct {
	scale.Store
	random *rand.Rand
}

func (s *lossy) Watch(message func(string, scale.Message), missed func()) scale.Watcher {
	return s.Store.Watch(func(subject string, m scale.Message) {
		if s.random.IntN(5) > 0 {
			message(subject, m)
		}
	}, missed)
}

// A follower is called for each event, and the store is asked for none of them.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &counting{Store: scale.NewLocal()}
		l := logs(t, store, "key")
		defer l.Close(t.Context())
		looks := 0
		stop := l.Follow("x", func() { looks++ })
		synctest.Wait()
		cursor := read(t, l, "").Cursor
		before, reads := looks, store.reads
		for i := range 3 {
			add(t, l, fmt.Sprint(i))
			synctest.Wait()
		}
		if looks != before+3 || store.reads != reads {
			t.Errorf("called %d times, the store was read %d times", looks-before, store.reads-reads)
		}
		page, ok := l.Recall("x", cursor)
		if !ok || len(page.Events) != 3 || page.Truncated {
			t.Errorf("recalled %v, %+v", ok, page)
		}
		late := 0
		defer l.Follow("x", func() { late++ })()
		synctest.Wait()
		if late != 1 {
			t.Errorf("a second follower was called %d times", late)
		}
		stop()
		add(t, l, "more")
		synctest.Wait()
		if looks > before+4 || late != 2 {
			t.Errorf("after the end called %d times, the other %d", looks-before, late)
		}
	})
}

// Events that the log dropped while nobody read are missing from memory, too, and the page
// says so.
func TestMemoryGap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := logs(t, scale.NewLocal(), "key")
		begin := read(t, l, "").Cursor
		add(t, l, "first")
		cursor := read(t, l, begin).Cursor
		text := strings.Repeat("x", 200_000)
		for range 30 {
			add(t, l, text)
		}
		n, truncated := 0, false
		for page := read(t, l, cursor); ; page = read(t, l, page.Cursor) {
			n, truncated = n+len(page.Events), truncated || page.Truncated
			if page.Truncated && n > len(page.Events) {
				t.Error("truncated twice")
			}
			if len(page.Events) == 0 && !page.More {
				break
			}
		}
		if !truncated || n < 15 || n > 25 {
			t.Errorf("%d events, truncated %v", n, truncated)
		}
		if page := read(t, l, begin); !page.Truncated {
			t.Error("an old cursor is served from memory across a gap")
		}
	})
}
