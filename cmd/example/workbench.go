package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// The most that the workbench keeps.
const (
	maxNotes  = 5000
	maxEvents = 5000
)

// workbench is what the tools work on. It is safe for concurrent use.
type workbench struct {
	notes   *file[Note]
	events  *file[Event]
	files   *os.Root         // where imports read
	now     func() time.Time // the clock
	updated func(uri string) // tells subscribers that a resource has changed
	started time.Time
	// protected makes components need scopes.
	protected bool
}

// openWorkbench opens the files, and fails if one of them cannot be used.
func openWorkbench(opts options) (*workbench, error) {
	notes, err := dataPath("notes", opts.notes)
	if err != nil {
		return nil, err
	}
	events, err := dataPath("events", opts.events)
	if err != nil {
		return nil, err
	}
	w := &workbench{protected: opts.auth, now: time.Now, updated: func(string) {}, started: time.Now()}
	if w.notes, err = openFile[Note]("notes", notes, maxNotes); err != nil {
		return nil, err
	}
	if w.events, err = openFile[Event]("events", events, maxEvents); err != nil {
		return nil, err
	}
	if w.files, err = os.OpenRoot(opts.files); err != nil {
		return nil, fmt.Errorf("-files %s: %w", opts.files, reason(err))
	}
	return w, nil
}

// Close releases what openWorkbench opened.
func (w *workbench) Close() { _ = w.files.Close() } // nothing was written through it

// dataPath returns where a file is kept. Only the default directory is
// created: a path that somebody wrote may be a slip.
func dataPath(name, given string) (string, error) {
	if given != "" {
		return given, nil
	}
	base, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("there is no place for %s: %w; name one with -%s FILE", name, err, name)
	}
	dir := filepath.Join(base, "talaria-workbench")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("there is no place for %s: %w; name one with -%s FILE", name, err, name)
	}
	return filepath.Join(dir, name+".json"), nil
}

// reason returns an error of the file system without its operation and path,
// which the caller names better.
func reason(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
