package bundle

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// valid is a manifest with everything that pack looks at.
const valid = `{
  "manifest_version": "0.3",
  "name": "orders",
  "version": "1.2.0",
  "description": "Orders of the shop",
  "author": {"name": "The shop"},
  "server": {
    "type": "binary",
    "entry_point": "server/orders",
    "mcp_config": {
      "command": "${__dirname}/server/orders",
      "args": ["--dir", "${user_config.folder}", "${HOME}/x"],
      "env": {"ORDERS_KEY": "${user_config.key}"}
    }
  },
  "compatibility": {"claude_desktop": ">=1.0.0", "platforms": ["linux", "win32"]},
  "user_config": {
    "key": {"type": "string", "title": "Key", "description": "of the shop", "sensitive": true, "required": true},
    "folder": {"type": "directory", "title": "Folder", "description": "of reports", "default": "${HOME}/reports"}
  }
}`

// Each fault is told with its place and with what to write instead.
func TestManifestFaults(t *testing.T) {
	if _, err := Read([]byte(valid)); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ old, new, want string }{
		{`"0.3"`, `"9"`, "/manifest_version"},
		{`"name": "orders"`, `"name": "my orders"`, `/name: must have 1 to 64 letters, digits, '.', '_' and '-'`},
		{`"name": "orders"`, `"name": "../orders"`, "/name"},
		{`"1.2.0"`, `"1.2"`, "/version"},
		{`"1.2.0"`, `12`, "/version: must be a semantic version such as 1.2.3; got 12"},
		{`"description": "Orders of the shop",`, ``, "/description"},
		{`{"name": "The shop"}`, `{}`, "/author/name"},
		{`{"name": "The shop"}`, `{"name": "a", "mail": "x"}`, "/author/mail: unknown property; did you mean /author/email?"},
		{`"author"`, `"homepage": "example", "author"`, "/homepage: must be an absolute URL"},
		{`"author"`, `"name": "again", "author"`, "/name: is there twice"},
		{`"binary"`, `"node"`, "/server/type"},
		{`"server/orders"`, `"../orders"`, `/server/entry_point: "../orders" is no path within a bundle; write one such as server/orders`},
		{`"server/orders"`, `".hidden/orders"`, "/server/entry_point"},
		{`${__dirname}/server/orders`, `orders`, `/server/mcp_config/command: it is "orders", and a bundle starts the program that it brings; write "${__dirname}/server/orders"`},
		{`"env"`, `"platform_overrides": {"win32": {"env": {"A": "sk-live"}}}, "env"`, "/server/mcp_config/platform_overrides: a bundle is for one platform"},
		{`${user_config.folder}`, `${user_config.dir}`, `/server/mcp_config/args/1: user_config has no "dir"`},
		{`${user_config.folder}`, `--key=${user_config.key}`, `/server/mcp_config/args/1: "key" is sensitive`},
		{`${HOME}/x`, `${SHOP_KEY}`, "/server/mcp_config/args/2: hosts know no variable ${SHOP_KEY}"},
		{`${user_config.key}`, `${user_config.kye}`, `/server/mcp_config/env/ORDERS_KEY: user_config has no "kye"`},
		{`${user_config.key}`, `sk-live-1`, "/server/mcp_config/env/ORDERS_KEY: it has a value of its own"},
		{`${user_config.key}`, `Bearer ${user_config.key}`, "it has a value of its own"},
		{`${user_config.key}`, `${user_config.key}${user_config.folder}`, "it has a value of its own"},
		{`${user_config.key}`, `${__dirname}sk-live-1`, "it has a value of its own"},
		{`${user_config.key}`, `${__dirname}/../sk-live-1`, "it has a value of its own"},
		{`${user_config.key}`, `${HOME}/sk-live-1`, "it has a value of its own"},
		{`${user_config.key}`, `${SHOP_KEY}`, "it has a value of its own"},
		{`"sensitive": true,`, `"sensitive": true, "default": "sk-live-1",`, "/user_config/key/default: a sensitive setting has no default"},
		{`"type": "string", "title": "Key"`, `"type": "number", "title": "Key"`, `/user_config/key/sensitive: only strings are kept as secrets; write "type": "string"`},
		{`"default": "${HOME}/reports"`, `"default": {"a": 1}`, "/user_config/folder/default: must be a string"},
		{`"default": "${HOME}/reports"`, `"default": [1]`, "/user_config/folder/default: must be a string"},
		{`"default": "${HOME}/reports"`, `"default": null`, "/user_config/folder/default"},
		{`"folder":`, `"a}b":`, "/user_config/a}b"},
		{`["linux", "win32"]`, `["windows"]`, "/compatibility/platforms/0"},
		{`"claude_desktop": ">=1.0.0"`, `"runtimes": {"node": ">=18"}`, "/compatibility/runtimes/node: a program of Go needs none"},
		{`"author"`, `"prompts": [{"name": "a"}], "author"`, "/prompts/0/text"},
		{`"author"`, `"icons": [{"src": "a.png", "size": "big"}], "author"`, `/icons/0/size: must be WIDTHxHEIGHT`},
		{`"author"`, `"localization": {"resources": "a.json", "default_locale": "en"}, "author"`, "/localization/resources"},
		{`"0.3",`, `"0.2", "icons": [{"src": "a.png", "size": "1x1"}],`, "/icons"},
		{valid, `[]`, "must be an object"},
		{valid, "\xef\xbb\xbf{}", "is not valid JSON"},
		{valid, `{"name": "` + strings.Repeat("a", MaxManifest) + `"}`, "at most 1048576 may be in a manifest"},
	} {
		text := strings.Replace(valid, test.old, test.new, 1)
		if text == valid {
			t.Fatalf("%q is not there", test.old)
		}
		_, err := Read([]byte(text))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %s", test.new, err, test.want)
		}
		if err != nil && strings.Contains(err.Error(), "sk-live") {
			t.Errorf("the error has the secret: %v", err)
		}
	}
}

// The manifest of a bundle is the one that was written, with what follows from the
// target.
func TestFitted(t *testing.T) {
	m, err := Read([]byte(valid))
	if err != nil {
		t.Fatal(err)
	}
	for target, want := range map[Target][3]string{
		{"linux", "arm64"}:   {"linux", "server/orders", "orders-1.2.0-linux-arm64.mcpb"},
		{"windows", "amd64"}: {"win32", "server/orders.exe", "orders-1.2.0-windows-amd64.mcpb"},
	} {
		text, err := m.fitted([]byte(valid), target)
		if err != nil {
			t.Fatal(err)
		}
		var got Manifest
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if c := got.Compatibility; c.ClaudeDesktop != ">=1.0.0" || len(c.Platforms) != 1 || c.Platforms[0] != want[0] {
			t.Errorf("%s: got %+v", target, c)
		}
		if s := got.Server; s.EntryPoint != want[1] || s.Config.Command != "${__dirname}/"+want[1] || s.Config.Env["ORDERS_KEY"] != "${user_config.key}" {
			t.Errorf("%s: got %+v", target, s)
		}
		if !got.ToolsGenerated || !got.PromptsLater || got.Prompts != nil {
			t.Errorf("%s: got %+v", target, got)
		}
		if name := FileName(m, target); name != want[2] {
			t.Errorf("%s: got %s", target, name)
		}
	}
	if err := (Target{"darwin", "arm64"}).fits(m); err == nil || !strings.Contains(err.Error(), `/compatibility/platforms: has no "darwin"`) {
		t.Errorf("got %v", err)
	}
}

// The manifest of the example is fine.
func TestExample(t *testing.T) {
	text, err := os.ReadFile("../../../../examples/bundle/manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Read(text); err != nil {
		t.Error(err)
	}
}

func TestParseTarget(t *testing.T) {
	for text, want := range map[string]string{"linux": "write GOOS/GOARCH", "linux/": "write GOOS/GOARCH", "linux/a b": "write GOOS/GOARCH",
		"plan9/amd64": "there are no bundles for", "linux/../x": "write GOOS/GOARCH"} {
		if got, err := ParseTarget(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
	}
}
