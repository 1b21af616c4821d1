package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/protocol"
)

// A stream of events that ends without the answer, but with one of another id, is an
// error that names that id.
func TestStrayIDInStream(t *testing.T) {
	for _, rev := range []protocol.Revision{protocol.V20250326, protocol.V20251125, protocol.V20260728} {
		for _, id := range []string{`"%s"`, `%s5`, `""`} {
			server := inProcess{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var h heard
				if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&h) != nil {
					w.WriteHeader(http.StatusMethodNotAllowed)
					return
				}
				if h.ID == nil {
					w.WriteHeader(http.StatusAccepted)
					return
				}
				sent, result := string(h.ID), fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`, rev)
				switch h.Method {
				case protocol.MethodDiscover:
					result = `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}`
				case protocol.MethodToolsCall:
					sent, result = strings.Replace(id, "%s", sent, 1), `{"resultType":"complete","content":[]}`
				}
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", sent, result)
			})}
			c := connect(t, HTTP("http://server.example/mcp", &HTTPOptions{Client: &http.Client{Transport: server}, NoStream: true}), only(rev))
			_, err := c.Call(t.Context(), "x", nil)
			if want := "answered with the id " + strings.Replace(id, "%s", "2", 1); !errors.Is(err, ErrConnection) || !strings.Contains(err.Error(), want) {
				t.Errorf("%v %s: %v, want %s", rev, id, err, want)
			}
		}
	}
}
