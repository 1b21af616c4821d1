package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
)

// timeLimit is how long a call may take; only an import needs that long.
const timeLimit = 10 * time.Minute

// workbench is what the tools work on. It is safe for concurrent use.
type workbench struct {
	notes    *notebook
	calendar *calendar
	importer *importer
}

// openWorkbench opens the files, and fails if one of them cannot be used.
func openWorkbench(o options) (*workbench, error) {
	notes, err := openFile[Note](o.notes)
	if err != nil {
		return nil, fmt.Errorf("-notes %w", err)
	}
	events, err := openFile[Event](o.events)
	if err != nil {
		return nil, fmt.Errorf("-events %w", err)
	}
	files, err := os.OpenRoot(o.files)
	if err != nil {
		return nil, fmt.Errorf("-files %s: %w", o.files, reason(err))
	}
	return &workbench{
		notes:    &notebook{file: notes, now: time.Now, scoped: o.auth},
		calendar: &calendar{file: events, now: time.Now},
		importer: &importer{events: events, files: files},
	}, nil
}

// defaultFile is where data is kept, unless a flag says otherwise.
func defaultFile(name string) string {
	dir, err := os.UserConfigDir()
	if err != nil {
		dir = "." // there is no home directory
	}
	return filepath.Join(dir, "talaria-workbench", name)
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
		HTTP:     mcp.HTTPOptions{SSE: true}, // for clients of 2024, too
	})
	w.notes.updated = s.ResourceUpdated
	s.MustAdd(calculatorTool(), w.importer.tool(), systemTool())
	s.MustAdd(chartTools()...)
	s.MustAdd(w.notes.components()...)
	s.MustAdd(w.calendar.components()...)
	return s
}
