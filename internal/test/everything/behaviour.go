package everything

import (
	"strconv"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/pause"
	"github.com/talaria-go/mcp/protocol"
)

// step is the pause between the notifications of one call.
const step = 50 * time.Millisecond

// counted is how often count was called in a session.
var counted = mcp.NewStoredKey[int]("talaria.test/counted")

// behaviourTools send notifications while they work, or look at the client.
func behaviourTools() []mcp.Component {
	return []mcp.Component{
		mcp.Tool("test_tool_with_logging", withLogging, mcp.Doc("Logs three times while it works")),
		mcp.Tool("test_tool_with_progress", withProgress, mcp.Doc("Tells its progress three times")),
		mcp.Tool("test_logging_tool", logging, mcp.Doc("Logs once")),
		mcp.Tool("test_streaming_elicitation", streaming, mcp.Doc("Streams before it answers")),
		mcp.Tool("test_reconnection", reconnection, mcp.Doc("Lets its connection go and answers when the client is back")),
		mcp.Tool("test_count", count, mcp.Doc("Counts its calls in the session")),
		mcp.Tool("test_missing_capability", needsSampling, mcp.Doc("Needs a client that can sample")),
	}
}

func withLogging(f *mcp.Frame, _ none) (string, error) {
	for i, text := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
		if i > 0 {
			if err := pause.For(f, step); err != nil {
				return "", err
			}
		}
		if err := f.Log(protocol.LevelInfo, text); err != nil {
			return "", err
		}
	}
	return "Tool with logging executed successfully", nil
}

func withProgress(f *mcp.Frame, _ none) (string, error) {
	for _, done := range []float64{0, 50, 100} {
		if done > 0 {
			if err := pause.For(f, step); err != nil {
				return "", err
			}
		}
		if err := f.Progress(done, 100); err != nil {
			return "", err
		}
	}
	return "Tool with progress executed successfully", nil
}

func logging(f *mcp.Frame, _ none) (string, error) {
	if err := f.Log(protocol.LevelInfo, "The logging tool runs"); err != nil {
		return "", err
	}
	return "Logging evaluated", nil
}

// streaming answers after a notification, if the client asked for progress.
// The suite looks for requests among what is streamed.
func streaming(f *mcp.Frame, _ none) (string, error) {
	if err := f.Progress(1, 2); err != nil {
		return "", err
	}
	return "Streaming complete", nil
}

func reconnection(f *mcp.Frame, _ none) (string, error) {
	f.CloseStream()
	if err := pause.For(f, 2*step); err != nil {
		return "", err
	}
	return "Reconnection test completed", nil
}

// count is for tests with several replicas; the suite does not know it.
func count(f *mcp.Frame, _ none) (string, error) {
	n := counted.Update(f, func(n int) int { return n + 1 })
	return strconv.Itoa(n), nil
}

func needsSampling(f *mcp.Frame, _ none) (string, error) {
	if f.ClientCapabilities().Sampling == nil {
		return "", &mcp.Error{
			Code: protocol.CodeMissingCapability, Message: "This tool needs a client that can sample",
			Data: map[string]any{"requiredCapabilities": map[string]any{"sampling": none{}}},
		}
	}
	return "The client can sample", nil
}
