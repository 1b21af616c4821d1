package httplink

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/internal/clients/origin"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// maxKept is how large a buffer may be to be kept for another response.
const maxKept = 64 << 10

// tooLong returns the error for an answer beyond the limit.
func tooLong(long *transport.TooLongError) error {
	long.Option = origin.LimitOption
	return fmt.Errorf("the server's answer was not taken: %w", long)
}

// readAll reads a body to its end, into dst if there is room. It returns what
// it has read also with an error, so that the memory can be used again. More
// than limit bytes are an error.
func readAll(dst []byte, res *http.Response, limit int) ([]byte, error) {
	if size := res.ContentLength; size >= 0 && int(size) >= cap(dst) {
		dst = make([]byte, 0, size+1)
	}
	for {
		if len(dst) == cap(dst) {
			dst = append(dst, 0)[:len(dst)]
		}
		n, err := res.Body.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+n]
		switch {
		case len(dst) > limit:
			return dst, tooLong(&transport.TooLongError{Limit: limit, Size: max(res.ContentLength, 0)})
		case errors.Is(err, io.EOF):
			return dst, nil
		case err != nil:
			return dst, fmt.Errorf("the server's answer broke off after %d bytes: %w", len(dst), err)
		}
	}
}

// answers are the requests that wait for an answer in one exchange; nil if
// there are none. It reports when a stream of events has brought all of them.
// Only the goroutine of the exchange uses it.
type answers struct {
	one  protocol.ID
	many map[protocol.ID]bool // of a batch
}

// wanted returns the requests in a message.
func wanted(m *link.Message) *answers {
	if !m.ID.IsZero() {
		return &answers{one: m.ID.Canonical()}
	}
	if m.Method != "" || !wire.IsBatch(m.Body) {
		return nil
	}
	messages, _ := wire.ScanBatch(m.Body, protocol.V20250326, len(m.Body))
	var w *answers
	for _, text := range messages {
		var single protocol.Message
		if wire.Scan(text, &single); single.Kind() == protocol.KindRequest {
			if w == nil {
				w = &answers{many: map[protocol.ID]bool{}}
			}
			w.many[single.ID.Canonical()] = true
		}
	}
	return w
}

// answered reports whether a message of the server was the last expected one.
func (w *answers) answered(text []byte) bool {
	if w == nil {
		return false
	}
	texts := [][]byte{text}
	if wire.IsBatch(text) {
		texts, _ = wire.ScanBatch(text, protocol.V20250326, len(text))
	}
	for _, text := range texts {
		var m protocol.Message
		wire.Scan(text, &m)
		if m.Method != "" || m.ID.IsZero() {
			continue
		}
		id := m.ID.Canonical()
		if id == w.one {
			return true
		}
		delete(w.many, id)
	}
	return w.one.IsZero() && len(w.many) == 0
}

// codeOf returns the code of a JSON-RPC error object, 0 if raw is not one.
func codeOf(raw []byte) protocol.Code {
	var fault struct {
		Code protocol.Code `json:"code"`
	}
	if raw == nil || jsonx.Unmarshal(raw, &fault) != nil {
		return 0
	}
	return fault.Code
}
