package hosts

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"reflect"
	"strings"
	"testing"
)

// decoded reads a link as the host does.
func decoded(t *testing.T, id string, link Link) (name string, content map[string]any) {
	t.Helper()
	u, err := url.Parse(link.URL)
	if err != nil {
		t.Fatal(err)
	}
	var text []byte
	switch id {
	case "cursor":
		if u.Scheme != "cursor" || u.Host != "anysphere.cursor-deeplink" || u.Path != "/mcp/install" {
			t.Errorf("got %s", link.URL)
		}
		name = u.Query().Get("name")
		text, err = base64.StdEncoding.DecodeString(u.Query().Get("config"))
		if web, ok := strings.CutPrefix(link.Web, "https://cursor.com/en/install-mcp?"); !ok || web != u.RawQuery {
			t.Errorf("got %s", link.Web)
		}
	case "vscode":
		if u.Scheme != "vscode" || u.Opaque != "mcp/install" {
			t.Errorf("got %s", link.URL)
		}
		var plain string
		plain, err = url.PathUnescape(u.RawQuery) // where + is no blank, as decodeURIComponent has it
		text = []byte(plain)
		if web, parseErr := url.Parse(link.Web); parseErr != nil || web.Host != "vscode.dev" || web.Query().Get("url") != link.URL {
			t.Errorf("got %s", link.Web)
		}
	}
	if err == nil {
		err = json.Unmarshal(text, &content)
	}
	if err != nil {
		t.Fatalf("%s: %v", link.URL, err)
	}
	var shown map[string]any
	if err := json.Unmarshal(link.Content, &shown); err != nil || !reflect.DeepEqual(shown, content) {
		t.Errorf("shown are %v, %v, and the link has %v", shown, err, content)
	}
	if id == "vscode" {
		name, _ = content["name"].(string)
	}
	return name, content
}

// What goes into a link comes out of it, but for values of variables and headers.
func TestLink(t *testing.T) {
	command := Server{Name: "weather", Command: "npx", Args: []string{"-y", "a b&c+d", "ü"}, Env: map[string]string{"KEY": "sk-live"}}
	remote := Server{Name: "weather", URL: "https://example.com/mcp", Headers: map[string]string{"X-Key": "sk-live"}}
	for _, test := range []struct {
		host   string
		server Server
		want   string
	}{
		{"cursor", command, `{"command":"npx","args":["-y","a b&c+d","ü"],"env":{"KEY":"${env:KEY}"}}`},
		{"cursor", remote, `{"url":"https://example.com/mcp","headers":{"X-Key":"${env:X_KEY}"}}`},
		{"vscode", command, `{"name":"weather","type":"stdio","command":"npx","args":["-y","a b&c+d","ü"],"env":{"KEY":"${input:env-KEY}"},
			"inputs":[{"id":"env-KEY","type":"promptString","description":"KEY","password":true}]}`},
		{"vscode", remote, `{"name":"weather","type":"http","url":"https://example.com/mcp","headers":{"X-Key":"${input:header-X-Key}"},
			"inputs":[{"id":"header-X-Key","type":"promptString","description":"X-Key","password":true}]}`},
		{"vscode", Server{Name: "a", Command: "b"}, `{"name":"a","type":"stdio","command":"b","args":[]}`},
	} {
		link, err := LinkTo(host(t, test.host), test.server)
		if err != nil {
			t.Fatal(err)
		}
		var want map[string]any
		if err := json.Unmarshal([]byte(test.want), &want); err != nil {
			t.Fatal(err)
		}
		name, got := decoded(t, test.host, link)
		if name != test.server.Name || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %q, %v, want %v", test.host, name, got, want)
		}
	}
}

func TestLinkFaults(t *testing.T) {
	for _, test := range []struct {
		host   string
		server Server
		want   string
	}{
		{"cursor", Server{Name: "a b", Command: "x"}, "is not a name for a server"},
		{"cursor", Server{Name: "a", URL: "https://u:p@example.com/"}, "the URL has a user or a password"},
		{"cursor", Server{Name: "a", URL: "https://example.com/?k=1"}, "the URL has a query"},
		{"cursor", Server{Name: "a", URL: "https://example.com/?"}, "the URL has a query"},
		{"vscode", Server{Name: "a", URL: "https://example.com/#k"}, "the URL has a query or a fragment"},
		{"vscode", Server{Name: "a", URL: "unix:/tmp/s"}, "only http and https URLs"},
		{"vscode", Server{Name: "a", URL: "https:///x"}, "only http and https URLs"},
		{"vscode", Server{Name: "a", URL: "https://exa mple/sk-live"}, "it is no URL"},
		{"vscode", Server{Name: "a", Command: "x", Dir: "/tmp"}, "a directory of this machine"},
		{"vscode", Server{Name: "a", Command: "x", Env: map[string]string{"A}": ""}}, "is not a name of a variable"},
		{"vscode", Server{Name: "a", Command: "x", Args: []string{"\xff"}}, "not valid UTF-8"},
		{"gemini", Server{Name: "a", Command: "x"}, "it has no links that install servers; there are links for cursor and vscode"},
	} {
		if link, err := LinkTo(host(t, test.host), test.server); err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "sk-live") {
			t.Errorf("%+v: got %s, %v, want %s", test.server, link.URL, err, test.want)
		}
	}
	if _, err := LinkTo(host(t, "gemini"), Server{Name: "a", Command: "x"}); !errors.Is(err, ErrLinkless) {
		t.Errorf("got %v, want ErrLinkless", err)
	}
}

// No value of a variable or header is in any link, however it is written there,
// and what is in one reads back as it went in.
func FuzzLink(f *testing.F) {
	f.Add("weather", "npx", "-y a b", "KEY", "sk-live-1")
	f.Add("w", "https://example.com/mcp", "", "X-Key", "Bearer \"x\" & <y>")
	f.Add("w", "https://u:p@example.com/mcp?k=v", "", "X", "value")
	f.Fuzz(func(t *testing.T, name, target, args, key, value string) {
		s := Server{Name: name}
		if strings.Contains(target, "://") {
			s.URL, s.Headers = target, map[string]string{key: value}
		} else {
			s.Command, s.Args, s.Env = target, strings.Split(args, " "), map[string]string{key: value}
		}
		without := s
		if s.Env != nil {
			without.Env = map[string]string{key: ""}
		} else {
			without.Headers = map[string]string{key: ""}
		}
		for _, id := range Linked() {
			link, err := LinkTo(host(t, id), s)
			bare, bareErr := LinkTo(host(t, id), without)
			if (err == nil) != (bareErr == nil) || link.URL != bare.URL || link.Web != bare.Web || string(link.Content) != string(bare.Content) {
				t.Fatalf("the value %q changes the link: %+v, %v and %+v, %v", value, link, err, bare, bareErr)
			}
			if err != nil {
				if value != "" && !strings.Contains(name+target+args+key, value) && strings.Contains(err.Error(), value) && len(value) > 12 {
					t.Fatalf("the error has the value: %v", err)
				}
				continue
			}
			got, content := decoded(t, id, link)
			if got != name {
				t.Fatalf("got %q, want %q", got, name)
			}
			if s.URL != "" && (content["url"] != target || strings.ContainsAny(target, "?#@") && plain(target) != nil) {
				t.Fatalf("got %v, want %s", content, target)
			}
			if s.URL == "" {
				list := content["args"].([]any)
				if content["command"] != target || len(list) != len(s.Args) {
					t.Fatalf("got %v, want %+v", content, s)
				}
				for i, arg := range s.Args {
					if list[i] != arg {
						t.Fatalf("got %v, want %+v", content, s)
					}
				}
			}
		}
	})
}

// A file that others get has references to variables, and no values.
func TestShare(t *testing.T) {
	for _, test := range []struct{ host, value, want string }{
		{"claude-code", "${KEY}", "${KEY}"},
		{"gemini", "Bearer ${KEY}", "Bearer ${KEY}"},
		{"cursor", "${KEY}", "${env:KEY}"},
		{"vscode", "Bearer ${KEY_2}", "Bearer ${env:KEY_2}"},
		{"vscode", "sk-live", ""},
		{"vscode", "${KEY:-sk-live}", ""},
		{"vscode", "sk-live${KEY}", ""},
		{"vscode", "${KEY}\nsk-live", ""},
		{"vscode", "${}", ""},
	} {
		got, err := Share(host(t, test.host), Server{Env: map[string]string{"A": test.value}})
		if test.want == "" {
			if !errors.Is(err, ErrShared) || strings.Contains(err.Error(), "sk-live") {
				t.Errorf("%s: got %v, %v, want ErrShared", test.value, got, err)
			}
		} else if err != nil || got.Env["A"] != test.want {
			t.Errorf("%s: got %v, %v, want %s", test.value, got, err, test.want)
		}
		if _, err := Share(host(t, test.host), Server{URL: "https://example.com/", Headers: map[string]string{"A": test.value}}); (err == nil) != (test.want != "") {
			t.Errorf("%s: got %v", test.value, err)
		}
	}
	if _, err := Share(host(t, "cursor"), Server{URL: "https://example.com/?key=1"}); err == nil || !strings.Contains(err.Error(), "query") {
		t.Errorf("got %v", err)
	}
}
