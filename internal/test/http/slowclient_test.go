package http_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/transport"
)

// TestWriteBeforeRead sees that a client may send much, good and bad, over a
// connection that buffers nothing, before it reads the first answer.
func TestWriteBeforeRead(t *testing.T) {
	s := harness.Fixture(t, nil)
	client, server := net.Pipe()
	served := make(chan error, 1)
	go func() { served <- s.ServeConn(t.Context(), transport.NewStream(server, server, nil)) }()
	if err := client.SetDeadline(time.Now().Add(harness.Patience)); err != nil {
		t.Fatal(err)
	}
	lines := []string{harness.InitLine, `{"jsonrpc":"2.0","method":"notifications/initialized"}`}
	want := map[string]int{`"id":0,"result"`: 1}
	for i := range 100 {
		lines = append(lines,
			`{"jsonrpc":`, // no message
			fmt.Sprintf(`{"jsonrpc":"2.0","id":"a%d","method":"initialize","params":{}}`, i),
			fmt.Sprintf(`{"jsonrpc":"2.0","id":"b%d","method":"ping"}`, i),
			fmt.Sprintf(`[{"jsonrpc":"2.0","id":"c%d","method":"ping"}]`, i), // the revision has no batches
		)
		want[fmt.Sprintf(`"id":"a%d","error"`, i)] = 1
		want[fmt.Sprintf(`"id":"b%d","result"`, i)] = 1
	}
	want[`"code":-32700`] = 100
	for _, line := range lines {
		if _, err := io.WriteString(client, line+"\n"); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
	var heard strings.Builder
	in := bufio.NewReader(client)
	for i := range len(lines) - 1 { // a notification has no answer
		answer, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 && !strings.Contains(answer, `"id":0,"result"`) {
			t.Errorf("the first answer is %s, want that of initialize", answer)
		}
		heard.WriteString(answer)
	}
	for part, n := range want {
		if got := strings.Count(heard.String(), part); got != n {
			t.Errorf("heard %s %d times, want %d", part, got, n)
		}
	}
	_ = client.Close()
	if err := <-served; err != nil && err != io.ErrClosedPipe {
		t.Errorf("ServeConn: %v", err)
	}
}

// TestNeverReads sees that a client which sends bad messages and reads no
// answer is given up, when so much waits for it that the server would have to.
func TestNeverReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := harness.Fixture(t, nil)
		client, server := net.Pipe()
		served := make(chan error, 1)
		go func() { served <- s.ServeConn(context.Background(), transport.NewStream(server, server, nil)) }()
		begin := time.Now()
		sent := 0
		for {
			n, err := io.WriteString(client, `{"jsonrpc":"2.0","id":1,"method":7}`+"\n")
			if sent += n; err != nil {
				break
			}
		}
		if took := time.Since(begin); took != facts.WriteTimeout {
			t.Errorf("the connection ended after %v, want %v", took, facts.WriteTimeout)
		}
		if sent > 16<<20 {
			t.Errorf("the server took %d bytes", sent)
		}
		if err := <-served; err == nil || !strings.Contains(err.Error(), "does not read") {
			t.Errorf("ServeConn: %v, want to hear that the client does not read", err)
		}
	})
}

// TestSlowReader sees that a client which reads late, but reads, loses nothing.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := harness.Fixture(t, nil)
		client, server := net.Pipe()
		served := make(chan error, 1)
		go func() { served <- s.ServeConn(context.Background(), transport.NewStream(server, server, nil)) }()
		const n = 40_000
		go func() {
			for i := range n {
				if _, err := fmt.Fprintf(client, `{"jsonrpc":"2.0","id":%d,"method":7}`+"\n", i); err != nil {
					t.Error(err)
					return
				}
			}
		}()
		in := bufio.NewReader(client)
		for i := range n {
			if i%4000 == 0 {
				time.Sleep(10 * time.Second)
			}
			answer, err := in.ReadString('\n')
			if err != nil {
				t.Fatalf("after %d answers: %v", i, err)
			}
			if !strings.Contains(answer, fmt.Sprintf(`"id":%d,`, i)) {
				t.Fatalf("answer %d is %s", i, answer)
			}
		}
		_ = client.Close()
		<-served
	})
}
