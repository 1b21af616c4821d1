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
	headerLast    = "Last-Event-Id"
)

// first returns the first value of a header, "" if it is absent. name must be
// in the canonical form of net/http.
func first(r *http.Request, name string) string {
	if values := r.Header[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// jsonContent reports whether Content-Type is application/json, with or without
// parameters.
func jsonContent(r *http.Request) bool {
	value := first(r, "Content-Type")
	if value == "application/json" {
		return true
	}
	media, _, err := mime.ParseMediaType(value)
	return err == nil && media == "application/json"
}

// setRetryAfter sets Retry-After, in whole seconds rounded up, to the time that
// fault names. Without such a time it is a second for faults that pass by
// themselves, and the header is left out for others. fault may be nil.
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

// accepts reports which answers the Accept headers of r allow. No header allows
// both. Quality values are ignored, since both forms mean the same to a client
// that lists them.
func accepts(r *http.Request) (json, events bool) {
	values := r.Header["Accept"]
	if len(values) == 0 {
		return true, true
	}
	for _, value := range values {
		if value == "application/json, text/event-stream" { // what most clients send
			return true, true
		}
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

// wantsPage reports whether a request comes from a browser: it lists a page, or loads one,
// and does not list text/event-stream, as clients of the protocol must.
func wantsPage(r *http.Request) bool {
	page := r.Header.Get("Sec-Fetch-Mode") == "navigate"
	for _, value := range r.Header["Accept"] {
		for part := range strings.SplitSeq(value, ",") {
			media, quality, _ := strings.Cut(strings.ToLower(strings.ReplaceAll(part, " ", "")), ";")
			if zero, ok := strings.CutPrefix(quality, "q=0"); ok && strings.Trim(zero, ".0") == "" {
				continue // it is not wanted
			}
			switch media {
			case "text/event-stream":
				return false
			case "text/html", "application/xhtml+xml":
				page = true
			}
		}
	}
	return page
}

// matchHeader returns the error for a header that is not there exactly once
// with the value want, else nil.
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

// mismatch is the error for a header that disagrees with the body.
func mismatch(name, header, body string) *protocol.Error {
	return protocol.Errorf(protocol.CodeHeaderMismatch, "Header mismatch: %s header value %q does not match body value %q", name, header, body)
}
