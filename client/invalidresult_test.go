package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// TestInvalidResult: the error of a call whose result is not valid has the result as it
// came; other errors have none.
func TestInvalidResult(t *testing.T) {
	for _, rev := range []protocol.Revision{protocol.V20260728, protocol.V20251125} {
		for _, c := range []struct {
			answer, want string
			kind         error
		}{
			{`"result":{"resultType":"complete","content":[{"type":"text","text":"good"},{"type":"video"}]}`, `{"resultType":"complete","content":[{"type":"text","text":"good"},{"type":"video"}]}`, client.ErrInvalidResult},
			{`"result":{"resultType":"complete"}`, `{"resultType":"complete"}`, client.ErrInvalidResult},
			{`"error":{"code":-32603,"message":"no"}`, "", nil},
		} {
			serve := func(_ context.Context, conn transport.Conn) error {
				for {
					text, err := conn.Read()
					if err != nil {
						return nil
					}
					m, err := protocol.Decode(text)
					if err != nil || m.Kind() != protocol.KindRequest {
						continue
					}
					answer := c.answer
					switch {
					case bytes.Contains(text, []byte(`"server/discover"`)):
						answer = `"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"serverInfo":{"name":"odd","version":"1"},"ttlMs":0,"cacheScope":"private"}`
					case bytes.Contains(text, []byte(`"initialize"`)):
						answer = `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"odd","version":"1"}}`
					case bytes.Contains(text, []byte(`"tools/list"`)):
						answer = `"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"t","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}}]}`
					}
					id, err := m.ID.MarshalJSON()
					if err != nil {
						return err
					}
					if conn.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,%s}`, id, answer)) != nil {
						return nil
					}
				}
			}
			conn, err := client.Connect(t.Context(), client.Local(serve), &client.Options{Revisions: []protocol.Revision{rev}})
			if err != nil {
				t.Fatal(err)
			}
			_, err = conn.Call(t.Context(), "t", nil)
			own, ok := errors.AsType[*client.Error](err)
			if !ok || string(own.Result) != c.want || c.kind != nil && !errors.Is(err, c.kind) {
				t.Errorf("%v %s: %v", rev, c.answer, err)
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
