// Notes is the server of the guides for people who come from other frameworks
// (docs/from-go-sdk.md and the like). It serves standard input and output.
package main

import (
	"context"
	"fmt"
	"log"
	"sync"

	"github.com/talaria-go/mcp"
)

type notebook struct {
	mu    sync.Mutex
	notes []string
}

func (n *notebook) append(text string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.notes = append(n.notes, text)
	return len(n.notes)
}

// find returns the note with that number, which is "" if it was deleted.
func (n *notebook) find(id int) (text string, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if id < 1 || id > len(n.notes) {
		return "", false
	}
	return n.notes[id-1], true
}

func (n *notebook) remove(id int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if id >= 1 && id <= len(n.notes) {
		n.notes[id-1] = ""
	}
}

type AddIn struct {
	Text string `json:"text" validate:"min=1,max=200" jsonschema_description:"what to remember"`
}

type Added struct {
	ID int `json:"id"`
}

func (n *notebook) add(ctx context.Context, in AddIn) (Added, error) {
	return Added{n.append(in.Text)}, nil
}

type NoteIn struct {
	ID int `json:"id"`
}

func (n *notebook) read(ctx context.Context, in NoteIn) (string, error) {
	text, ok := n.find(in.ID)
	if !ok {
		return "", fmt.Errorf("note %d: %w", in.ID, mcp.ErrNotFound)
	}
	return text, nil
}

type SummaryIn struct {
	Style string `json:"style" jsonschema_description:"such as haiku"`
}

func summarize(ctx context.Context, in SummaryIn) (string, error) {
	return "Summarize my notes as a " + in.Style + ".", nil
}

type Sure struct {
	Sure bool `json:"sure"`
}

func (n *notebook) delete(f *mcp.Frame, in NoteIn) (string, error) {
	answer, err := mcp.Elicit[Sure](f, "sure", fmt.Sprintf("Delete note %d?", in.ID))
	if err != nil {
		return "", err
	}
	if !answer.Value.Sure {
		return "kept", nil
	}
	n.remove(in.ID)
	return "deleted", nil
}

func newServer() *mcp.Server {
	n := &notebook{}
	s := mcp.NewServer(mcp.Info{Name: "notes", Version: "1.0.0"}, nil)
	s.MustAdd(
		mcp.Tool("add_note", n.add, mcp.Doc("Keeps a note")),
		mcp.Template("notes://{id}", n.read, mcp.Name("note")),
		mcp.Prompt("summarize", summarize, mcp.Doc("Summarizes the notes")),
		mcp.Tool("delete_note", n.delete, mcp.Doc("Deletes a note")),
	)
	return s
}

func main() {
	if err := newServer().ServeStdio(context.Background()); err != nil {
		log.Fatal(err)
	}
}
