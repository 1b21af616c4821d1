// Command events is a server whose clients learn of comments on documents. Copy
// newServer: an event type, whose match decides which subscriber receives what, and a
// tool that emits an event. Try it with
//
//	go run ./examples/events
//	talaria events http://127.0.0.1:8080/mcp comment.created document=doc_1
//	talaria call http://127.0.0.1:8080/mcp add_comment document=doc_1 text=Hello
//
// A Receiver has comments sent to it by webhook. Try it with
//
//	go run ./examples/events -receive comments.json
package main

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
)

// Comment is what the tool adds, and the data of an event.
type Comment struct {
	Document string `json:"document" validate:"required" jsonschema_description:"id of the document"`
	Text     string `json:"text" validate:"required,max=500" jsonschema_description:"what to say"`
}

// Watch has the arguments of a subscription.
type Watch struct {
	Document string `json:"document" validate:"required" jsonschema_description:"id of the document to watch"`
}

// concerns reports whether a subscriber receives an event. A server with users also asks
// here whether f.Principal() may read the document.
func concerns(_ *mcp.Frame, in Watch, c Comment) (bool, error) { return in.Document == c.Document, nil }

// newServer makes the server. Without opts.Store subscriptions end with the process.
func newServer(opts *mcp.Options) *mcp.Server {
	s := mcp.NewServer(mcp.Info{Name: "documents", Version: "1.0.0"}, opts)
	s.MustAdd(
		mcp.EventType("comment.created", concerns, mcp.Doc("A comment was added to a document")),
		mcp.Tool("add_comment", func(f *mcp.Frame, in Comment) (string, error) {
			id := rand.Text() // your database has ids
			if err := s.Emit(f, mcp.Occurrence{Name: "comment.created", Data: in, ID: "comment-" + id}); err != nil {
				return "", err
			}
			return "Added comment " + id + ".", nil
		}, mcp.Doc("Adds a comment to a document")),
	)
	return s
}

// serve returns the endpoint. A server on a network has auth.Resource in place of the one
// user here.
func serve(s *mcp.Server) http.Handler {
	endpoint := s.Handler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		endpoint.ServeHTTP(w, r.WithContext(mcp.WithIdentity(r.Context(), &mcp.Identity{Subject: "me"})))
	})
}

// receive prints the comments on doc_1 that the server at url sends to this process.
func receive(path, url string) error {
	r, err := NewReceiver(path, func(e Event) error {
		fmt.Printf("%s %s\n", e.ID, e.Data)
		return nil
	})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:8081")
	if err != nil {
		return err
	}
	go func() { log.Fatal((&http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second}).Serve(listener)) }()
	ctx := context.Background()
	c, err := client.Connect(ctx, client.HTTP(url, nil), nil)
	if err != nil {
		return err
	}
	for {
		if err := r.Subscribe(ctx, c, "doc_1", "http://127.0.0.1:8081/"); err != nil {
			return err
		}
		time.Sleep(interval)
	}
}

func main() {
	path := flag.String("receive", "", "receive comments, with the state in this file")
	url := flag.String("from", "http://127.0.0.1:8080/mcp", "receive from the server at this URL")
	address := flag.String("http", "127.0.0.1:8080", "listen on this address")
	flag.Parse()
	if *path != "" {
		log.Fatal(receive(*path, *url))
	}
	// Loopback is for this example: webhooks have https and public addresses.
	http.Handle("/mcp", serve(newServer(&mcp.Options{Webhooks: &mcp.WebhookOptions{Loopback: true}})))
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("serving http://%s/mcp\n", listener.Addr())
	log.Fatal((&http.Server{ReadHeaderTimeout: 10 * time.Second}).Serve(listener))
}
