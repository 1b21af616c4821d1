package streamable

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/talaria-go/mcp/protocol"
)

// Header names, in the canonical form of net/http.
const (
	headerVersion = "Mcp-Protocol-Version"
	headerSession = "Mcp-Session-Id"
	headerMethod  = "Mcp-Method"
	headerName    = "Mcp-Name"
	headerParam   = "Mcp-Param-"
	headerLast    = "Last-Event-Id"
)

// first returns the first value of a header, whose name is in the canonical
// form of net/http already.
func first(r *http.Request, name string) string {
	if values := r.Header[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// jsonContent tells whether the body says that it is JSON.
func jsonContent(r *http.Request) bool {
	value := first(r, "Content-Type")
	if value == "application/json" {
		return true
	}
	media, _, err := mime.ParseMediaType(value)
	return err == nil && media == "application/json"
}

// setRetryAfter says when a request that met fault may pass, whatever the
// status: in a second, if that is not known and only a matter of time.
func setRetryAfter(header http.Header, fault *protocol.Error) {
	if fault == nil {
		return
	}
	after := fault.RetryAfter
	if after <= 0 {
		if fault.Code != protocol.CodeBusy && fault.Code != protocol.CodeUnavailable {
			return
		}
		after = time.Second
	}
	header.Set("Retry-After", strconv.FormatInt(int64((after-1)/time.Second+1), 10))
}

// accepts tells which answers the Accept headers of r allow. No header allows
// everything.
func accepts(r *http.Request) (json, events bool) {
	values := r.Header["Accept"]
	if len(values) == 0 {
		return true, true
	}
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			media, _, _ := strings.Cut(part, ";")
			switch strings.ToLower(strings.TrimSpace(media)) {
			case "*/*":
				return true, true
			case "application/json", "application/*":
				json = true
			case "text/event-stream", "text/*":
				events = true
			}
		}
	}
	return json, events
}

// matchHeader wants a header to be there and to have that value.
func matchHeader(r *http.Request, name, want string) *protocol.Error {
	values := r.Header[name]
	if len(values) != 1 {
		return protocol.Errorf(protocol.CodeHeaderMismatch, "Header mismatch: %s must be sent once, with value %q", name, want)
	}
	if values[0] != want {
		return mismatch(name, values[0], want)
	}
	return nil
}

func mismatch(name, header, body string) *protocol.Error {
	return protocol.Errorf(protocol.CodeHeaderMismatch, "Header mismatch: %s header value %q does not match body value %q", name, header, body)
}

// encodedHeader returns the value of a header that may be encoded.
func encodedHeader(r *http.Request, name string) (string, *protocol.Error) {
	values := r.Header[http.CanonicalHeaderKey(name)]
	if len(values) != 1 {
		return "", protocol.Errorf(protocol.CodeHeaderMismatch, "Header mismatch: %s must be sent once", name)
	}
	value, ok := protocol.DecodeHeaderValue(values[0])
	if !ok {
		return "", protocol.Errorf(protocol.CodeHeaderMismatch, "Header mismatch: %s is neither plain ASCII nor valid =?base64?…?=", name)
	}
	return value, nil
}
