package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"github.com/gofrs/flock"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/schema"
)

// maxRecords is how many records a file may have; the tag of document says so.
const maxRecords = 5000

// lockWait is how long a call waits for other users of its file. There is no
// queue.
const lockWait = 30 * time.Second

// record is what a file keeps many of.
type record interface{ number() int }

// document is the content of a file, which a person may have edited: its tags
// are checked whenever it is read or written, as those of arguments are.
type document[T record] struct {
	LastID  int `json:"lastId" validate:"min=0"` // numbers are never given twice
	Records []T `json:"records,omitempty" validate:"max=5000,unique=ID" mcp:"msg.max=there is no room for more than 5000 records; delete some first"`
}

// file keeps a document on disk. It is safe for concurrent use, by other
// processes too, since clients start as many servers as they like: each use
// locks the file, and a change replaces it as a whole.
type file[T record] struct {
	path string
	plan *schema.Plan
}

// openFile finds out whether the file at path can be used. One that does not
// exist is empty.
func openFile[T record](path string) (*file[T], error) {
	plan, err := schema.Compile(reflect.TypeFor[document[T]](), nil)
	if err != nil {
		return nil, err
	}
	f := &file[T]{path, plan}
	if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
		_, err = f.Read(context.Background())
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// Read returns the document, which is the caller's.
func (f *file[T]) Read(ctx context.Context) (doc document[T], err error) {
	err = f.use(ctx, false, func(d *document[T]) error {
		doc = *d
		return nil
	})
	return doc, err
}

// Update saves what change makes of the document, unless change fails.
func (f *file[T]) Update(ctx context.Context, change func(doc *document[T]) error) error {
	return f.use(ctx, true, change)
}

// use calls fn with the document while nothing else has it, and may save it
// then.
func (f *file[T]) use(ctx context.Context, save bool, fn func(doc *document[T]) error) error {
	wait, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	lock := flock.New(f.path + ".lock")
	if _, err := lock.TryLockContext(wait, 5*time.Millisecond); err != nil {
		return f.fault("locked", err)
	}
	defer func() { _ = lock.Unlock() }() // fails only for a file that was closed
	var doc document[T]
	data, err := os.ReadFile(f.path)
	if err == nil {
		err = f.plan.Decode(ctx, data, &doc)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return f.fault("read", err)
	}
	if err := fn(&doc); err != nil || !save {
		return err
	}
	if data, err = json.MarshalIndent(doc, "", "\t"); err == nil {
		err = f.plan.Check(data)
	}
	if err == nil { // under a temporary name first, so that a reader never finds half of it
		err = os.WriteFile(f.path+".new", data, 0o600)
	}
	if err == nil {
		err = os.Rename(f.path+".new", f.path)
	}
	if err != nil {
		return f.fault("saved", err)
	}
	return nil
}

// fault names the file, without its directory, which is not a business of
// clients.
func (f *file[T]) fault(what string, err error) error {
	return fmt.Errorf("%s cannot be %s: %w", filepath.Base(f.path), what, reason(err))
}

// reason returns an error of the file system without its operation and path.
func reason(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// add appends a record that make builds from its number.
func (d *document[T]) add(make func(id int) T) T {
	d.LastID++
	d.Records = append(d.Records, make(d.LastID))
	return d.Records[len(d.Records)-1]
}

// find returns the index of a record. Its error is one that resources may
// return, too.
func (d *document[T]) find(id int) (int, error) {
	i := slices.IndexFunc(d.Records, func(r T) bool { return r.number() == id })
	if i < 0 {
		return i, fmt.Errorf("there is no number %d: %w", id, mcp.ErrNotFound)
	}
	return i, nil
}

// remove takes out a record and returns it.
func (d *document[T]) remove(id int) (r T, err error) {
	i, err := d.find(id)
	if err == nil {
		r = d.Records[i]
		d.Records = slices.Delete(d.Records, i, i+1)
	}
	return r, err
}
