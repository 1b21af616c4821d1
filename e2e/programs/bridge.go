package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"time"
)

// runBridge serves a stdio server over loopback HTTP, for clients without stdio. The arguments after the flags are the command of the server.
//
// Bodies pass as they are. A stdio connection is one session, so each legacy session gets
// a process of its own, from initialize to DELETE; all modern requests share one
// process. Rules of HTTP, such as those for headers, are not checked.
func runBridge(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bridge", flag.ContinueOnError)
	addr := flags.String("http", "127.0.0.1:0", "loopback `address` to listen on; port 0 takes a free one")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() == 0 {
		return errors.New("no command: write it after the flags, as in bridge -http 127.0.0.1:0 -- ./server -stdio")
	}
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		return err
	}
	front := newFront(flags.Args())
	server := &http.Server{Handler: front, ReadHeaderTimeout: 10 * time.Second}
	fmt.Printf("http://%s/mcp\n", listener.Addr())

	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err = <-served:
	case <-ctx.Done():
		server.Close()
		<-served
	}
	front.close()
	return err
}
