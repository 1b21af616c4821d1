// Command notes is behind chi and access tokens; what one sees depends on who
// one is.
package main

import (
	"context"
	"log"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/auth"
)

type NoteIn struct {
	Text string `json:"text" validate:"required"`
}

func addNote(f *mcp.Frame, in NoteIn) (string, error) {
	return "kept for " + f.Identity().Subject, nil
}

func wipe(ctx context.Context, in struct{}) (string, error) { return "wiped", nil }

func isAdmin(f *mcp.Frame) bool { return f.HasScope("notes:admin") }

func main() {
	s := mcp.NewServer(mcp.Info{Name: "notes", Version: "1.0.0"}, nil)
	s.MustAdd(
		mcp.Tool("add_note", addNote, mcp.Scopes("notes:write")),
		mcp.Tool("wipe", wipe, mcp.VisibleTo(isAdmin)))
	notes, err := auth.New("https://notes.example.com/mcp", auth.NewJWT("https://auth.example.com", nil), &auth.Options{Scopes: []string{"notes:read"}})
	if err != nil {
		log.Fatal(err)
	}
	r := chi.NewRouter()
	r.Use(notes.Metadata)
	r.With(notes.Bearer).Mount("/mcp", s.Handler())
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", r))
}
