package main

import (
	"slices"
	"sync/atomic"
	"time"
)

// The phases of a window.
const (
	warming = iota
	measuring
	finished
)

// window is the time in which calls count. Calls continue at full rate before
// it.
type window struct {
	warm, length time.Duration
	maxCalls     int64

	phase atomic.Int32
	calls atomic.Int64
	full  chan struct{}
	lanes []lane

	took, cpu time.Duration
	rss       int64
	counted   int64
}

// lane has the times of one connection's calls, so that connections do not
// wait for each other.
type lane struct {
	w     *window
	times []time.Duration
}

func newWindow(o options) *window {
	w := &window{warm: o.warm, length: o.length, maxCalls: o.maxCalls, full: make(chan struct{}, 1), lanes: make([]lane, o.inFlight)}
	for i := range w.lanes {
		w.lanes[i].w = w
	}
	return w
}

func (w *window) lane(i int) *lane { return &w.lanes[i] }

func (w *window) over() bool { return w.phase.Load() == finished }

// stop ends the window before its time.
func (w *window) stop() {
	select {
	case w.full <- struct{}{}:
	default:
	}
}

// done counts a call.
func (l *lane) done(took time.Duration) {
	if l.w.phase.Load() != measuring {
		return
	}
	l.times = append(l.times, took)
	if l.w.calls.Add(1) == l.w.maxCalls {
		l.w.stop()
	}
}

// run waits out the window and takes the server's use of time and memory.
func (w *window) run(p *process) error {
	defer w.phase.Store(finished)
	wait := func(d time.Duration) {
		select {
		case <-time.After(d):
		case <-w.full:
		}
	}
	wait(w.warm)
	before, err := p.cpu()
	if err != nil {
		return err
	}
	start := time.Now()
	w.phase.Store(measuring)
	wait(w.length)
	w.counted = w.calls.Load()
	w.took = time.Since(start)
	after, err := p.cpu()
	w.cpu = after - before
	w.rss = p.rss()
	return err
}

// sample is the outcome of one window.
type sample struct {
	rate     float64       // calls per second
	cpu      time.Duration // of the server, for one call
	p50, p99 time.Duration
	rss      int64
}

// sample sums the window up. It is to be called when all lanes have ended.
func (w *window) sample() sample {
	var times []time.Duration
	for _, l := range w.lanes {
		times = append(times, l.times...)
	}
	slices.Sort(times)
	if len(times) == 0 || w.counted == 0 {
		return sample{}
	}
	return sample{
		rate: float64(w.counted) / w.took.Seconds(),
		cpu:  w.cpu / time.Duration(w.counted),
		p50:  times[len(times)/2],
		p99:  times[len(times)*99/100],
		rss:  w.rss,
	}
}
