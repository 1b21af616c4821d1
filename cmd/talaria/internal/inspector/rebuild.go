package inspector

import (
	"context"

	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/protocol"
)

// Building says that the server has not been built yet, or with a text why it does not build:
// the program before continues then, if there is one.
func (i *Inspector) Building(wrong string) {
	i.mu.Lock()
	i.unbuilt = visible.Text(wrong, 64<<10)
	if i.attempt == 0 && wrong != "" {
		i.state, i.failure = "failed", &failure{Cause: "The server does not build.", Hint: "Correct its sources: each change builds it again."}
	}
	i.mu.Unlock()
	i.pulse.beat()
}

// Rebuilt connects to the server that was built, with the revision that is chosen, and makes
// the last call again, unless its tool is destructive.
func (i *Inspector) Rebuilt() {
	i.mu.Lock()
	i.unbuilt = ""
	revision, attempt := i.revision, i.attempt
	i.mu.Unlock()
	if last, ok := i.calls.last(); ok {
		i.work.Go(func() { i.repeat(last, attempt) })
	}
	i.Connect(revision)
}

// repeat makes a call again once the connection after an attempt is there.
func (i *Inspector) repeat(last call, attempt int) {
	for {
		_, changed := i.pulse.now()
		i.mu.Lock()
		now, state, listed := i.attempt, i.state, i.offered["tool"] != nil
		i.mu.Unlock()
		switch {
		case now > attempt+1 || now > attempt && state == "failed":
			return
		case now > attempt && state == "ready" && (listed || last.Method != protocol.MethodToolsCall):
			if asTask, ok := i.repeatable(i.ctx, last); ok {
				_, _ = i.calls.startAgain(i, last.Method, last.Tool, last.Arguments, asTask, last.ID) // it is shown as not made again
			}
			return
		}
		select {
		case <-changed:
		case <-i.ctx.Done():
			return
		}
	}
}

// repeatable reports whether a call may be made again without a person, and whether as a task.
func (i *Inspector) repeatable(ctx context.Context, last call) (asTask, ok bool) {
	if last.Method != protocol.MethodToolsCall {
		return false, true
	}
	e, err := i.find(ctx, "tool", last.Tool)
	return e.task, err == nil && !e.destructive
}
