package httplink_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/internal/clients/origin"
	"github.com/talaria-go/mcp/protocol"
)

// fixed answers everything alike, without allocating much.
type fixed struct {
	kind, text string
}

func (f fixed) RoundTrip(r *http.Request) (*http.Response, error) {
	_ = r.Body.Close()
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {f.kind}},
		ContentLength: int64(len(f.text)), Body: io.NopCloser(strings.NewReader(f.text)),
	}, nil
}

// quiet is a receiver that keeps nothing.
type quiet struct{}

func (quiet) Receive([]byte, *link.Message) {}
func (quiet) Lost(error)                    {}

// A call costs few allocations beside those of net/http and of its answer.
func TestPostAllocs(t *testing.T) {
	tests := []struct {
		name string
		rev  protocol.Revision
		fixed
		max float64
	}{
		{"legacy JSON", protocol.V20251125, fixed{"application/json", answer}, 20},
		{"modern JSON", protocol.V20260728, fixed{"application/json", answer}, 24},
		{"modern events", protocol.V20260728, fixed{"text/event-stream", "data: " + answer + "\n\n"}, 32},
	}
	for _, tt := range tests {
		l := openTo(t, "http://example.com", origin.Options{Client: &http.Client{Transport: tt.fixed}}, true, quiet{})
		m := call(tt.rev)
		allocs := testing.AllocsPerRun(200, func() {
			if err := l.Send(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		})
		if allocs > tt.max {
			t.Errorf("%s: %.0f allocations, at most %.0f are allowed", tt.name, allocs, tt.max)
		}
		t.Logf("%s: %.0f allocations", tt.name, allocs)
	}
}
