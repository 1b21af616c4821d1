// Package serve starts the servers of the benchmark in one and the same way.
package serve

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// Server is what a framework brings.
type Server struct {
	// HTTP makes the handler, which is asked for any path.
	HTTP func() (http.Handler, error)
	// Tokens makes the access tokens that requests carry; nil means that they
	// carry none. They are printed behind the address.
	Tokens func() ([]string, error)
	// Stdio serves standard input and output until the input or ctx ends.
	Stdio func(ctx context.Context) error
}

// Main runs s as the command line says: -http ADDR, or -stdio. Over HTTP it
// prints the address it has bound, which must be a loopback one, and stops
// when its standard input ends. SIGTERM and SIGINT stop it too.
func Main(s Server) {
	addr := flag.String("http", "", "serve HTTP on this loopback `address`, such as 127.0.0.1:0")
	stdio := flag.Bool("stdio", false, "serve standard input and output")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	var err error
	switch {
	case *stdio == (*addr != "") || flag.NArg() > 0:
		flag.Usage()
		os.Exit(2)
	case *stdio:
		err = s.Stdio(ctx)
	default:
		err = listen(ctx, *addr, s)
	}
	if err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, io.EOF) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func listen(ctx context.Context, addr string, s Server) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	defer l.Close()
	if ip := l.Addr().(*net.TCPAddr).IP; !ip.IsLoopback() {
		return fmt.Errorf("%s is not a loopback address", addr)
	}
	h, err := s.HTTP()
	if err != nil {
		return err
	}
	var tokens []string
	if s.Tokens != nil {
		if tokens, err = s.Tokens(); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with the process: nothing can interrupt this read
		io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	srv := &http.Server{Handler: h}
	stopped := context.AfterFunc(ctx, func() { srv.Close() })
	defer stopped()
	fmt.Println(strings.Join(append([]string{l.Addr().String()}, tokens...), " "))
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
