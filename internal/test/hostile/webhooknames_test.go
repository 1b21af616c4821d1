package hostile_test

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/mcptest"
)

// names makes all names resolve to what address returns, an address of version 4. address gets
// the number of times that one was asked for.
func names(t *testing.T, address func(n int32) [4]byte) (asked *atomic.Int32) {
	asked = new(atomic.Int32)
	before := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = before })
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			for {
				var size [2]byte
				if _, err := io.ReadFull(theirs, size[:]); err != nil {
					return
				}
				query := make([]byte, binary.BigEndian.Uint16(size[:]))
				if _, err := io.ReadFull(theirs, query); err != nil {
					return
				}
				end := 12 // of the question
				for query[end] != 0 {
					end += 1 + int(query[end])
				}
				end += 5
				answer := append([]byte{query[0], query[1], 0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, query[12:end]...)
				if query[end-3] == 1 { // the type A
					ip := address(asked.Add(1))
					answer[7] = 1
					answer = append(append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4), ip[:]...)
				}
				if _, err := theirs.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
					return
				}
			}
		}()
		return ours, nil
	}}
	return asked
}

// A name is checked by the address that it has whenever a webhook is dialled: at the
// verification, and at a delivery after it. 0.0.0.0 would reach this machine, too.
func TestWebhookNames(t *testing.T) {
	inside, here := [4]byte{0, 0, 0, 0}, [4]byte{127, 0, 0, 1}
	asked := names(t, func(n int32) [4]byte { return [][4]byte{inside, here, inside, here}[n-1] })
	got := make(chan int32, 1)
	endpoint := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- asked.Load()
		_, _ = io.Copy(w, r.Body) // agrees to a challenge
	}))
	endpoint.Config.SetKeepAlivesEnabled(false) // each request dials
	endpoint.StartTLS()
	t.Cleanup(endpoint.Close)
	roots := filepath.Join(t.TempDir(), "roots.pem")
	if err := os.WriteFile(roots, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: endpoint.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", roots) // read once, at the first handshake of the process
	s := mcp.NewServer(mcp.Info{Name: "x", Version: "1"}, &mcp.Options{Webhooks: &mcp.WebhookOptions{Loopback: true}})
	s.MustAdd(mcp.EventType("x", func(context.Context, struct{}, map[string]string) (bool, error) { return true, nil }))
	t.Cleanup(func() { _ = s.Shutdown(context.Background()) })
	_, port, _ := net.SplitHostPort(endpoint.Listener.Addr().String())
	subscribe := func(user string) error {
		c := mcptest.New(t, s, mcptest.As(mcp.Identity{Subject: user}))
		_, err := c.TryRequest("events/subscribe", json.RawMessage(fmt.Sprintf(`{"name":"x","delivery":{"mode":"webhook","url":"https://example.com:%s/","secret":"whsec_%s"}}`,
			port, base64.StdEncoding.EncodeToString(make([]byte, 32)))))
		return err
	}
	if err := subscribe("ann"); err == nil || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("a name of an address inside: %v", err)
	}
	if err := subscribe("bob"); err != nil {
		t.Fatal(err)
	}
	if n := <-got; n != 2 {
		t.Errorf("the challenge came to address %d", n)
	}
	if err := s.Emit(t.Context(), mcp.Occurrence{Name: "x", Data: map[string]string{}}); err != nil {
		t.Fatal(err)
	}
	if n := <-got; n != 4 {
		t.Errorf("the event came to address %d", n)
	}
}
