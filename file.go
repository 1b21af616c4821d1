package mcp

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/protocol"
)

// Bytes makes a resource of fixed data, which is copied. It goes out as text if
// its MIME type says that it is text and it is UTF-8, else as bytes. Without
// MIME the type follows from the URI's extension or the data.
func Bytes(uri string, data []byte, opts ...ResourceOption) Component {
	data = append([]byte{}, data...)
	mediaType := newResourceSettings(opts).mime
	if mediaType == "" {
		mediaType = typeOf(uri, data)
	}
	contents := contentsFrom(data, mediaType)
	own := []ResourceOption{oneFile, MIME(mediaType), Size(int64(len(data)))}
	return newResource(uri, func(*Frame) (ResourceContents, error) { return contents, nil }, append(own, opts...))
}

// File makes a resource of a file, which is read for each request. It is sent
// as Bytes is. Add fails if there is no such file; one that is removed later
// is not found. Clients never receive the path. A file larger than Limits.File
// is rejected when it is read.
func File(uri, name string, opts ...ResourceOption) Component {
	return &file{uri: uri, name: name, opts: opts}
}

// file is what File returns. The options are applied when it is compiled,
// because the limit on its size is the server's.
type file struct {
	uri, name string
	opts      []ResourceOption
}

// compile implements Component.
func (f *file) compile(c *compiler) error {
	dir, base := filepath.Split(f.name)
	dir = cmp.Or(dir, ".")
	own := []ResourceOption{oneFile}
	if kind := typeOf(f.name, nil); kind != "" {
		own = append(own, MIME(kind))
	}
	mediaType := newResourceSettings(f.opts).mime
	read := func(*Frame) (ResourceContents, error) {
		return readFile(os.DirFS(dir), base, mediaType, c.server.opts.Limits.File)
	}
	r := newResource(f.uri, read, append(own, f.opts...))
	if info, err := os.Stat(f.name); err != nil {
		r.settings.fault("%v", err)
	} else if info.IsDir() {
		r.settings.fault("%s is a directory; use mcp.Directory", f.name)
	}
	return r.compile(c)
}

// Directory makes the files of a file system readable: a template uri{+path}
// for all of them, with completion of paths, and a resource at uri that lists
// the top. uri ends in a slash. Reading a directory gives a JSON array of its
// entries, each with name, uri, and size or directory. Files are sent as
// Bytes is, and read for each request.
//
// Paths that lead out of the file system are refused. Beware that os.DirFS
// follows symbolic links; the FS of an os.Root does not let them lead out:
//
//	root, err := os.OpenRoot("/srv/docs")
//	…
//	s.MustAdd(mcp.Directory("file:///docs/", root.FS()))
func Directory(uri string, fsys fs.FS, opts ...ResourceOption) Component {
	return &directory{uri: uri, fsys: fsys, opts: opts}
}

// directory is what Directory returns: it becomes a template for all paths and a
// resource for the top, which share the file system and the options.
type directory struct {
	uri  string
	fsys fs.FS
	opts []ResourceOption
}

// compile implements Component.
func (d *directory) compile(c *compiler) error {
	if !strings.HasSuffix(d.uri, "/") || strings.ContainsAny(d.uri, "{}?#") {
		return fmt.Errorf("mcp: directory %q: the URI must end in a slash and have no braces, ? or #", d.uri)
	}
	if d.fsys == nil {
		return fmt.Errorf("mcp: directory %q: the file system is nil", d.uri)
	}
	mediaType := newResourceSettings(d.opts).mime
	type where struct {
		Path string `json:"path,omitempty" jsonschema_description:"path of a file or directory"`
	}
	files := Template(d.uri+"{+path}", func(f *Frame, in where) (ResourceContents, error) {
		return d.read(in.Path, mediaType, c.server.opts.Limits.File)
	}, append(d.opts[:len(d.opts):len(d.opts)], Complete("path", func(_ *Frame, q CompletionQuery) (Completion, error) {
		return d.complete(q.Value)
	}))...)
	top := Resource(d.uri, func(*Frame) (ResourceContents, error) {
		return d.list(".")
	}, append(d.opts[:len(d.opts):len(d.opts)], MIME(listingType))...)
	return errors.Join(files.compile(c), top.compile(c))
}

// listingType is the MIME type of the listing of a directory.
const listingType = "application/json"

// read returns the contents at a path below the root: those of a file, or the
// listing of a directory, for which a slash at the end makes no difference. name
// was decoded from a URI; a path that fs does not take for valid is not found.
func (d *directory) read(name, mediaType string, limit int) (ResourceContents, error) {
	name = cmp.Or(strings.TrimSuffix(name, "/"), ".")
	if !fs.ValidPath(name) {
		return ResourceContents{}, ErrNotFound
	}
	info, err := fs.Stat(d.fsys, name)
	if err != nil {
		return ResourceContents{}, fileError(err)
	}
	if info.IsDir() {
		return d.list(name)
	}
	return readFile(d.fsys, name, mediaType, limit)
}

// entry is a file in a listing.
type entry struct {
	Name      string `json:"name"`
	URI       string `json:"uri"`
	Size      *int64 `json:"size,omitempty"`
	Directory bool   `json:"directory,omitempty"`
}

// list returns the entries of a directory as JSON, in the order of their names.
// An entry whose size is unknown has none.
func (d *directory) list(name string) (ResourceContents, error) {
	found, err := fs.ReadDir(d.fsys, name)
	if err != nil {
		return ResourceContents{}, fileError(err)
	}
	entries := make([]entry, 0, len(found))
	for _, file := range found {
		e := entry{Name: file.Name(), URI: d.uriOf(path.Join(name, file.Name())), Directory: file.IsDir()}
		if e.Directory {
			e.URI += "/"
		} else if info, err := file.Info(); err == nil {
			size := info.Size()
			e.Size = &size
		}
		entries = append(entries, e)
	}
	text, err := jsonx.Append(nil, entries)
	return ResourceContents{Text: string(text), MIMEType: listingType}, err
}

// uriOf returns the URI of a path.
func (d *directory) uriOf(name string) string {
	parts := strings.Split(name, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return d.uri + strings.Join(parts, "/")
}

// complete finds the entries that begin with what was typed.
func (d *directory) complete(typed string) (Completion, error) {
	dir, base := path.Split(typed)
	name := cmp.Or(strings.TrimSuffix(dir, "/"), ".")
	if !fs.ValidPath(name) {
		return Completion{}, nil
	}
	found, err := fs.ReadDir(d.fsys, name)
	if err != nil {
		return Completion{}, nil // nothing there begins with it
	}
	var names []string
	for _, file := range found {
		entry := file.Name()
		if file.IsDir() {
			entry += "/"
		}
		names = append(names, entry)
	}
	c := Suggest(base, names...)
	for i := range c.Values {
		c.Values[i] = dir + c.Values[i]
	}
	return c, nil
}

// readFile reads a file of at most limit bytes. Without a MIME type it detects
// one.
func readFile(fsys fs.FS, name, mediaType string, limit int) (ResourceContents, error) {
	// Opening a named pipe would wait for its writer.
	if info, err := fs.Stat(fsys, name); err != nil {
		return ResourceContents{}, fileError(err)
	} else if !info.Mode().IsRegular() {
		return ResourceContents{}, fileError(errors.New("it is not a regular file"))
	}
	file, err := fsys.Open(name)
	if err != nil {
		return ResourceContents{}, fileError(err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, int64(limit)+1))
	if err != nil {
		return ResourceContents{}, fileError(err)
	}
	if len(data) > limit {
		return ResourceContents{}, protocol.Errorf(protocol.CodeInternal, "the file is larger than the limit of %d bytes", limit)
	}
	if mediaType == "" {
		mediaType = typeOf(name, data)
	}
	return contentsFrom(data, mediaType), nil
}

// fileError keeps paths from the client; the log has them.
func fileError(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrNotFound, err)
	}
	return &protocol.Error{Code: protocol.CodeInternal, Message: "the file cannot be read", Err: err}
}

// contentsFrom returns data as text if its type says that it is text and it is
// UTF-8, else as bytes, in either case with that type.
func contentsFrom(data []byte, mediaType string) ResourceContents {
	if textual(mediaType) && utf8.Valid(data) {
		return ResourceContents{Text: string(data), MIMEType: mediaType}
	}
	return ResourceContents{Blob: binary(data), MIMEType: mediaType}
}

// typeOf finds a MIME type by a name's extension, else by what data there is;
// "" if neither tells.
func typeOf(name string, data []byte) string {
	if mediaType, _, err := mime.ParseMediaType(mime.TypeByExtension(path.Ext(name))); err == nil {
		return mediaType
	}
	switch {
	case data == nil:
		return ""
	case utf8.Valid(data) && !strings.ContainsRune(string(data), 0):
		return "text/plain"
	}
	return "application/octet-stream"
}

// textual reports whether a MIME type is one of text.
func textual(mediaType string) bool {
	mediaType, _, err := mime.ParseMediaType(mediaType)
	if err != nil {
		return false
	}
	_, subtype, _ := strings.Cut(mediaType, "/")
	switch subtype {
	case "json", "xml", "javascript", "ecmascript", "yaml", "x-yaml", "toml", "sql", "graphql", "x-sh", "x-ndjson", "jsonl":
		return true
	}
	return strings.HasPrefix(mediaType, "text/") || strings.HasSuffix(subtype, "+json") ||
		strings.HasSuffix(subtype, "+xml") || strings.HasSuffix(subtype, "+yaml")
}

// oneFile makes a URI with braces a fault that File and Bytes can explain.
var oneFile = resources(func(set *resourceSettings) { set.oneFile = true })
