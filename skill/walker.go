package skill

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/talaria-go/mcp/internal/option"
	"github.com/talaria-go/mcp/internal/tooling/skillhead"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/registry"
)

// manifest is the file that makes a folder a skill.
const manifest = "SKILL.md"

// folder is a skill on the way. Its files are those of the skills within it, too.
type folder struct {
	dir   string // in the file system; "." is its root
	head  *skillhead.Head
	files []*file
	bytes int64
	over  bool // it has more than a skill may have; the fault is noted
}

// file is a file of one or several skills, which are one within the other. Its
// bytes are held once, in contents.
type file struct {
	name     string // path in the file system
	digest   string
	size     int64
	contents protocol.ResourceContents
}

// walker reads the skills of a file system for one Add. It goes through the folders
// in the order of their names, and notes faults as it goes, so that an author sees
// all at once.
type walker struct {
	fsys     fs.FS
	settings option.Settings
	skills   []*folder // outer ones before inner ones
	leftOut  []string
	faults   []error
}

// fault notes what is wrong with what is at name.
func (w *walker) fault(name, format string, args ...any) {
	w.faults = append(w.faults, fmt.Errorf("%q: %w", name, fmt.Errorf(format, args...)))
}

// entries returns what a server offers of the skills, or every fault.
func (w *walker) entries() ([]*registry.Entry, error) {
	if w.fsys == nil {
		return nil, errors.New("the file system is nil")
	}
	w.walk(".", nil)
	if len(w.skills) == 0 && w.faults == nil {
		return nil, errors.New("no folder has a SKILL.md")
	}
	if w.faults != nil {
		return nil, errors.Join(w.faults...)
	}
	if len(w.leftOut) > 0 {
		w.settings.Warn("names of skills that begin with a dot are left out", w.leftOut)
	}
	return w.registered(), nil
}

// walk reads what is in dir, which is within the skills around, the outermost of
// which comes first.
func (w *walker) walk(dir string, around []*folder) {
	found, err := fs.ReadDir(w.fsys, dir)
	if err != nil {
		w.fault(dir, "%w", err)
		return
	}
	seen := map[string]string{}
	for _, e := range found {
		if e.Name() == manifest {
			own := &folder{dir: dir}
			w.skills = append(w.skills, own)
			around = append(around[:len(around):len(around)], own)
		}
	}
	for _, e := range found {
		name := path.Join(dir, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "."):
			if len(around) > 0 {
				w.leftOut = append(w.leftOut, name)
			}
			continue
		case !e.IsDir() && !e.Type().IsRegular():
			w.fault(name, "it is not a regular file (%v); put a copy in its place, or take it away", e.Type())
			continue
		}
		if len(around) > 0 {
			w.checkName(name, e.Name(), seen)
		}
		switch {
		case strings.EqualFold(e.Name(), manifest) && (e.Name() != manifest || e.IsDir()):
			w.fault(name, "the file of a skill is named SKILL.md, in these letters")
		case e.IsDir():
			w.walk(name, around)
		case len(around) > 0:
			w.read(name, around)
		}
	}
}

// checkName notes what is wrong with the name of something in a skill. seen has the
// names next to it, as systems see them that tell fewer names apart: a client that
// keeps the files on such a disk would have one in place of two, and which one is
// chance.
func (w *walker) checkName(name, base string, seen map[string]string) {
	if !utf8.ValidString(base) || strings.ContainsFunc(base, unicode.IsControl) || strings.ContainsAny(base, `\%`) {
		w.fault(name, "a name is UTF-8 without control characters, backslash and percent sign")
	}
	folded := strings.ToLower(strings.ToUpper(norm.NFC.String(base)))
	if other, there := seen[folded]; there {
		w.fault(name, "some systems cannot tell it from %q; choose another name", other)
	}
	seen[folded] = base
}

// read reads a file, for the skills around it. What exceeds a skill is not read.
func (w *walker) read(name string, around []*folder) {
	outer := around[0]
	if outer.over {
		return
	}
	data, err := w.bytes(name, wire.MaxSkillBytes-outer.bytes)
	switch {
	case err != nil:
		w.fault(name, "%w", err)
		return
	case len(outer.files) == wire.MaxSkillFiles || int64(len(data)) > wire.MaxSkillBytes-outer.bytes:
		outer.over = true
		w.fault(outer.dir, "the skill has more than %d files or %d MiB, which is all that clients have to take", wire.MaxSkillFiles, wire.MaxSkillBytes>>20)
		return
	case len(data) > w.settings.MaxFile:
		w.fault(name, "it has %d bytes, more than Limits.File, which is %d", len(data), w.settings.MaxFile)
		return
	}
	// The type of a file depends on the system, and clients check the type of a
	// SKILL.md.
	mediaType := ""
	if path.Ext(name) == ".md" {
		mediaType = "text/markdown" // to the tables of all systems
	}
	sum := sha256.Sum256(data)
	f := &file{name: name, size: int64(len(data)), digest: "sha256:" + hex.EncodeToString(sum[:]), contents: w.settings.Contents(name, mediaType, data)}
	if err := w.settings.Fits(f.contents); err != nil {
		w.fault(name, "%v", err)
	}
	for _, skill := range around {
		skill.files = append(skill.files, f)
		skill.bytes += f.size
	}
	if own := around[len(around)-1]; path.Join(own.dir, manifest) == name {
		w.manifest(own, name, data)
	}
}

// bytes reads a file, of which a byte more than most is enough. A regular file in
// the listing of its folder may have been replaced since, so the open file is
// examined again.
func (w *walker) bytes(name string, most int64) ([]byte, error) {
	opened, err := w.fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer opened.Close()
	info, err := opened.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // any more
		return nil, errors.New("it is not a regular file")
	}
	var data bytes.Buffer
	data.Grow(int(min(info.Size(), most)) + bytes.MinRead)
	_, err = data.ReadFrom(io.LimitReader(opened, most+1))
	return data.Bytes(), err
}

// manifest reads the head of a skill, and checks that its folder has its name, by
// which clients tell from a URI what skill it is. The folders above, of which the
// first stands where a URI has its host, have names that need no escape.
func (w *walker) manifest(skill *folder, name string, data []byte) {
	if !utf8.Valid(data) {
		w.fault(name, "it is not UTF-8")
		return
	}
	head, err := skillhead.Read(data, false)
	if err != nil {
		w.fault(name, "%w", err)
		return
	}
	skill.head = head
	if skill.dir == "." {
		return
	}
	if base := path.Base(skill.dir); base != head.Name {
		w.fault(name, "the name is %q and the folder %q; they must be the same", head.Name, base)
	}
	for _, above := range strings.Split(path.Dir(skill.dir), "/") {
		if strings.Trim(above, "abcdefghijklmnopqrstuvwxyz0123456789._-") != "" {
			w.fault(skill.dir, "the folder %q above a skill must have the characters a-z, 0-9, dot, hyphen and underscore alone", above)
		}
	}
}
