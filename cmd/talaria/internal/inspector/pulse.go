package inspector

import "sync"

// pulse tells all who wait that something has changed. What has, they look up.
type pulse struct {
	mu      sync.Mutex
	n       int64
	changed chan struct{} // closed at the next beat
}

func (p *pulse) init() { p.changed = make(chan struct{}) }

func (p *pulse) beat() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n++
	close(p.changed)
	p.changed = make(chan struct{})
}

// now returns the count of beats, and what is closed at the next.
func (p *pulse) now() (int64, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.n, p.changed
}
