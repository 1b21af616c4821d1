package console

import (
	"fmt"
	"sync"

	"github.com/schollz/progressbar/v3"

	"github.com/talaria-go/mcp/internal/visible"
)

// Progress shows how far a call is, on Err, and only if that is a terminal. It
// is safe for concurrent use.
type Progress struct {
	console *Console
	mu      sync.Mutex
	bar     *progressbar.ProgressBar
	steps   int64 // of the bar; -1 without a total
	ended   bool
}

// NewProgress returns a progress display. It is invisible until the first Tell.
func NewProgress(c *Console) *Progress { return &Progress{console: c} }

// resolution is the number of steps of a bar, for any unit of the total.
const resolution = 1000

// mostLabel is how long a message next to a bar may be, in bytes.
const mostLabel = 60

// Tell shows that done of total is reached; a total of 0 is unknown.
func (p *Progress) Tell(done, total float64, message string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended || !p.console.ErrTerminal {
		return
	}
	steps := int64(resolution)
	if total <= 0 {
		steps = -1
	}
	if p.bar == nil || steps != p.steps {
		p.hide()
		p.begin(steps)
	}
	label := visible.Line(message, mostLabel) // more would not fit next to the bar
	if total <= 0 {
		if done > 0 {
			label = fmt.Sprintf("%g %s", done, label)
		}
		p.bar.Describe(label)
		_ = p.bar.Add(1) // a terminal that takes no bar loses the bar
		return
	}
	p.bar.Describe(fmt.Sprintf("%g/%g %s", done, total, label))
	_ = p.bar.Set64(int64(resolution * min(max(done/total, 0), 1))) // it is only drawn
}

func (p *Progress) begin(steps int64) {
	p.steps = steps
	p.bar = progressbar.NewOptions64(steps,
		progressbar.OptionSetWriter(p.console.Err),
		progressbar.OptionSetWidth(30),
		progressbar.OptionSetPredictTime(false),
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionSpinnerType(14),
		progressbar.OptionSetSpinnerChangeInterval(0), // a goroutine would draw it otherwise, also over other output
		progressbar.OptionEnableColorCodes(false),
	)
	p.console.shown.Store(p)
}

// Hide takes the bar off the screen until the next Tell, so that something else
// can be written.
func (p *Progress) Hide() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hide()
}

func (p *Progress) hide() {
	if p.bar != nil {
		_ = p.bar.Clear() // it is only drawn
		p.bar = nil
		p.console.shown.CompareAndSwap(p, nil)
	}
}

// End takes the bar off the screen for good.
func (p *Progress) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hide()
	p.ended = true
}
