// Command service is a server as a machine runs it for a long time: it says whether
// it is ready, ends without a failed call, and lets systemd open its port. Copy it;
// scale/redis/example is the same with replicas.
package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/talaria-go/mcp"
)

type nameIn struct {
	Name string `json:"name" validate:"required"`
}

func main() {
	addr := flag.String("http", "127.0.0.1:8080", "serve HTTP on this `address`, unless systemd has opened one")
	grace := flag.Duration("grace", 27*time.Second, "how `long` the end may take: nine tenths of the time until SIGKILL")
	flag.Parse()
	s := mcp.NewServer(mcp.Info{Name: "service", Version: "1.0.0"}, nil)
	s.MustAdd(mcp.Tool("hello", func(_ *mcp.Frame, in nameIn) (string, error) { return "Hello, " + in.Name + "!", nil }))
	if err := serve(s, *addr, *grace); err != nil {
		log.Fatal(err)
	}
}

func serve(s *mcp.Server, addr string, grace time.Duration) error {
	ctx, stop := untilSignal()
	defer stop()

	mux := http.NewServeMux()
	mux.Handle("/mcp", s.Handler())
	mux.HandleFunc("GET /livez", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if s.Stats().Draining {
			http.Error(w, "draining", http.StatusServiceUnavailable)
		}
	})
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}

	listener, err := listen(addr)
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- web.Serve(listener) }()
	if err := notify("READY=1"); err != nil {
		return err
	}
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	_ = notify("STOPPING=1") // without the message systemd waits for the end

	within := func(share int, end func(context.Context) error) error {
		ctx, cancel := context.WithTimeout(context.Background(), grace*time.Duration(share)/10)
		defer cancel()
		return end(ctx)
	}
	drained := within(5, s.Drain)
	_ = listener.Close() // new clients go to the next process
	<-served
	return errors.Join(drained, within(4, s.Shutdown), within(1, web.Shutdown))
}

// listen returns the socket that systemd has opened for this process, or else one
// on addr.
func listen(addr string) (net.Listener, error) {
	if os.Getenv("LISTEN_PID") != strconv.Itoa(os.Getpid()) {
		return net.Listen("tcp", addr)
	}
	socket := os.NewFile(3, "socket") // the first of LISTEN_FDS
	defer socket.Close()              // the listener has a copy
	return net.FileListener(socket)
}

// notify tells systemd of a state, if it wants to know.
func notify(state string) error {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return nil
	}
	conn, err := net.Dial("unixgram", path)
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = io.WriteString(conn, state)
	return err
}

// untilSignal returns a context that ends with the first signal; the second one ends the
// program at once. stop gives the signals back.
func untilSignal() (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	var watching sync.WaitGroup
	watching.Go(func() {
		<-signals
		cancel()
		if _, second := <-signals; second {
			os.Exit(1)
		}
	})
	return ctx, func() {
		signal.Stop(signals)
		close(signals)
		watching.Wait()
	}
}
