package openapi

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/talaria-go/mcp/internal/clients/origin"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/protocol"
)

// The limits of the part of a response that is shown, in bytes.
const (
	maxText  = 40_000
	maxMedia = 1 << 20 // images and audio
	maxFault = 4 << 10
	maxKind  = 100
)

// result returns the result for a response to op, whose request went to address.
func result(op *operation, address *url.URL, res *http.Response, args tree, secrets *origin.Secrets) (protocol.Result, error) {
	if res.StatusCode/100 != 2 {
		return failure(res, secrets), nil
	}
	kind := origin.MediaType(res)
	if _, _, err := mime.ParseMediaType(kind); err != nil || len(kind) > maxKind || !strings.Contains(kind, "/") {
		kind = "" // not a media type: the bytes decide
	}
	limit := maxText
	isMedia := strings.HasPrefix(kind, "image/") && kind != "image/svg+xml" || strings.HasPrefix(kind, "audio/")
	if isMedia {
		limit = maxMedia
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, int64(limit)+1))
	if err != nil {
		return nil, fmt.Errorf("the answer ended early: %s", secrets.Masked(withoutURL(err)))
	}
	var r *protocol.CallToolResult
	switch {
	case op.is.Method == http.MethodHead:
		r = textResult(secrets.Masked(heads(res)))
	case len(body) == 0:
		r = textResult(fmt.Sprintf("Done (%d).", res.StatusCode))
	case isText(kind, body):
		r = textResult(cut(res, body, secrets))
	case len(body) > limit:
		r = textResult(fmt.Sprintf("%d with %s of %s, not shown", res.StatusCode, size(res, limit), shownKind(kind)))
	case isMedia && strings.HasPrefix(kind, "image/"):
		r = &protocol.CallToolResult{Content: []protocol.Content{protocol.ImageContent{Data: body, MIMEType: kind}}}
	case isMedia:
		r = &protocol.CallToolResult{Content: []protocol.Content{protocol.AudioContent{Data: body, MIMEType: kind}}}
	default:
		plain := *address
		plain.RawQuery, plain.User = "", nil
		r = &protocol.CallToolResult{Content: []protocol.Content{protocol.EmbeddedResource{Resource: protocol.ResourceContents{
			URI: secrets.Masked(plain.String()), MIMEType: shownKind(kind), Blob: body}}}}
	}
	if next := next(op, res, args); next != "" {
		r.Content = append(r.Content, protocol.TextContent{Text: secrets.Masked(next)})
	}
	return r, nil
}

// textResult returns a result with a text.
func textResult(text string) *protocol.CallToolResult {
	return &protocol.CallToolResult{Content: []protocol.Content{protocol.TextContent{Text: text}}}
}

// isText reports whether a body is text for a model.
func isText(kind string, body []byte) bool {
	base, _, _ := strings.Cut(kind, ";")
	switch {
	case strings.HasPrefix(base, "text/"), strings.Contains(base, "json"), strings.Contains(base, "xml"), strings.Contains(base, "yaml"),
		strings.Contains(base, "javascript"), base == "application/graphql", base == "application/x-www-form-urlencoded":
		return true
	case base == "" || base == "application/octet-stream" && len(body) <= maxText:
		return base == "" && utf8.Valid(body) && !bytes.ContainsRune(body, 0)
	}
	return false
}

// cut returns a body as text without secrets, of which no more than maxText bytes are shown.
func cut(res *http.Response, body []byte, secrets *origin.Secrets) string {
	long := len(body) > maxText
	if long {
		body = body[:maxText]
	}
	text := secrets.Masked(decoded(res, body))
	if !long {
		return text
	}
	if at := strings.LastIndexByte(text, '\n'); at > len(text)/2 {
		text = text[:at]
	}
	whole := ""
	if res.ContentLength > 0 {
		whole = " of " + grouped(res.ContentLength)
	}
	return text + fmt.Sprintf("\n[cut: %s%s bytes; ask for less, with a filter or a limit]", grouped(int64(len(text))), whole)
}

// decoded returns a body as UTF-8.
func decoded(res *http.Response, body []byte) string {
	body = bytes.TrimPrefix(body, []byte("\ufeff"))
	_, params, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch strings.ToLower(params["charset"]) {
	case "iso-8859-1", "latin1", "us-ascii", "windows-1252":
		if !utf8.Valid(body) {
			runes := make([]rune, len(body))
			for i, c := range body {
				runes[i] = rune(c)
			}
			return string(runes)
		}
	}
	for n := 0; n < utf8.UTFMax && len(body) > n; n++ { // a character that was cut
		if r, _ := utf8.DecodeLastRune(body[:len(body)-n]); r != utf8.RuneError {
			body = body[:len(body)-n]
			break
		}
	}
	return strings.ToValidUTF8(string(body), "\ufffd")
}

// grouped returns a number with commas, as in 1,203,551.
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// size returns how long a body is, as far as is known.
func size(res *http.Response, read int) string {
	n := res.ContentLength
	switch {
	case n <= 0:
		return "more than " + grouped(int64(read)) + " bytes"
	case n < 1<<20:
		return grouped(n) + " bytes"
	}
	return grouped(n>>20) + " MB"
}

// shownKind returns a media type for a text.
func shownKind(kind string) string {
	if kind == "" {
		return "application/octet-stream"
	}
	return visible.Line(kind, maxKind)
}

// failure returns the result for a status other than success: a redirect that was not
// followed, or an error.
func failure(res *http.Response, secrets *origin.Secrets) *protocol.CallToolResult {
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxFault+1))
	text := strings.TrimSpace(fmt.Sprintf("HTTP status %d %s", res.StatusCode, http.StatusText(res.StatusCode)))
	if after := res.Header.Get("Retry-After"); after != "" {
		text += "\nRetry-After: " + visible.Line(after, 100)
	}
	if location := res.Header.Get("Location"); location != "" {
		u, err := url.Parse(location)
		if err == nil {
			text += "\nLocation: " + visible.Line(origin.Shown(u), 1_000)
		}
	}
	if kind := origin.MediaType(res); isText(kind, body) {
		said := ""
		if len(body) > maxFault {
			body, said = body[:maxFault], "\n[cut]"
		}
		text += "\n" + secrets.Masked(strings.TrimSpace(decoded(res, body))) + said
	}
	r := textResult(secrets.Masked(strings.TrimSpace(text)))
	r.IsError = true
	return r
}

// heads returns what a response to HEAD says.
func heads(res *http.Response) string {
	text := fmt.Sprintf("Done (%d).", res.StatusCode)
	for _, name := range []string{"Content-Type", "Content-Length", "Last-Modified", "Etag"} {
		if value := res.Header.Get(name); value != "" {
			text += "\n" + name + ": " + visible.Line(value, 200)
		}
	}
	return text
}

// next returns the arguments of the next page, as the header Link has them (RFC 8288).
func next(op *operation, res *http.Response, args tree) string {
	for _, header := range res.Header.Values("Link") {
		for header != "" {
			_, after, _ := strings.Cut(header, "<")
			target, rest, _ := strings.Cut(after, ">")
			params, more, _ := strings.Cut(rest, "<")
			header = ""
			if more != "" {
				header = "<" + more
			}
			u, err := url.Parse(target)
			if err != nil || !hasRel(params, "next") {
				continue
			}
			var all []string
			query := u.Query()
			for _, p := range op.params {
				value := query.Get(p.name)
				if p.in == "query" && p.fixed == nil && query.Has(p.name) && plain(args[p.arg]) != value {
					all = append(all, p.arg+"="+visible.Line(value, 1_000))
				}
			}
			if len(all) > 0 {
				return "There is a next page: call again with " + strings.Join(all, ", ") + "."
			}
		}
	}
	return ""
}

// hasRel reports whether the parameters of a link have a relation.
func hasRel(params, want string) bool {
	for param := range strings.FieldsFuncSeq(params, func(r rune) bool { return r == ';' || r == ',' }) {
		name, value, _ := strings.Cut(strings.TrimSpace(param), "=")
		if strings.EqualFold(name, "rel") && slices.Contains(strings.Fields(strings.ToLower(strings.Trim(value, `"`))), want) {
			return true
		}
	}
	return false
}
