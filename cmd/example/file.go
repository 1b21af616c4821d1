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

const (
	maxFileSize   = 16 << 20 // bytes
	formatVersion = 1        // is in every file, so that a later form can be told from this one
)

// record is what a file keeps many of.
type record interface{ number() int }

// file keeps records in one JSON document on disk. It is safe for concurrent
// use, by other processes too: every change takes a lock, reads what is there,
// and replaces the file as a whole, so that a crash leaves the old or the new
// one. A file that does not exist is empty.
type file[T record] struct {
	what string // "notes", for messages
	path string
	max  int           // records
	turn chan struct{} // holds one token while this process uses the file
}

// document is the content of a file.
type document[T record] struct {
	Version int `json:"version"`
	LastID  int `json:"lastId"` // numbers are never given twice
	Records []T `json:"records"`
}

// openFile looks whether the file at path, if there is one, can be used.
func openFile[T record](what, path string, maxRecords int) (*file[T], error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("%s file: %w", what, err)
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // a link is followed, not replaced
	}
	f := &file[T]{what: what, path: path, max: maxRecords, turn: make(chan struct{}, 1)}
	dir, err := os.Stat(filepath.Dir(path))
	switch {
	case err != nil:
		err = f.fault(fmt.Errorf("its directory: %w", reason(err)))
	case !dir.IsDir():
		err = f.fault(errors.New("its directory is a file"))
	default:
		_, err = f.load()
	}
	if err != nil {
		return nil, fmt.Errorf("in %s: %w", filepath.Dir(path), err)
	}
	return f, nil
}

// fault names the file without its directory, which is no business of clients.
func (f *file[T]) fault(err error) error {
	return fmt.Errorf("%s file %s: %w", f.what, filepath.Base(f.path), err)
}

// Read returns the records, which are the caller's.
func (f *file[T]) Read(ctx context.Context) ([]T, error) {
	if err := f.begin(ctx); err != nil {
		return nil, err
	}
	defer f.end()
	doc, err := f.load()
	return doc.Records, err
}

// Update calls fn with the document and saves what fn makes of it, unless fn
// fails.
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
	doc, err := f.load()
	if err != nil {
		return err
	}
	if err := fn(&doc); err != nil {
		return err
	}
	if len(doc.Records) > f.max {
		return fmt.Errorf("there is no room for more than %d %s; delete some first", f.max, f.what)
	}
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
	return nil
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

// load reads the file.
func (f *file[T]) load() (document[T], error) {
	doc := document[T]{Version: formatVersion}
	info, err := os.Stat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return doc, nil
	case err != nil:
		return doc, f.fault(reason(err))
	case !info.Mode().IsRegular():
		return doc, f.fault(errors.New("it is not a regular file"))
	case info.Size() > maxFileSize:
		return doc, f.fault(fmt.Errorf("it is larger than %d MiB", maxFileSize>>20))
	}
	data, err := os.ReadFile(f.path)
	if err != nil {
		return doc, f.fault(reason(err))
	}
	if doc, err = decode[T](data); err != nil {
		return doc, f.fault(fmt.Errorf("it is damaged: %w; mend it, move it away or name another", err))
	}
	return doc, nil
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
	} else if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		offset = e.Offset
	}
	return fmt.Sprintf("line %d", 1+bytes.Count(data[:min(int(offset), len(data))], []byte("\n")))
}

// replace writes a file under another name and renames it, so that nobody ever
// sees half of it.
func replace(path string, data []byte) error {
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = temp.Write(data)
	if err == nil {
		err = temp.Sync()
	}
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(temp.Name()))
	}
	return err
}

// reason returns an error of the file system without its operation and path,
// which the caller names better.
func reason(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}
