// Package toollock keeps the definitions of a server's tools as a person has accepted
// them, in a file, and tells how others differ from them.
package toollock

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/tooling/files"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// version is the format of the file, its member "lock".
const version = 1

// maxSize is how long a file may be, in bytes.
const maxSize = 64 << 20

// Lock is the definitions of the tools of one server, for one identity. It does not
// change, and is safe for concurrent use.
type Lock struct {
	server, instructions string
	tools                map[string]definition
}

// definition is what a tool is: its members but icons, as package encoding/json
// decodes them with UseNumber, in their canonical form.
type definition map[string]any

// New returns the lock of what a server lists. Instructions are those of the answer to
// initialize or server/discover.
func New(server, instructions string, tools []protocol.Tool) (*Lock, error) {
	l := &Lock{server: server, instructions: instructions, tools: make(map[string]definition, len(tools))}
	for _, tool := range tools {
		if _, twice := l.tools[tool.Name]; twice {
			return nil, fmt.Errorf("the server lists two tools %s", quoted(tool.Name))
		}
		d, err := newDefinition(tool)
		if err != nil {
			return nil, fmt.Errorf("tool %s: %w", quoted(tool.Name), err)
		}
		l.tools[tool.Name] = d
	}
	return l, nil
}

// newDefinition leaves out the icons, how the tool is called and that its server checks more
// than the schema says, which change nothing that a model sees.
func newDefinition(tool protocol.Tool) (definition, error) {
	tool.Icons, tool.Execution = nil, nil
	if _, marked := tool.Meta[wire.MetaChecks]; marked {
		tool.Meta = maps.Clone(tool.Meta)
		delete(tool.Meta, wire.MetaChecks)
	}
	text, err := json.Marshal(tool)
	if err != nil {
		return nil, err
	}
	var d definition
	if err := decode(text, &d); err != nil {
		return nil, err
	}
	return d, nil
}

// decode reads JSON text into a value in its canonical form.
func decode(text []byte, d *definition) error {
	read := json.NewDecoder(bytes.NewReader(text))
	read.UseNumber()
	var v map[string]any
	if err := read.Decode(&v); err != nil {
		return err
	}
	*d, _ = canonical(v, "").(map[string]any)
	return nil
}

// canonical returns a value in which numbers of one value have one form and the names
// of "required" are sorted. name is that of the member that has it.
func canonical(v any, name string) any {
	switch v := v.(type) {
	case map[string]any:
		for name, item := range v {
			v[name] = canonical(item, name)
		}
	case []any:
		for i, item := range v {
			v[i] = canonical(item, "")
		}
		if name == "required" {
			slices.SortStableFunc(v, func(a, b any) int {
				first, _ := a.(string)
				second, _ := b.(string)
				return strings.Compare(first, second)
			})
		}
	case json.Number:
		const exact = 1 << 53 // integers below it are themselves as float64
		if f, err := strconv.ParseFloat(string(v), 64); err == nil && f == float64(int64(f)) && -exact < f && f < exact {
			return json.Number(strconv.FormatInt(int64(f), 10))
		}
	}
	return v
}

// file is a Lock as it is written.
type file struct {
	Lock         int                   `json:"lock"`
	Server       fileServer            `json:"server"`
	Instructions string                `json:"instructions,omitempty"`
	Tools        map[string]definition `json:"tools"`
}

type fileServer struct {
	Name string `json:"name"`
}

// Read reads a file that Write has made.
func Read(name string) (*Lock, error) {
	text, err := files.Read(name, maxSize)
	if err != nil {
		return nil, err
	}
	return parse(name, text)
}

func parse(name string, text []byte) (*Lock, error) {
	var f struct {
		file
		Tools map[string]json.RawMessage `json:"tools"`
	}
	if err := jsonx.Unmarshal(text, &f); err != nil {
		return nil, fmt.Errorf("%s: it is not a lock: %w", name, err)
	}
	switch {
	case f.Lock > version:
		return nil, fmt.Errorf("%s: version %d is newer than this talaria", name, f.Lock)
	case f.Lock != version:
		return nil, fmt.Errorf(`%s: it is not a lock: the member "lock" must be %d`, name, version)
	case f.Tools == nil:
		return nil, fmt.Errorf(`%s: it is not a lock: the member "tools" is missing`, name)
	}
	l := &Lock{server: f.Server.Name, instructions: f.Instructions, tools: make(map[string]definition, len(f.Tools))}
	for tool, text := range f.Tools {
		var d definition
		if err := decode(text, &d); err != nil {
			return nil, fmt.Errorf("%s: tool %s: %w", name, quoted(tool), err)
		}
		if d["name"] != tool {
			return nil, fmt.Errorf("%s: tool %s has another name in its definition", name, quoted(tool))
		}
		l.tools[tool] = d
	}
	return l, nil
}

// Write writes the file: indented, with sorted keys, so that a difference between two of
// them can be reviewed line by line. A file that is there must be a lock, or
// empty.
func (l *Lock) Write(name string) error {
	info, err := files.Existing(name)
	if err != nil {
		return err
	}
	if info != nil && info.Size() > 0 {
		if _, err := Read(name); err != nil {
			return fmt.Errorf("%w; it is left as it is", err)
		}
	}
	return files.Replace(name, 0o644, l.encode)
}

func (l *Lock) encode(w io.Writer) error {
	write := json.NewEncoder(w)
	write.SetEscapeHTML(false)
	write.SetIndent("", "  ")
	return write.Encode(file{version, fileServer{l.server}, l.instructions, l.tools})
}

// Len returns how many tools it has.
func (l *Lock) Len() int { return len(l.tools) }

// ErrAbsent is the error of [Lock] for a tool that the lock does not have.
var ErrAbsent = errors.New("is not in mcp.lock")

// Has reports whether there is a tool of that name.
func (l *Lock) Has(name string) bool { return l.tools[name] != nil }

// Judge returns nil if a tool is as the lock has it, and otherwise what differs.
func (l *Lock) Judge(tool protocol.Tool) error {
	old := l.tools[tool.Name]
	if old == nil {
		return ErrAbsent
	}
	d, err := newDefinition(tool)
	if err != nil {
		return err
	}
	var members []string
	for _, name := range slices.Sorted(maps.Keys(union(old, d))) {
		if !equal(old[name], d[name]) {
			members = append(members, name)
		}
	}
	if members == nil {
		return nil
	}
	verb := "differs"
	if len(members) > 1 {
		verb = "differ"
	}
	return fmt.Errorf("is not what mcp.lock has: its %s %s", strings.Join(members, " and "), verb)
}

// JudgeInstructions returns nil if instructions are those of the lock.
func (l *Lock) JudgeInstructions(instructions string) error {
	if instructions == l.instructions {
		return nil
	}
	return errors.New("the instructions of the server are not what mcp.lock has")
}

// union returns the members that either has.
func union(a, b map[string]any) map[string]any {
	all := make(map[string]any, len(a)+len(b))
	maps.Copy(all, a)
	maps.Copy(all, b)
	return all
}

// equal reports whether two canonical values are the same.
func equal(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, equal)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	}
	switch b.(type) {
	case map[string]any, []any:
		return false // which cannot be compared
	}
	return a == b
}

// quoted returns a name of a peer for an error.
func quoted(name string) string { return strconv.Quote(visible.Line(name, visible.Name)) }
