// Command events is a server whose clients learn of comments on documents. Copy
// newServer: an event type, whose match decides which subscriber receives what, and a
// tool that emits an event. Try it with
//
//	go run ./examples/events
//	talaria events http://127.0.0.1:8080/mcp comment.created document=doc_1
//	talaria call http://127.0.0.1:8080/mcp add_comment document=doc_1 text=Hello
package main

import (
	"log"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp"
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

func newServer() *mcp.Server {
	s := mcp.NewServer(mcp.Info{Name: "documents", Version: "1.0.0"}, nil)
	var last atomic.Int64 // your database has ids
	s.MustAdd(
		mcp.EventType("comment.created", concerns, mcp.Doc("A comment was added to a document")),
		mcp.Tool("add_comment", func(f *mcp.Frame, in Comment) (string, error) {
			id := strconv.FormatInt(last.Add(1), 10)
			if err := s.Emit(f, mcp.Occurrence{Name: "comment.created", Data: in, ID: "comment-" + id}); err != nil {
				return "", err
			}
			return "Added comment " + id + ".", nil
		}, mcp.Doc("Adds a comment to a document")),
	)
	return s
}

func main() {
	http.Handle("/mcp", newServer().Handler())
	server := &http.Server{Addr: "127.0.0.1:8080", ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}
