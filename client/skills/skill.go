package skills

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/tooling/skillhead"
	"github.com/talaria-go/mcp/protocol"
)

// Skill is a skill as its server has announced it: what List and Get return. Its
// methods go by what was announced then, whatever becomes of the fields, and may be
// called by several goroutines at once.
type Skill struct {
	// URI is that of the SKILL.md. It identifies a skill of one server; for several
	// servers the host's name for the server identifies it as well.
	URI string
	// Name and Description are those of the head: the name has 1 to 64 characters
	// a-z, 0-9 and -, the description up to 1,024 without control characters.
	Name, Description string
	// Frontmatter has all fields of the head, as JSON decodes them; numbers are
	// json.Number.
	Frontmatter map[string]any
	// Files are all files of the skill. nil means that the server makes them as it
	// goes, and announces nothing: such a skill cannot be loaded.
	Files []File

	client *client.Client
	held   *entry // never changed
}

// File is a file of a skill.
type File struct {
	Name   string // its path below the skill, with slashes, as fs.ValidPath wants it
	URI    string
	Digest string // of its bytes: "sha256:" and 64 hexadecimal digits
	Size   int64  // in bytes
}

// newSkill reads an entry. It is decoded twice, so that nothing of what is held
// can be reached from the fields.
func newSkill(c *client.Client, text json.RawMessage) (*Skill, error) {
	held, err := decodeEntry(text)
	if err != nil {
		return nil, err
	}
	out, err := decodeEntry(text)
	if err != nil {
		return nil, err
	}
	return &Skill{
		URI: out.uri, Name: out.head.Name, Description: out.head.Description, Frontmatter: out.head.Fields, Files: out.files,
		client: c, held: held,
	}, nil
}

// Fingerprint names the skill's URI and the names and digests of all of its files: it
// changes when one of them does. With the host's name for the server it is what an
// approval of the user is kept for; without the name it is not enough, as two servers
// can announce the same. It is "" for a skill whose files are not announced, which no
// approval can be kept for.
func (s *Skill) Fingerprint() string {
	if s.held.files == nil {
		return ""
	}
	files := slices.Clone(s.held.files)
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.URI, b.URI) })
	hash := sha256.New()
	add := func(text string) { // with its length before it, so that no two lists are written alike
		hash.Write(binary.BigEndian.AppendUint64(nil, uint64(len(text))))
		hash.Write([]byte(text))
	}
	add(s.held.uri)
	for _, f := range files {
		add(f.URI)
		add(f.Digest)
	}
	return "sha256:" + hex.EncodeToString(hash.Sum(nil))
}

// A skill within this one needs a separate approval.
func (s *Skill) Load(ctx context.Context) (instructions string, err error) {
	data, err := s.ReadFile(ctx, manifest)
	if err != nil {
		return "", err
	}
	head, err := skillhead.Read(data, true)
	if err != nil {
		return "", s.unverified(manifest, "its head cannot be compared: %w", err)
	}
	if !skillhead.Equal(head.Fields, s.held.head.Fields) {
		return "", s.unverified(manifest, "its head says something else")
	}
	return below(string(data)), nil
}

// ReadFile reads a file of the skill, by its Name among Files, and compares its
// bytes with what was announced. Any other name is ErrUnverified, and the server is
// not asked. A file may be larger than a message of the server can be, which MaxMessage
// of the client's transport decides: the error says so then.
func (s *Skill) ReadFile(ctx context.Context, name string) ([]byte, error) {
	if s.held.files == nil {
		return nil, fmt.Errorf("skills: %s: the server announces no files of it, so that nothing can be verified: %w", shown(s.held.uri), client.ErrUnsupported)
	}
	// Only what is in the list is asked for, and by the URI in it: neither what a model
	// makes of a name nor what the list of a directory says now adds a file.
	at := slices.IndexFunc(s.held.files, func(f File) bool { return f.Name == name })
	if at < 0 {
		return nil, s.unverified(name, "the skill has no such file")
	}
	f := s.held.files[at]
	var raw json.RawMessage
	// The client may keep an answer for as long as the server says, which would verify
	// what was there before: the server is asked.
	if err := s.client.Request(ctx, protocol.MethodResourcesRead, map[string]string{"uri": f.URI}, &raw, client.NoCache()); err != nil {
		if f.Size > facts.MaxMessage/2 {
			err = fmt.Errorf("%w (the file has %d bytes, and base64 a third more; MaxMessage of the transport is 4 MiB unless it says otherwise)", err, f.Size)
		}
		return nil, err
	}
	data, err := contents(raw, f.URI)
	if err != nil {
		return nil, s.unverified(name, "%w", err)
	}
	// The slice that is hashed is the one that is returned: nothing decodes it again.
	if int64(len(data)) != f.Size {
		return nil, s.unverified(name, "it has %d bytes in place of %d", len(data), f.Size)
	}
	if sum := sha256.Sum256(data); "sha256:"+hex.EncodeToString(sum[:]) != f.Digest {
		return nil, s.unverified(name, "its digest is another one")
	}
	return data, nil
}

// unverified returns an ErrUnverified for a file.
func (s *Skill) unverified(name, format string, args ...any) error {
	return fmt.Errorf("%w: %s of %s: %w", ErrUnverified, shown(name), shown(s.held.uri), fmt.Errorf(format, args...))
}

// contents returns the bytes in a result of resources/read: those of its one item,
// which is at uri and is either text or bytes. A response that leaves a choice is
// an error.
func contents(raw json.RawMessage, uri string) ([]byte, error) {
	var result struct {
		Contents []map[string]json.RawMessage
	}
	if err := jsonx.Unmarshal(raw, &result); err != nil || len(result.Contents) != 1 {
		return nil, fmt.Errorf("the answer has %d items in place of one", len(result.Contents))
	}
	item := result.Contents[0]
	var at, text *string
	if err := jsonx.Unmarshal(item["uri"], &at); err != nil || at == nil || *at != uri {
		return nil, errors.New("the answer is for another uri")
	}
	data, binary := item["blob"]
	if data == nil {
		data = item["text"]
	} else if item["text"] != nil {
		return nil, errors.New("the answer has both text and blob")
	}
	if err := jsonx.Unmarshal(data, &text); err != nil || text == nil {
		return nil, errors.New("the answer has neither text nor blob that is one")
	}
	if binary {
		return base64.StdEncoding.Strict().DecodeString(*text)
	}
	return []byte(*text), nil
}
