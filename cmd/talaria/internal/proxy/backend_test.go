package proxy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// outage is a way to a server that can be cut.
type outage struct {
	server  *mcp.Server
	serving sync.WaitGroup

	mu    sync.Mutex
	down  bool
	tries int // while it was down
	conns []transport.Conn
}

var errDown = errors.New("the cable is out")

func (o *outage) dial(context.Context) (transport.Conn, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.down {
		o.tries++
		return nil, errDown
	}
	a, b := transport.Pipe()
	o.serving.Go(func() { _ = o.server.ServeConn(context.Background(), a) }) // its end is the test's doing
	o.conns = append(o.conns, a)
	return b, nil
}

func (o *outage) cut() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.down, o.tries = true, 0
	for _, c := range o.conns {
		_ = c.Close() // a pipe's Close has no error
	}
	o.conns = nil
}

func (o *outage) mend() (tries int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.down = false
	return o.tries
}

// However long the server behind is away, the proxy goes on when it is back.
// Meanwhile it declares what it declared, and says what is wrong.
func TestOutage(t *testing.T) {
	for _, one := range []bool{true, false} {
		for _, back := range []protocol.Revision{protocol.V20241105, protocol.V20250618, protocol.V20260728} {
			t.Run(fmt.Sprintf("%s-%v", back, one), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { testOutage(t, back, one) })
			})
		}
	}
}

func testOutage(t *testing.T, back protocol.Revision, alone bool) {
	cable := &outage{server: behind()}
	t.Cleanup(cable.serving.Wait)
	p := start(t, Options{One: alone, Connect: func(ctx context.Context, o *client.Options) (*client.Client, error) {
		o.Revisions = []protocol.Revision{back}
		return client.Connect(ctx, client.Conn(cable.dial), o)
	}})
	var mu sync.Mutex
	var heard []string
	c := one(t, p, &client.Options{Revisions: []protocol.Revision{protocol.V20250618}, OnNotification: func(n client.Notification) {
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, n.Method)
	}})
	echo := func(want string) {
		t.Helper()
		if r, err := c.Call(t.Context(), "echo", map[string]string{"text": want}); err != nil || r.Text() != want {
			t.Errorf("got %v, %v, want %s", r, err, want)
		}
	}
	echo("before")
	before := c.Server().Capabilities
	cable.cut()
	time.Sleep(10 * time.Minute)

	begin := time.Now()
	_, err := c.Call(t.Context(), "echo", map[string]string{"text": "meanwhile"})
	if err == nil || !strings.Contains(err.Error(), "cannot be reached") || !strings.Contains(err.Error(), errDown.Error()) {
		t.Errorf("meanwhile: got %v", err)
	}
	if took := time.Since(begin); took > backTime {
		t.Errorf("the error came after %v", took)
	}
	for _, front := range []protocol.Revision{protocol.V20250618, protocol.V20260728} {
		late := one(t, p, &client.Options{Revisions: []protocol.Revision{front}})
		if got := late.Server().Capabilities; got.Tools == nil || got.Prompts == nil || (got.Completions == nil) != (before.Completions == nil) {
			t.Errorf("%s: meanwhile the proxy declares %+v", front, got)
		}
	}

	if tries := cable.mend(); tries <= 5 {
		t.Errorf("%d attempts within 10 minutes", tries)
	}
	time.Sleep(time.Minute)
	echo("after")
	synctest.Wait()
	mu.Lock()
	defer mu.Unlock()
	for _, method := range []string{protocol.MethodToolsChanged, protocol.MethodPromptsChanged, protocol.MethodResourcesChanged} {
		if !slices.Contains(heard, method) { // over HTTP twice: the connection of the session was away, and the shared one
			t.Errorf("the client receives no %s of the server that is back, which may be another; it receives %v", method, heard)
		}
	}
}
