package client

import "sync"

// Eras remembers which servers are legacy ones, so that a client need not ask
// again (basic/versioning of 2026-07-28). What is remembered wrongly costs one
// request more. The zero value is empty and ready; it is safe for concurrent
// use.
type Eras struct {
	mu    sync.Mutex
	known map[string]era
}

// era is what is known of a server.
type era byte

const (
	eraUnknown era = iota
	eraModern
	eraLegacy
	eraFallback // legacy, and on the stand-in transport
)

// maxEras bounds how many servers are remembered.
const maxEras = 10000

func (e *Eras) get(server string) era {
	if e == nil {
		return eraUnknown
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.known[server]
}

func (e *Eras) set(server string, now era) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.known == nil || len(e.known) >= maxEras {
		e.known = map[string]era{}
	}
	e.known[server] = now
}

// Forget drops what is known of the server that the transport names.
func (e *Eras) Forget(t Transport) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.known, t.String())
}
