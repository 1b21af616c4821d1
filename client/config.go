package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Config is a file that lists MCP servers, as desktop clients keep it: the
// member mcpServers of Claude Desktop, Claude Code, Cursor, Windsurf, Cline and
// others, or the members servers and inputs of VS Code. Comments and commas
// after the last element are allowed, as VS Code does. Members that are not
// known are ignored.
type Config struct {
	File    string
	Servers []ServerConfig // in the order of the file
	Inputs  []ConfigInput
}

// ServerConfig is one server of a Config, with its variables replaced.
type ServerConfig struct {
	Name string
	// Type is "stdio", "http", "sse" or "ws". A file that does not say it has
	// stdio where there is a command, ws where the URL's scheme is ws or wss,
	// and http for other URLs, which finds out by itself whether the server
	// speaks the older HTTP+SSE.
	Type string

	Command string // the program, for stdio
	Args    []string
	Env     map[string]string // of the file, over those of its envFile
	Dir     string            // where the program runs; "" is the current directory

	URL     string // for all other types
	Headers map[string]string

	// Disabled servers are skipped; their variables are not replaced.
	Disabled bool
	// Err is what is wrong with this server, a *ConfigError or several of them
	// joined; the others may be used nevertheless.
	Err error
}

// ConfigInput is something that a file asks its user for, such as a key, where
// it says ${input:id}.
type ConfigInput struct {
	ID          string   `json:"id"`
	Type        string   `json:"type"` // promptString or pickString
	Description string   `json:"description"`
	Default     string   `json:"default"`
	Password    bool     `json:"password"` // do not show what is typed
	Options     []string `json:"options"`  // of pickString
}

// ConfigOptions are the surroundings of a Config. The zero value is that of the
// process.
type ConfigOptions struct {
	// Env looks up an environment variable; nil means os.LookupEnv.
	Env func(name string) (value string, ok bool)
	// Input asks the user, once for each input that an enabled server needs.
	// With nil, an input has its default, and without one it is an error.
	Input func(input ConfigInput) (string, error)
	// Workspace is what ${workspaceFolder} stands for; "" means the directory
	// of the file, or the one above if that is .vscode or .cursor.
	Workspace string
}

// ConfigError is what is wrong with a configuration file.
type ConfigError struct {
	File   string
	Server string // "" if it concerns the file
	Field  string // such as "headers.Authorization"; "" if it concerns the whole server
	Err    error
}

// Error names the file, the server and the field.
func (e *ConfigError) Error() string {
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
func (e *ConfigError) Unwrap() error { return e.Err }

// maxConfig bounds the size of a file, in bytes.
const maxConfig = 8 << 20

// ReadConfig reads a configuration file. The error is a *ConfigError and says
// that the file as a whole is of no use; what is wrong with one server is in
// its Err. Nil options are the zero value.
func ReadConfig(file string, opts *ConfigOptions) (*Config, error) {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return nil, &ConfigError{File: file, Err: pathReason(err)}
	case !info.Mode().IsRegular():
		return nil, &ConfigError{File: file, Err: errors.New("it is not a regular file")}
	case info.Size() > maxConfig:
		return nil, &ConfigError{File: file, Err: fmt.Errorf("it has %d bytes, more than the limit of %d", info.Size(), maxConfig)}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, &ConfigError{File: file, Err: pathReason(err)}
	}
	return ParseConfig(file, text, opts)
}

// pathReason leaves out the operation and the path, which the caller names.
func pathReason(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	return err
}

// ParseConfig is ReadConfig for a text; file names it in errors and gives
// ${workspaceFolder} its default.
func ParseConfig(file string, text []byte, opts *ConfigOptions) (*Config, error) {
	text, err := plainJSON(text)
	if err != nil {
		return nil, &ConfigError{File: file, Err: err}
	}
	root, err := orderedMembers(text)
	if err != nil {
		return nil, &ConfigError{File: file, Err: locate(text, err)}
	}
	if nested, ok := root.find("mcp"); ok { // settings.json of VS Code
		if inner, err := orderedMembers(nested); err == nil {
			root = append(root, inner...)
		}
	}
	c := &Config{File: file}
	if raw, ok := root.find("inputs"); ok {
		if err := json.Unmarshal(raw, &c.Inputs); err != nil {
			return nil, &ConfigError{File: file, Field: "inputs", Err: fmt.Errorf("must be a list of objects: %w", err)}
		}
	}
	found := false
	vars := newConfigVars(c, opts)
	for _, m := range root {
		if m.name != "mcpServers" && m.name != "servers" {
			continue
		}
		found = true
		servers, err := orderedMembers(m.value)
		if err != nil {
			return nil, &ConfigError{File: file, Field: m.name, Err: errors.New("must be an object with a server under each name")}
		}
		for _, s := range servers {
			c.add(s, vars)
		}
	}
	if !found {
		return nil, &ConfigError{File: file, Err: fmt.Errorf("it has neither mcpServers nor servers; its members are %s", root.names())}
	}
	return c, nil
}

// add reads one server.
func (c *Config) add(m member, vars *configVars) {
	if m.name == "" {
		m.name = "(no name)"
	}
	taken := slices.ContainsFunc(c.Servers, func(s ServerConfig) bool { return s.Name == m.name })
	r := &serverReader{file: c.File, vars: vars}
	r.server.Name = m.name
	if taken {
		r.fault("", "there is another server of that name in the file")
	} else {
		r.read(m.value)
	}
	r.server.Err = errors.Join(r.faults...)
	c.Servers = append(c.Servers, r.server)
}

// Server returns the server of that name.
func (c *Config) Server(name string) (server ServerConfig, ok bool) {
	i := slices.IndexFunc(c.Servers, func(s ServerConfig) bool { return s.Name == name })
	if i < 0 {
		return server, false
	}
	return c.Servers[i], true
}

// Err returns what is wrong with any of the servers, joined; nil if nothing is.
func (c *Config) Err() error {
	var faults []error
	for _, s := range c.Servers {
		faults = append(faults, s.Err)
	}
	return errors.Join(faults...)
}
