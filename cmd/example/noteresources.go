package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/talaria-go/mcp"
)

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

// noteResources are the notes to attach to a conversation, and a prompt to
// start one.
func (w *workbench) noteResources() []mcp.Component {
	return []mcp.Component{
		mcp.Resource("notes://all", w.allNotes, mcp.Name("notes"), mcp.Title("All notes"), mcp.Doc("Every note, the newest first")),
		mcp.Template("notes://{id}", w.oneNote, mcp.Name("note"), mcp.Title("A note"), mcp.Doc("One note by its number"),
			mcp.Complete("id", w.completeID)),
		mcp.Prompt("summarize_notes", w.summarize, mcp.Title("Summarize notes"),
			mcp.Doc("Asks for a summary of the newest notes"), mcp.Complete("tag", w.completeTag)),
	}
}

// newest returns the notes that fit, the newest first.
func (w *workbench) newest(f *mcp.Frame, in SearchNotesIn) ([]Note, error) {
	in.Sort = "newest"
	out, err := w.searchNotes(f, in)
	return out.Notes, err
}

func (w *workbench) allNotes(f *mcp.Frame) ([]Note, error) {
	return w.newest(f, SearchNotesIn{Limit: maxNotes})
}

func (w *workbench) oneNote(f *mcp.Frame, in NoteVariables) (note Note, err error) {
	err = w.notes.View(f, func(notes []Note) error {
		i := slices.IndexFunc(notes, func(n Note) bool { return n.ID == in.ID })
		if i < 0 {
			return mcp.ErrNotFound
		}
		note = notes[i]
		return nil
	})
	return note, err
}

func (w *workbench) summarize(f *mcp.Frame, in SummaryIn) (*mcp.Messages, error) {
	search := SearchNotesIn{Limit: in.Most}
	if in.Tag != "" {
		search.Tags = []string{in.Tag}
	}
	notes, err := w.newest(f, search)
	if err != nil {
		return nil, err
	}
	if len(notes) == 0 {
		return mcp.NewMessages().User("Tell me that there are no such notes, and how to add one."), nil
	}
	messages := mcp.NewMessages().Userf("Summarize these notes as a %s. Mention the number of each note that you use.", in.Style)
	for _, note := range notes {
		messages.Add(mcp.RoleUser, mcp.EmbeddedResource{Resource: mcp.ResourceContents{
			URI: fmt.Sprint("notes://", note.ID), MIMEType: "text/plain",
			Text: fmt.Sprintf("Note %d of %s [%s]\n%s", note.ID, note.Created.Format(time.DateOnly), strings.Join(note.Tags, ", "), note.Text),
		}})
	}
	return messages, nil
}

func (w *workbench) completeID(f *mcp.Frame, q mcp.CompletionQuery) (mcp.Completion, error) {
	notes, err := w.allNotes(f)
	var ids []string
	for _, note := range notes {
		ids = append(ids, strconv.Itoa(note.ID))
	}
	return mcp.Suggest(q.Value, ids...), err
}

func (w *workbench) completeTag(f *mcp.Frame, q mcp.CompletionQuery) (mcp.Completion, error) {
	notes, err := w.allNotes(f)
	var tags []string
	for _, note := range notes {
		tags = append(tags, note.Tags...)
	}
	slices.Sort(tags)
	return mcp.Suggest(q.Value, slices.Compact(tags)...), err
}
