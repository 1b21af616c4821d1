package behavior_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
)

// Use while requests come is either before the first of them, and then around
// all, or it panics and is around none.
func TestUseWhileServing(t *testing.T) {
	for range 20 {
		s := harness.ListenServer(t, mcp.Options{})
		var mu sync.Mutex
		through := map[string]int{} // by middleware
		var used sync.WaitGroup
		start := make(chan struct{})
		added := make([]bool, 4)
		for i := range added {
			used.Go(func() {
				<-start
				defer func() {
					if value := recover(); value != nil && !strings.Contains(fmt.Sprint(value), "after the server began to serve") {
						t.Errorf("Use panics with %v", value)
					}
				}()
				s.Use(func(next mcp.Handler) mcp.Handler {
					return func(f *mcp.Frame) (protocol.Result, error) {
						mu.Lock()
						through[fmt.Sprint(i)]++
						mu.Unlock()
						return next(f)
					}
				})
				added[i] = true
			})
		}
		const calls = 4
		for range calls {
			used.Go(func() {
				c := harness.ConnectAs(t, s, "", nil)
				<-start
				c.Say(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
				c.Hear(`"id":1,"result"`)
			})
		}
		close(start)
		used.Wait()
		mu.Lock()
		for i, in := range added {
			if want := map[bool]int{true: calls}[in]; through[fmt.Sprint(i)] != want {
				t.Errorf("middleware %d was added: %v; %d of %d calls went through it", i, in, through[fmt.Sprint(i)], calls)
			}
		}
		mu.Unlock()
	}
}
