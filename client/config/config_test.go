package config_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/client/config"
)

// configEnv is the environment of these tests.
func configEnv(name string) (string, bool) {
	value, ok := map[string]string{"TOKEN": "s3cret", "EMPTY": "", "NESTED": "${TOKEN}"}[name]
	return value, ok
}

func TestConfigServers(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       config.Server
	}{
		{"a command", `{"mcpServers":{"x":{"command":"npx","args":["-y","@scope/server",7],"env":{"A":"1","PORT":8080,"DEBUG":true,"GONE":null},"cwd":"/srv"}}}`,
			config.Server{Type: "stdio", Command: "npx", Args: []string{"-y", "@scope/server", "7"}, Env: map[string]string{"A": "1", "PORT": "8080", "DEBUG": "true"}, Dir: "/srv"}},
		{"a URL", `{"mcpServers":{"x":{"url":"https://example.com/mcp","headers":{"Authorization":"Bearer ${env:TOKEN}"}}}}`,
			config.Server{Type: "http", URL: "https://example.com/mcp", Headers: map[string]string{"Authorization": "Bearer s3cret"}}},
		{"an older URL", `{"mcpServers":{"x":{"type":"sse","url":"http://localhost:1/sse"}}}`, config.Server{Type: "sse", URL: "http://localhost:1/sse"}},
		{"a socket by its scheme", `{"mcpServers":{"x":{"url":"wss://example.com/mcp"}}}`, config.Server{Type: "ws", URL: "wss://example.com/mcp"}},
		{"a socket by its type", `{"mcpServers":{"x":{"type":"ws","url":"https://example.com/mcp"}}}`, config.Server{Type: "ws", URL: "https://example.com/mcp"}},
		{"Windsurf", `{"mcpServers":{"x":{"serverUrl":"https://example.com/mcp"}}}`, config.Server{Type: "http", URL: "https://example.com/mcp"}},
		{"Gemini", `{"mcpServers":{"x":{"httpUrl":"https://example.com/mcp"}}}`, config.Server{Type: "http", URL: "https://example.com/mcp"}},
		{"Cline", `{"mcpServers":{"x":{"type":"streamableHttp","url":"https://example.com/mcp","autoApprove":[],"timeout":60}}}`, config.Server{Type: "http", URL: "https://example.com/mcp"}},
		{"VS Code", "// servers\n{\"servers\":{\"x\":{\"type\":\"stdio\",\"command\":\"go\", /* why */ \"args\":[\"run\",\"//not a comment\",],},},}", config.Server{Type: "stdio", Command: "go", Args: []string{"run", "//not a comment"}}},
		{"settings of VS Code", `{"editor.tabSize":2,"mcp":{"servers":{"x":{"command":"go"}}}}`, config.Server{Type: "stdio", Command: "go"}},
		{"with a byte order mark", "\xef\xbb\xbf{\"mcpServers\":{\"x\":{\"command\":\"go\"}}}", config.Server{Type: "stdio", Command: "go"}},
		{"with a mark before spaces", "\ufeff\r\n {\r\n\"mcpServers\":{\"x\":{\"command\":\"go\"}}}", config.Server{Type: "stdio", Command: "go"}},
		{"null", `{"inputs":null,"servers":null,"mcpServers":{"x":{"type":null,"command":"go","args":null,"env":null,"envFile":null,"cwd":null,"url":null,"headers":null,"disabled":null,"enabled":null}}}`,
			config.Server{Type: "stdio", Command: "go"}},
		{"half a pair", `{"mcpServers":{"x":{"command":"go","args":["\ud83d"],"note":"\udc00"}}}`, config.Server{Type: "stdio", Command: "go", Args: []string{"\ufffd"}}},
		{"numbers", `{"version":1.0,"mcpServers":{"x":{"command":"go","timeout":6e4,"args":[8080.0]}}}`, config.Server{Type: "stdio", Command: "go", Args: []string{"8080.0"}}},
		{"UTF-16 of Windows", utf16le("\ufeff{\r\n\"mcpServers\":{\"x\":{\"command\":\"gö\"}}}\r\n"), config.Server{Type: "stdio", Command: "gö"}},
		{"lines of Windows", "{\r\n// ends with the line\r\n\"mcpServers\": {\r\n\"x\": { /* a, */ \"command\": \"go\", // last\r\n},\r\n},\r\n}\r\n", config.Server{Type: "stdio", Command: "go"}},
		{"a comma before a comment", `{"mcpServers":{"x":{"command":"go","args":["a", /* b */],// c
			}}}`, config.Server{Type: "stdio", Command: "go", Args: []string{"a"}}},
		{"comments in texts", `{"mcpServers":{"x":{"command":"go","args":["/*","//","\"/*,]"]}}}`, config.Server{Type: "stdio", Command: "go", Args: []string{"/*", "//", `"/*,]`}}},
		{"Claude Code", `{"mcpServers":{"x":{"type":"http","url":"${BASE:-https://example.com}/mcp","headersHelper":"get-token","oauth":{"clientId":"c","callbackPort":8080},"timeout":600000}},"projects":{"/home/me":{"mcpServers":{}}}}`,
			config.Server{Type: "http", URL: "https://example.com/mcp"}},
		{"Claude Desktop", `{"globalShortcut":"","preferences":{"x":1},"mcpServers":{"x":{"command":"node","args":["${HOME:-/}a.js"],"env":{"K":"${user_config.key}"}}}}`,
			config.Server{Type: "stdio", Command: "node", Args: []string{"/a.js"}, Env: map[string]string{"K": "${user_config.key}"}}},
		{"Cursor", `{"mcpServers":{"x":{"url":"https://example.com/mcp","headers":{"A":"${env:TOKEN}"},"auth":{"CLIENT_ID":"c","scopes":["a"]}}}}`,
			config.Server{Type: "http", URL: "https://example.com/mcp", Headers: map[string]string{"A": "s3cret"}}},
		{"Windsurf with its lists", `{"mcpServers":{"x":{"serverUrl":"https://example.com/mcp","disabled":false,"disabledTools":["a"],"headers":{"API_KEY":"Bearer ${env:TOKEN}"}}}}`,
			config.Server{Type: "http", URL: "https://example.com/mcp", Headers: map[string]string{"API_KEY": "Bearer s3cret"}}},
		{"VS Code with its fields", `{"inputs":[{"type":"pickString","id":"p","options":[{"label":"one","value":"1"},"2",3,null],"default":2},{"type":"command","id":"c","command":"x.y","args":{}},7,{"id":["x"]}],
			"servers":{"x":{"type":"stdio","command":"go","args":["${input:p}"],"gallery":true,"version":"1","dev":{"watch":"**/*.js","debug":{"type":"node"}}}}}`,
			config.Server{Type: "stdio", Command: "go", Args: []string{"2"}}},
		{"a type in other letters", `{"mcpServers":{"x":{"type":"StreamableHTTP","url":"https://example.com/mcp"}}}`, config.Server{Type: "http", URL: "https://example.com/mcp"}},
		{"Copilot", `{"mcpServers":{"x":{"type":"local","command":"go","tools":["*"],"args":[]}}}`, config.Server{Type: "stdio", Command: "go", Args: []string{}}},
		{"disabled", `{"mcpServers":{"x":{"disabled":true,"command":"${env:NONE}"}}}`, config.Server{Disabled: true}},
		{"not enabled", `{"mcpServers":{"x":{"enabled":false}}}`, config.Server{Disabled: true}},
		{"variables", `{"mcpServers":{"x":{"command":"${workspaceFolder}${/}bin","args":["${TOKEN}","${NONE:-a:-b}","${EMPTY:-c}","${env:EMPTY}","${NESTED}","${not a name}","$TOKEN","${workspaceFolderBasename}"]}}}`,
			config.Server{Type: "stdio", Command: filepath.FromSlash("/home/me/project/bin"),
				Args: []string{"s3cret", "a:-b", "c", "", "${TOKEN}", "${not a name}", "$TOKEN", "project"}}},
	} {
		c, err := config.Parse("/home/me/project/.vscode/mcp.json", []byte(test.text), &config.Options{Env: configEnv})
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		test.want.Name = "x"
		if got, ok := c.Server("x"); !ok || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: got\n%+v, want\n%+v", test.name, got, test.want)
		}
	}
}

// utf16le returns a text as programs of Windows write it.
func utf16le(text string) string {
	var b []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		b = binary.LittleEndian.AppendUint16(b, unit)
	}
	return string(b)
}

// What is wrong is told with file, server and field; secrets are not.
func TestConfigFaults(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{``, `mcp.json: it is empty; write {"mcpServers": {}}`},
		{"{\n  \"mcpServers\": {]\n}", `mcp.json: it is no JSON: line 2, column 18: `},
		{"{\n  \"mcpServers\": {", `mcp.json: it is no JSON: line 2, column 17: unexpected end`},
		{"{} /* no end", `mcp.json: line 1: a comment begins here and does not end`},
		{`[]`, `mcp.json: it is not a JSON object`},
		{`{"theme":"dark","fontSize":12}`, `mcp.json: it has neither mcpServers nor servers; its members are theme, fontSize`},
		{`{"mcpServers":[]}`, `mcp.json: mcpServers: must be an object with a server under each name`},
		{`{"inputs":{},"servers":{}}`, `mcp.json: inputs: must be a list of objects`},
		{`{"mcpServers":{"x":"npx"}}`, `mcp.json: server "x": must be an object with a command or a url`},
		{`{"mcpServers":{"x":{"comand":"npx","args":[]}}}`, `mcp.json: server "x": it has neither command nor url; its members are args, comand`},
		{`{"mcpServers":{"x":{"command":"npx","url":"http://a/b"}}}`, `mcp.json: server "x": it has a command and a url`},
		{`{"mcpServers":{"x":{"command":["npx"]}}}`, `mcp.json: server "x": command: must be a string; got a list`},
		{`{"mcpServers":{"x":{"command":"npx","args":"-y"}}}`, `mcp.json: server "x": args: must be a list of strings; got a string`},
		{`{"mcpServers":{"x":{"command":"npx","args":["-y",{}]}}}`, `mcp.json: server "x": args[1]: must be a string; got an object`},
		{`{"mcpServers":{"x":{"command":"npx","env":{"KEY":["s3cret"]}}}}`, `mcp.json: server "x": env.KEY: must be a string; got a list`},
		{`{"mcpServers":{"x":{"command":"npx","env":{"A=B":"c"}}}}`, `mcp.json: server "x": env.A=B: is no environment variable`},
		{`{"mcpServers":{"x":{"command":"npx","disabled":"no"}}}`, `mcp.json: server "x": disabled: must be true or false; got a string`},
		{`{"mcpServers":{"x":{"type":"pigeon","url":"http://a/b"}}}`, `mcp.json: server "x": type: "pigeon" is not known; it is one of stdio, http, sse, ws`},
		{`{"mcpServers":{"x":{"type":"http","command":"npx"}}}`, `mcp.json: server "x": url: is missing; type "http" needs it`},
		{`{"mcpServers":{"x":{"type":"stdio","url":"http://a/b"}}}`, `mcp.json: server "x": command: is missing; type "stdio" needs it`},
		{`{"mcpServers":{"x":{"url":"example.com/mcp"}}}`, `mcp.json: server "x": url: is not an address`},
		{`{"mcpServers":{"x":{"url":"ftp://example.com"}}}`, `mcp.json: server "x": url: the scheme "ftp" does not go with type "http"`},
		{`{"mcpServers":{"x":{"url":"example.com/mcp?key=${env:TOKEN}"}}}`, `mcp.json: server "x": url: is not an address`},
		{`{"mcpServers":{"x":{"url":"ftp://ann:${env:TOKEN}@example.com/?key=${env:TOKEN}"}}}`, `mcp.json: server "x": url: the scheme "ftp" does not go with type "http"`},
		{`{"mcpServers":{"x":{"url":"http://[::1?key=${env:TOKEN}"}}}`, `mcp.json: server "x": url: is not an address`},
		{`{"servers":{"x":{"command":"${input:key}"}},"inputs":[{"type":"promptString"},7,"key"]}`, `mcp.json: server "x": command: the file has no input "key"`},
		{`{"mcpServers":{"x":{"command":"go","args":["${file:/etc/key}"]}}}`, `mcp.json: server "x": args[0]: ${file:/etc/key} is of a kind that is not known here`},
		{`{"context_servers":{"x":{"source":"custom"}}}`, `mcp.json: it has neither mcpServers nor servers; its members are context_servers`},
		{`{"mcpServers":{"x":{"url":"http://a/b","headers":{"X-Key":"${env:NONE}"}}}}`, `mcp.json: server "x": headers.X-Key: the environment has no NONE; set it, or write ${env:NONE:-default}`},
		{`{"mcpServers":{"x":{"command":"${NONE}"}}}`, `mcp.json: server "x": command: the environment has no NONE; set it, or write ${NONE:-default}`},
		{`{"servers":{"x":{"command":"${command:pick}"}}}`, `mcp.json: server "x": command: ${command:pick} is of a kind that is not known here`},
		{`{"servers":{"x":{"command":"${input:key}"}}}`, `mcp.json: server "x": command: the file has no input "key"`},
		{`{"inputs":[{"id":"key","type":"promptString"}],"servers":{"x":{"command":"${input:key}"}}}`, `mcp.json: server "x": command: input "key" has no default, and there is no user to ask for it`},
		{`{"mcpServers":{"x":{"command":"a"},"x":{"command":"b"}}}`, `mcp.json: server "x": there is another server of that name in the file`},
		{`{"mcpServers":{"x":{"command":"a","envFile":"none.env"}}}`, `mcp.json: server "x": envFile: none.env: no such file`},
	} {
		c, err := config.Parse("mcp.json", []byte(test.text), &config.Options{Env: configEnv})
		if err == nil {
			err = c.Err()
		}
		if err == nil || !strings.HasPrefix(err.Error(), test.want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: got %v, want %s", test.text, err, test.want)
			continue
		}
		if _, ok := errors.AsType[*config.Error](err); !ok {
			t.Errorf("%s: got a %T", test.text, err)
		}
	}
}

// One bad server costs the others nothing, and all of its faults are told.
func TestConfigOneBadServer(t *testing.T) {
	c, err := config.Parse("mcp.json", []byte(`{"mcpServers":{
		"good":{"command":"a"},
		"bad":{"command":"${NONE}","args":[[]],"env":{"K":{}}},
		"last":{"url":"http://localhost/mcp"}}}`), &config.Options{Env: configEnv})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range c.Servers {
		got = append(got, fmt.Sprint(s.Name, " ", s.Err == nil))
	}
	if want := "good true, bad false, last true"; strings.Join(got, ", ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, ", "), want)
	}
	bad, _ := c.Server("bad")
	for _, field := range []string{"command: ", "args[0]: ", "env.K: "} {
		if !strings.Contains(bad.Err.Error(), field) {
			t.Errorf("%q is not told in %v", field, bad.Err)
		}
	}
	if _, ok := c.Server("none"); ok {
		t.Error("there is a server that the file does not have")
	}
}

// An input is asked for once, and only if an enabled server needs it.
func TestConfigInputs(t *testing.T) {
	text := `{"inputs":[
			{"id":"key","type":"promptString","description":"API key","password":true},
			{"id":"region","type":"pickString","options":["eu","us"],"default":"eu"},
			{"id":"unused","type":"promptString"}],
		"servers":{
			"a":{"command":"a","env":{"KEY":"${input:key}","REGION":"${input:region}"}},
			"b":{"url":"http://localhost/mcp","headers":{"X-Key":"${input:key}"}},
			"c":{"command":"c","args":["${input:unused}"],"disabled":true}}}`
	var asked []string
	c, err := config.Parse("mcp.json", []byte(text), &config.Options{Input: func(in config.Input) (string, error) {
		asked = append(asked, in.ID)
		if in.ID == "key" && !in.Password {
			t.Error("the key would be shown")
		}
		return in.ID + "!", nil
	}})
	if err != nil || c.Err() != nil {
		t.Fatal(err, c.Err())
	}
	a, _ := c.Server("a")
	b, _ := c.Server("b")
	if a.Env["KEY"] != "key!" || a.Env["REGION"] != "region!" || b.Headers["X-Key"] != "key!" || strings.Join(asked, " ") != "key region" {
		t.Errorf("got %v, %v, asked %v", a.Env, b.Headers, asked)
	}

	c, err = config.Parse("mcp.json", []byte(text), nil)
	if a, _ := c.Server("a"); err != nil || a.Env["REGION"] != "eu" || a.Err == nil {
		t.Errorf("without anybody to ask: got %+v, %v", a, err)
	}
	sulking := &config.Options{Input: func(config.Input) (string, error) { return "", errors.New("not now") }}
	if c, err = config.Parse("mcp.json", []byte(text), sulking); err != nil || !strings.Contains(c.Err().Error(), `server "b": headers.X-Key: input "key": not now`) {
		t.Errorf("got %v, %v", c.Err(), err)
	}
}

func TestReadConfig(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "mcp.json")
	env := filepath.Join(dir, ".env")
	if err := os.WriteFile(env, []byte("# keys\nexport A=1\n\nB = \"two words\"\nC='x'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(`{"mcpServers":{"x":{"command":"a","envFile":"${workspaceFolder}/.env","env":{"A":"2"}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Read(file, nil)
	if err != nil || c.Err() != nil {
		t.Fatal(err, c.Err())
	}
	if want := (map[string]string{"A": "2", "B": "two words", "C": "x"}); !reflect.DeepEqual(c.Servers[0].Env, want) {
		t.Errorf("got %v, want %v", c.Servers[0].Env, want)
	}
	if err := os.WriteFile(env, []byte("A=1\nnonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err = config.Read(file, nil); err != nil || !strings.Contains(c.Err().Error(), ".env: line 2 is not NAME=value") {
		t.Errorf("got %v, %v", c.Err(), err)
	}
	for _, path := range []string{dir, filepath.Join(dir, "none.json")} {
		if _, err := config.Read(path, nil); err == nil || !strings.HasPrefix(err.Error(), path+": ") {
			t.Errorf("%s: got %v", path, err)
		}
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add("{\"mcpServers\":{\"x\":{\"command\":\"${a:-b}\",\"args\":[1,\"${input:q}\",],}},\"inputs\":[{\"id\":\"q\"}]} // end")
	f.Add(`{"servers":{"x":{"url":"wss://h/p","headers":{"a":null}}}} /* "`)
	f.Add(`{"mcp":{"servers":{"":{"type":"ws"}}}}`)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := config.Parse("f", []byte(strings.ReplaceAll(text, "envFile", "")), &config.Options{Env: configEnv})
		if err != nil {
			return
		}
		for _, s := range c.Servers {
			if s.Err == nil && !s.Disabled && s.Command == "" && s.URL == "" {
				t.Errorf("%q: a server with nothing to reach it: %+v", text, s)
			}
		}
	})
}

// A server of a file that is a program gets its arguments, its environment and
// its directory.
func TestConfigCommand(t *testing.T) {
	c, err := config.Parse("mcp.json", []byte(`{"mcpServers":{"x":{"command":"prog","args":["-a","b c"],"env":{"B":"2","A":"1"},"cwd":"/srv"}}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	made, err := c.Servers[0].Transport(nil)
	if err != nil {
		t.Fatal(err)
	}
	cmd := made.(*client.CommandTransport)
	if got := fmt.Sprintf("%q %q %q %s", cmd.Name, cmd.Args, cmd.Env, cmd.Dir); got != `"prog" ["-a" "b c"] ["A=1" "B=2"] /srv` {
		t.Errorf("got %s", got)
	}
	if _, err := (config.Server{Name: "x", Type: "pigeon"}).Transport(nil); err == nil {
		t.Error("there is no such type")
	}
}
