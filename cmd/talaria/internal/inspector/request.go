package inspector

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/protocol"
)

// The bounds of completion: how many may be asked for at a time, how long the
// server has for one, and what is shown of it.
const (
	maxCompletions = 8
	completionTime = 10 * time.Second
	maxValues      = 100
	maxValue       = 4 << 10 // bytes
)

// errNoConnection is the answer to what needs one.
var errNoConnection = errors.New("not connected")

// request makes one of the requests of the page other than calls.
func (i pages) request(w http.ResponseWriter, r *http.Request) {
	var q struct {
		Method string
		Params struct {
			Level    string
			TaskID   string
			Ref      struct{ Type, Name, URI string }
			Argument struct{ Name, Value string }
			Context  struct{ Arguments map[string]string }
		}
	}
	if !body(w, r, &q) {
		return
	}
	p := q.Params
	to := i.current()
	if to == nil {
		refuse(w, http.StatusConflict, errNoConnection)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), completionTime)
	defer cancel()
	var result any = struct{}{}
	var err error
	switch q.Method {
	case protocol.MethodPing:
		err = to.Ping(ctx)
	case protocol.MethodSetLevel:
		var level protocol.Level
		if err = level.UnmarshalText([]byte(p.Level)); err == nil {
			err = to.SetLevel(ctx, level)
		}
	case protocol.MethodComplete:
		c := client.Completion{Prompt: p.Ref.Name, Template: p.Ref.URI, Argument: p.Argument.Name, Value: p.Argument.Value, Context: p.Context.Arguments}
		result, err = i.complete(ctx, to, c)
	case protocol.MethodTasksList:
		result, err = taskList(ctx, to)
	case protocol.MethodTasksCancel:
		err = to.CancelTask(ctx, p.TaskID)
	default:
		refuse(w, http.StatusBadRequest, fmt.Errorf("the page makes no request %q", visible.Line(q.Method, visible.Name)))
		return
	}
	if err != nil {
		refuse(w, http.StatusConflict, err)
		return
	}
	reply(w, result)
}

// suggestions are values that an argument can have.
type suggestions struct {
	Values []option `json:"values"`
	More   bool     `json:"more,omitempty"`
}

// complete asks what an argument can be. A value that is too long to be shown is
// left out.
func (i pages) complete(ctx context.Context, to *client.Client, c client.Completion) (*suggestions, error) {
	if i.completions.Add(1) > maxCompletions {
		i.completions.Add(-1)
		return nil, errors.New("too many completions at once (limit 8)")
	}
	defer i.completions.Add(-1)
	result, err := to.Complete(ctx, c)
	if err != nil {
		return nil, err
	}
	s := &suggestions{Values: []option{}, More: result.HasMore}
	for _, value := range result.Values {
		if len(value) > maxValue || len(s.Values) == maxValues {
			s.More = true
			continue
		}
		s.Values = append(s.Values, option{value, visible.Line(value, visible.Name)})
	}
	return s, nil
}

// completes reports whether a server completes arguments. Before it could say so,
// it is asked.
func completes(c *client.Client) bool {
	return c != nil && (c.Server().Capabilities.Completions != nil || !c.Revision().Has(protocol.FeatureCompletionsCapability))
}
