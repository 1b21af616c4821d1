package streamable

import (
	"html"
	"io"
	"net/http"
	"strings"
)

// page is what a person gets who opens the endpoint in a browser. The command is
// text to copy.
const page = `<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>MCP endpoint</title>
<h1>This is an MCP endpoint</h1>
<p>Programs that speak the <a href="https://modelcontextprotocol.io">Model Context Protocol</a> use this address. It has no page for browsers.</p>
<p>It speaks TRANSPORTS.</p>
<p>To try it, run:</p>
<pre>talaria inspect URL -b</pre>
`

// writePage answers with the page: 406, since a browser takes nothing that the
// endpoint has.
func writePage(w http.ResponseWriter, r *http.Request, sse bool) {
	transports := "streamable HTTP"
	if sse {
		transports += ", and HTTP+SSE of revision 2024-11-05"
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	url := html.EscapeString(scheme + "://" + r.Host + r.URL.EscapedPath())
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", "default-src 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	header.Add("Vary", "Accept")
	w.WriteHeader(http.StatusNotAcceptable)
	_, _ = io.WriteString(w, strings.NewReplacer("TRANSPORTS", transports, "URL", url).Replace(page)) // the browser may be gone
}
