package mcptest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/transport"
)

// pipe is the client's end of a pair of pipes. ServeConn of the server has the
// other end; served is what it returned, valid after ended.
type pipe struct {
	transport.Conn
	input  *io.PipeWriter
	ended  sync.WaitGroup
	served error
}

// Shutdown ends the server's input and waits for the server. What the server
// still sends is read in the meantime.
func (p *pipe) Shutdown(context.Context) error {
	_ = p.input.Close() // pipes have no error
	p.ended.Wait()
	return nil
}

// overPipe returns a transport over a pair of pipes that the server serves. end
// is called after the client has been closed; it waits for the server and
// returns its error.
func overPipe(conf *config, server *mcp.Server) (to client.Transport, end func() error) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	p := &pipe{Conn: transport.NewStream(outR, inW, nil), input: inW}
	ctx := context.Background()
	if conf.identity != nil {
		ctx = mcp.WithIdentity(ctx, conf.identity)
	}
	p.ended.Go(func() {
		p.served = server.ServeConn(ctx, transport.NewStream(inR, outW, nil))
		_ = outW.Close()
	})
	return client.Conn(func(context.Context) (transport.Conn, error) { return p, nil }), func() error {
		_ = p.Shutdown(ctx) // it has no error
		if _, ended := errors.AsType[*wire.SessionEnd](p.served); ended || errors.Is(p.served, mcp.ErrServerClosed) {
			return nil // the server's program wanted it
		}
		return p.served
	}
}

// overHTTP returns a transport to a loopback socket that the server serves. end
// is called after the client has been closed; it waits for the requests in
// progress. The identity is put into the context of each request, where
// middleware for authorization would put it.
func overHTTP(conf *config, server *mcp.Server) (to client.Transport, end func() error) {
	handler := server.Handler()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if conf.identity != nil {
			r = r.WithContext(mcp.WithIdentity(r.Context(), conf.identity))
		}
		handler.ServeHTTP(w, r)
	}))
	asks := *web.Client() // whose own transport is closed with the server
	if len(conf.answered) > 0 {
		asks.Transport = &answering{asks.Transport, conf}
	}
	return client.HTTP(web.URL, &client.HTTPOptions{Client: &asks, MaxMessage: 1 << 30, HeaderFunc: func(_ context.Context, r *http.Request) error {
		for name, value := range conf.headers { // over those that the client makes
			r.Header.Set(name, value)
		}
		return nil
	}}), func() error { web.Close(); return nil }
}

// answering tells with which status messages are answered.
type answering struct {
	http.RoundTripper
	conf *config
}

// RoundTrip implements http.RoundTripper.
func (a *answering) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := a.RoundTripper.RoundTrip(r)
	if err != nil || r.GetBody == nil {
		return resp, err
	}
	sent, fault := r.GetBody()
	if fault != nil {
		return resp, nil // nothing is known of the message
	}
	defer sent.Close()
	if message, fault := io.ReadAll(sent); fault == nil {
		for _, tell := range a.conf.answered {
			tell(message, resp.StatusCode)
		}
	}
	return resp, nil
}
