package main

import (
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
	ID      int       `json:"id" validate:"min=1" jsonschema_description:"number of the note"`
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
	Limit int        `json:"limit,omitempty" validate:"min=1,max=100" jsonschema:"default=20" jsonschema_description:"how many notes to return at most, the newest first"`
}

// SearchNotesOut are the notes that were found.
type SearchNotesOut struct {
	Total int    `json:"total" jsonschema_description:"how many notes fit, returned or not"`
	Notes []Note `json:"notes"`
}

// RecordIn names a note or an event. As variables of notes://{id} it has the
// same rules as in the arguments of a tool.
type RecordIn struct {
	ID int `json:"id" validate:"min=1" jsonschema_description:"its number, as a search or list shows it"`
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
	if n.scoped { // without authorization no client has a scope
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
	doc, err := n.file.Read(f)
	notes := slices.DeleteFunc(doc.Records, func(note Note) bool { return !in.matches(note) })
	slices.Reverse(notes) // the newest was added last
	return SearchNotesOut{Total: len(notes), Notes: notes[:min(in.Limit, len(notes))]}, err
}

func (in *SearchNotesIn) matches(note Note) bool {
	lacks := func(tag string) bool {
		return !slices.ContainsFunc(note.Tags, func(t string) bool { return strings.EqualFold(t, tag) })
	}
	return strings.Contains(strings.ToLower(note.Text), strings.ToLower(in.Text)) &&
		!civil.DateOf(note.Created).Before(in.Since) && !slices.ContainsFunc(in.Tags, lacks)
}

// delete asks the user before a note goes. A client that cannot ask shows its own
// warning, because the tool says that it is destructive.
func (n *notebook) delete(f *mcp.Frame, in RecordIn) (Note, error) {
	note, err := n.one(f, in)
	if err != nil {
		return note, err
	}
	if f.ClientCapabilities().Elicitation != nil {
		answer, err := mcp.Elicit[Confirmation](f, "delete", fmt.Sprintf("Delete note %d for good? It says: %s", note.ID, note.Text))
		if err != nil {
			return note, err // it may mean that the answer comes later, with the same call
		}
		if !answer.Accepted() || !answer.Value.Delete {
			return note, fmt.Errorf("the user did not agree; note %d is kept", note.ID)
		}
	}
	err = n.file.Update(f, func(doc *document[Note]) error {
		note, err = doc.remove(in.ID)
		return err
	})
	if err == nil {
		n.updated("notes://all")
		n.updated(fmt.Sprint("notes://", in.ID))
	}
	return note, err
}

func (n *notebook) all(f *mcp.Frame) ([]Note, error) {
	out, err := n.search(f, SearchNotesIn{Limit: maxRecords})
	return out.Notes, err
}

// one returns a note, or an error that clients of resources know: it is
// [mcp.ErrNotFound].
func (n *notebook) one(f *mcp.Frame, in RecordIn) (note Note, err error) {
	doc, err := n.file.Read(f)
	if err != nil {
		return note, err
	}
	i, err := doc.find(in.ID)
	if err != nil {
		return note, err
	}
	return doc.Records[i], nil
}

func (n *notebook) summarize(f *mcp.Frame, in SummaryIn) (*mcp.Messages, error) {
	search := SearchNotesIn{Limit: in.Most}
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
