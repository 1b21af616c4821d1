// Package config reads the files in which desktop programs list MCP servers,
// and makes the transports to those servers.
//
//	file, err := config.Read(".mcp.json", nil)
//	if err != nil {
//		return err
//	}
//	for _, s := range file.Servers {
//		t, err := s.Transport(nil)
//		…
//	}
//
// A group.Group takes a whole file. The errors of one server are in its Err and
// do not affect the others.
//
// The formats are those that desktop programs have made common; there is not a
// specification. [Read] replaces variables such as ${env:NAME} and ${input:id}
// and checks each server; it starts nothing and connects to nothing. Everything
// wrong with a file is reported at once. Errors never contain values of a file,
// which may be secrets.
package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/tooling/files"
)

// File is a file that lists MCP servers, as desktop clients keep it: the
// member mcpServers of Claude Desktop, Claude Code, Cursor, Windsurf, Cline and
// others, or the members servers and inputs of VS Code. Comments and commas
// after the last element are allowed, as VS Code does, and the text may be UTF-16. Members that are not
// known are ignored.
type File struct {
	Path    string   // as it was given
	Servers []Server // in the order of the file
	Inputs  []Input
}

// Input is something that a file asks its user for, such as a key, where
// it says ${input:id}.
type Input struct {
	ID          string   `json:"id"`
	Type        string   `json:"type"` // promptString or pickString
	Description string   `json:"description"`
	Default     string   `json:"default"`
	Password    bool     `json:"password"` // do not show what is typed
	Options     []string `json:"options"`  // of pickString
}

// Options are the surroundings of a File. The zero value is that of the
// process.
type Options struct {
	// Env looks up an environment variable; nil means os.LookupEnv.
	Env func(name string) (value string, ok bool)
	// Input asks the user, once for each input that an enabled server needs.
	// With nil, an input has its default, and without one it is an error.
	Input func(input Input) (string, error)
	// Workspace is what ${workspaceFolder} stands for; "" means the directory
	// of the file, or the one above if that is .vscode or .cursor.
	Workspace string
}

// Error is what is wrong with a configuration file.
type Error struct {
	File   string
	Server string // "" if it concerns the file
	Field  string // such as "headers.Authorization"; "" if it concerns the whole server
	Err    error
}

// Error names the file, the server and the field.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Server != "" {
		fmt.Fprintf(&b, ": server %q", e.Server)
	}
	if e.Field != "" {
		b.WriteString(": " + e.Field)
	}
	b.WriteString(": " + e.Err.Error())
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// maxFile bounds the size of a file, in bytes. Files that people write are much
// smaller; a path that was given by mistake may not be.
const maxFile = 8 << 20

// Read reads a configuration file. The error is a *Error and says
// that the file as a whole is of no use; what is wrong with one server is in
// its Err. Nil options are the zero value.
func Read(file string, opts *Options) (*File, error) {
	text, err := files.Read(file, maxFile)
	if err != nil {
		return nil, &Error{File: file, Err: pathReason(err)}
	}
	return Parse(file, text, opts)
}

// pathReason leaves out the operation and the path, which the caller names.
func pathReason(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	return err
}

// Parse is Read for a text; file names it in errors and gives
// ${workspaceFolder} its default.
func Parse(file string, text []byte, opts *Options) (*File, error) {
	text, err := plainJSON(text)
	if err != nil {
		return nil, &Error{File: file, Err: err}
	}
	root, err := orderedMembers(text)
	if err != nil {
		return nil, &Error{File: file, Err: locate(text, err)}
	}
	if nested, ok := root.find("mcp"); ok { // settings.json of VS Code
		if inner, err := orderedMembers(nested); err == nil {
			root = append(root, inner...)
		}
	}
	f := &File{Path: file}
	if raw, ok := root.find("inputs"); ok {
		var inputs []json.RawMessage
		if err := jsonx.Unmarshal(raw, &inputs); err != nil {
			return nil, &Error{File: file, Field: "inputs", Err: errors.New("must be a list of objects")}
		}
		for _, text := range inputs {
			f.Inputs = append(f.Inputs, inputOf(text))
		}
	}
	found := false
	vars := newVariables(f, opts)
	for _, m := range root {
		if m.name != "mcpServers" && m.name != "servers" {
			continue
		}
		found = true
		if string(m.value) == "null" {
			continue
		}
		servers, err := orderedMembers(m.value)
		if err != nil {
			return nil, &Error{File: file, Field: m.name, Err: errors.New("must be an object with a server under each name")}
		}
		for _, s := range servers {
			f.add(s, vars)
		}
	}
	if !found {
		return nil, &Error{File: file, Err: fmt.Errorf("it has neither mcpServers nor servers; its members are %s", root.names())}
	}
	return f, nil
}

// inputOf reads an input. A member that has another form than here is left out: if that is
// the id, no server can name the input, and an option of VS Code may be an object.
func inputOf(raw json.RawMessage) (in Input) {
	var o objectMembers
	if members, err := orderedMembers(raw); err == nil {
		o = members
	}
	text := func(name string) (value string) {
		if raw, ok := o.find(name); ok {
			value, _ = scalarText(raw) // else it is left out
		}
		return value
	}
	in = Input{ID: text("id"), Type: text("type"), Description: text("description"), Default: text("default"), Password: text("password") == "true"}
	list, _ := o.find("options")
	var options []json.RawMessage
	_ = jsonx.Unmarshal(list, &options) // else there are none
	for _, raw := range options {
		if members, err := orderedMembers(raw); err == nil {
			raw, _ = members.find("value")
		}
		if len(raw) > 0 {
			if value, err := scalarText(raw); err == nil {
				in.Options = append(in.Options, value)
			}
		}
	}
	return in
}

// add reads one server and appends it, whatever is wrong with it: what that is
// goes to its Err. Of two servers with one name the second is at fault.
func (f *File) add(m member, vars *variables) {
	if m.name == "" {
		m.name = "(no name)"
	}
	taken := slices.ContainsFunc(f.Servers, func(s Server) bool { return s.Name == m.name })
	r := &serverReader{file: f.Path, vars: vars}
	r.server.Name = m.name
	if taken {
		r.fault("", "there is another server of that name in the file")
	} else {
		r.read(m.value)
	}
	r.server.Err = errors.Join(r.faults...)
	f.Servers = append(f.Servers, r.server)
}

// Server returns the server of that name.
func (f *File) Server(name string) (server Server, ok bool) {
	i := slices.IndexFunc(f.Servers, func(s Server) bool { return s.Name == name })
	if i < 0 {
		return server, false
	}
	return f.Servers[i], true
}

// Err returns what is wrong with any of the servers, joined; nil if nothing is.
func (f *File) Err() error {
	var faults []error
	for _, s := range f.Servers {
		faults = append(faults, s.Err)
	}
	return errors.Join(faults...)
}
