// Driver builds the servers of the benchmark, starts each as a process of its
// own, calls its tools and compares what that costs. See the README.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// server is one of the programs compared.
type server struct {
	name   string
	dir    string
	module string // for its version
	bare   bool   // no protocol, so no handshake
}

var servers = []server{
	{name: "constant", dir: "constant", bare: true},
	{name: "floor", dir: "floor", bare: true},
	{name: "sdk", dir: "sdk", module: "github.com/modelcontextprotocol/go-sdk"},
	{name: "mcp-go", dir: "mcpgo", module: "github.com/mark3labs/mcp-go"},
	{name: "talaria", dir: "talaria"},
	{name: "unchecked", dir: "unchecked"},
	{name: "protected", dir: "protected"},
}

// options are the flags.
type options struct {
	servers, cases string
	rounds         int
	warm, length   time.Duration
	maxCalls       int64
	inFlight       int
	enforce        bool
}

// task is one measurement: a server in a case.
type task struct {
	options
	server                server
	transport, kind, tool string
}

func (t task) name() string { return t.transport + "/" + t.kind + "/" + t.tool }

// limit is how long a measurement may take as a total before it is stopped.
func (t task) limit() time.Duration { return t.warm + t.length + 10*time.Second }

// unsupported is the error of a server that does not answer in a kind of revision.
type unsupported struct{ error }

func main() {
	var o options
	flag.StringVar(&o.servers, "servers", "constant,floor,sdk,mcp-go,talaria", "servers to compare, a comma-separated `list`")
	flag.StringVar(&o.cases, "cases", "", "cases whose name contains one of this comma-separated `list`, such as http/modern or stdio/legacy/add (default all)")
	flag.IntVar(&o.rounds, "rounds", 5, "measurements of each server in each case")
	flag.DurationVar(&o.length, "for", 500*time.Millisecond, "length of a measurement")
	flag.DurationVar(&o.warm, "warm", 150*time.Millisecond, "calls before a measurement that do not count")
	flag.Int64Var(&o.maxCalls, "max", 50000, "calls after which a measurement ends early")
	flag.IntVar(&o.inFlight, "inflight", 64, "calls in flight, 1 to 100")
	flag.BoolVar(&o.enforce, "enforce", false, "exit with 1 if talaria is over a limit")
	flag.Parse()
	within, err := run(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	if o.enforce && !within {
		os.Exit(1)
	}
}

func run(o options) (within bool, err error) {
	if o.rounds < 1 || o.length <= 0 || o.maxCalls < 1 || o.inFlight < 1 || o.inFlight > 100 || flag.NArg() > 0 {
		return false, errors.New("bad flags; see bench/run -h")
	}
	chosen, err := choose(o.servers)
	if err != nil {
		return false, err
	}
	dir, err := os.MkdirTemp("", "talaria-bench-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	for _, s := range chosen {
		build := exec.Command("go", "build", "-o", filepath.Join(dir, s.name), "./servers/"+s.dir)
		if text, err := build.CombinedOutput(); err != nil {
			return false, fmt.Errorf("building %s: %w\n%s", s.name, err, text)
		}
	}
	fmt.Printf("%s, %d CPUs, %d calls in flight, %d rounds of %v\n", runtime.Version(), runtime.NumCPU(), o.inFlight, o.rounds, o.length)
	for _, s := range chosen {
		if s.module != "" {
			version, _ := exec.Command("go", "list", "-m", "-f", "{{.Version}}", s.module).Output()
			fmt.Printf("%s: %s %s\n", s.name, s.module, strings.TrimSpace(string(version)))
		}
	}
	var tables []table
	for _, c := range cases(o) {
		t, err := measureCase(o, c, chosen, dir)
		if err != nil {
			return false, err
		}
		t.print(os.Stdout)
		tables = append(tables, t)
	}
	if len(tables) == 0 {
		return false, fmt.Errorf("no case matches %q", o.cases)
	}
	return printLimits(os.Stdout, tables), nil
}

func choose(list string) ([]server, error) {
	var chosen []server
	for name := range strings.SplitSeq(list, ",") {
		i := slices.IndexFunc(servers, func(s server) bool { return s.name == name })
		if i < 0 {
			return nil, fmt.Errorf("no server %q; there are constant, floor, sdk, mcp-go, talaria, unchecked and protected", name)
		}
		chosen = append(chosen, servers[i])
	}
	return chosen, nil
}

// cases returns the chosen cases, as tasks without a server.
func cases(o options) []task {
	var all []task
	for _, transport := range []string{"http", "stdio"} {
		for _, kind := range []string{"modern", "legacy"} {
			for _, tool := range []string{"add", "search"} {
				t := task{options: o, transport: transport, kind: kind, tool: tool}
				wanted := func(part string) bool { return strings.Contains(t.name(), part) }
				if slices.ContainsFunc(strings.Split(o.cases, ","), wanted) {
					all = append(all, t)
				}
			}
		}
	}
	return all
}

// measureCase takes all servers through a case, in turns, so that a slow
// moment of the machine hits them alike.
func measureCase(o options, c task, chosen []server, dir string) (table, error) {
	t := table{name: c.name(), servers: chosen, samples: map[string][]sample{}}
	for range o.rounds {
		for _, s := range chosen {
			c.server = s
			if t.missing[s.name] {
				continue
			}
			got, err := measure(c, filepath.Join(dir, s.name))
			var no unsupported
			switch {
			case errors.As(err, &no):
				fmt.Fprintf(os.Stderr, "%s: %s does not answer: %v\n", c.name(), s.name, no.error)
				if t.missing == nil {
					t.missing = map[string]bool{}
				}
				t.missing[s.name] = true
			case err != nil:
				return t, fmt.Errorf("%s: %s: %w", c.name(), s.name, err)
			default:
				t.samples[s.name] = append(t.samples[s.name], got)
			}
		}
	}
	return t, nil
}

func measure(t task, binary string) (sample, error) {
	p, err := start(binary, t.transport)
	if err != nil {
		return sample{}, err
	}
	defer p.stop()
	w := newWindow(t.options)
	drive := driveHTTP
	if t.transport == "stdio" {
		drive = driveStdio
	}
	if err := drive(p, t, w); err != nil {
		return sample{}, err
	}
	got := w.sample()
	if got.rate == 0 {
		return sample{}, errors.New("no call was answered in time; try a longer -for")
	}
	return got, nil
}
