package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
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

// NoteVariables are the variables of notes://{id}.
type NoteVariables struct {
	ID int `json:"id" validate:"min=1" jsonschema_description:"number of the note"`
}

// SummaryIn says what to summarize, and how.
type SummaryIn struct {
	Tag   string `json:"tag,omitempty" validate:"max=40" jsonschema_description:"only notes with this tag; all of them if left out"`
	Style string `json:"style,omitempty" validate:"oneof=list paragraph haiku" jsonschema:"default=list" jsonschema_description:"form of the summary"`
	Most  int    `json:"most,omitempty" validate:"min=1,max=100" jsonschema:"default=20" jsonschema_description:"how many notes to read at most, the newest first"`
}

// Confirmation is what the user is asked before a note goes.
type Confirmation struct {
	Delete bool `json:"delete" jsonschema:"title=Delete it,default=false" jsonschema_description:"a deleted note cannot be brought back"`
}

// notebook keeps notes. Its tools, resources and prompt are the components of
// the server.
type notebook struct {
	file    *file[Note]
	now     func() time.Time
	updated func(uri string) // tells subscribers that a resource has changed
	scoped  bool             // whether writing needs a scope
}

func (n *notebook) components() []mcp.Component {
	write := mcp.Bundle{}
	if n.scoped { // without authorization nobody has any scope
		write = append(write, mcp.Scopes(scopeWrite))
	}
	return []mcp.Component{
		mcp.Tool("add_note", n.add, write, mcp.Title("Add a note"),
			mcp.Doc("Keeps a note. It survives a restart"), mcp.Destructive(false), mcp.OpenWorld(false)),
		mcp.Tool("search_notes", n.search, mcp.Title("Search notes"),
			mcp.Doc("Finds notes by text, tags and age. Without arguments it returns the newest"), mcp.ReadOnly(), mcp.OpenWorld(false)),
		mcp.Tool("delete_note", n.delete, write, mcp.Title("Delete a note"),
			mcp.Doc("Deletes a note for good and returns it. Asks the user first, if the client can ask"), mcp.Destructive(true), mcp.OpenWorld(false)),
		mcp.Resource("notes://all", n.all, mcp.Name("notes"), mcp.Title("All notes"), mcp.Doc("Every note, the newest first")),
		mcp.Template("notes://{id}", n.one, mcp.Name("note"), mcp.Title("A note"), mcp.Doc("One note by its number"),
			mcp.Complete("id", n.completeID)),
		mcp.Prompt("summarize_notes", n.summarize, mcp.Title("Summarize notes"),
			mcp.Doc("Asks for a summary of the newest notes"), mcp.Complete("tag", n.completeTag)),
	}
}

func (n *notebook) add(f *mcp.Frame, in AddNoteIn) (note Note, err error) {
	err = n.file.Update(f, func(doc *document[Note]) error {
		note = doc.add(func(id int) Note {
			return Note{ID: id, Text: in.Text, Tags: append([]string{}, in.Tags...), Created: n.now().Truncate(time.Second)}
		})
		return nil
	})
	if err == nil {
		n.updated("notes://all")
	}
	return note, err
}

func (n *notebook) search(f *mcp.Frame, in SearchNotesIn) (SearchNotesOut, error) {
	notes, err := n.file.Read(f)
	notes = slices.DeleteFunc(notes, func(note Note) bool { return !in.matches(note) })
	slices.SortStableFunc(notes, noteOrder[in.Sort])
	return SearchNotesOut{Total: len(notes), Notes: append([]Note{}, notes[:min(in.Limit, len(notes))]...)}, err
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

// delete asks the user before a note goes. A client that cannot ask shows its own
// warning, because the tool says that it is destructive.
func (n *notebook) delete(f *mcp.Frame, in DeleteIn) (Note, error) {
	note, err := n.one(f, NoteVariables(in))
	if errors.Is(err, mcp.ErrNotFound) {
		return note, fmt.Errorf("there is no note %d; search_notes shows the numbers", in.ID)
	}
	if err != nil {
		return note, err
	}
	if f.ClientCapabilities().Elicitation != nil {
		answer, err := mcp.Elicit[Confirmation](f, "delete", fmt.Sprintf("Delete note %d for good? It says: %s", note.ID, note.Text))
		if err != nil {
			return Note{}, err // it may mean that the answer comes later, with the same call
		}
		if !answer.Accepted() || !answer.Value.Delete {
			return Note{}, fmt.Errorf("the user did not agree; note %d is kept", note.ID)
		}
	}
	err = n.file.Update(f, func(doc *document[Note]) error {
		var ok bool
		if note, ok = doc.remove(in.ID); !ok {
			return fmt.Errorf("note %d was deleted meanwhile", in.ID)
		}
		return nil
	})
	if err == nil {
		n.updated("notes://all")
		n.updated(fmt.Sprint("notes://", in.ID))
	}
	return note, err
}

func (n *notebook) all(f *mcp.Frame) ([]Note, error) {
	out, err := n.search(f, SearchNotesIn{Sort: "newest", Limit: maxNotes})
	return out.Notes, err
}

func (n *notebook) one(f *mcp.Frame, in NoteVariables) (Note, error) {
	notes, err := n.file.Read(f)
	if err != nil {
		return Note{}, err
	}
	i := slices.IndexFunc(notes, func(n Note) bool { return n.ID == in.ID })
	if i < 0 {
		return Note{}, mcp.ErrNotFound
	}
	return notes[i], nil
}

func (n *notebook) summarize(f *mcp.Frame, in SummaryIn) (*mcp.Messages, error) {
	search := SearchNotesIn{Sort: "newest", Limit: in.Most}
	if in.Tag != "" {
		search.Tags = []string{in.Tag}
	}
	found, err := n.search(f, search)
	if err != nil {
		return nil, err
	}
	if found.Total == 0 {
		return mcp.NewMessages().User("Tell me that there are no such notes, and how to add one."), nil
	}
	messages := mcp.NewMessages().Userf("Summarize these notes as a %s. Mention the number of each note that you use.", in.Style)
	for _, note := range found.Notes {
		messages.Add(mcp.RoleUser, mcp.EmbeddedResource{Resource: mcp.ResourceContents{
			URI: fmt.Sprint("notes://", note.ID), MIMEType: "text/plain",
			Text: fmt.Sprintf("Note %d of %s [%s]\n%s", note.ID, note.Created.Format(time.DateOnly), strings.Join(note.Tags, ", "), note.Text),
		}})
	}
	return messages, nil
}

func (n *notebook) completeID(f *mcp.Frame, q mcp.CompletionQuery) (mcp.Completion, error) {
	notes, err := n.all(f)
	var ids []string
	for _, note := range notes {
		ids = append(ids, strconv.Itoa(note.ID))
	}
	return mcp.Suggest(q.Value, ids...), err
}

func (n *notebook) completeTag(f *mcp.Frame, q mcp.CompletionQuery) (mcp.Completion, error) {
	notes, err := n.all(f)
	var tags []string
	for _, note := range notes {
		tags = append(tags, note.Tags...)
	}
	slices.Sort(tags)
	return mcp.Suggest(q.Value, slices.Compact(tags)...), err
}
