package sizelimits

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// waits are the functions of tests that sleep outside of a bubble, as far as the walk sees,
// by why they may.
var waits = map[string][]string{
	"in a bubble, which calls it as a method of an interface or a value": {
		"client/lock_test.go dial", "client/resumed_test.go RoundTrip", "internal/streamable/timeout_test.go Read",
		"session/answers_test.go answers", "session/answers_test.go comesBack", "session/handoff_test.go use", "session/replicas_test.go Read",
	},
	"it polls another program, which tells nobody when it is ready": {
		"cmd/talaria/browsertest/flood_test.go TestFlood", "cmd/talaria/inspectwatch_test.go TestInspectWatch",
		"cmd/talaria/internal/scaffold/scaffold_test.go serves", "cmd/talaria/stopped_test.go stopped",
		"cmd/talaria/stopped_test.go stubbornServer", "e2e/apps/browser_test.go start", "e2e/deploy/proxy_test.go eventually",
		"e2e/oidc/broker_test.go broker", "e2e/servers/strangertasks_test.go cancels", "examples/events/main_test.go TestReceiver", "examples/service/main_test.go TestRestart",
		"internal/test/docs/tutorial_test.go background",
	},
	"it disturbs a real Redis, or polls one": {
		"scale/redis/chaos_test.go TestChaos", "scale/redis/chaos_test.go disturb", "scale/redis/faults_test.go TestClusterFailover",
		"scale/redis/faults_test.go TestClusterLeftOut", "scale/redis/faults_test.go TestClusterMigration", "scale/redis/faults_test.go migrate",
		"scale/redis/server_test.go eventually", "scale/redis/server_test.go run", "scale/redis/webhooks_test.go TestWebhooks",
	},
	"it polls a server, or is slow, where sockets or a lock keep it out of a bubble": {
		"client/waits_test.go answerBut", "gateway/reload_test.go TestApply", "internal/test/lists/webhooks_test.go wait",
		"internal/test/sessions/drain_test.go TestDrain", "internal/test/soak/drainload_test.go TestDrainMany",
	},
}

// Tests do not sleep: a wait for a fixed time is too short on a busy machine, or too long. A
// test that needs time runs in a bubble of testing/synctest, where time.Sleep takes none.
func TestSleeps(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	packages := map[string][]*ast.File{}
	names := map[*ast.File]string{}
	set := token.NewFileSet()
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		at, _ := filepath.Rel(root, name)
		at = filepath.ToSlash(at)
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && at != "." || d.Name() == "testdata" || d.Name() == "node_modules") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(at, "_test.go") && !strings.HasPrefix(at, "internal/test/harness/") {
			return nil
		}
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		packages[path.Dir(at)], names[file] = append(packages[path.Dir(at)], file), at
		return nil
	})
	if err != nil || len(names) < 300 {
		t.Fatal(len(names), err)
	}
	known := starters(packages["internal/test/harness"], nil)
	found := map[string]bool{}
	for _, files := range packages {
		for file, funcs := range sleeps(files, starters(files, known)) {
			for _, name := range funcs {
				found[names[file]+" "+name] = true
			}
		}
	}
	for _, at := range slices.Sorted(maps.Keys(found)) {
		if !slices.ContainsFunc(slices.Collect(maps.Values(waits)), func(list []string) bool { return slices.Contains(list, at) }) {
			t.Errorf("%s sleeps in real time: use testing/synctest, or wait for what happens", at)
		}
	}
	for _, list := range waits {
		for _, at := range list {
			if !found[at] {
				t.Errorf("%s does not sleep in real time any more; take it out of the list", at)
			}
		}
	}
}

// starters returns the names of functions that run a function that they are given in a
// bubble, beside those of known.
func starters(files []*ast.File, known map[string]bool) map[string]bool {
	all := map[string]bool{}
	maps.Copy(all, known)
	for more := true; more; {
		more = false
		for _, file := range files {
			for _, d := range file.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok || f.Body == nil || all[f.Name.Name] {
					continue
				}
				given := map[string]bool{}
				for _, p := range f.Type.Params.List {
					if _, ok := p.Type.(*ast.FuncType); ok {
						for _, name := range p.Names {
							given[name.Name] = true
						}
					}
				}
				ast.Inspect(f.Body, func(n ast.Node) bool {
					call, ok := n.(*ast.CallExpr)
					if !ok || !starts(call, all) {
						return true
					}
					for _, arg := range call.Args {
						ast.Inspect(arg, func(n ast.Node) bool {
							if id, ok := n.(*ast.Ident); ok && given[id.Name] && !all[f.Name.Name] {
								all[f.Name.Name], more = true, true
							}
							return true
						})
					}
					return true
				})
			}
		}
	}
	return all
}

// starts reports whether a call runs its arguments in a bubble.
func starts(call *ast.CallExpr, starters map[string]bool) bool {
	switch f := call.Fun.(type) {
	case *ast.SelectorExpr:
		return named(f, "synctest", "Test") || starters[f.Sel.Name]
	case *ast.Ident:
		return starters[f.Name]
	}
	return false
}

// sleeps returns the functions of a package's tests that call time.Sleep in real time: not in
// a bubble, not in a function that is only used in bubbles, and not in a literal of a function
// that starts a bubble, which runs it there.
func sleeps(files []*ast.File, starters map[string]bool) map[*ast.File][]string {
	type use struct {
		in     *ast.FuncDecl // nil at the top
		bubble bool
	}
	uses := map[string][]use{} // by what is used
	sleeping := map[*ast.FuncDecl]*ast.File{}
	for _, file := range files {
		for _, d := range file.Decls {
			f, _ := d.(*ast.FuncDecl)
			bubbles := false
			ast.Inspect(d, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				bubbles = bubbles || ok && starts(call, starters)
				return true
			})
			var walk func(n ast.Node, bubble bool)
			walk = func(n ast.Node, bubble bool) {
				ast.Inspect(n, func(n ast.Node) bool {
					switch n := n.(type) {
					case *ast.FuncLit:
						if bubbles && !bubble {
							walk(n.Body, true)
							return false
						}
					case *ast.CallExpr:
						if !bubble && starts(n, starters) {
							for _, arg := range n.Args {
								walk(arg, true)
							}
							return false
						}
						if named(n.Fun, "time", "Sleep") && !bubble && f != nil {
							sleeping[f] = file
						}
					case *ast.Ident:
						if f == nil || n != f.Name {
							uses[n.Name] = append(uses[n.Name], use{f, bubble})
						}
					}
					return true
				})
			}
			walk(d, false)
		}
	}
	real := map[*ast.FuncDecl]bool{} // runs outside of bubbles
	for more := true; more; {
		more = false
		for _, file := range files {
			for _, d := range file.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok || real[f] {
					continue
				}
				all := uses[f.Name.Name]
				if len(all) == 0 || slices.ContainsFunc(all, func(u use) bool { return !u.bubble && (u.in == nil || real[u.in]) }) {
					real[f], more = true, true
				}
			}
		}
	}
	all := map[*ast.File][]string{}
	for f, file := range sleeping {
		if real[f] {
			all[file] = append(all[file], f.Name.Name)
		}
	}
	return all
}

// named reports whether an expression is a name of a package.
func named(e ast.Expr, pkg, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == pkg
}

// The walk finds sleeps in tests and in what they use, and none in bubbles.
func TestSleepsAreFound(t *testing.T) {
	for text, want := range map[string]string{
		`func TestA() { time.Sleep(1) }`:                                                                          "TestA",
		`func TestA() { synctest.Test(t, func() { time.Sleep(1) }) }`:                                             "",
		`func TestA() { a() }; func a() { b() }; func b() { time.Sleep(1) }`:                                      "b",
		`func TestA() { synctest.Test(t, func() { a() }) }; func a() { b() }; func b() { time.Sleep(1) }`:         "",
		`func TestA() { synctest.Test(t, a) }; func a() { time.Sleep(1) }`:                                        "",
		`func TestA() { synctest.Test(t, a); a() }; func a() { time.Sleep(1) }`:                                   "a",
		`var x = a; func TestA() { synctest.Test(t, a) }; func a() { time.Sleep(1) }`:                             "a",
		`func TestA() { synctest.Test(t, func() {}); time.Sleep(1) }`:                                             "TestA",
		`func TestA() { x.run() }; type s struct{}; func (s) run() { time.Sleep(1) }`:                             "run",
		`func TestA() { in(func() { time.Sleep(1) }) }; func in(fn func()) { synctest.Test(t, func() { fn() }) }`: "",
		`func TestA() { x := func() { time.Sleep(1) }; synctest.Test(t, x) }`:                                     "",
		`func (s) RoundTrip() { time.Sleep(1) }`:                                                                  "RoundTrip",
		`func TestA() { synctest.Test(t, func() { new(s) }) }; func (s) RoundTrip() { x := time.Now(); _ = x }`:   "",
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "", "package p; "+text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(sleeps([]*ast.File{file}, starters([]*ast.File{file}, nil))[file], " "); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}
