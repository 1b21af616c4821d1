package skills

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/tooling/skillhead"
	"github.com/talaria-go/mcp/internal/wire"
)

// manifest is the file that makes a folder a skill.
const manifest = "SKILL.md"

// maxFile is how many bytes of JSON one file in the list of a skill may have.
const maxFile = 2*wire.MaxURI + 4<<10

// maxDigits is how many digits the size of a file may have.
const maxDigits = 19

// entry is what a server has announced of a skill, checked.
type entry struct {
	uri   string
	head  *skillhead.Head
	files []File // nil if it announces none
}

// decodeEntry reads an entry of skills/list or skills/get. It takes what the
// extension says and nothing that two programs could read differently; the client
// has refused messages in which an object has a member twice.
func decodeEntry(text json.RawMessage) (*entry, error) {
	e := &entry{}
	members := map[string]json.RawMessage{} // by their exact names
	err := each(text, '{', func(name string, value json.RawMessage) error {
		if name == "uri" || name == "frontmatter" || name == "resources" {
			members[name] = value
		}
		return nil
	})
	if err != nil || jsonx.Unmarshal(members["uri"], &e.uri) != nil || e.uri == "" {
		return nil, invalid("an entry has no uri")
	}
	if err := e.read(members); err != nil {
		return nil, invalid("entry %s: %w", shown(e.uri), err)
	}
	return e, nil
}

// read reads what belongs to the uri of an entry.
func (e *entry) read(members map[string]json.RawMessage) error {
	var err error
	if e.head, err = skillhead.Decode(members["frontmatter"]); err != nil {
		return fmt.Errorf("frontmatter: %w", err)
	}
	root, err := e.root()
	if err != nil {
		return err
	}
	if string(members["resources"]) == `"dynamic"` {
		return nil
	}
	return e.readFiles(root, members["resources"])
}

// each calls fn with every item of a list, or with every member of an object, as
// open says, one after the other: what a server sends is counted and measured before
// anything is made of all of it. It returns the first error of fn.
func each(text json.RawMessage, open json.Delim, fn func(name string, value json.RawMessage) error) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	if first, err := dec.Token(); err != nil || first != open {
		return errNoList
	}
	for dec.More() {
		name := ""
		if open == '{' {
			key, err := dec.Token()
			if err != nil {
				return err
			}
			name, _ = key.(string)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return err
		}
		if err := fn(name, value); err != nil {
			return err
		}
	}
	_, err := dec.Token()
	return err
}

// errNoList is the error of what is neither the list nor the object that it should
// be.
var errNoList = errors.New("there is no such list")

// root returns the URI that those of all files begin with. The scheme is the
// server's choice; of the path only the last folder means something. Nothing is ever
// looked up by what stands where a URI has its host.
func (e *entry) root() (string, error) {
	root, ok := strings.CutSuffix(e.uri, manifest)
	scheme, path, absolute := strings.Cut(root, "://")
	switch {
	case len(e.uri) > wire.MaxURI, strings.ContainsFunc(e.uri, unicode.IsControl):
		return "", errors.New("uri is too long, or has control characters")
	case !ok, !absolute, scheme == "", strings.ContainsAny(root, "?#\\"):
		return "", errors.New("uri must be that of a SKILL.md, without query and fragment")
	case path != e.head.Name+"/" && !strings.HasSuffix(path, "/"+e.head.Name+"/"):
		return "", fmt.Errorf("the folder in uri must have the name of the skill, which is %q", e.head.Name)
	}
	if _, err := url.Parse(e.uri); err != nil {
		return "", errors.New("uri does not parse")
	}
	for segment := range strings.SplitSeq(strings.TrimSuffix(path, "/"), "/") {
		if plain, err := url.PathUnescape(segment); err != nil || plain == "" || plain == "." || plain == ".." || strings.ContainsAny(plain, "/\\") || strings.ContainsFunc(plain, unicode.IsControl) {
			return "", errors.New("uri has a segment that leads elsewhere")
		}
	}
	return root, nil
}

// readFiles reads the list of files, which has each once, and the SKILL.md among
// them.
func (e *entry) readFiles(root string, list json.RawMessage) error {
	e.files = []File{}
	names, total := map[string]bool{}, int64(0)
	err := each(list, '[', func(_ string, text json.RawMessage) error {
		i := len(e.files)
		if i == wire.MaxSkillFiles {
			return fmt.Errorf("the skill has more than %d files, the most that the extension allows", wire.MaxSkillFiles)
		}
		f, err := readFile(root, text)
		switch {
		case err != nil:
			return fmt.Errorf("resources[%d]: %w", i, err)
		case names[f.Name]:
			return fmt.Errorf("resources[%d]: %s is there twice", i, shown(f.Name))
		case f.Name == manifest && f.URI != e.uri:
			return fmt.Errorf("resources[%d]: the SKILL.md has another uri than the skill", i)
		case f.Size > wire.MaxSkillBytes-total:
			return fmt.Errorf("the skill has more than %d MiB, the most that the extension allows", wire.MaxSkillBytes>>20)
		}
		names[f.Name] = true
		total += f.Size
		e.files = append(e.files, f)
		return nil
	})
	switch {
	case errors.Is(err, errNoList):
		return errors.New(`resources must be a list of objects, or "dynamic"`)
	case err != nil:
		return err
	case !names[manifest]:
		return errors.New("resources lack the SKILL.md itself")
	}
	return nil
}

// readFile reads one file of the list. Its name below the skill is what its URI
// says, segment by segment: one that would lead out of a folder, or has a slash
// that is not a separator, is refused.
func readFile(root string, text json.RawMessage) (f File, err error) {
	var members map[string]any
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if len(text) > maxFile || dec.Decode(&members) != nil || members == nil {
		return f, fmt.Errorf("it must be an object of at most %d bytes", maxFile)
	}
	uri, _ := members["uri"].(string)
	digest, _ := members["digest"].(string)
	path, ok := strings.CutPrefix(uri, root)
	if !ok || len(uri) > wire.MaxURI || strings.ContainsAny(path, "?#") {
		return f, fmt.Errorf("uri %s is not below the skill", shown(uri))
	}
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		plain, err := url.PathUnescape(segment)
		if err != nil || strings.ContainsAny(plain, `/\`) || strings.ContainsFunc(plain, unicode.IsControl) {
			return f, fmt.Errorf("uri %s is not a path", shown(uri))
		}
		segments[i] = plain
	}
	f = File{Name: strings.Join(segments, "/"), URI: uri, Digest: digest}
	if !fs.ValidPath(f.Name) || f.Name == "." {
		return f, fmt.Errorf("uri %s is not a path", shown(uri))
	}
	if hex, ok := strings.CutPrefix(digest, "sha256:"); !ok || len(hex) != 64 || strings.Trim(hex, "0123456789abcdef") != "" {
		return f, errors.New("digest must be sha256: and 64 digits 0-9 and a-f")
	}
	if size, ok := members["size"].(json.Number); ok {
		if plain, form := jsonx.Integer([]byte(size), maxDigits); form == jsonx.Whole {
			if f.Size, err = strconv.ParseInt(string(plain), 10, 64); err == nil && f.Size >= 0 {
				return f, nil
			}
		}
	}
	return f, errors.New("size must be an integer that is not negative")
}

// below returns what is below the head of a SKILL.md that has one.
func below(text string) string {
	_, rest, _ := strings.Cut(text, "\n") // the first line of dashes
	for {
		line, after, _ := strings.Cut(rest, "\n")
		if strings.TrimSuffix(line, "\r") == "---" {
			return after
		}
		rest = after
	}
}
