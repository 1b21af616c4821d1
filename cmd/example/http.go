package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/talaria-go/mcp"
)

// serveHTTP serves on the address of opts until ctx ends, and then lets running
// calls finish.
func serveHTTP(ctx context.Context, s *mcp.Server, opts options, stdout, stderr io.Writer) error {
	listener, err := net.Listen("tcp", opts.http)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s is in use already; choose another port, such as -http 127.0.0.1:8081", opts.http)
	}
	if err != nil {
		return err
	}
	addr := *listener.Addr().(*net.TCPAddr)
	switch open := !addr.IP.IsLoopback(); {
	case open && opts.auth:
		return errors.Join(errors.New("-auth is for development, on a loopback address such as 127.0.0.1:8080"), listener.Close())
	case open:
		fmt.Fprintln(stderr, "example: warning: this address can be reached from other machines, and nothing asks them who they are")
	}
	if addr.IP.IsUnspecified() {
		addr.IP = net.IPv4(127, 0, 0, 1)
	}
	handler, hello, err := router(s, "http://"+addr.String()+"/mcp", opts.auth)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	web := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
	served := make(chan error, 1)
	go func() { served <- web.Serve(listener) }()
	fmt.Fprint(stdout, hello)

	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	fmt.Fprintln(stdout, "stopping")
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	err = s.Shutdown(end)
	// What was cut off has its answer now, which still is to leave.
	last, cancelLast := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancelLast()
	err = errors.Join(err, web.Shutdown(last))
	<-served
	if err != nil {
		return errCutOff
	}
	return nil
}

// router mounts the server at url beside a page that says how to use it, which
// is hello. If it is protected, clients need an access token.
func router(s *mcp.Server, url string, protected bool) (h http.Handler, hello string, err error) {
	r, endpoint, hello := chi.NewRouter(), s.Handler(), greeting(url)
	if protected {
		resource, issuer, err := protect(url)
		if err != nil {
			return nil, "", err
		}
		r.Use(resource.Metadata, issuer.Middleware)
		endpoint, hello = resource.Bearer(endpoint), protectedGreeting(url)
	}
	r.Mount("/mcp", endpoint)
	r.Get("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, hello) // fails only if nobody reads it
	})
	return r, hello, nil
}

// greeting tells what to do with a server at url. The request is one of
// revision 2026-07-28: it stands alone, without a session.
func greeting(url string) string {
	return fmt.Sprintf(`The workbench serves MCP at %[1]s

Try it:

curl -sS %[1]s \
  -H 'Content-Type: application/json' \
  -H 'Accept: application/json, text/event-stream' \
  -H 'MCP-Protocol-Version: 2026-07-28' \
  -H 'Mcp-Method: tools/call' \
  -H 'Mcp-Name: calculate' \
  -d '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"calculate","arguments":{"operation":"multiply","a":6,"b":7},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"curl","version":"1.0.0"},"io.modelcontextprotocol/clientCapabilities":{}}}}'

Ctrl-C stops it.
`, url)
}
