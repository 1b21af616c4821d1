package docs_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

type ImportIn struct {
	Rows int `json:"rows" validate:"min=1,max=1000000"`
}

func importRows(f *mcp.Frame, in ImportIn) (string, error) {
	for i := range in.Rows {
		if f.Err() != nil { // the client has cancelled the call, or its time is over
			return "", f.Err()
		}
		importRow(i)
		if (i+1)%100 == 0 {
			_ = f.Progress(float64(i+1), float64(in.Rows), "importing")
		}
	}
	return fmt.Sprintf("imported %d rows", in.Rows), nil
}

var imported int

func importRow(int) { imported++ }

func TestLongWork(t *testing.T) {
	s := mcp.NewServer(mcp.Info{Name: "imports", Version: "1"}, nil)
	s.MustAdd(mcp.Tool("legacy_import", importRows), mcp.Resource("config://app", readConfig))
	c := mcptest.New(t, s)
	c.Listen(protocol.SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: []string{"config://app"}})
	func() {
		s.MustAdd(mcp.Tool("import", importRows, mcp.AsTask(nil)))
		s.Remove(mcp.KindTool, "legacy_import") // clients that watch the list are notified
		s.ResourceUpdated("config://app")       // as are those that watch this resource
	}()
	c.WaitFor("notifications/tools/list_changed")
	c.WaitFor("notifications/resources/updated")
	imported = 0
	r := c.Call("import", ImportIn{250})
	if r.Text() != "imported 250 rows" || len(r.Progress) == 0 || imported != 250 {
		t.Errorf("got %q with %v, %d rows", r.Text(), r.Progress, imported)
	}
	if tools := c.Tools(); len(tools) != 1 || tools[0].Name != "import" {
		t.Errorf("got %v", tools)
	}
}

// newServer returns one of several servers.
func newReplica(store scale.Store) *mcp.Server {
	return mcp.NewServer(mcp.Info{Name: "imports", Version: "1"}, &mcp.Options{Store: store, StateKeys: [][]byte{[]byte("a secret of 16 bytes or more")}})
}

func TestWorker(t *testing.T) {
	work := func(ctx context.Context, store scale.Store) (*mcp.Server, error) {
		s := newReplica(store) // the same components, Options.Store and StateKeys as the servers that clients reach
		err := s.Work(ctx)     // takes tasks until ctx ends
		return s, err
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s, err := work(ctx, scale.NewLocal())
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Work returned %v", err)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}
