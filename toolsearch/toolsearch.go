// Package toolsearch lets the model of a host search the tools of a server, for servers with hundreds
// of tools, a list of which would fill its context.
//
// [Add] adds three tools: search_tools finds tools by words, call_read_tool calls a tool that
// changes nothing, and call_tool calls any. Lists then have only these and Options.Pinned. All
// tools stay, can be called by their names, and are found only by clients that may see them.
//
// The search compares words, without a model: those of the query with those of names, titles,
// descriptions and arguments. Words of users that no tool has are replaced by those of tools, by
// a table for tools of any kind and by Options.Words. It reads every language. An index belongs
// to the set of tools that a client sees, so that tools of others change no answer.
//
// Hosts that search tools themselves, such as Claude Code, need the whole list: see Options.When.
package toolsearch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"unicode"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/option"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/schema/raw"
)

// Options are the settings of Add. The zero value shortens the list for all clients.
type Options struct {
	// When reports whether the client of f has the tools of this package and a short list; nil is
	// for every client. It is called for each list and call, as mcp.VisibleTo is.
	When func(f *mcp.Frame) bool
	// Pinned are names of tools that lists always have. For all clients they have the member
	// "anthropic/alwaysLoad" in _meta, by which hosts that search themselves keep them in sight.
	// A tool may be added later.
	Pinned []string
	// Words has what users say, and what the tools say: "ticket": "issue". Both may be several
	// words, and commas separate different ones: "ci": "workflow run, check". Names of your
	// organization and its products belong here; common verbs and nouns of English are known.
	Words map[string]string
}

// The tools that Add adds.
const (
	searchTool   = "search_tools"
	callReadTool = "call_read_tool"
	callTool     = "call_tool"
)

// Add adds search_tools, call_read_tool and call_tool to s, and shortens its lists of tools. A nil
// o is the zero value. A name that is taken, and an entry of Words or Pinned that says nothing,
// is an error, and nothing is added then.
//
// A server that s is mounted into lists all tools of s, and has these three among them.
// Server.Remove of search_tools restores the whole list.
func Add(s *mcp.Server, o *Options) error {
	if s == nil {
		return errors.New("toolsearch: Add: the server is nil")
	}
	var opts Options
	if o != nil {
		opts = *o
	}
	if err := opts.check(); err != nil {
		return err
	}
	t := &search{server: s, words: newVocabulary(opts.Words)}
	listed := append([]string{searchTool, callReadTool, callTool}, opts.Pinned...)
	with := func(own ...mcp.ToolOption) []mcp.ToolOption {
		if opts.When != nil {
			own = append(own, mcp.VisibleTo(opts.When))
		}
		return own
	}
	return s.Add(
		mcp.Tool(searchTool, t.find, with(mcp.ReadOnly(), mcp.Doc(searchDoc),
			mcp.MadeOption(option.Tool{Name: "toolsearch.Add", Listed: listed, As: t.describe}))...),
		mcp.Tool(callReadTool, t.callRead, with(mcp.ReadOnly(), mcp.Doc("Call a tool that search_tools found, if it is read-only."))...),
		mcp.Tool(callTool, t.call, with(mcp.Doc("Call any tool that search_tools found. Prefer call_read_tool for those that are read-only."))...),
	)
}

const searchDoc = "Search the tools of this server by what they do. The result has the name, the description and the input schema of the best ones. " +
	"Call them with call_read_tool if they are read-only, and else with call_tool."

// maxKey is the most words of a key of Options.Words.
const maxKey = 8

// check returns what is wrong with the options.
func (o *Options) check() error {
	if slices.Contains(o.Pinned, "") {
		return errors.New("toolsearch: Options.Pinned has an empty name")
	}
	for _, say := range slices.Sorted(maps.Keys(o.Words)) {
		if n := len(wordsOf(say)); n == 0 || n > maxKey {
			return fmt.Errorf("toolsearch: invalid Options.Words key %q: it has %d words; use 1 to %d", say, n, maxKey)
		}
		for means := range strings.SplitSeq(o.Words[say], ",") {
			if len(wordsOf(means)) == 0 {
				return fmt.Errorf("toolsearch: invalid Options.Words value %q: each part between commas needs a word", o.Words[say])
			}
		}
	}
	return nil
}

// search is what the three tools share.
type search struct {
	server *mcp.Server
	words  *vocabulary
	sets   sets
	count  atomic.Int64 // tools that the last client saw: a guess for the next one
}

// visitKey marks the context in which describe asks for the tools: the description of the search
// then needs none.
type visitKey struct{}

// visible returns the tools that the client of f sees, except those of this package.
func (s *search) visible(f *mcp.Frame) []tool {
	tools := make([]tool, 0, s.count.Load())
	for t := range s.server.Tools(f.WithContext(context.WithValue(f, visitKey{}, true))) {
		if !own(t.Name) {
			tools = append(tools, toolOf(&t))
		}
	}
	s.count.Store(int64(len(tools)))
	return tools
}

func own(name string) bool { return name == searchTool || name == callReadTool || name == callTool }

// maxTopics is how many first words of names the description of the search has.
const maxTopics = 20

// describe adds the most frequent first words of the names that the client of f sees.
func (s *search) describe(f *mcp.Frame, definition protocol.Tool) protocol.Tool {
	if f.Value(visitKey{}) != nil {
		return definition
	}
	tools := s.visible(f)
	counts := map[string]int{}
	for _, t := range tools {
		counts[topicOf(t.name)]++
	}
	topics := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		if counts[a] != counts[b] {
			return counts[b] - counts[a]
		}
		return strings.Compare(a, b)
	})
	if len(topics) > 0 {
		definition.Description = fmt.Sprintf("%s There are %d tools, about: %s.", searchDoc, len(tools), strings.Join(topics[:min(maxTopics, len(topics))], ", "))
	}
	return definition
}

// topicOf returns the first word of a name.
func topicOf(name string) string {
	for at, r := range name {
		if at > 0 && (strings.ContainsRune("_-.", r) || unicode.IsUpper(r)) {
			return name[:at]
		}
	}
	return name
}

// query has the arguments of search_tools.
type query struct {
	Query string `json:"query" validate:"max=1000" jsonschema_description:"What to do, in a few words, such as: create an issue"`
}

const (
	most      = 8      // tools that a search returns
	few       = 5      // tools that it returns when none has the words
	enough    = 0.55   // of the query, which one of the first five has
	maxAnswer = 24_000 // bytes of an answer; a model reads all of it
	maxDoc    = 1_000  // bytes of a description in an answer
)

// hit is a tool in an answer.
type hit struct {
	Name        string          `json:"name"`
	ReadOnly    bool            `json:"readOnly"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema,omitempty"`
}

// find serves search_tools.
func (s *search) find(f *mcp.Frame, in query) (string, error) {
	tools := s.visible(f)
	if len(tools) == 0 {
		return "There are no tools to search.", nil
	}
	x := s.sets.of(tools, s.words)
	best, share, lacking, nearest := x.search(in.Query, most)
	answer := "The best tools, each with its input schema:"
	switch {
	case len(best) == 0 && len(lacking) == 0:
		return "The query has no words to search for. Say what to do, such as: create an issue", nil
	case share < enough:
		best = best[:min(few, len(best))]
		words := strings.Join(lacking, ", ")
		switch {
		case len(best) == 0:
			return "No tool has the words: " + words + ". Search again in other words.", nil
		case nearest && words != "":
			answer = "No tool has all of these words; the nearest lacks: " + words + ". Search again in other words if these do not fit:"
		case nearest:
			answer = "No tool is about these words only. Search again in other words if these do not fit:"
		default:
			answer = "No tool has the words: " + words + ". The nearest by the others; search again in other words:"
		}
	}
	var names []string
	for _, one := range best {
		t := tools[one.tool]
		h := hit{Name: t.name, ReadOnly: t.readOnly, Description: shortened(t.doc, maxDoc), InputSchema: t.schema}
		line, err := jsonx.Plain(h)
		if err != nil {
			return "", err
		}
		if names != nil || len(answer)+len(line) > maxAnswer {
			names = append(names, t.name)
			continue
		}
		answer += "\n" + string(line)
	}
	if names != nil {
		answer += "\nThere is no room for the schemas of these; search for one by its name: " + strings.Join(names, ", ")
	}
	return answer, nil
}

// shortened returns the beginning of a text.
func shortened(text string, most int) string {
	if short := cut(text, most); len(short) < len(text) {
		return short + "…"
	}
	return text
}

// target has the arguments of the tools that call another.
type target struct {
	Name      string                     `json:"name" jsonschema_description:"Name of the tool, as search_tools returned it"`
	Arguments map[string]json.RawMessage `json:"arguments,omitempty" jsonschema_description:"Arguments of the tool, as its input schema says"`
}

// callRead serves call_read_tool.
func (s *search) callRead(f *mcp.Frame, in target) (protocol.Result, error) {
	return s.either(f, in, true)
}

// call serves call_tool.
func (s *search) call(f *mcp.Frame, in target) (protocol.Result, error) {
	return s.either(f, in, false)
}

// either calls the tool that in names; one that only reads, if reads is set.
func (s *search) either(f *mcp.Frame, in target, reads bool) (protocol.Result, error) {
	t, err := s.seen(f, in.Name)
	if err == nil && reads && !t.readOnly {
		err = fmt.Errorf("%s changes things: use %s", in.Name, callTool)
	}
	if err != nil {
		return slip(err), nil
	}
	return s.called(f, t, in)
}

// slip returns the failed result of a slip of the model, which mcp.Options.MaskErrors
// does not hide.
func slip(err error) protocol.Result {
	return &protocol.CallToolResult{IsError: true, Content: []protocol.Content{protocol.TextContent{Text: err.Error()}}, Err: err}
}

// seen returns the tool of that name, if the client of f sees it.
func (s *search) seen(f *mcp.Frame, name string) (tool, error) {
	if own(name) {
		return tool{}, fmt.Errorf("%s cannot be called by another tool: call it directly", name)
	}
	for _, t := range s.visible(f) {
		if t.name == name {
			return t, nil
		}
	}
	return tool{}, fmt.Errorf("there is no tool %q: find its name with %s", shortened(name, 128), searchTool)
}

// called calls a tool in place of the client. A failure of arguments that do not fit has the
// schema of the tool, which the model may not have seen.
func (s *search) called(f *mcp.Frame, t tool, in target) (protocol.Result, error) {
	if in.Arguments == nil {
		in.Arguments = map[string]json.RawMessage{}
	}
	result, err := s.server.Call(f, in.Name, in.Arguments)
	failed, ok := wire.Unwrap(result).(*protocol.CallToolResult)
	if !ok || failed == nil || !failed.IsError || len(t.schema) > maxAnswer || fits(t.schema, in.Arguments) {
		return result, err
	}
	told := *failed
	told.Content = append(slices.Clone(failed.Content), protocol.TextContent{Text: "The input schema of " + t.name + ":\n" + string(t.schema)})
	return &told, err
}

// fits reports whether arguments fit a schema, or the schema cannot say so.
func fits(schema json.RawMessage, arguments map[string]json.RawMessage) bool {
	compiled, err := raw.Compile(schema)
	if err != nil {
		return true
	}
	text, err := json.Marshal(arguments)
	return err != nil || compiled.Check(text) == nil
}
