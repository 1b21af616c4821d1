package harness

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// ListenServer returns a server with one tool and nothing else.
func ListenServer(t testing.TB, opts mcp.Options) *mcp.Server {
	t.Helper()
	quiet := zerolog.Nop()
	opts.Logger = &quiet
	s := mcp.NewServer(mcp.Info{Name: "listen", Version: "1"}, &opts)
	s.MustAdd(Tool("first"))
	return s
}

func Tool(name string) mcp.Component {
	return mcp.Tool(name, func(*mcp.Frame, struct{}) (string, error) { return name, nil })
}

// Listener is a client that says messages and hears whatever comes, when it comes.
type Listener interface {
	Say(line string)
	// hear returns the next message, "" at the end.
	Hear() string
}

type Pipe struct {
	t     *testing.T
	In    *io.PipeWriter
	lines *bufio.Reader
}

func PipeWire(t *testing.T, s *mcp.Server) Listener {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	served := make(chan error, 1)
	go func() {
		err := s.ServeConn(context.Background(), transport.NewStream(inR, outW, nil))
		served <- err
	}()
	t.Cleanup(func() {
		inW.Close()
		go io.Copy(io.Discard, outR) // what comes last
		if err := <-served; err != nil && !errors.Is(err, mcp.ErrServerClosed) {
			t.Errorf("ServeConn: %v", err)
		}
	})
	return &Pipe{t, inW, bufio.NewReader(outR)}
}

func (p *Pipe) Say(line string) {
	if _, err := io.WriteString(p.In, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

func (p *Pipe) Hear() string {
	line, err := p.lines.ReadString('\n')
	if err != nil && err != io.EOF {
		p.t.Fatal(err)
	}
	return strings.TrimSuffix(line, "\n")
}

// Listen returns a subscriptions/listen request.
func Listen(id, filter string) string {
	return Expand(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"subscriptions/listen","params":{"notifications":%s,$META}}`, id, filter), protocol.Latest)
}

// Tagged returns a notification of the subscription id.
func Tagged(id, method, rest string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/%s","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s}%s}}`, method, id, rest)
}

// Ended returns the result that ends the subscription id.
func Ended(id string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%[1]s,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":%[1]s,"io.modelcontextprotocol/serverInfo":{"name":"listen","version":"1"}}}}`, id)
}

func WantPlain(t *testing.T, w Listener, want string) {
	t.Helper()
	if got := w.Hear(); got != want {
		t.Fatalf("heard\ngot  %s\nwant %s", got, want)
	}
	CheckSpec(t, protocol.V20250618, "", want)
}
