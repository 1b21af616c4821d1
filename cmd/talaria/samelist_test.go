package main

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
)

// sameIn has rules that a schema for hosts expresses, and rules that it cannot express.
type sameIn struct {
	Tags     []string          `json:"tags,omitempty" validate:"omitempty,unique,min=2"`
	Ratio    *float64          `json:"ratio,omitempty" validate:"omitempty,gt=0,lt=1"`
	Count    *int              `json:"count,omitempty" validate:"omitempty,gt=0,lt=10"`
	Step     *int              `json:"step,omitempty" validate:"omitempty,oneof=1 5 25"`
	Multiple *int              `json:"multiple,omitempty" jsonschema:"multipleOf=3"`
	Code     string            `json:"code,omitempty" validate:"omitempty,alphanum,len=4"`
	Host     string            `json:"host,omitempty" validate:"omitempty,hostname"`
	Mail     string            `json:"mail,omitempty" validate:"omitempty,email"`
	Address  string            `json:"address,omitempty" validate:"omitempty,ip"`
	Net      string            `json:"net,omitempty" validate:"omitempty,cidr"`
	Color    string            `json:"color,omitempty" validate:"omitempty,hexcolor"`
	Kind     string            `json:"kind,omitempty" validate:"omitempty,oneof=a b"`
	Not      string            `json:"not,omitempty" validate:"omitempty,ne=x"`
	Prefix   string            `json:"prefix,omitempty" validate:"omitempty,startswith=ab"`
	Contains string            `json:"contains,omitempty" validate:"omitempty,contains=q"`
	Excludes string            `json:"excludes,omitempty" validate:"omitempty,excludes=q"`
	Lower    string            `json:"lower,omitempty" validate:"omitempty,lowercase"`
	Text     string            `json:"text,omitempty" validate:"omitempty,json"`
	Long     string            `json:"long,omitempty" validate:"max=3000"`
	Small    int8              `json:"small,omitempty"`
	Big      *uint64           `json:"big,omitempty"`
	When     *time.Time        `json:"when,omitempty"`
	Took     string            `json:"took,omitempty" validate:"omitempty,datetime=2006-01-02"`
	Map      map[string]int    `json:"map,omitempty" validate:"omitempty,max=1,dive,keys,alpha,endkeys,gt=1"`
	Numbers  []int             `json:"numbers,omitempty" validate:"omitempty,unique,dive,gt=0"`
	Bytes    []byte            `json:"bytes,omitempty"`
	Inner    *sameInner        `json:"inner,omitempty"`
	Labels   map[string]string `json:"labels,omitempty" validate:"omitempty,dive,max=2"`
	Pass     string            `json:"pass,omitempty"`
	Again    string            `json:"again,omitempty" validate:"eqfield=Pass"`
	From     int               `json:"from,omitempty"`
	To       int               `json:"to,omitempty" validate:"gtefield=From"`
	Mode     string            `json:"mode,omitempty"`
	File     string            `json:"file,omitempty" validate:"required_if=Mode file"`
	Either   string            `json:"either,omitempty"`
	Other    string            `json:"other,omitempty" validate:"excluded_with=Either"`
}

type sameInner struct {
	Name string `json:"name" validate:"required,max=3"`
	Of   int    `json:"of,omitempty" validate:"omitempty,gt=5"`
}

// The list of faults is that of the server, also where its schema does not say a rule and
// the command's own check finds others.
func TestSameFaults(t *testing.T) {
	documents := [][]string{
		{`tags:=["a","a"]`, "kind=c"},
		{`tags:=["a"]`, `numbers:=[1,1,-1]`, "small=200"},
		{"ratio=0", "count=0", "step=4"},
		{"ratio=1", "count=10", "step=26"},
		{"ratio=0.0", "count=abc", "multiple=4"},
		{"code=ab-d", "host=a_b", "mail=x"},
		{"address=1.2.3", "net=1.2.3.4", "color=red", "not=x"},
		{"prefix=b", "contains=x", "excludes=q", "lower=A"},
		{"text={", "small=-129", "when=tomorrow"},
		{"long=" + strings.Repeat("x", 3001), "kind=d"},
		{"big=-1", "took=2026-13-01", "again=x"},
		{`map:={"a1":1,"b":2}`, "kind=e"},
		{`bytes=%%`, `inner:={"of":5}`},
		{"inner.name=long one", "count=0"},
		{"inner.of=2", "count=0"},
		{"inner.more=1", "ratio=0"},
		{`labels:={"a":"long"}`, "pass=a", "again=b", "kind=f"},
		{"from=5", "to=4", "mode=file", "kind=g"},
		{"either=x", "other=y", "kind=h"},
		{"unknown=1", "count=0", "tags=a"},
		{"count:=null", "kind:=5", "tags:={}"},
		{`big:=123456789012345678901234567890`, `ratio:=2`, `step:="x"`},
		{"small=1.5", "count=1e3", "numbers=x", "mode=file"},
		{"when=2026-01-01", "took=", "kind=", "ratio=5"},
	}
	for _, exact := range []bool{false, true} {
		s := mcp.NewServer(mcp.Info{Name: "same", Version: "1"}, &mcp.Options{ExactSchemas: exact})
		s.MustAdd(mcp.Tool("same", func(_ *mcp.Frame, in sameIn) (string, error) { return "ran", nil }))
		web := httptest.NewServer(s.Handler())
		defer web.Close()
		for _, revision := range []string{"2026-07-28", "2025-06-18", "2024-11-05"} {
			for _, typed := range documents {
				words := append([]string{"call", web.URL, "same", "--revision", revision}, typed...)
				got := talaria(t, "", words...)
				for i, w := range words { // without the check there is no schema of members
					if name, value, ok := strings.Cut(w, "="); ok && strings.HasPrefix(name, "inner.") {
						words[i] = fmt.Sprintf("inner:={%q:%q}", strings.TrimPrefix(name, "inner."), value)
					}
				}
				sent := talaria(t, "", append(words, "--no-check")...)
				own, theirs := faults(got.stderr), faults(sent.stdout+sent.stderr)
				if got.code != exitUsage || len(theirs) == 0 || !slices.Equal(own, theirs) {
					t.Errorf("exact %t, %s, %q: exit %d\n got %q\nwant %q", exact, revision, typed, got.code, own, theirs)
				}
			}
		}
	}
}

// With arguments that the schema of a tool refuses the tool does not run, also where a server
// that takes everything has the mark of one that checks more.
func TestCopiedMark(t *testing.T) {
	for name, check := range map[string]func() (protocol.Result, error){
		"unknown method": func() (protocol.Result, error) {
			return nil, &protocol.Error{Code: protocol.CodeMethodNotFound, Message: "Method not found"}
		},
		"another error":    func() (protocol.Result, error) { return nil, errors.New("broken") },
		"nothing is wrong": func() (protocol.Result, error) { return protocol.JSONResult{Value: struct{}{}}, nil },
		"no list": func() (protocol.Result, error) {
			return protocol.JSONResult{Value: map[string]any{"_meta": map[string]any{"io.github.talaria-go/issues": "none"}}}, nil
		},
		"an empty list": func() (protocol.Result, error) {
			return protocol.JSONResult{Value: map[string]any{"_meta": map[string]any{"io.github.talaria-go/issues": []int{}}}}, nil
		},
	} {
		for _, revision := range []string{"2026-07-28", "2025-06-18", "2024-11-05"} {
			var ran, checked atomic.Int64
			s := mcp.NewServer(mcp.Info{Name: "lenient", Version: "1"}, nil)
			s.MustAdd(mcp.Tool("same", func(*mcp.Frame, sameIn) (string, error) { return "ran", nil }))
			s.Use(func(next mcp.Handler) mcp.Handler {
				return func(f *mcp.Frame) (protocol.Result, error) {
					switch f.Request().Method {
					case protocol.MethodToolsCall:
						ran.Add(1)
						return &protocol.CallToolResult{Content: []protocol.Content{protocol.TextContent{Text: "ran"}}}, nil
					case "io.github.talaria-go/check":
						checked.Add(1)
						return check()
					}
					return next(f)
				}
			})
			web := httptest.NewServer(s.Handler())
			for _, typed := range [][]string{{"count=0"}, {"kind=z"}, {"unknown=1"}, {"small=x"}, {`tags:={}`}, {`inner:={}`}, {"kind=z", "unknown=1"}} {
				got := talaria(t, "", append([]string{"call", web.URL, "same", "--revision", revision}, typed...)...)
				place, _, _ := strings.Cut(typed[0], "=")
				if got.code != exitUsage || ran.Load() != 0 || !strings.Contains(got.stderr, strings.TrimSuffix(place, ":")) {
					t.Errorf("%s, %s, %q: exit %d, the tool ran %d times: %s", name, revision, typed, got.code, ran.Load(), got.stderr)
				}
			}
			if got := talaria(t, "", "call", web.URL, "same", "--revision", revision, "kind=a"); got.code != 0 || ran.Load() != 1 {
				t.Errorf("%s, %s: exit %d: %s", name, revision, got.code, got.stderr)
			}
			if checked.Load() == 0 {
				t.Errorf("%s, %s: the server was not asked", name, revision)
			}
			web.Close()
		}
	}
}

// The arguments of an event type are refused with all that the server finds, before it is
// watched.
func TestSameFaultsOfEvents(t *testing.T) {
	s := mcp.NewServer(mcp.Info{Name: "same", Version: "1"}, nil)
	s.MustAdd(mcp.EventType("same", func(*mcp.Frame, sameIn, map[string]string) (bool, error) { return true, nil }))
	web := httptest.NewServer(s.Handler())
	defer web.Close()
	for _, revision := range []string{"2026-07-28", "2025-11-25"} {
		for _, typed := range [][]string{{`tags:=["a","a"]`, "kind=c"}, {"count=0", "from=5", "to=4", "kind=c"}, {"pass=a", "again=b", "kind=f", "unknown=1"}} {
			got := talaria(t, "", append([]string{"events", web.URL, "same", "--revision", revision}, typed...)...)
			places := []string{}
			for _, word := range typed {
				if name, _, _ := strings.Cut(word, "="); name != "from" && name != "pass" {
					places = append(places, strings.TrimSuffix(name, ":"))
				}
			}
			for _, place := range places {
				if got.code != exitUsage || !strings.Contains(got.stderr, place+": ") {
					t.Errorf("%s, %q: exit %d, %s lacks %s", revision, typed, got.code, got.stderr, place)
				}
			}
		}
	}
}

// faults returns the faults in a text, sorted.
func faults(text string) (list []string) {
	for l := range strings.Lines(text) {
		l = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(l), "error: "), "- ")
		if strings.Contains(l, ": ") {
			list = append(list, strings.TrimPrefix(l, "/"))
		}
	}
	slices.Sort(list)
	return list
}
