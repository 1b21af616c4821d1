package events

import "context"

// feed has the newest events of a type, for the subscriptions that this replica owns. Its
// goroutine lasts as long as there are some. Webhooks.mu guards it.
type feed struct {
	name        string
	subscribers map[*subscriber]bool
	wake        chan struct{} // has room for one
	stop        context.CancelFunc

	birth string // of the log that the events are from; "" before the first look
	tail  part
}

// look wakes the goroutine.
func (f *feed) look() {
	select {
	case f.wake <- struct{}{}:
	default: // it is awake already
	}
}
