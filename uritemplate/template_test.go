package uritemplate_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/uritemplate"
)

// rfc are the variables of RFC 6570, section 3.2.
var rfc = uritemplate.Values{
	"count": {"one", "two", "three"}, "dom": {"example", "com"}, "dub": {"me/too"}, "hello": {"Hello World!"},
	"half": {"50%"}, "var": {"value"}, "who": {"fred"}, "base": {"http://example.com/home/"}, "path": {"/foo/bar"},
	"list": {"red", "green", "blue"}, "v": {"6"}, "x": {"1024"}, "y": {"768"}, "empty": {""}, "undef": nil,
}

func TestExpand(t *testing.T) {
	tests := []struct{ template, want string }{
		{"{count}", "one,two,three"}, {"{count*}", "one,two,three"}, {"{/count}", "/one,two,three"},
		{"{/count*}", "/one/two/three"}, {"{;count}", ";count=one,two,three"}, {"{;count*}", ";count=one;count=two;count=three"},
		{"{?count}", "?count=one,two,three"}, {"{?count*}", "?count=one&count=two&count=three"},
		{"{&count*}", "&count=one&count=two&count=three"},
		{"{var}", "value"}, {"{hello}", "Hello%20World%21"}, {"{half}", "50%25"}, {"O{empty}X", "OX"}, {"O{undef}X", "OX"},
		{"{x,y}", "1024,768"}, {"{x,hello,y}", "1024,Hello%20World%21,768"}, {"?{x,empty}", "?1024,"}, {"?{undef,y}", "?768"},
		{"{+hello}", "Hello%20World!"}, {"{+half}", "50%25"}, {"{base}index", "http%3A%2F%2Fexample.com%2Fhome%2Findex"},
		{"{+base}index", "http://example.com/home/index"}, {"{+path}/here", "/foo/bar/here"}, {"{+x,hello,y}", "1024,Hello%20World!,768"},
		{"{+list}", "red,green,blue"}, {"{#var}", "#value"}, {"{#hello}", "#Hello%20World!"}, {"foo{#empty}", "foo#"},
		{"foo{#undef}", "foo"}, {"{#path,x}/here", "#/foo/bar,1024/here"}, {"{.who}", ".fred"}, {"{.dom*}", ".example.com"},
		{"X{.empty}", "X."}, {"X{.undef}", "X"}, {"{/who,dub}", "/fred/me%2Ftoo"}, {"{/var,empty}", "/value/"},
		{"{;x,y,empty}", ";x=1024;y=768;empty"}, {"{;hello}", ";hello=Hello%20World%21"}, {"{;v,empty,who}", ";v=6;empty;who=fred"},
		{"{?x,y}", "?x=1024&y=768"}, {"{?x,y,undef}", "?x=1024&y=768"}, {"{?x,empty}", "?x=1024&empty="},
		{"?fixed=yes{&x}", "?fixed=yes&x=1024"}, {"{&x,y,empty}", "&x=1024&y=768&empty="},
	}
	for _, test := range tests {
		template, err := uritemplate.Parse(test.template)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := template.Expand(rfc); got != test.want {
			t.Errorf("%s: got %s, want %s", test.template, got, test.want)
		}
	}
}

func TestMatch(t *testing.T) {
	tests := []struct{ template, uri, want string }{
		{"users://{id}/profile", "users://7/profile", "id=7"},
		{"users://{id}/profile", "users://a%20b%2Fc/profile", "id=a b/c"},
		{"users://{id}/profile", "users:///profile", ""},
		{"users://{id}/profile", "users://1/2/profile", "no"},
		{"users://{id}/profile", "users://7/profile?x=1", "no"},
		{"users://{id}/profile", "users://7/profile\n", "no"},
		{"users://{id}/profile", "users://%zz/profile", "no"},
		{"users://{id}/profile", "users://%ff/profile", "no"},
		{"users://{id}/profile", "Users://7/profile", "no"},
		{"a:{x,y}", "a:1,2", "x=1 y=2"},
		{"a:{x,y}", "a:1", "x=1"},
		{"a:{list}", "a:red,green", "list=red|green"},
		{"a:{list}", "a:red%2Cgreen", "list=red,green"},
		{"file:///{+path}", "file:///a/b.txt", "path=a/b.txt"},
		{"file:///{+path}", "file:///a/b.txt#top", "no"},
		{"file:///{+path}/meta", "file:///a/meta/meta", "path=a/meta"},
		{"file:///{+path}{?rev}", "file:///a/b?rev=2", "path=a/b rev=2"},
		{"a:{+path}", "a:b?c=d", "path=b?c=d"},
		{"a:b{#part}", "a:b#c/d?e", "part=c/d?e"},
		{"a:b{#part}", "a:b", ""},
		{"a:{name}{.ext}", "a:report.tar.gz", "ext=tar.gz name=report"},
		{"a:x{.dom*}", "a:x.example.com", "dom=example|com"},
		{"a:{/dirs*}", "a:/x/y%2Fz", "dirs=x|y/z"},
		{"a:{/a,b}", "a:/1", "a=1"},
		{"a:{/a,b}", "a:/1/2", "a=1 b=2"},
		{"a:b{;v,who}", "a:b;who=fred;v=6", "v=6 who=fred"},
		{"a:b{;v}", "a:b;v", "v="},
		{"a:b{?q,limit}", "a:b?limit=5&q=x%26y", "limit=5 q=x&y"},
		{"a:b{?q,limit}", "a:b", ""},
		{"a:b{?q,limit}", "a:b?q=", "q="},
		{"a:b{?q}", "a:b?q=1&q=2", "no"},
		{"a:b{?q}", "a:b?other=1", "no"},
		{"a:b{?q}", "a:b?q=a+b", "q=a+b"},
		{"a:b{?tags*}", "a:b?tags=x&tags=y,z", "tags=x|y,z"},
		{"a:b{?tags}", "a:b?tags=x,y", "tags=x|y"},
		{"a:b?fixed=1{&q}", "a:b?fixed=1&q=2", "q=2"},
		{"a:b{?x}{&y}", "a:b?y=2&x=1", "x=1 y=2"},
		{"a:b", "a:b", ""},
		{"a:b", "a:bc", "no"},
	}
	for _, test := range tests {
		template, err := uritemplate.Parse(test.template)
		if err != nil {
			t.Error(err)
			continue
		}
		values, ok := template.Match(test.uri)
		got := "no"
		if ok {
			var list []string
			for _, name := range slices.Sorted(maps.Keys(values)) {
				list = append(list, name+"="+strings.Join(values[name], "|"))
			}
			got = strings.Join(list, " ")
		}
		if got != test.want {
			t.Errorf("%s against %s: got %q, want %q", test.template, test.uri, got, test.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	tests := []struct{ template, want string }{
		{"a:{b", "lacks its }"}, {"a:b}", "without its {"}, {"a:{}", "is no variable"}, {"a:{b-c}", `"b-c" is no variable`},
		{"a:{b}/{b}", `variable "b" is there twice`}, {"a:{b:3}", "prefix"}, {"a:{=b}", "reserved"}, {"a:{b}{c}", "cannot be told apart"},
		{"a:{b}{+c}", "cannot be told apart"}, {"a:{+b}{/c}", "cannot be told apart"}, {"a:{/b*}{/c}", "cannot be told apart"},
		{"a: b", "percent-encoded"}, {"a:%2", "starts no escape"}, {"a:ö", `the character "ö" must be percent-encoded, as %C3%B6`}, {"a:日{b}", `"日" must be percent-encoded, as %E6%97%A5`}, {"a:\xff", "as %FF"}, {"a:{b,}", "is no variable"},
	}
	for _, test := range tests {
		if _, err := uritemplate.Parse(test.template); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got error %v, want one with %q", test.template, err, test.want)
		}
	}
}

func ExampleTemplate() {
	t, err := uritemplate.Parse("users://{id}/files/{+path}")
	if err != nil {
		panic(err)
	}
	values, ok := t.Match("users://7/files/a/b%20c.txt")
	fmt.Println(ok, values["id"], values["path"])
	fmt.Println(t.Expand(values))
	// Output:
	// true [7] [a/b c.txt]
	// users://7/files/a/b%20c.txt
}
