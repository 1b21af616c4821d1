package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/tooling/files"
)

// Server is one server of a File, with its variables replaced.
type Server struct {
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

	// Talaria is the member "talaria", which package gateway reads; nil if there is none.
	Talaria json.RawMessage

	// Disabled servers are skipped; their variables are not replaced.
	Disabled bool
	// Err is what is wrong with this server, a *Error or several of them
	// joined; the others may be used nevertheless.
	Err error
}

// Transport returns the transport to the server; its Err, if it has one. Of a
// server over HTTP, SSE or WebSocket, opts are the options, over which the
// headers of the file go; it may be nil. MaxMessage is for commands, too.
func (s Server) Transport(opts *client.HTTPOptions) (client.Transport, error) {
	if s.Err != nil {
		return nil, s.Err
	}
	if s.Type == "stdio" {
		t := client.Command(s.Command, s.Args...)
		t.Dir = s.Dir
		if opts != nil {
			t.MaxMessage = opts.MaxMessage
		}
		for _, name := range slices.Sorted(maps.Keys(s.Env)) {
			t.Env = append(t.Env, name+"="+s.Env[name])
		}
		return t, nil
	}
	var own client.HTTPOptions
	if opts != nil {
		own = *opts
	}
	own.Header = own.Header.Clone()
	if own.Header == nil {
		own.Header = http.Header{}
	}
	for name, value := range s.Headers {
		own.Header.Set(name, value)
	}
	switch s.Type {
	case "http":
		return client.HTTP(s.URL, &own), nil
	case "sse":
		return client.SSE(s.URL, &own), nil
	case "ws":
		return client.WebSocket(s.URL, &own), nil
	}
	return nil, &Error{Server: s.Name, Field: "type", Err: fmt.Errorf("%q is not one of stdio, http, sse, ws", s.Type)}
}

// serverReader reads the members of one server and gathers what is wrong. It is
// used once. Its methods that read a text, a list or an object return the zero
// value for a field that is missing or wrong; only the latter is a fault.
type serverReader struct {
	file   string
	vars   *variables
	server Server
	fields map[string]json.RawMessage
	faults []error
}

// fault notes an error of a field, and the reading continues, so that a
// person who fixes a file sees all errors at once.
func (r *serverReader) fault(field, format string, args ...any) {
	r.faults = append(r.faults, &Error{File: r.file, Server: r.server.Name, Field: field, Err: fmt.Errorf(format, args...)})
}

// types are the names of transports that clients write, in lower case.
var types = map[string]string{
	"stdio": "stdio", "local": "stdio",
	"http": "http", "streamable-http": "http", "streamablehttp": "http", "streamable_http": "http", "remote": "http",
	"sse": "sse",
	"ws":  "ws", "websocket": "ws",
}

// read reads one server. Variables of a disabled server are not replaced, so that
// the user is not asked for the password of a server that is not used.
func (r *serverReader) read(raw json.RawMessage) {
	if err := jsonx.Unmarshal(raw, &r.fields); err != nil || r.fields == nil {
		r.fault("", "must be an object with a command or a url")
		return
	}
	s := &r.server
	s.Disabled = r.flag("disabled", false) || !r.flag("enabled", true)
	if s.Disabled {
		return
	}
	s.Talaria = slices.Clone(r.fields["talaria"])
	s.Command = r.text("command")
	s.Args = r.list("args")
	s.Dir = r.text("cwd")
	s.Env = r.env()
	s.URL = r.text("url")
	for _, other := range []string{"serverUrl", "httpUrl"} { // Windsurf, Gemini
		if s.URL == "" {
			s.URL = r.text(other)
		}
	}
	s.Headers = r.texts("headers")
	r.settleType()
}

// settleType finds the type and checks that the server has what it needs. It is
// the last step of read: after a fault in another field it checks nothing, since
// what seems to be missing may be what could not be read.
func (r *serverReader) settleType() {
	s := &r.server
	named := r.text("type")
	if named == "" {
		named = r.text("transport")
	}
	if s.Type = types[strings.ToLower(named)]; named == "" {
		s.Type = r.guessType()
	}
	switch {
	case len(r.faults) > 0:
		return // it may be that which is missing
	case s.Command == "" && s.URL == "":
		r.fault("", "it has neither command nor url; its members are %s", r.names())
		return
	case s.Command != "" && s.URL != "":
		r.fault("", "it has a command and a url; one of them must go")
		return
	case s.Type == "":
		r.fault("type", "%q is not known; it is one of stdio, http, sse, ws", named)
		return
	}
	if s.Type == "stdio" {
		if s.Command == "" {
			r.fault("command", "is missing; type %q needs it", named)
		}
		return
	}
	if s.URL == "" {
		r.fault("url", "is missing; type %q needs it", named)
		return
	}
	r.checkURL()
}

// guessType returns the type of a server that does not say it, "" if it has
// neither command nor URL.
func (r *serverReader) guessType() string {
	switch {
	case r.server.Command != "":
		return "stdio"
	case r.server.URL == "":
		return ""
	case strings.HasPrefix(r.server.URL, "ws://"), strings.HasPrefix(r.server.URL, "wss://"):
		return "ws"
	}
	return "http"
}

// checkURL checks the URL against the type. A WebSocket may be named with http
// or https, too.
func (r *serverReader) checkURL() {
	s := &r.server
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" {
		r.fault("url", "is not an address; write one such as https://example.com/mcp")
		return
	}
	web := u.Scheme == "http" || u.Scheme == "https"
	socket := u.Scheme == "ws" || u.Scheme == "wss"
	if s.Type == "ws" && !socket && !web || s.Type != "ws" && !web {
		r.fault("url", "the scheme %q does not go with type %q", u.Scheme, s.Type)
	}
}

// names lists the members of the server for an error, and not their values: they
// may be secrets.
func (r *serverReader) names() string {
	names := slices.Sorted(maps.Keys(r.fields))
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// take returns a member that is there and not null.
func (r *serverReader) take(field string) (json.RawMessage, bool) {
	raw, ok := r.fields[field]
	return raw, ok && string(raw) != "null"
}

// flag reads a boolean; a member that is missing is otherwise.
func (r *serverReader) flag(field string, otherwise bool) bool {
	raw, ok := r.take(field)
	if !ok {
		return otherwise
	}
	if err := jsonx.Unmarshal(raw, &otherwise); err != nil {
		r.fault(field, "must be true or false; got %s", jsonKind(raw))
	}
	return otherwise
}

// expanded replaces the variables in the value of a field.
func (r *serverReader) expanded(field, text string) string {
	out, err := r.vars.expand(text)
	if err != nil {
		r.fault(field, "%w", err)
	}
	return out
}

// text reads a string and replaces its variables; "" if there is none.
func (r *serverReader) text(field string) string {
	raw, ok := r.take(field)
	if !ok {
		return ""
	}
	var text string
	if err := jsonx.Unmarshal(raw, &text); err != nil {
		r.fault(field, "must be a string; got %s", jsonKind(raw))
		return ""
	}
	return r.expanded(field, text)
}

// list reads a list of texts and replaces their variables. Numbers and booleans are
// taken as they are written, since people leave out quotes around a port.
func (r *serverReader) list(field string) []string {
	raw, ok := r.take(field)
	if !ok {
		return nil
	}
	var items []json.RawMessage
	if err := jsonx.Unmarshal(raw, &items); err != nil {
		r.fault(field, "must be a list of strings; got %s", jsonKind(raw))
		return nil
	}
	list := make([]string, len(items))
	for i, item := range items {
		at := fmt.Sprintf("%s[%d]", field, i)
		text, err := scalarText(item)
		if err != nil {
			r.fault(at, "%w", err)
			continue
		}
		list[i] = r.expanded(at, text)
	}
	return list
}

// texts reads an object of texts, as list does. A null leaves its name out, so that
// a file can take back what an envFile says.
func (r *serverReader) texts(field string) map[string]string {
	raw, ok := r.take(field)
	if !ok {
		return nil
	}
	var values map[string]json.RawMessage
	if err := jsonx.Unmarshal(raw, &values); err != nil {
		r.fault(field, "must be an object of strings; got %s", jsonKind(raw))
		return nil
	}
	texts := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if string(values[name]) == "null" {
			continue
		}
		at := field + "." + name
		text, err := scalarText(values[name])
		if err != nil {
			r.fault(at, "%w", err)
			continue
		}
		texts[name] = r.expanded(at, text)
	}
	return texts
}

// scalarText takes strings, and numbers and booleans as they are written.
func scalarText(raw json.RawMessage) (text string, err error) {
	switch raw[0] {
	case '"':
		return text, jsonx.Unmarshal(raw, &text)
	case '{', '[', 'n':
		return "", fmt.Errorf("must be a string; got %s", jsonKind(raw))
	}
	return string(raw), nil
}

// jsonKind names what a value is, and not the value: it may be a secret.
func jsonKind(raw json.RawMessage) string {
	switch raw[0] {
	case '"':
		return "a string"
	case '{':
		return "an object"
	case '[':
		return "a list"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	}
	return "a number"
}

// env reads envFile and env; the latter wins. Names and values that no process
// can be given are faults. It returns nil if there are none.
func (r *serverReader) env() map[string]string {
	env := map[string]string{}
	if file := r.text("envFile"); file != "" {
		text, err := files.Text(file, files.MaxSecret)
		if err == nil {
			err = parseEnvFile(env, string(text))
		}
		if err != nil {
			r.fault("envFile", "%s: %w", file, pathReason(err))
		}
	}
	maps.Copy(env, r.texts("env"))
	for name := range env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(env[name], "\x00") {
			r.fault("env."+name, "is no environment variable")
		}
	}
	if len(env) == 0 {
		return nil
	}
	return env
}

// parseEnvFile reads lines of NAME=value into env; quotes around the value,
// "export" before the name, empty lines and comments are understood. A later
// line wins over an earlier one of the same name. Values are taken as they are:
// neither escapes nor variables are replaced. The error names the line and not
// its text, which may be a secret.
func parseEnvFile(env map[string]string, text string) error {
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimPrefix(strings.TrimSpace(line), "export ")
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		name, value = strings.TrimSpace(name), strings.TrimSpace(value)
		if !ok || !envName.MatchString(name) {
			return fmt.Errorf("line %d is not NAME=value", n)
		}
		if len(value) >= 2 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0] {
			value = value[1 : len(value)-1]
		}
		env[name] = value
	}
	return nil
}
