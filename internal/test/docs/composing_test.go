package docs_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

type Pod struct {
	Name  string `json:"name"`
	Image string `json:"image"`
}

type pods []Pod

var cluster = func() (all pods) {
	for i := range 1000 {
		all = append(all, Pod{fmt.Sprintf("pod-%04d", i), strings.Repeat("image", 10)})
	}
	return all
}()

func (all pods) Pods(_ context.Context, _, after string) iter.Seq2[Pod, error] {
	return func(yield func(Pod, error) bool) {
		for _, p := range all {
			if p.Name > after && !yield(p, nil) {
				return
			}
		}
	}
}

type PodsIn struct {
	Namespace string `json:"namespace"`
	Cursor    string `json:"cursor,omitempty" jsonschema_description:"next_cursor of the page before"`
}

func listPods(ctx context.Context, in PodsIn) (mcp.Paged[Pod], error) {
	after := cluster.Pods(ctx, in.Namespace, in.Cursor) // those after the cursor, sorted by name
	return mcp.Page(after, func(p Pod) string { return p.Name }, 0)
}

func TestPods(t *testing.T) {
	s := notesServer()
	s.MustAdd(mcp.Tool("list_pods", listPods))
	mcptest.Each(t, func() *mcp.Server { return s }, func(t *testing.T, c *mcptest.Client) {
		var all []Pod
		pages := 0
		for page := (mcp.Paged[Pod]{Next: " "}); page.Next != ""; pages++ {
			page = mcptest.Call[mcp.Paged[Pod]](c, "list_pods", PodsIn{Cursor: strings.TrimSpace(page.Next)})
			all = append(all, page.Items...)
		}
		if len(all) != 1000 || pages != 4 {
			t.Errorf("%d pods in %d pages", len(all), pages)
		}
	})
}

type ReportIn struct {
	Week string `json:"week"`
}

func report(s *mcp.Server) mcp.Component {
	return mcp.Tool("weekly_report", func(f *mcp.Frame, in ReportIn) (protocol.Result, error) {
		// Once, as in 2026-07-28 the handler runs again for each answer of the user.
		_, err := mcp.Once(f, "refresh", func() (struct{}, error) {
			_, err := s.Call(f, "refresh_index", nil)
			return struct{}{}, err
		})
		if err != nil {
			return nil, err
		}
		return s.Call(f, "search_notes", SearchIn{Query: in.Week, Limit: 10})
	})
}

// The report is the result of the search, after one refresh.
func TestReport(t *testing.T) {
	mcptest.Each(t, notesServer, func(t *testing.T, c *mcptest.Client) {
		s := notesServer()
		refreshed := 0
		s.MustAdd(report(s), mcp.Tool("refresh_index", func(*mcp.Frame, struct{}) (string, error) { refreshed++; return "done", nil }))
		result := mcptest.New(t, s, mcptest.Revision(c.Revision())).Call("weekly_report", ReportIn{Week: notes[0].Text})
		if direct := c.Call("search_notes", SearchIn{Query: notes[0].Text, Limit: 10}); refreshed != 1 || result.Text() != direct.Text() {
			t.Errorf("refreshed %d times, got %s, want %s", refreshed, result.Text(), direct.Text())
		}
	})
}
