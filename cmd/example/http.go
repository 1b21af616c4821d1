package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/auth"
	"github.com/talaria-go/mcp/auth/authtest"
	"github.com/talaria-go/mcp/transport/websocket"
)

// The scopes of the workbench. Reading is needed for everything, so that
// clients ask for it at first; for writing they ask when it comes to that.
const (
	scopeRead  = "notes:read"
	scopeWrite = "notes:write"
)

// listen takes the address of o and returns what is to be served there.
func listen(s *mcp.Server, o options, stderr io.Writer) (l net.Listener, h http.Handler, hello string, err error) {
	if l, err = net.Listen("tcp", o.http); err != nil {
		return nil, nil, "", fmt.Errorf("%w; choose another address with -http, where port 0 takes a free one", err)
	}
	addr := *l.Addr().(*net.TCPAddr)
	switch open := !addr.IP.IsLoopback(); {
	case open && o.auth:
		return nil, nil, "", errors.Join(errors.New("-auth is for development, on a loopback address such as 127.0.0.1:8080"), l.Close())
	case open:
		fmt.Fprintln(stderr, "example: warning: this address can be reached from other machines, and nothing asks them who they are")
	}
	if addr.IP.IsUnspecified() {
		addr.IP = net.IPv4(127, 0, 0, 1)
	}
	h, hello, err = router(s, "http://"+addr.String(), o.auth)
	return l, h, hello, err
}

// router mounts the server next to a page that says how to use it, which is
// hello. If it is protected, clients need an access token.
func router(s *mcp.Server, base string, protected bool) (h http.Handler, hello string, err error) {
	r, hello := chi.NewRouter(), fmt.Sprintf(greeting, base)
	guard := func(next http.Handler) http.Handler { return next }
	if protected {
		resource, issuer, err := protect(base)
		if err != nil {
			return nil, "", err
		}
		r.Use(resource.Metadata, issuer.Middleware)
		guard, hello = resource.Bearer, fmt.Sprintf(protectedGreeting, base)
	}
	r.Mount("/mcp", guard(s.Handler()))
	r.Mount("/ws", guard(websocket.Handler(s)))
	r.Get("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, hello) })
	return r, hello, nil
}

// protect returns what -auth turns on: the protection of the endpoints at base,
// and an authorization server for development.
func protect(base string) (*auth.Resource, *authtest.Server, error) {
	issuer, err := authtest.New(&authtest.Options{
		Issuer: base + "/auth", Resource: base + "/mcp",
		Scopes: []authtest.Scope{
			{Name: scopeRead, Allows: "Use the workbench and read notes"},
			{Name: scopeWrite, Allows: "Add and delete notes"},
		},
	})
	if err != nil {
		return nil, nil, err
	}
	resource, err := auth.New(base+"/mcp", auth.NewJWT(issuer.Issuer(), &auth.JWTOptions{Check: issuer.Revoked}), &auth.Options{
		Scopes: []string{scopeRead}, Name: "Workbench",
		DPoP:     auth.DPoPOptions{Offer: true, NonceKey: []byte(rand.Text())},
		CacheFor: -1, // so that a revocation is seen at once
	})
	return resource, issuer, err
}

// greeting is the page of a server. The request in it is one of revision
// 2026-07-28: it is stateless, without a session.
const greeting = `The workbench serves MCP at %[1]s/mcp
and over WebSocket at %[1]s/ws

Try it:

curl -sS %[1]s/mcp \
  -H 'Content-Type: application/json' \
  -H 'Accept: application/json, text/event-stream' \
  -H 'MCP-Protocol-Version: 2026-07-28' \
  -H 'Mcp-Method: tools/call' \
  -H 'Mcp-Name: calculate' \
  -d '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"calculate","arguments":{"operation":"multiply","a":6,"b":7},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"curl","version":"1.0.0"},"io.modelcontextprotocol/clientCapabilities":{}}}}'

Ctrl-C stops it.
`

const protectedGreeting = `The workbench serves MCP at %[1]s/mcp, to clients with an access token.
The authorization server beside it is for DEVELOPMENT ONLY: it asks nobody for a
password, and forgets everything when this program ends.

Point a client that speaks OAuth at %[1]s/mcp: it registers, opens a
browser, and asks again when a note is to be added or deleted. The command does:

talaria login %[1]s/mcp
talaria http %[1]s/mcp

Ctrl-C stops it.
`
