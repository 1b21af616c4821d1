package hosts

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// Link installs a server when a person follows it.
type Link struct {
	URL     string // for the system's own handler
	Web     string // for pages that show no other schemes than https
	Content []byte // the JSON that the link says, indented
}

// Linked lists the hosts that have links.
func Linked() []string { return []string{"cursor", "vscode"} }

// ErrLinkless is the error of a host that has no links.
var ErrLinkless = errors.New("it has no links that install servers")

// LinkTo makes a link of a server. Names of environment variables and headers are in
// it and their values never are: the person who follows the link is asked for them,
// or has them in variables of that name.
func LinkTo(h Host, s Server) (Link, error) {
	if err := CheckName(s.Name); err != nil {
		return Link{}, err
	}
	if err := plain(s.URL); err != nil {
		return Link{}, err
	}
	for _, text := range append([]string{s.Command, s.URL}, s.Args...) {
		if !utf8.ValidString(text) {
			return Link{}, fmt.Errorf("%q is not valid UTF-8, which a link cannot say", text)
		}
	}
	if s.Dir != "" {
		return Link{}, errors.New("a directory of this machine is of no use to others; leave it out")
	}
	for _, name := range slices.Concat(slices.Collect(maps.Keys(s.Env)), slices.Collect(maps.Keys(s.Headers))) {
		if name == "" || strings.Trim(name, nameCharacters) != "" {
			return Link{}, fmt.Errorf("%q is not a name of a variable or header; it has letters, digits, '_' and '-'", name)
		}
	}
	switch h.ID {
	case "cursor":
		return cursorLink(h, s)
	case "vscode":
		return codeLink(h, s)
	}
	return Link{}, fmt.Errorf("%s: %w; there are links for %s", h.Name, ErrLinkless, strings.Join(Linked(), " and "))
}

const nameCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

func cursorLink(h Host, s Server) (Link, error) {
	s.Env = named(s.Env, func(name string) string { return "${env:" + name + "}" })
	s.Headers = named(s.Headers, func(name string) string {
		return "${env:" + strings.ToUpper(strings.ReplaceAll(name, "-", "_")) + "}"
	})
	text, shown, err := encoded(h.entry(s))
	query := "?name=" + url.QueryEscape(s.Name) + "&config=" + url.QueryEscape(base64.StdEncoding.EncodeToString(text))
	return Link{"cursor://anysphere.cursor-deeplink/mcp/install" + query, "https://cursor.com/en/install-mcp" + query, shown}, err
}

func codeLink(h Host, s Server) (Link, error) {
	type input struct {
		ID          string `json:"id"`
		Type        string `json:"type"`
		Description string `json:"description"`
		Password    bool   `json:"password"`
	}
	var inputs []input
	ask := func(prefix string) func(name string) string {
		return func(name string) string {
			inputs = append(inputs, input{prefix + name, "promptString", name, true})
			return "${input:" + prefix + name + "}"
		}
	}
	s.Env, s.Headers = named(s.Env, ask("env-")), named(s.Headers, ask("header-"))
	members := append([]member{{"name", s.Name}}, h.entry(s)...)
	if len(inputs) > 0 {
		members = append(members, member{"inputs", inputs})
	}
	text, shown, err := encoded(members)
	link := "vscode:mcp/install?" + strings.ReplaceAll(url.QueryEscape(string(text)), "+", "%20")
	return Link{link, "https://vscode.dev/redirect?url=" + url.QueryEscape(link), shown}, err
}

// named gives each name a value that stands for one.
func named(values map[string]string, value func(name string) string) map[string]string {
	out := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		out[name] = value(name)
	}
	return out
}

// encoded returns members as a JSON object on one line, and indented.
func encoded(members []member) (text, shown []byte, err error) {
	text = []byte("{}")
	for i, m := range members {
		value, err := plainJSON(m.value)
		if err != nil {
			return nil, nil, err
		}
		text = text[:len(text)-1]
		if i > 0 {
			text = append(text, ',')
		}
		text = fmt.Appendf(text, "%q:%s}", m.name, value)
	}
	var indented bytes.Buffer
	err = json.Indent(&indented, text, "", "  ")
	return text, indented.Bytes(), err
}

// plainJSON returns a value as JSON without the escapes for HTML.
func plainJSON(value any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(value)
	return bytes.TrimSpace(b.Bytes()), err
}
