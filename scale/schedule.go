package scale

import (
	"container/heap"
	"time"
)

// alarm is a time at which something happens to what has it. It is in at most
// one schedule.
type alarm struct {
	at    time.Duration // by the clock of the local
	place int           // in its schedule, from 1; 0 if it is in none
	entry *entry        // whose it is,
	box   *box          // or whose
}

// schedule is a heap of alarms, the earliest first.
type schedule []*alarm

// set puts an alarm into the schedule, or at another time.
func (s *schedule) set(a *alarm, at time.Duration) {
	a.at = at
	if a.place == 0 {
		heap.Push(s, a)
		return
	}
	heap.Fix(s, a.place-1)
}

// remove takes an alarm out of the schedule, if it is there.
func (s *schedule) remove(a *alarm) {
	if a.place != 0 {
		heap.Remove(s, a.place-1)
	}
}

// first returns the alarm whose time came before now, nil if there is none.
func (s schedule) first(now time.Duration) *alarm {
	if len(s) == 0 || s[0].at > now {
		return nil
	}
	return s[0]
}

// Len implements heap.Interface.
func (s schedule) Len() int { return len(s) }

// Less implements heap.Interface.
func (s schedule) Less(i, j int) bool { return s[i].at < s[j].at }

// Swap implements heap.Interface.
func (s schedule) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].place, s[j].place = i+1, j+1
}

// Push implements heap.Interface.
func (s *schedule) Push(x any) {
	a := x.(*alarm)
	*s = append(*s, a)
	a.place = len(*s)
}

// Pop implements heap.Interface.
func (s *schedule) Pop() any {
	last := len(*s) - 1
	a := (*s)[last]
	(*s)[last] = nil
	*s = (*s)[:last]
	a.place = 0
	return a
}
