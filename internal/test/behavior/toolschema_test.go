package behavior_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/schema"
)

// The schema of arguments has properties at its root, whatever it is made from.
func TestArgumentsHaveProperties(t *testing.T) {
	const none = `{"type":"object","properties":{},"additionalProperties":false}`
	schemaOf := func(text string) mcp.ToolOption { return mcp.InputSchema(json.RawMessage(text)) }
	type named struct {
		A int `json:"a"`
	}
	s := harness.Bare(mcp.Options{})
	s.MustAdd(
		mcp.Tool("struct", func(*mcp.Frame, struct{}) (string, error) { return "", nil }),
		mcp.Tool("pointer", func(*mcp.Frame, *struct{}) (string, error) { return "", nil }),
		mcp.Tool("map", func(*mcp.Frame, map[string]any) (string, error) { return "", nil }),
		mcp.Tool("integers", func(*mcp.Frame, map[string]int) (string, error) { return "", nil }),
		mcp.Tool("own", func(*mcp.Frame, json.RawMessage) (string, error) { return "", nil }, schemaOf(` { "type" : "object" } `)),
		mcp.Tool("open", func(*mcp.Frame, map[string]any) (string, error) { return "", nil }, schemaOf(`{"additionalProperties":{"type":"object","properties":{"a":{}}},"type":"object"}`)),
		mcp.Tool("full", func(*mcp.Frame, named) (string, error) { return "", nil }, schemaOf(`{"prop\u0065rties":{"a":{}},"type":"object"}`)),
		mcp.Tool("empty", func(*mcp.Frame, struct{}) (map[string]int, error) { return nil, nil }),
	)
	want := map[string]string{
		"struct": none, "pointer": none, "empty": none,
		"map":      `{"type":"object","properties":{},"additionalProperties":{}}`,
		"integers": `{"type":"object","properties":{},"additionalProperties":{"type":"integer"}}`,
		"own":      `{"type":"object","properties":{}}`,
		"open":     `{"additionalProperties":{"type":"object","properties":{"a":{}}},"type":"object","properties":{}}`,
		"full":     `{"prop\u0065rties":{"a":{}},"type":"object"}`,
	}
	harness.InEach(t, s, func(t *testing.T, rev protocol.Revision, c *mcptest.Client) {
		tools := c.Tools()
		if len(tools) != len(want) {
			t.Errorf("%d tools", len(tools))
		}
		for _, tool := range tools {
			if got := string(tool.InputSchema); got != want[tool.Name] {
				t.Errorf("%s: %s", tool.Name, got)
			}
			if strings.Contains(string(tool.OutputSchema), `"properties"`) {
				t.Errorf("%s: a result got properties too: %s", tool.Name, tool.OutputSchema)
			}
		}
		c.Call("own", map[string]any{"a": 1})
		c.Call("map", map[string]any{"a": 1})
	})
}

// A string as structured content has the text that it holds, without quotes.
// What is content or a whole result, and is hidden in any, would be written as JSON of
// its fields.
func TestContentInsideAny(t *testing.T) {
	for want, value := range map[string]any{
		"protocol.TextContent":     mcp.TextContent{Text: "x"},
		"*protocol.ImageContent":   &mcp.ImageContent{Data: []byte("x"), MIMEType: "image/png"},
		"[]protocol.Content":       []mcp.Content{mcp.TextContent{Text: "x"}},
		"*mcp.Result":              mcp.NewResult().Text("x"),
		"*mcp.ResultOf[int]":       &mcp.ResultOf[int]{Value: 1},
		"*errors.errorString":      errors.New("x"),
		"*protocol.CallToolResult": &protocol.CallToolResult{},
	} {
		s := harness.Bare(mcp.Options{})
		s.MustAdd(mcp.Tool("t", func(context.Context, struct{}) (any, error) { return value, nil }, mcp.Doc("d")))
		mcptest.Each(t, func() *mcp.Server { return s }, func(t *testing.T, c *mcptest.Client) {
			_, err := c.TryCall("t", nil)
			if err == nil || !strings.Contains(err.Error(), `the result of tool "t" is no JSON: it is a `+want+" in an interface; declare a function that returns "+want) {
				t.Errorf("%s: %v", want, err)
			}
		})
	}
}

func TestStringResultIsPlainText(t *testing.T) {
	const text = "a \"quoted\"\nline < ü"
	type name string
	s := harness.Bare(mcp.Options{})
	s.MustAdd(
		mcp.Tool("any", func(*mcp.Frame, struct{}) (any, error) { return text, nil }),
		mcp.Tool("named", func(*mcp.Frame, struct{}) (name, error) { return text, nil }),
		mcp.Tool("pointer", func(*mcp.Frame, struct{}) (*string, error) { s := text; return &s, nil }),
		mcp.Tool("raw", func(*mcp.Frame, struct{}) (json.RawMessage, error) { return json.Marshal(text) }),
		mcp.Tool("typed", func(*mcp.Frame, struct{}) (*mcp.ResultOf[any], error) { return &mcp.ResultOf[any]{Value: text}, nil }),
		mcp.Tool("built", func(*mcp.Frame, struct{}) (*mcp.Result, error) { return mcp.NewResult().Structured(text), nil }),
		mcp.Tool("number", func(*mcp.Frame, struct{}) (any, error) { return 7, nil }),
		mcp.Tool("none", func(*mcp.Frame, struct{}) (any, error) { return nil, nil }),
		mcp.Tool("list", func(*mcp.Frame, struct{}) (any, error) { return []string{"a"}, nil }),
		mcp.Tool("blank", func(*mcp.Frame, struct{}) (any, error) { return "", nil }),
	)
	harness.InEach(t, s, func(t *testing.T, rev protocol.Revision, c *mcptest.Client) {
		for _, tool := range c.Tools() {
			want, exists := map[string]string{"number": "7", "none": "null", "list": `["a"]`, "blank": ""}[tool.Name]
			if !exists {
				want = text
			}
			r := c.Call(tool.Name, nil)
			if got := r.Text(); got != want || len(r.Content) != 1 {
				t.Errorf("%s: %q in %d items, want %q", tool.Name, got, len(r.Content), want)
			}
			var wire struct{ StructuredContent *string }
			if want == text && rev.Has(protocol.FeatureAnyStructured) && (json.Unmarshal(r.Raw, &wire) != nil || wire.StructuredContent == nil || *wire.StructuredContent != text) {
				t.Errorf("%s: %s", tool.Name, r.Raw)
			}
		}
	})
}

// Media without a type have the one that their bytes show, or cost the call with
// an error that says so, in tools and in prompts.
func TestMediaWithoutType(t *testing.T) {
	png, wav := []byte("\x89PNG\r\n\x1a\nrest"), []byte("RIFF\x00\x00\x00\x00WAVEfmt ")
	images := map[string]string{
		string(png): "image/png", "\xff\xd8\xff\xe0": "image/jpeg", "GIF89a..": "image/gif", "RIFF\x00\x00\x00\x00WEBPVP8 ": "image/webp", "BMxx": "image/bmp",
	}
	sounds := map[string]string{
		string(wav): "audio/wav", "\xff\xfb\x90": "audio/mpeg", "OggS\x00": "audio/ogg", "fLaC": "audio/flac", "\x00\x00\x00\x20ftypM4A ": "audio/mp4",
	}
	s := harness.Bare(mcp.Options{})
	add := func(name string, content func() mcp.Content) {
		s.MustAdd(mcp.Tool(name, func(*mcp.Frame, struct{}) (mcp.Content, error) { return content(), nil }))
	}
	for data, want := range images {
		add(strings.ReplaceAll(want, "/", "."), func() mcp.Content { return mcp.ImageContent{Data: []byte(data)} })
	}
	for data, want := range sounds {
		s.MustAdd(mcp.Prompt(strings.ReplaceAll(want, "/", "."), func(*mcp.Frame, struct{}) (*mcp.Messages, error) {
			return mcp.NewMessages().Add(mcp.RoleUser, &mcp.AudioContent{Data: []byte(data)}), nil
		}))
	}
	s.MustAdd(mcp.Tool("built", func(*mcp.Frame, struct{}) (*mcp.Result, error) {
		return mcp.NewResult().Image(png, "").Audio(wav, "").Image(png, "image/x-own"), nil
	}))
	bad := map[string]mcp.Content{
		"bad.bytes": mcp.ImageContent{Data: []byte("no image")}, "bad.short": mcp.ImageContent{Data: []byte("RIFF")}, "bad.none": &mcp.ImageContent{},
		"bad.sound": mcp.ImageContent{Data: wav}, "bad.image": mcp.AudioContent{Data: png},
	}
	for name, content := range bad {
		add(name, func() mcp.Content { return content })
	}
	harness.InEach(t, s, func(t *testing.T, rev protocol.Revision, c *mcptest.Client) {
		for _, want := range images {
			if raw := string(c.Call(strings.ReplaceAll(want, "/", "."), nil).Raw); !strings.Contains(raw, `"mimeType":"`+want+`"`) {
				t.Errorf("%s: %s", want, raw)
			}
		}
		for _, want := range sounds {
			raw, err := json.Marshal(c.GetPrompt(strings.ReplaceAll(want, "/", "."), nil).Messages)
			if err != nil || !strings.Contains(string(raw), want) {
				t.Errorf("%s: %s, %v", want, raw, err)
			}
		}
		built := string(c.Call("built", nil).Raw)
		for _, want := range []string{"image/png", "audio/wav", "image/x-own"} {
			if !strings.Contains(built, want) {
				t.Errorf("no %s in %s", want, built)
			}
		}
		for name := range bad {
			r, err := c.TryCall(name, nil)
			if err == nil {
				t.Errorf("%s: no error: %s", name, r.Raw)
			} else if !strings.Contains(err.Error(), "has no MIMEType") {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// shade has a text form of its own, with methods on the pointer.
type shade int

func (s *shade) MarshalText() ([]byte, error) { return []byte{'a' + byte(*s)}, nil }
func (s *shade) UnmarshalText(text []byte) error {
	if len(text) != 1 {
		return errors.New("want one letter")
	}
	*s = shade(text[0] - 'a')
	return nil
}

// bag has types whose JSON is not that of their Go kind.
type bag struct {
	URL    url.URL             `json:"url"`
	Ptr    *url.URL            `json:"ptr,omitempty"`
	Links  map[string]*url.URL `json:"links"`
	Big    map[string]big.Int  `json:"big"`
	Shades map[shade][]shade   `json:"shades"`
	Waits  []time.Duration     `json:"waits"`
	At     time.Time           `json:"at"`
	Addr   netip.Addr          `json:"addr"`
}

// A value that a client sends arrives at the function unchanged, and a result at the client.
// Behind an interface a value has the same JSON. A nil pointer is not a result.
func TestValuesPass(t *testing.T) {
	link, err := url.Parse("https://example.com/a%20b?q=1#f")
	if err != nil {
		t.Fatal(err)
	}
	whole := bag{URL: *link, Ptr: link, Links: map[string]*url.URL{"a": link}, Big: map[string]big.Int{"n": *big.NewInt(1 << 62)}, Shades: map[shade][]shade{2: {0, 1}},
		Waits: []time.Duration{time.Minute}, At: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), Addr: netip.MustParseAddr("::1")}
	s := harness.Bare(mcp.Options{})
	s.MustAdd(
		mcp.Tool("typed", func(_ *mcp.Frame, in bag) (bag, error) { return in, nil }),
		mcp.Tool("pointer", func(_ *mcp.Frame, in *bag) (*bag, error) { return in, nil }),
		mcp.Tool("any", func(_ *mcp.Frame, in bag) (any, error) { return in, nil }),
		mcp.Tool("map", func(_ *mcp.Frame, in bag) (map[string]any, error) {
			return map[string]any{"url": in.URL, "ptr": in.Ptr, "links": in.Links, "big": in.Big, "shades": in.Shades, "waits": in.Waits, "at": in.At, "addr": in.Addr}, nil
		}),
		mcp.Tool("built", func(_ *mcp.Frame, in bag) (*mcp.Result, error) { return mcp.NewResult().Structured(in), nil }),
		mcp.Tool("nil", func(*mcp.Frame, struct{}) (*bag, error) { return nil, nil }),
		mcp.Tool("nil.plain", func(*mcp.Frame, struct{}) (*struct{ N int }, error) { return nil, nil }),
		mcp.Tool("nil.of", func(*mcp.Frame, struct{}) (*mcp.ResultOf[*bag], error) { return &mcp.ResultOf[*bag]{}, nil }),
	)
	harness.InEach(t, s, func(t *testing.T, rev protocol.Revision, c *mcptest.Client) {
		for _, name := range []string{"typed", "pointer", "any", "map", "built"} {
			if got := mcptest.Call[bag](c, name, whole); !reflect.DeepEqual(got, whole) {
				t.Errorf("%s: got %+v, want %+v", name, got, whole)
			}
		}
		for _, name := range []string{"nil", "nil.plain", "nil.of"} {
			if r, err := c.TryCall(name, nil); err == nil || !strings.Contains(err.Error(), "does not match its output schema") {
				t.Errorf("%s: %v, %v", name, r, err)
			}
		}
	})
}

// Content that strict clients refuse costs the call with an error that says what to
// write, in tools and in prompts. What can be sent in another form is.
func TestContentOfHandlers(t *testing.T) {
	two, none := 2.0, math.NaN()
	png, wav, xml := []byte("\x89PNG\r\n\x1a\nrest"), []byte("RIFF\x00\x00\x00\x00WAVEfmt "), []byte("<?xml version='1.0'?><svg/>")
	link := func(uri string) mcp.Content { return mcp.ResourceLink{URI: uri, Name: "n"} }
	embedded := func(uri, kind string) mcp.Content {
		return mcp.EmbeddedResource{Resource: mcp.ResourceContents{URI: uri, MIMEType: kind, Text: "t"}}
	}
	image := func(data []byte, kind string) mcp.Content { return mcp.ImageContent{Data: data, MIMEType: kind} }
	audio := func(kind string) mcp.Content { return mcp.AudioContent{Data: wav, MIMEType: kind} }
	noScheme, noType, noImage := "has no scheme: write it as clients read the resource", "is not a media type: write it as", "name one that begins with image/"
	bad := []struct {
		content mcp.Content
		want    string
	}{
		{link(""), noScheme}, {link("a b"), noScheme}, {link("notes/a"), noScheme}, {link("/etc/passwd"), noScheme}, {link(`C:\x`), noScheme}, {link("C:/x"), noScheme}, {link("c:/"), noScheme}, {embedded("C:/x", ""), noScheme}, {link("1:a"), noScheme}, {link(":a"), noScheme},
		{link(" note://a"), noScheme}, {link("é:a"), noScheme}, {&mcp.ResourceLink{URI: "a", Name: "n"}, noScheme}, {link("//host/a"), noScheme}, {link("#f"), noScheme},
		{mcp.ResourceLink{URI: "a:b", Name: "n", MIMEType: "json"}, noType}, {embedded("", ""), noScheme}, {embedded("a.txt", ""), noScheme}, {embedded("a:b", "text"), noType}, {embedded("a:b", "text/plain;;"), noType},
		{image(png, "png"), noType}, {image(png, "image/"), noType}, {image(png, "image/p ng"), noType}, {image(png, "image"), noType}, {image(png, "image/png;x=;"), noType}, {image(png, ".png"), noType},
		{image(png, "text/plain"), noImage}, {image(png, "application/json"), noImage}, {image(wav, "audio/wav"), noImage}, {image(png, "video/mp4"), noImage}, {image([]byte("?"), "application/octet-stream"), "has no MIMEType"}, {image([]byte("?"), " \t"), "has no MIMEType"},
		{audio("wav"), noType}, {audio("image/png"), "begins with audio/"}, {audio("text/plain; charset=utf-8"), "begins with audio/"},
		{mcp.TextContent{Text: "a", Annotations: &mcp.Annotations{Priority: &two}}, "the Priority is 2"}, {mcp.ImageContent{Data: png, Annotations: &mcp.Annotations{Priority: &none}}, "the Priority is NaN"},
		{mcp.TextContent{Text: "a", Annotations: &mcp.Annotations{Audience: []mcp.Role{"model"}}}, `the Audience has "model"`}, {mcp.ResourceLink{URI: "a:b", Name: "n", Annotations: &mcp.Annotations{Audience: []mcp.Role{""}}}, `the Audience has ""`},
		{mcp.EmbeddedResource{Resource: mcp.ResourceContents{URI: "a:b"}, Annotations: &mcp.Annotations{Priority: &two}}, "the Priority is 2"},
	}
	good := []struct {
		content mcp.Content
		want    string
	}{
		{link("note://x/my notes"), "note://x/my%20notes"}, {link("note://x/ü/日"), "note://x/%C3%BC/%E6%97%A5"}, {link("note://x/a%20b"), "note://x/a%20b"}, {link("note:100%"), "note:100%25"}, {link("note:100%2"), "note:100%252"},
		{link("note://x/<{y}>"), "note://x/%3C%7By%7D%3E"}, {link("urn:isbn:1"), "urn:isbn:1"}, {link("x://a"), "x://a"}, {link("file:/C:/x"), "file:/C:/x"}, {link("https://example.com/?q=a b#c d"), "https://example.com/?q=a%20b#c%20d"}, {link("file:///C:/My Files/a"), "file:///C:/My%20Files/a"},
		{link("note://x/a\nb"), "note://x/a%0Ab"}, {link("data:text/plain,a b"), "data:text/plain,a%20b"}, {link("note:"), "note:"}, {link(`note:a\b"c`), "note:a%5Cb%22c"}, {link("a+b-c.1:x"), "a+b-c.1:x"}, {link("note:\xff"), "note:%FF"},
		{embedded("note://x/my notes", "text/plain; charset=utf-8"), "note://x/my%20notes"}, {embedded("note:a", " "), "note:a"},
		{image(png, " "), `image/png`}, {image(png, "IMAGE/PNG"), "IMAGE/PNG"}, {image(png, "image/png; q=1"), "image/png; q=1"}, {image(png, " image/x-own\n"), `"image/x-own"`}, {image(png, "application/octet-stream"), `"image/png"`},
		{image(xml, ""), "image/svg+xml"}, {image([]byte("II*\x00"), ""), "image/tiff"}, {image([]byte("\x00\x00\x00\x18ftypheic"), ""), "image/heic"},
		{audio("audio/webm; codecs=opus"), "audio/webm; codecs=opus"}, {audio("video/webm"), "video/webm"}, {audio("application/ogg"), "application/ogg"}, {audio("\t"), "audio/wav"},
	}
	s := harness.Bare(mcp.Options{})
	add := func(name string, content mcp.Content) {
		s.MustAdd(
			mcp.Tool(name, func(*mcp.Frame, struct{}) (mcp.Content, error) { return content, nil }),
			mcp.Tool(name+".built", func(*mcp.Frame, struct{}) (*mcp.Result, error) { return mcp.NewResult().Text("a").Add(content), nil }),
			mcp.Tool(name+".typed", func(*mcp.Frame, struct{}) (*mcp.ResultOf[int], error) {
				r := &mcp.ResultOf[int]{}
				r.Add(content)
				return r, nil
			}),
			mcp.Prompt(name, func(*mcp.Frame, struct{}) ([]mcp.PromptMessage, error) {
				return []mcp.PromptMessage{{Role: mcp.RoleUser, Content: content}}, nil
			}))
	}
	for i := range bad {
		add(fmt.Sprint("bad", i), bad[i].content)
	}
	for i := range good {
		add(fmt.Sprint("good", i), good[i].content)
	}
	harness.InEach(t, s, func(t *testing.T, rev protocol.Revision, c *mcptest.Client) {
		for i, tt := range bad {
			name := fmt.Sprint("bad", i)
			_, prompt := c.TryGetPrompt(name, nil)
			_, plain := c.TryCall(name, nil)
			_, built := c.TryCall(name+".built", nil)
			_, typed := c.TryCall(name+".typed", nil)
			for _, err := range []error{prompt, plain, built, typed} {
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("%+v: %v, want %q", tt.content, err, tt.want)
				}
			}
		}
		for i, tt := range good {
			_, isAudio := tt.content.(mcp.AudioContent)
			name, want := fmt.Sprint("good", i), tt.want
			if isAudio && !rev.Has(protocol.FeatureAudioContent) {
				want = strings.Trim(want, `"`)
			}
			prompt, err := json.Marshal(c.GetPrompt(name, nil).Messages)
			if err != nil {
				t.Fatal(err)
			}
			for _, raw := range []json.RawMessage{prompt, c.Call(name, nil).Raw, c.Call(name+".built", nil).Raw, c.Call(name+".typed", nil).Raw} {
				if !strings.Contains(string(raw), want) {
					t.Errorf("%+v: %s, want %s", tt.content, raw, want)
				}
			}
		}
	})
}

// A URI that clients which parse it would ask for in another form is refused,
// with that form.
func TestURIsThatClientsChange(t *testing.T) {
	read := func(*mcp.Frame) (string, error) { return "", nil }
	for uri, want := range map[string]string{
		"note://my notes":                  "note://my%20notes",
		"note:a b":                         "note:a%20b",
		"note://x/\"q\"":                   "note://x/%22q%22",
		"note://x/ü日":                      "note://x/%C3%BC%E6%97%A5",
		"note://x/100%":                    "note://x/100%25",
		"note://x/a/../b":                  "note://x/b",
		"note://x/a/%2e%2E/b":              "note://x/b",
		"file:///a/./b/..":                 "file:///a/",
		"file:/../a":                       "file:///a",
		"file:a":                           "file:///a",
		"file://LOCALHOST/a":               "file:///a",
		"file:////a":                       "",
		"file://share/a":                   "",
		"https://h.example:0443/a":         "https://h.example/a",
		"https://h.example:0080/a":         "https://h.example:80/a",
		"http://[::1]:80/a":                "http://[::1]/a",
		"http://[::1]/a":                   "",
		"http:h.example/a":                 "http://h.example/a",
		"http:/h.example/a":                "http://h.example/a",
		"http:///h.example/a":              "http://h.example/a",
		"http://Me@H.example/a":            "http://Me@h.example/a",
		"http://Me:80@h.example/a":         "",
		"https://h.example:443/a":          "https://h.example/a",
		"http://h.example:80":              "http://h.example/",
		"HTTP://H.example/A":               "http://h.example/A",
		"ws://h.example:/a?b=../c":         "ws://h.example/a?b=../c",
		"http://127.1/a":                   "http://127.0.0.1/a",
		"http://0x7f.1:81/a":               "http://127.0.0.1:81/a",
		"http://2130706433./a":             "http://127.0.0.1/a",
		"http://010.0.0.1/a":               "http://8.0.0.1/a",
		"http://127.0.0.1/a":               "",
		"http://1.2.3.4.5/a":               "",
		"http://1.2.3.400/a":               "",
		"http://127.1.example/a":           "",
		"http://[0:0::1]/a":                "http://[::1]/a",
		"http://[::FFFF:1.2.3.4]:8/a":      "http://[::ffff:102:304]:8/a",
		"note://127.1/a":                   "",
		"note://x/a\tb":                    "note://x/a%09b",
		"note://it's":                      "",
		"config:a/../b":                    "",
		"note://x//a":                      "",
		"note://x?y=a/../b#c/./d":          "",
		"http://h.example:8080/a/b":        "",
		"http://h.example/?x=%C3%BC&y=[1]": "",
		"urn:isbn:1":                       "",
	} {
		for _, c := range []mcp.Component{mcp.Resource(uri, read), mcp.Bytes(uri, []byte("x"))} {
			err := harness.Bare(mcp.Options{}).Add(c)
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), `"`+want+`"`)) {
				t.Errorf("%q: %v, want %q", uri, err, want)
			}
		}
	}
	type in struct {
		A string `json:"a"`
	}
	readOne := func(*mcp.Frame, in) (string, error) { return "", nil }
	for uri, want := range map[string]string{
		"https://h.example:443/{a}": `"https://h.example/"`,
		"note://x/b/../{a}":         `"note://x/"`,
		"note://x/ü/{a}":            `"ü"`,
		"note://{a}":                "",
		"https://h.example/b/.{a}":  "",
		"note:{a}":                  "",
	} {
		err := harness.Bare(mcp.Options{}).Add(mcp.Template(uri, readOne))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("template %q: %v, want %s", uri, err, want)
		}
	}
}

// A tool with a schema of its own gets arguments as a typed tool does: with defaults, and
// read as what they mean. Strict leaves them as they are.
func TestInputSchemaForgives(t *testing.T) {
	const own = `{"type":"object","properties":{"n":{"type":"integer"},"limit":{"type":"integer","default":10},
		"tags":{"type":"array","items":{"type":"string"}},"bad":{"type":"integer","default":"x"}},"required":["n"]}`
	type typed struct {
		N     int      `json:"n"`
		Limit int      `json:"limit"`
		Tags  []string `json:"tags"`
	}
	text := func(_ *mcp.Frame, in json.RawMessage) (string, error) { return string(in), nil }
	fields := func(_ *mcp.Frame, in typed) (string, error) { return fmt.Sprint(in.N, in.Limit, in.Tags), nil }
	var log harness.LogText
	logger := zerolog.New(&log)
	schemaOf := mcp.InputSchema(json.RawMessage(own))
	s := mcp.NewServer(mcp.Info{Name: "own", Version: "1"}, &mcp.Options{Logger: &logger})
	s.MustAdd(mcp.Tool("raw", text, schemaOf), mcp.Tool("typed", fields, schemaOf), mcp.Tool("strict", text, schemaOf, mcp.Strict()))
	if got := log.String(); strings.Count(got, "/properties/bad/default") != 2 || !strings.Contains(got, "must be an integer") {
		t.Errorf("the log says %s", got)
	}
	all := harness.Bare(mcp.Options{Schema: &schema.Options{Strict: true}})
	all.MustAdd(mcp.Tool("strict", text, schemaOf))
	for _, tt := range []struct{ tool, arguments, want string }{
		{"raw", `{"n":"7"}`, `{"limit":10,"n":7}`},
		{"raw", `{"n":7.0,"limit":null,"tags":"a"}`, `{"limit":10,"n":7,"tags":["a"]}`},
		{"raw", `{"n":7,"limit":1}`, `{"n":7,"limit":1}`},
		{"raw", `{"n":"seven"}`, "/n: must be an integer"},
		{"raw", `{}`, "/n: is required"},
		{"typed", `{"n":"7","tags":"[\"a\",\"b\"]"}`, `7 10 [a b]`},
		{"typed", `{"n":7e0}`, `7 10 []`},
		{"strict", `{"n":7}`, `{"n":7}`},
		{"strict", `{"n":"7"}`, "/n: must be an integer"},
	} {
		check := func(t *testing.T, rev protocol.Revision, c *mcptest.Client) {
			if got := c.Call(tt.tool, json.RawMessage(tt.arguments)).Text(); got != tt.want && (tt.want[0] != '/' || !strings.Contains(got, tt.want)) {
				t.Errorf("%s %s: got %s, want %s", tt.tool, tt.arguments, got, tt.want)
			}
		}
		harness.InEach(t, s, check)
		if tt.tool == "strict" {
			harness.InEach(t, all, check)
		}
	}
}

// The headers that a schema of a tool's own asks for are compared with the arguments, and
// ones that clients refuse are refused by Add.
func TestInputSchemaHeaders(t *testing.T) {
	tool := func(schema string) mcp.Component {
		return mcp.Tool("where", func(_ *mcp.Frame, in json.RawMessage) (string, error) { return string(in), nil }, mcp.InputSchema(json.RawMessage(schema)))
	}
	s := harness.Bare(mcp.Options{})
	s.MustAdd(tool(`{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`))
	for header, want := range map[string]string{"eu": "", "us": "does not match argument region"} {
		c := mcptest.New(t, s, mcptest.Revision(protocol.V20260728), mcptest.OverHTTP(), mcptest.Header("Mcp-Param-Region", header))
		_, err := c.TryCall("where", map[string]string{"region": "eu"})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("header %s: %v, want %q", header, err, want)
		}
	}
	for schema, want := range map[string]string{
		`{"type":"object","properties":{"a":{"type":"number","x-mcp-header":"A"}}}`:                          "InputSchema: /a: x-mcp-header",
		`{"type":"object","properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}`: "more than properties",
	} {
		if err := harness.Bare(mcp.Options{}).Add(tool(schema)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", schema, err, want)
		}
	}
}
