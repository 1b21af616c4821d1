package deploy

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
)

// site is a proxy as its clients see it: an address that a name leads to.
type site struct {
	host, address string
	roots         *x509.CertPool
}

func newSite(t *testing.T, s setup) *site {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(read(t, s.cert))) {
		t.Fatal("the certificate is not one")
	}
	return &site{s.host, s.address, roots}
}

// browser returns a client of net/http that speaks HTTP/1.1 or HTTP/2 alone.
func (s *site) browser(t *testing.T, version int) *http.Client {
	var protocols http.Protocols
	protocols.SetHTTP1(version == 1)
	protocols.SetHTTP2(version == 2)
	transport := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: s.roots}, Protocols: &protocols, MaxIdleConnsPerHost: 128, ExpectContinueTimeout: timeLimit,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, s.address)
		},
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// connect connects a client, and closes it when the test ends.
func (s *site) connect(t *testing.T, transport client.Transport, revision protocol.Revision) *client.Client {
	t.Helper()
	c, err := client.Connect(t.Context(), transport, &client.Options{
		Revisions: []protocol.Revision{revision}, Timeout: 2 * timeLimit, NoCache: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}

// modern is what a request of 2026-07-28 has in its params.
const modern = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`

// tool returns a call of 2026-07-28.
func tool(name, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s,%s}}`, name, arguments, modern)
}

// send sends a request as it is, and returns the answer with its whole body.
func (s *site) send(ctx context.Context, browser *http.Client, method, body, session string) (*http.Response, string, error) {
	req, err := http.NewRequestWithContext(ctx, method, "https://"+s.host+"/mcp", strings.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	switch {
	case session != "":
		req.Header.Set("Mcp-Session-Id", session)
		req.Header.Set("MCP-Protocol-Version", protocol.V20251125.String())
	case strings.Contains(body, modern):
		req.Header.Set("MCP-Protocol-Version", protocol.V20260728.String())
		req.Header.Set("Mcp-Method", "tools/call")
		_, name, _ := strings.Cut(body, `"name":"`)
		name, _, _ = strings.Cut(name, `"`)
		req.Header.Set("Mcp-Name", name)
	}
	if len(body) > maxMessage {
		// Who is told before he sends does not lose the answer with the connection.
		req.Header.Set("Expect", "100-continue")
	}
	res, err := browser.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	var text bytes.Buffer
	_, err = io.Copy(&text, res.Body)
	return res, text.String(), err
}
