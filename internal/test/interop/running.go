package interop

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
)

// callTimeout is how long a tool waits for a client that lets it down.
const callTimeout = 20 * time.Second

// KeyInput names a call of wait, or a job.
type KeyInput struct {
	Key string `json:"key" jsonschema_description:"which call of wait is meant"`
}

// pendingCalls are the calls of wait and the jobs that are in progress.
type pendingCalls struct {
	mu        sync.Mutex
	released  map[string]chan struct{}
	cancelled atomic.Int64
}

// wait tells its progress and continues when it is released.
func (w *pendingCalls) wait(f *mcp.Frame, in KeyInput) (string, error) {
	released := make(chan struct{})
	w.mu.Lock()
	w.released[in.Key] = released
	w.mu.Unlock()
	if err := f.Progress(1, 2, "waiting"); err != nil {
		return "", err
	}
	select {
	case <-released:
		return in.Key + " was released", nil
	case <-f.Done():
		w.cancelled.Add(1)
		return "", f.Err()
	case <-time.After(callTimeout):
		return "", errors.New("nobody released or cancelled this call")
	}
}

func (w *pendingCalls) release(_ *mcp.Frame, in KeyInput) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	released, ok := w.released[in.Key]
	if !ok {
		return "", fmt.Errorf("nothing waits with the key %q", in.Key)
	}
	delete(w.released, in.Key)
	close(released)
	return "released " + in.Key, nil
}

// JobInput has the arguments of a job.
type JobInput struct {
	Key string `json:"key,omitempty" jsonschema_description:"which errand is meant, to release it"`
	End string `json:"end" validate:"oneof=wait fail crash ask" jsonschema_description:"what comes of it"`
}

// errand waits as wait does, or comes to another end at once.
func (w *pendingCalls) errand(f *mcp.Frame, in JobInput) (string, error) {
	switch in.End {
	case "fail":
		return "", errors.New("this errand fails always")
	case "crash":
		panic("this errand panics always")
	case "ask":
		who, err := mcp.Elicit[GreetInput](f, "who", "Who runs this errand?")
		return string(who.Action) + " " + who.Value.Name, err
	}
	return w.wait(f, KeyInput{in.Key})
}

// running are tools that take their time.
func (all *shared) running() []mcp.Component {
	calls := all.calls
	return []mcp.Component{
		mcp.Tool("wait", calls.wait, mcp.Doc("Tells its progress once, then waits to be released or cancelled")),
		mcp.Tool("errand", calls.errand, mcp.Doc("Waits as a task, or comes to another end"),
			mcp.AsTask(&mcp.TaskOptions{TTL: time.Minute, PollInterval: 20 * time.Millisecond, Wait: -1})),
		mcp.Tool("release", calls.release, mcp.Doc("Releases a call of wait, or an errand")),
		mcp.Tool("cancelled", func(*mcp.Frame, noInput) (string, error) {
			return fmt.Sprint(calls.cancelled.Load()), nil
		}, mcp.Doc("Counts the calls of wait and the errands that were cancelled")),
		mcp.Tool("log", func(f *mcp.Frame, _ noInput) (string, error) {
			return "logged", errors.Join(f.Log(protocol.LevelInfo, "All is well", "e2e"), f.Log(protocol.LevelError, "All is lost", "e2e"))
		}, mcp.Doc("Logs twice to the client, as info and as error")),
		mcp.Tool("hang_up", func(f *mcp.Frame, _ noInput) (string, error) {
			if !f.CloseStream() {
				return "the connection stays", nil
			}
			time.Sleep(100 * time.Millisecond) // the client comes back after half of this
			return "the client came back", nil
		}, mcp.Doc("Ends the connection that waits for its answer, where the client can come back")),
	}
}
