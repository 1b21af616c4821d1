package gateway

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/client/config"
	"github.com/talaria-go/mcp/protocol"
)

// FuzzSecrets has upstreams over HTTP, SSE and WebSocket whose addresses and headers have
// keys, and that answer with what they got, in many ways: no answer, no status, no error and
// no line of the log has a key.
func FuzzSecrets(f *testing.F) {
	const key = "Ma2k8dQz/+7Fp0"
	for way := range uint8(12) {
		f.Add("not valid: %s", "text/plain", way)
	}
	f.Add(`{"jsonrpc":"2.0","error":{"code":-32000,"message":"bad token %s"}}`, "application/json", uint8(1))
	f.Add(`<html><title>No route for %s</title></html>`, "text/html", uint8(2))
	f.Add(strings.Repeat("x", 190)+"%s", "text/plain", uint8(3))
	f.Add("event: endpoint\ndata: http://elsewhere.example/?%s\n\n", "text/event-stream", uint8(0))
	f.Add("event: endpoint\ndata: http://[::1?%s\n\n", "text/event-stream", uint8(0))
	f.Fuzz(func(t *testing.T, body, kind string, way uint8) {
		if strings.ContainsAny(kind, "\r\n") || (way%12 == 0 || way%12 == 9) && strings.Contains(body, "jsonrpc") {
			return // what an upstream answers itself is its own
		}
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			said := fmt.Sprint(r.URL, " ", r.URL.Query(), " ", r.Header)
			w.Header().Set("Content-Type", kind)
			switch way % 12 {
			case 4:
				w.Header().Set("Location", "http://elsewhere.example"+r.URL.String())
				w.WriteHeader(http.StatusTemporaryRedirect)
			case 5:
				w.Header().Set("Location", "/y?"+r.URL.RawQuery)
				w.WriteHeader(http.StatusSeeOther)
			case 6:
				w.Header().Set("Location", "http://[::1?"+r.URL.RawQuery)
				w.WriteHeader(http.StatusPermanentRedirect)
			case 7:
				panic(http.ErrAbortHandler)
			case 8:
				w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token", error_description="`+url.QueryEscape(key)+`"`)
				w.WriteHeader(http.StatusUnauthorized)
			case 9:
				w.Header().Set("Content-Encoding", "br")
			default:
				w.WriteHeader([]int{200, 400, 404, 500, 0, 0, 0, 0, 0, 0, 403, 503}[way%12])
			}
			_, _ = fmt.Fprint(w, strings.ReplaceAll(body, "%s", said))
		}))
		defer web.Close()
		address := "http://ann:" + url.QueryEscape(key) + "@" + web.Listener.Addr().String() + "/mcp?api_key=" + url.QueryEscape(key) + "&" + url.QueryEscape(key)
		log := &logText{}
		logger := zerolog.New(log)
		s := mcp.NewServer(mcp.Info{Name: "front", Version: "1"}, &mcp.Options{Logger: &logger})
		g := New(s, nil)
		header := map[string][]string{"Authorization": {"Bearer " + key}, "X-Api-Key": {key}}
		for name, open := range map[string]func(string, *client.HTTPOptions) client.Transport{"http": client.HTTP, "sse": client.SSE, "ws": client.WebSocket} {
			to := open(address, &client.HTTPOptions{Header: header})
			for kind, u := range map[string]Upstream{"list": {Transport: to}, "for": {For: func(*mcp.Frame) (string, client.Transport, error) { return "ada", to, nil }}} {
				if err := g.Set(name+"-"+kind, u); err != nil {
					t.Fatal(err)
				}
			}
		}
		all := &logText{} // of all answers
		for _, text := range []string{address, strings.Replace(address, "http", "ftp", 1), "http://[::1?" + key, address[len("http://"):]} {
			file, err := config.Parse("mcp.json", fmt.Appendf(nil, `{"mcpServers":{"file":{"url":%q,"headers":{"X-Key":%q}}}}`, text, key), nil)
			if err == nil {
				err = g.Apply(file, nil)
			}
			fmt.Fprintln(all, err)
		}
		ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer stop()
		var calls sync.WaitGroup
		calls.Go(func() { fmt.Fprintln(all, g.Warm(ctx), g.Status()) })
		for _, rev := range eras {
			c, err := client.Connect(t.Context(), local(s), &client.Options{Revisions: []protocol.Revision{rev}})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }() // what it says is of calls that were given up
			for _, name := range []string{"http-list", "http-for", "sse-list", "sse-for", "ws-list", "ws-for", "file"} {
				calls.Go(func() {
					r, err := c.Call(ctx, name+"_x", nil)
					fmt.Fprintln(all, text(r, err))
					_, err = c.GetPrompt(ctx, name+"_x", nil)
					fmt.Fprintln(all, err)
				})
			}
		}
		calls.Wait()
		_ = g.Close()
		said := all.String() + log.String()
		for _, secret := range []string{key, url.QueryEscape(key), strings.Trim(fmt.Sprintf("%q", key), `"`)} {
			if at := strings.Index(said, secret); at >= 0 {
				t.Errorf("the key is in …%.400q", said[max(0, at-200):])
			}
		}
	})
}
