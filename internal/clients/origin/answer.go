package origin

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// maxRefusal is how much of the body of a refusal is read, in bytes.
const maxRefusal = 64 << 10

// lastBytes is how long reading the rest of a body may take.
const lastBytes = time.Second

// Discard reads the rest of a short body, so that the connection can be used
// again, and closes it. It takes lastBytes at most: a body longer than
// maxRefusal, or a stream without an end, costs the connection.
func Discard(body io.ReadCloser) {
	if body != http.NoBody {
		timer := time.AfterFunc(lastBytes, func() { _ = body.Close() })
		_, _ = io.CopyN(io.Discard, body, maxRefusal)
		timer.Stop()
	}
	_ = body.Close()
}

// MediaType returns the media type of a response without parameters, in lower
// case.
func MediaType(res *http.Response) string {
	kind, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(kind))
}

// Status returns a response that is a refusal as an error, and closes it. Err
// is set if the body is a JSON-RPC error without an id; an error with one is
// left to the caller, who knows the request. Of the body it reads up to
// maxRefusal, for up to lastBytes. Credentials of the request that the body repeats are
// masked.
func Status(res *http.Response) *StatusError {
	timer := time.AfterFunc(lastBytes, func() { _ = res.Body.Close() })
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxRefusal))
	timer.Stop()
	Discard(res.Body)
	body = unsaid(res, body)
	status := &StatusError{Code: res.StatusCode, Header: res.Header, Body: body}
	var m protocol.Message
	if wire.Scan(body, &m); m.Error != nil && m.ID.IsZero() {
		if fault, err := ParseFault(m.Error); err == nil {
			status.Err = fault
		}
	}
	return status
}

// ParseFault decodes the error object of a JSON-RPC response.
func ParseFault(raw []byte) (*protocol.Error, error) {
	var wire struct {
		Code    protocol.Code   `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data,omitempty"`
	}
	if err := jsonx.Unmarshal(raw, &wire); err != nil {
		return nil, err
	}
	fault := &protocol.Error{Code: wire.Code, Message: wire.Message}
	if wire.Data != nil {
		fault.Data = wire.Data
		fault.RetryAfter = retryAfter(wire.Data)
	}
	return fault, nil
}

// maxRetryAfter keeps waits from overflowing the arithmetic on them.
const maxRetryAfter = 24 * time.Hour

// retryAfter returns when a request may succeed, from the data of its error; 0
// if that does not say.
func retryAfter(data []byte) time.Duration {
	var wire struct {
		RetryAfterMs float64 `json:"retryAfterMs"`
	}
	if jsonx.Unmarshal(data, &wire) != nil || wire.RetryAfterMs <= 0 {
		return 0
	}
	return time.Duration(min(wire.RetryAfterMs, float64(maxRetryAfter/time.Millisecond)) * float64(time.Millisecond))
}

// WrongType returns the error for a response whose media type cannot be read,
// and closes it.
func WrongType(res *http.Response, want string) error {
	kind := res.Header.Get("Content-Type")
	status := Status(res)
	status.Err = fmt.Errorf("its Content-Type is %q, want %s; it begins with %.200q", kind, want, status.Body)
	return status
}
