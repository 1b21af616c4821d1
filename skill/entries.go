package skill

import (
	"bytes"
	"encoding/json"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/registry"
)

// registered returns the entries of all skills: for each the one that lists it and
// its SKILL.md, and every other file once, read as a resource and listed nowhere. A
// file of a skill within another is in the lists of both, and in memory once.
//
// All entries of a skill, and of those within it, name the outermost SKILL.md as
// their root: a client that sees it sees all of them, and other clients see none.
// If an inner skill could be hidden separately, the list of the outer one, which
// has to be complete, would still name its files.
func (w *walker) registered() []*registry.Entry {
	var all []*registry.Entry
	manifests := map[string]*folder{}
	for _, skill := range w.skills {
		manifests[path.Join(skill.dir, manifest)] = skill
	}
	root, outer := "", &folder{}
	for _, skill := range w.skills {
		uri := w.uri(path.Join(skill.dir, manifest))
		outermost := root == "" || !below(outer.dir, skill.dir)
		if outermost {
			root, outer = uri, skill
		}
		all = append(all, w.listed(skill, uri, root, outermost))
		if !outermost {
			continue
		}
		for _, f := range skill.files {
			e := w.entry(&protocol.Resource{URI: w.uri(f.name), Name: path.Base(f.name), MIMEType: f.contents.MIMEType, Size: &f.size}, root)
			if inner := manifests[f.name]; inner != nil {
				d := e.Definition.(*protocol.Resource)
				d.Name, d.Description, d.Meta = inner.head.Name, inner.head.Description, w.settings.Meta
			} else {
				e.Unlisted = true
			}
			e.Serve = w.reader(f)
			all = append(all, e)
		}
	}
	return all
}

// below reports whether a folder is within another.
func below(outer, dir string) bool { return outer == "." || strings.HasPrefix(dir, outer+"/") }

// entry returns an entry that the rules for the skill at root hold for.
func (w *walker) entry(definition any, root string) *registry.Entry {
	return &registry.Entry{Definition: definition, Root: root, Visible: w.settings.Visible, Scopes: w.settings.Scopes}
}

// uri returns the URI of a path in the file system.
func (w *walker) uri(name string) string {
	if first := w.skills[0]; first.dir == "." {
		name = path.Join(first.head.Name, name)
	}
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = url.PathEscape(part)
	}
	return "skill://" + strings.Join(parts, "/")
}

// listed returns the entry that lists a skill with its files.
func (w *walker) listed(skill *folder, uri, root string, outermost bool) *registry.Entry {
	d := &wire.Skill{URI: uri, Frontmatter: encoded(skill.head.Fields)}
	for _, f := range skill.files {
		d.Resources = append(d.Resources, wire.SkillFile{URI: w.uri(f.name), Digest: f.digest, Size: f.size})
	}
	e := w.entry(d, root)
	if outermost {
		directories := w.directories(skill)
		e.Directory = func(uri string) ([]protocol.Resource, bool) {
			children, ok := directories[uri]
			return children, ok
		}
	}
	return e
}

// encoded returns the fields of a head as JSON.
func encoded(fields map[string]any) json.RawMessage {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(fields); err != nil {
		panic("skill: a head does not encode: " + err.Error()) // it is text, numbers and lists of them
	}
	return bytes.TrimRight(text.Bytes(), "\n")
}

// directoryType is the MIME type of directories.
const directoryType = "inode/directory"

// directories returns what is in each directory of a skill, by its URI: files, and
// the directories that have some. It is made once, since no file changes.
func (w *walker) directories(skill *folder) map[string][]protocol.Resource {
	all := map[string][]protocol.Resource{}
	uriOf := func(dir string) string { return strings.TrimSuffix(w.uri(path.Join(dir, manifest)), "/"+manifest) }
	for _, f := range skill.files {
		child := protocol.Resource{URI: w.uri(f.name), Name: path.Base(f.name), MIMEType: f.contents.MIMEType, Size: &f.size}
		for dir := path.Dir(f.name); ; dir = path.Dir(dir) {
			uri := uriOf(dir)
			known := all[uri] != nil
			all[uri] = append(all[uri], child)
			if known || dir == skill.dir {
				break
			}
			child = protocol.Resource{URI: uri, Name: path.Base(dir), MIMEType: directoryType}
		}
	}
	for _, children := range all {
		slices.SortFunc(children, func(a, b protocol.Resource) int { return strings.Compare(a.URI, b.URI) })
	}
	return all
}

// reader returns what serves the reading of a file. A cache between may have it
// only if the server's lists are for all clients, and the skill too.
func (w *walker) reader(f *file) frame.Handler {
	contents, cache := f.contents, w.settings.Cache
	contents.URI = w.uri(f.name)
	if len(w.settings.Scopes) > 0 {
		cache.Public = false
	}
	return func(*frame.Frame) (protocol.Result, error) {
		return &protocol.ReadResourceResult{Contents: []protocol.ResourceContents{contents}, Cache: cache}, nil
	}
}
