package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
)

// The most that the workbench keeps.
const (
	maxNotes  = 5000
	maxEvents = 5000
)

// timeLimit is how long a call may take; only an import needs that long.
const timeLimit = 10 * time.Minute

// workbench is what the tools work on. It is safe for concurrent use.
type workbench struct {
	notes    *notebook
	calendar *calendar
	importer *importer
	system   *system
}

// openWorkbench opens the files, and fails if one of them cannot be used.
func openWorkbench(opts options) (*workbench, error) {
	notes, err := openData[Note]("notes", opts.notes, maxNotes)
	if err != nil {
		return nil, err
	}
	events, err := openData[Event]("events", opts.events, maxEvents)
	if err != nil {
		return nil, err
	}
	files, err := os.OpenRoot(opts.files)
	if err != nil {
		return nil, fmt.Errorf("-files %s: %w", opts.files, reason(err))
	}
	return &workbench{
		notes:    &notebook{file: notes, now: time.Now, scoped: opts.auth},
		calendar: &calendar{file: events, now: time.Now},
		importer: &importer{events: events, files: files},
		system:   &system{now: time.Now, started: time.Now()},
	}, nil
}

// openData opens the file that was given, or the one in the default directory.
// Only that is created: a path that somebody wrote may be a slip.
func openData[T record](name, given string, most int) (*file[T], error) {
	if given != "" {
		return openFile[T](name, given, most)
	}
	base, err := os.UserConfigDir()
	dir := filepath.Join(base, "talaria-workbench")
	if err == nil {
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		return nil, fmt.Errorf("there is no place for %s: %w; name one with -%s FILE", name, err, name)
	}
	return openFile[T](name, filepath.Join(dir, name+".json"), most)
}

// Close releases what openWorkbench opened.
func (w *workbench) Close() { _ = w.importer.files.Close() } // nothing was written through it

// server returns an MCP server with everything that the workbench has.
func (w *workbench) server(logger *zerolog.Logger) *mcp.Server {
	s := mcp.NewServer(mcp.Info{Name: "workbench", Title: "Workbench", Version: "1.0.0"}, &mcp.Options{
		Instructions: "Calculate, keep notes, plan events, import events from CSV files and draw bar charts. " +
			"Dates are YYYY-MM-DD, times of day HH:MM on a 24-hour clock, without a time zone.",
		Logger:   logger,
		Timeouts: mcp.Timeouts{Call: timeLimit},
	})
	w.notes.updated = s.ResourceUpdated
	s.MustAdd(calculatorTool())
	s.MustAdd(w.notes.components()...)
	s.MustAdd(w.calendar.components()...)
	s.MustAdd(w.importer.tool(), w.system.tool(), chartTool())
	return s
}
