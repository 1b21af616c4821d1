package client

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/tooling/toollock"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/protocol"
)

// Lock is the definitions of a server's tools as a person has accepted them, for
// Options.Pin. ReadLock reads one; the command "talaria lock" and Golden of package
// mcptest write it. The zero value has no tool, and so allows none.
type Lock struct{ lock toollock.Lock }

// ReadLock reads a lock from a file, such as mcp.lock.
func ReadLock(file string) (*Lock, error) {
	lock, err := toollock.Read(file)
	if err != nil {
		return nil, err
	}
	return &Lock{*lock}, nil
}

// pinAge is how old a list may be while there is a pin, if its server does not say how
// long it is fresh.
const pinAge = 5 * time.Minute

// maxUnpinned is how many tools that the pin refuses are logged.
const maxUnpinned = 1000

// pin holds Options.Pin against what the server lists. The zero value allows
// everything. mu guards the fields below it.
type pin struct {
	client *Client
	lock   *toollock.Lock // nil: none

	mu     sync.Mutex
	differ map[string]error // what differs, by the names of tools that the lock has
	logged map[uint64]bool  // hashes of names and differences
	seed   maphash.Seed
	until  time.Time // when the list is to be read again
}

// hold takes the pin of the client's options.
func (p *pin) hold(c *Client) {
	p.client, p.differ, p.logged, p.seed = c, map[string]error{}, map[uint64]bool{}, maphash.MakeSeed()
	if c.opts.Pin != nil {
		p.lock = &c.opts.Pin.lock
	}
}

// changed returns an ErrChanged for a tool.
func changed(name string, err error) error {
	return &Error{kind: ErrChanged, Err: fmt.Errorf("tool %q %w; talaria lock --check shows it", visible.Line(name, visible.Name), err)}
}

// begin notes that all pages are read now.
func (p *pin) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until = time.Now().Add(pinAge)
}

// page notes how long a page is fresh; 0 if its server does not say.
func (p *pin) page(fresh time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until := time.Now().Add(fresh); fresh > 0 && until.Before(p.until) {
		p.until = until
	}
}

// over reports whether the list is to be read again.
func (p *pin) over() bool {
	if p.lock == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return !time.Now().Before(p.until)
}

// allows reports whether a tool that the server lists may be used. It logs a
// difference once.
func (p *pin) allows(tool *protocol.Tool) bool {
	if p.lock == nil {
		return true
	}
	err := p.lock.Judge(*tool)
	if p.note(tool.Name, err) {
		safely.Log(p.client.opts.Logger.Warn().Str("server", p.client.server).Str("tool", visible.Line(tool.Name, visible.Name)).Err(visible.Error(err)), "tool left out: it is not as Options.Pin has it")
	}
	return err == nil
}

// note keeps what differs of a tool, nil for nothing, and reports whether that is new.
func (p *pin) note(name string, err error) (isNew bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err == nil {
		delete(p.differ, name)
		return false
	}
	if p.lock.Has(name) {
		p.differ[name] = err
	}
	key := maphash.String(p.seed, name+"\x00"+err.Error())
	if p.logged[key] || len(p.logged) == maxUnpinned {
		return false
	}
	p.logged[key] = true
	return true
}

// renewed makes the next call list the tools again.
func (p *pin) renewed() {
	if p.lock != nil {
		p.client.tools.stale()
	}
}

// use returns a tool that may be called, from a list that is not too old.
func (p *pin) use(ctx context.Context, name string) (*toolInfo, error) {
	if !p.lock.Has(name) {
		return nil, changed(name, toollock.ErrAbsent)
	}
	info, err := p.client.tools.need(ctx, name)
	if err == nil || !errors.Is(err, ErrNotFound) {
		return info, err
	}
	p.mu.Lock()
	differs := p.differ[name]
	p.mu.Unlock()
	if differs != nil {
		return nil, changed(name, differs)
	}
	return nil, err
}

// instructions returns an ErrChanged if the instructions of a server are not those of
// the lock.
func (p *pin) instructions(s *Server) error {
	if p.lock == nil {
		return nil
	}
	if err := p.lock.JudgeInstructions(s.Instructions); err != nil {
		return &Error{kind: ErrChanged, Err: fmt.Errorf("%w; talaria lock --check shows it", err)}
	}
	return nil
}
