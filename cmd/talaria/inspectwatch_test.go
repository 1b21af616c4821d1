package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp/internal/test/testdep"
)

// TestInspectWatch: a package is built and connected to, again after each change of its
// sources, and the last call is made again; what does not build is told.
func TestInspectWatch(t *testing.T) {
	testdep.LookPath(t, "go")
	m := newDevModule(t)
	t.Setenv("GOWORK", "off")
	api, end := browsed(t, "--watch", m.dir)
	waits := func(path, part string) string {
		t.Helper()
		limit := time.Now().Add(time.Minute)
		for text := ""; ; time.Sleep(20 * time.Millisecond) {
			if text = api("GET", path, ""); strings.Contains(text, part) {
				return text
			} else if time.Now().After(limit) {
				t.Fatalf("%q is not in %s: %s", part, path, text)
			}
		}
	}
	waits("/api/state", `"name":"version"`)
	var made struct{ Call struct{ ID int } }
	if text := api("POST", "/api/call", `{"kind":"tool","tool":"version","arguments":"{}"}`); json.Unmarshal([]byte(text), &made) != nil || made.Call.ID != 1 {
		t.Fatal(text)
	}
	waits("/api/calls/1", "0 one")
	m.write("main.go", "package main\n\nfunc main() { undefined() }\n")
	waits("/api/state", "undefined: undefined")
	if text := api("GET", "/api/state", ""); !strings.Contains(text, `"state":"ready"`) {
		t.Errorf("the program before does not continue: %s", text)
	}
	m.edit("2")
	waits("/api/calls/2", "2 one")
	if text := waits("/api/state", `"again":1`); strings.Contains(text, "unbuilt") {
		t.Errorf("it is said not to build: %s", text)
	}
	if code, out := end(); code != exitOK || out != "" {
		t.Errorf("%d, %q", code, out)
	}
	for _, args := range []string{"inspect --watch .", "inspect -b --watch --file x .", "inspect -b --watch --config x .", "inspect -b --no-open --watch ./none"} {
		if r := talaria(t, "", strings.Fields(args)...); r.code != exitUsage {
			t.Errorf("%s: %+v", args, r)
		}
	}
}
