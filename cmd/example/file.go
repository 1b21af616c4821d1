package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// maxFileSize bounds a file, in bytes.
const maxFileSize = 16 << 20

// formatVersion is written into every file, so that a later form can be told
// from this one.
const formatVersion = 1

// record is what a file keeps many of.
type record interface {
	number() int
}

// file keeps records in one JSON document on disk. It is safe for concurrent
// use, by other processes too: every change takes a lock, reads what is there,
// and replaces the file as a whole, so that a crash leaves the old or the new
// one. A file that does not exist is empty.
type file[T record] struct {
	what string // "notes", for messages
	path string
	max  int // records

	turn chan struct{} // holds one token while somebody uses what follows
	seen os.FileInfo   // the file that doc was read from; nil if there was none
	doc  document[T]
}

// document is the content of a file.
type document[T record] struct {
	Version int `json:"version"`
	LastID  int `json:"lastId"` // numbers are never given twice
	Records []T `json:"records"`
}

// openFile reads the file at path, if there is one.
func openFile[T record](what, path string, maxRecords int) (*file[T], error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("%s file: %w", what, err)
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // a link is followed, not replaced
	}
	f := &file[T]{what: what, path: path, max: maxRecords, turn: make(chan struct{}, 1)}
	if err := f.first(); err != nil {
		return nil, fmt.Errorf("in %s: %w", filepath.Dir(path), err)
	}
	return f, nil
}

// first looks at the file and its directory when the program starts.
func (f *file[T]) first() error {
	if dir, err := os.Stat(filepath.Dir(f.path)); err != nil {
		return f.fault(fmt.Errorf("its directory: %w", reason(err)))
	} else if !dir.IsDir() {
		return f.fault(errors.New("its directory is a file"))
	}
	return f.refresh()
}

// fault names the file without its directory, which is no business of clients.
func (f *file[T]) fault(err error) error {
	return fmt.Errorf("%s file %s: %w", f.what, filepath.Base(f.path), err)
}

// View calls fn with the records, which fn must not change or keep.
func (f *file[T]) View(ctx context.Context, fn func(records []T) error) error {
	if err := f.begin(ctx); err != nil {
		return err
	}
	defer f.end()
	if err := f.refresh(); err != nil {
		return err
	}
	return fn(f.doc.Records)
}

// Update calls fn with a copy of the document and saves what fn makes of it,
// unless fn fails. fn may replace records but not change them in place.
func (f *file[T]) Update(ctx context.Context, fn func(doc *document[T]) error) error {
	if err := f.begin(ctx); err != nil {
		return err
	}
	defer f.end()
	unlock, err := lockDirectory(ctx, filepath.Dir(f.path))
	if err != nil {
		return f.fault(err)
	}
	defer unlock()
	if err := f.refresh(); err != nil {
		return err
	}
	doc := f.doc
	doc.Records = slices.Clone(doc.Records)
	if err := fn(&doc); err != nil {
		return err
	}
	if len(doc.Records) > f.max {
		return fmt.Errorf("there is no room for more than %d %s; delete some first", f.max, f.what)
	}
	return f.save(doc)
}

// add appends a record that make builds from its number.
func (d *document[T]) add(make func(id int) T) T {
	d.LastID++
	r := make(d.LastID)
	d.Records = append(d.Records, r)
	return r
}

// remove takes a record out.
func (d *document[T]) remove(id int) (r T, ok bool) {
	i := slices.IndexFunc(d.Records, func(r T) bool { return r.number() == id })
	if i < 0 {
		return r, false
	}
	r = d.Records[i]
	d.Records = slices.Delete(d.Records, i, i+1)
	return r, true
}

func (f *file[T]) begin(ctx context.Context) error {
	select {
	case f.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (f *file[T]) end() { <-f.turn }

// refresh reads the file if it is another one than last time.
func (f *file[T]) refresh() error {
	info, err := os.Stat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.seen, f.doc = nil, document[T]{Version: formatVersion}
		return nil
	case err != nil:
		return f.fault(reason(err))
	case !info.Mode().IsRegular():
		return f.fault(errors.New("it is not a regular file"))
	case info.Size() > maxFileSize:
		return f.fault(fmt.Errorf("it is larger than %d MiB", maxFileSize>>20))
	case f.seen != nil && os.SameFile(f.seen, info) && f.seen.ModTime().Equal(info.ModTime()) && f.seen.Size() == info.Size():
		return nil
	}
	data, err := os.ReadFile(f.path)
	if err != nil {
		return f.fault(reason(err))
	}
	doc, err := decode[T](data)
	if err != nil {
		return f.fault(fmt.Errorf("it is damaged: %w; mend it, move it away or name another", err))
	}
	f.seen, f.doc = info, doc
	return nil
}

// decode reads a document and checks what a person's edit may have broken.
func decode[T record](data []byte) (document[T], error) {
	var doc document[T]
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&doc); err != nil {
		return doc, fmt.Errorf("%s: %w", position(data, dec.InputOffset(), err), err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return doc, errors.New("something follows the document")
	}
	if doc.Version != formatVersion {
		return doc, fmt.Errorf("its version is %d, not %d", doc.Version, formatVersion)
	}
	seen := make(map[int]bool, len(doc.Records))
	for _, r := range doc.Records {
		id := r.number()
		if id < 1 || seen[id] {
			return doc, fmt.Errorf("id %d is there twice or not positive", id)
		}
		seen[id] = true
		doc.LastID = max(doc.LastID, id)
	}
	return doc, nil
}

// position names the place of a decoding error.
func position(data []byte, offset int64, err error) string {
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		offset = e.Offset
	}
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		offset = e.Offset
	}
	return fmt.Sprintf("line %d", 1+bytes.Count(data[:min(int(offset), len(data))], []byte("\n")))
}

// save replaces the file by doc.
func (f *file[T]) save(doc document[T]) error {
	data, err := json.MarshalIndent(doc, "", "\t")
	if err != nil {
		return err
	}
	if len(data) > maxFileSize {
		return fmt.Errorf("there is no room for more %s: the file would be larger than %d MiB; delete some first", f.what, maxFileSize>>20)
	}
	if err := replace(f.path, append(data, '\n')); err != nil {
		return f.fault(reason(err))
	}
	f.doc = doc
	f.seen = nil // unless it can be told which file this is, it is read again
	if info, err := os.Stat(f.path); err == nil {
		f.seen = info
	}
	return nil
}

// replace writes a file under another name and renames it, so that nobody ever
// sees half of it.
func replace(path string, data []byte) (err error) {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(temp.Name()))
		}
	}()
	_, err = temp.Write(data)
	if err == nil {
		err = temp.Sync()
	}
	if err = errors.Join(err, temp.Close()); err != nil {
		return err
	}
	return os.Rename(temp.Name(), path)
}
