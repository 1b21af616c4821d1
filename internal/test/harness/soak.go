package harness

import (
	"net/http"
	"runtime"
	"time"
)

// Settle closes idle connections, waits until no more than enough goroutines
// are left, or their number has been the same for so many looks, and returns
// what is left.
func Settle(tr *http.Transport, enough, looks int) (goroutines int, heap uint64) {
	last, same := -1, 0
	for {
		tr.CloseIdleConnections()
		n := runtime.NumGoroutine()
		if n != last {
			last, same = n, 0
		} else if same++; same >= looks {
			break
		}
		if n <= enough {
			break
		}
		<-time.After(10 * time.Millisecond) // connections close on their own time
	}
	runtime.GC()
	runtime.GC() // pools let go in the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return last, m.HeapAlloc
}
