package asking_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
)

// envStateKeys makes the test binary a server over standard input and output,
// with these state keys, separated by spaces.
const envStateKeys = "TALARIA_TEST_STATE_KEYS"

// TestAskingProcess is not a test but the server that TestRoundsAcrossProcesses
// starts.
func TestAskingProcess(t *testing.T) {
	keys, ok := os.LookupEnv(envStateKeys)
	if !ok {
		return // the test binary was not started for that
	}
	var ring [][]byte
	for _, key := range strings.Fields(keys) {
		ring = append(ring, []byte(key))
	}
	s := mcp.NewServer(mcp.Info{Name: "process", Version: "1"}, &mcp.Options{StateKeys: ring})
	s.MustAdd(mcp.Tool("ask", func(f *mcp.Frame, _ struct{}) (string, error) {
		pid, err := mcp.Once(f, "pid", func() (int, error) { return os.Getpid(), nil })
		if err != nil {
			return "", err
		}
		size, err := mcp.Elicit[struct {
			Size string `json:"size" validate:"required,oneof=small large"`
		}](f, "size", "Which size?")
		if err != nil {
			return "", err
		}
		cups, err := mcp.Elicit[struct {
			Cups int `json:"cups" validate:"min=1"`
		}](f, "cups", "How many?")
		return fmt.Sprint(cups.Value.Cups, " ", size.Value.Size, " since ", pid), err
	}))
	if err := s.ServeStdio(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// process is a server in a process of its own.
type process struct {
	t   *testing.T
	pid int
	in  io.Writer
	out *bufio.Reader
}

func startProcess(t *testing.T, keys string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestAskingProcess$")
	cmd.Env = append(os.Environ(), envStateKeys+"="+keys)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("process: %v", err)
		}
	})
	return &process{t, cmd.Process.Pid, in, bufio.NewReader(out)}
}

// ask sends one round of the call and returns its answer, and the state in it.
func (p *process) ask(state, responses string) (answer, next string) {
	p.t.Helper()
	members := `"name":"ask",`
	if state != "" {
		members += fmt.Sprintf(`"requestState":%q,"inputResponses":%s,`, state, responses)
	}
	meta := strings.Replace(harness.Expand("$META", protocol.Latest), `clientCapabilities":{}`, `clientCapabilities":{"elicitation":{}}`, 1)
	line := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{` + members + meta + "}}\n"
	if _, err := io.WriteString(p.in, line); err != nil {
		p.t.Fatal(err)
	}
	answer, err := p.out.ReadString('\n')
	if err != nil {
		p.t.Fatal(err)
	}
	harness.CheckSpec(p.t, protocol.Latest, line, answer)
	var m struct{ Result struct{ RequestState string } }
	if err := json.Unmarshal([]byte(answer), &m); err != nil {
		p.t.Fatalf("%s: %v", answer, err)
	}
	return answer, m.Result.RequestState
}

// The rounds of one call go to whichever process is at hand, as long as they
// share their keys, also while a key is being replaced. What Once did in the
// first is known to the last.
func TestRoundsAcrossProcesses(t *testing.T) {
	const old, young = "0123456789abcdef-old", "0123456789abcdef-new"
	const size, cups = `{"size":{"action":"accept","content":{"size":"large"}}}`, `{"cups":{"action":"accept","content":{"cups":2}}}`
	first, second, third := startProcess(t, old), startProcess(t, young+" "+old), startProcess(t, young)
	stranger := startProcess(t, "")
	answer, state := first.ask("", "")
	if !strings.Contains(answer, `"input_required"`) || !strings.Contains(answer, "Which size?") || state == "" {
		t.Fatalf("first round: %s", answer)
	}
	for name, p := range map[string]*process{"a process without the key": third, "a process with keys of its own": stranger} {
		if answer, _ := p.ask(state, size); !strings.Contains(answer, `"code":-32602`) || !strings.Contains(answer, "requestState is refused") {
			t.Errorf("%s: %s", name, answer)
		}
	}
	answer, next := second.ask(state, size)
	if !strings.Contains(answer, "How many?") || next == "" {
		t.Fatalf("second round: %s", answer)
	}
	if answer, _ := first.ask(next, cups); !strings.Contains(answer, "requestState is refused") {
		t.Errorf("the old key opens what the new one sealed: %s", answer)
	}
	for range 2 { // the same round twice is the same answer
		if answer, _ = third.ask(next, cups); !strings.Contains(answer, fmt.Sprintf("2 large since %d", first.pid)) {
			t.Errorf("third round: %s, want what the first process kept", answer)
		}
	}
}
