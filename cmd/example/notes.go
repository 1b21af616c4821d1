package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/schema/civil"
)

// Note is a text that was written down.
type Note struct {
	ID      int       `json:"id" jsonschema_description:"number of the note"`
	Text    string    `json:"text"`
	Tags    []string  `json:"tags"`
	Created time.Time `json:"created"`
}

func (n Note) number() int { return n.ID }

// AddNoteIn is a note to keep.
type AddNoteIn struct {
	Text string   `json:"text" validate:"required,max=2000" jsonschema_description:"what to remember"`
	Tags []string `json:"tags,omitempty" validate:"max=10,unique,dive,min=1,max=40" jsonschema_description:"words to find the note by"`
}

// SearchNotesIn says which notes to return; what is left out does not matter.
type SearchNotesIn struct {
	Text  string     `json:"text,omitempty" validate:"max=200" jsonschema_description:"text that the note contains; upper and lower case are the same"`
	Tags  []string   `json:"tags,omitempty" validate:"max=10,dive,min=1,max=40" jsonschema_description:"tags that the note has, all of them"`
	Since civil.Date `json:"since,omitzero" jsonschema_description:"day on or after which the note was written"`
	Limit int        `json:"limit,omitempty" validate:"min=1,max=100" jsonschema:"default=20" jsonschema_description:"how many notes to return at most"`
	Sort  string     `json:"sort,omitempty" validate:"oneof=newest oldest text" jsonschema:"default=newest" jsonschema_description:"what comes first; text sorts by the alphabet"`
}

// SearchNotesOut are the notes that were found.
type SearchNotesOut struct {
	Total int    `json:"total" jsonschema_description:"how many notes fit, returned or not"`
	Notes []Note `json:"notes"`
}

// DeleteIn names a record to delete.
type DeleteIn struct {
	ID int `json:"id" validate:"min=1" jsonschema_description:"number of the record, as a search or list shows it"`
}

func (w *workbench) noteTools() []mcp.Component {
	return []mcp.Component{
		mcp.Tool("add_note", w.addNote, w.needs(scopeWrite), mcp.Title("Add a note"),
			mcp.Doc("Keeps a note. It survives a restart"), mcp.Destructive(false), mcp.OpenWorld(false)),
		mcp.Tool("search_notes", w.searchNotes, mcp.Title("Search notes"),
			mcp.Doc("Finds notes by text, tags and age. Without arguments it returns the newest"), mcp.ReadOnly(), mcp.OpenWorld(false)),
		mcp.Tool("delete_note", w.deleteNote, w.needs(scopeWrite), mcp.Title("Delete a note"),
			mcp.Doc("Deletes a note for good and returns it. Asks the user first, if the client can ask"), mcp.Destructive(true), mcp.OpenWorld(false)),
	}
}

func (w *workbench) addNote(f *mcp.Frame, in AddNoteIn) (note Note, err error) {
	err = w.notes.Update(f, func(doc *document[Note]) error {
		note = doc.add(func(id int) Note {
			return Note{ID: id, Text: in.Text, Tags: append([]string{}, in.Tags...), Created: w.now().Truncate(time.Second)}
		})
		return nil
	})
	if err == nil {
		w.updated("notes://all")
	}
	return note, err
}

func (w *workbench) searchNotes(f *mcp.Frame, in SearchNotesIn) (SearchNotesOut, error) {
	out := SearchNotesOut{Notes: []Note{}}
	err := w.notes.View(f, func(notes []Note) error {
		for _, note := range notes {
			if in.matches(note) {
				out.Notes = append(out.Notes, note)
			}
		}
		return nil
	})
	out.Total = len(out.Notes)
	slices.SortStableFunc(out.Notes, noteOrder[in.Sort])
	out.Notes = out.Notes[:min(in.Limit, len(out.Notes))]
	return out, err
}

// noteOrder has an order for each value of SearchNotesIn.Sort. Numbers break
// ties: they grow with time.
var noteOrder = map[string]func(a, b Note) int{
	"newest": func(a, b Note) int { return cmp.Or(b.Created.Compare(a.Created), cmp.Compare(b.ID, a.ID)) },
	"oldest": func(a, b Note) int { return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.ID, b.ID)) },
	"text": func(a, b Note) int {
		return cmp.Or(cmp.Compare(strings.ToLower(a.Text), strings.ToLower(b.Text)), cmp.Compare(a.ID, b.ID))
	},
}

func (in *SearchNotesIn) matches(note Note) bool {
	if !strings.Contains(strings.ToLower(note.Text), strings.ToLower(in.Text)) {
		return false
	}
	if !in.Since.IsZero() && note.Created.Before(in.Since.In(note.Created.Location())) {
		return false
	}
	for _, tag := range in.Tags {
		if !slices.ContainsFunc(note.Tags, func(have string) bool { return strings.EqualFold(have, tag) }) {
			return false
		}
	}
	return true
}

// Confirmation is what the user is asked before a note goes.
type Confirmation struct {
	Delete bool `json:"delete" jsonschema:"title=Delete it,default=false" jsonschema_description:"a deleted note cannot be brought back"`
}

// confirmDelete asks the user. A client that cannot ask shows its own warning,
// because the tool says that it is destructive.
func confirmDelete(f *mcp.Frame, note Note) error {
	if f.ClientCapabilities().Elicitation == nil {
		return nil
	}
	answer, err := mcp.Elicit[Confirmation](f, "delete", fmt.Sprintf("Delete note %d for good? It says: %s", note.ID, note.Text))
	if err != nil {
		return err // it may mean that the answer comes later, with the same call
	}
	if !answer.Accepted() || !answer.Value.Delete {
		return fmt.Errorf("the user did not agree; note %d is kept", note.ID)
	}
	return nil
}

func (w *workbench) deleteNote(f *mcp.Frame, in DeleteIn) (Note, error) {
	note, err := w.oneNote(f, NoteVariables(in))
	if errors.Is(err, mcp.ErrNotFound) {
		return note, fmt.Errorf("there is no note %d; search_notes shows the numbers", in.ID)
	}
	if err == nil {
		err = confirmDelete(f, note)
	}
	if err != nil {
		return Note{}, err
	}
	err = w.notes.Update(f, func(doc *document[Note]) error {
		var ok bool
		if note, ok = doc.remove(in.ID); !ok {
			return fmt.Errorf("note %d was deleted meanwhile", in.ID)
		}
		return nil
	})
	if err == nil {
		w.updated("notes://all")
		w.updated(fmt.Sprint("notes://", in.ID))
	}
	return note, err
}
