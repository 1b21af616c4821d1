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

// grace is how long running calls may take to finish after Ctrl-C.
const grace = 5 * time.Second

// router mounts the server beside a page that says how to use it. p is nil if
// anybody may.
func router(s *mcp.Server, hello string, p *protection) http.Handler {
	r := chi.NewRouter()
	if p != nil {
		p.register(r, s.Handler())
	} else {
		r.Mount("/mcp", s.Handler())
	}
	r.Get("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, hello) // fails only if nobody reads it
	})
	return r
}

// serveHTTP serves on the address of opts until ctx ends.
func serveHTTP(ctx context.Context, s *mcp.Server, opts options, stdout, stderr io.Writer) error {
	addr := opts.http
	listener, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s is in use already; choose another port, such as -http 127.0.0.1:8081", addr)
	}
	if err != nil {
		return err
	}
	url, open := endpoint(listener.Addr())
	if opts.auth {
		if open {
			return errors.Join(errors.New("-auth is for development, on a loopback address such as 127.0.0.1:8080"), listener.Close())
		}
		return serveProtected(ctx, s, listener, url, stdout)
	}
	if open {
		fmt.Fprintln(stderr, "example: warning: this address can be reached from other machines, and nothing asks them who they are")
	}
	hello := greeting(url)
	return serveOn(ctx, s, listener, router(s, hello, nil), hello, stdout)
}

// serveProtected serves clients that bring a token.
func serveProtected(ctx context.Context, s *mcp.Server, listener net.Listener, url string, stdout io.Writer) error {
	p, err := protect(url)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	hello := protectedGreeting(url)
	return serveOn(ctx, s, listener, router(s, hello, p), hello, stdout)
}

// serveOn serves until ctx ends, and then lets running calls finish.
func serveOn(ctx context.Context, s *mcp.Server, listener net.Listener, h http.Handler, hello string, stdout io.Writer) error {
	web := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
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
	err := s.Shutdown(end)
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

// endpoint returns the URL that reaches addr from this machine, and whether
// other machines can reach it, too.
func endpoint(addr net.Addr) (url string, open bool) {
	host, port, _ := net.SplitHostPort(addr.String())
	if tcp, ok := addr.(*net.TCPAddr); ok {
		open = !tcp.IP.IsLoopback()
		if tcp.IP.IsUnspecified() {
			host = "127.0.0.1"
		}
	}
	return "http://" + net.JoinHostPort(host, port) + "/mcp", open
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
