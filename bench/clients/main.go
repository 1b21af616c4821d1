// Command clients measures what calls cost a client: its processor time, user
// and kernel, for one tools/call, next to that of the official SDK's client.
// Both talk to the same server, Talaria's, in a process of its own. Linux and
// other Unix systems.
//
//	go run ./clients -rounds 5
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// maxRatio is how much processor time one call may cost Talaria's client, as a
// share of what it costs the SDK's.
const maxRatio = 0.5

// job is what a client process does.
type job struct {
	Client   string        // talaria or sdk
	Address  string        // over HTTP; "" for stdio
	Server   string        // the binary, over stdio
	Revision string        // of the protocol
	Tool     string        // add or search
	InFlight int           // calls at the same time
	For      time.Duration // how long to measure, after as long a warm-up
}

// outcome is what it prints.
type outcome struct {
	Calls int
	CPU   time.Duration // of the client process
	Took  time.Duration
	RSS   int64 // bytes
}

func main() {
	rounds := flag.Int("rounds", 5, "`number` of times that each client is measured")
	length := flag.Duration("for", 500*time.Millisecond, "`time` of one measurement, after as long a warm-up")
	inFlight := flag.Int("inflight", 16, "`number` of calls under way at the same time")
	only := flag.String("cases", "", "measure only cases with this `text` in their names, such as http/modern")
	enforce := flag.Bool("enforce", false, "exit with status 1 if the limit is missed")
	one := flag.String("job", "", "be a client of the measurement, with this `JSON`")
	flag.Parse()
	var err error
	if *one != "" {
		err = runJob(*one)
	} else {
		err = measure(*rounds, *inFlight, *length, *only, *enforce)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(1)
	}
}

// runJob is the client process.
func runJob(text string) error {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return err
	}
	o, err := j.run()
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(o)
}

var (
	clients   = []string{"talaria", "sdk"}
	revisions = map[string]string{"modern": "2026-07-28", "legacy": "2025-11-25"}
)

// measure runs all cases and prints them.
func measure(rounds, inFlight int, length time.Duration, only string, enforce bool) error {
	dir, err := os.MkdirTemp("", "clients")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	server := filepath.Join(dir, "server")
	build := exec.Command("go", "build", "-o", server, "github.com/talaria-go/mcp/bench/servers/talaria")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("building the server: %w", err)
	}
	fmt.Printf("%d calls in flight, %s, %d processors\n\n", inFlight, runtime.Version(), runtime.NumCPU())
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "case\tTalaria µs\tSDK µs\tratio\tspread\tcalls/s\tSDK calls/s\t")
	missed := []string{}
	for _, transport := range []string{"http", "stdio"} {
		for _, kind := range []string{"modern", "legacy"} {
			for _, tool := range []string{"add", "search"} {
				name := transport + "/" + kind + "/" + tool
				if !strings.Contains(name, only) {
					continue
				}
				j := job{Server: server, Revision: revisions[kind], Tool: tool, InFlight: inFlight, For: length}
				f, err := compare(j, transport, rounds)
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				ratio := median(f.ratios)
				if ratio > maxRatio {
					missed = append(missed, name)
				}
				fmt.Fprintf(table, "%s\t%.1f\t%.1f\t%.2f\t±%.0f%%\t%.0f\t%.0f\t\n", name,
					median(f.cpu["talaria"]), median(f.cpu["sdk"]), ratio, 50*spread(f.ratios), median(f.rate["talaria"]), median(f.rate["sdk"]))
			}
		}
	}
	table.Flush()
	fmt.Printf("\nµs are processor time of the client for one call. Limit of the ratio: %.2f.\n", maxRatio)
	if len(missed) > 0 {
		fmt.Println("Missed by:", strings.Join(missed, ", "))
		if enforce {
			return errors.New("a limit is missed")
		}
	}
	return nil
}

// figures are those of one case, by round.
type figures struct {
	cpu, rate map[string][]float64 // µs for a call; calls for a second
	ratios    []float64
}

// compare measures the clients in turns, each against a server that is new.
func compare(j job, transport string, rounds int) (*figures, error) {
	f := &figures{cpu: map[string][]float64{}, rate: map[string][]float64{}}
	for range rounds {
		for _, j.Client = range clients {
			o, err := j.start(transport)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", j.Client, err)
			}
			f.cpu[j.Client] = append(f.cpu[j.Client], float64(o.CPU.Nanoseconds())/1000/float64(o.Calls))
			f.rate[j.Client] = append(f.rate[j.Client], float64(o.Calls)/o.Took.Seconds())
		}
		f.ratios = append(f.ratios, last(f.cpu["talaria"])/last(f.cpu["sdk"]))
	}
	return f, nil
}

// start runs a job in a process of its own.
func (j job) start(transport string) (*outcome, error) {
	if transport == "http" {
		address, stop, err := serve(j.Server)
		if err != nil {
			return nil, err
		}
		defer stop()
		j.Address = "http://" + address + "/mcp"
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "-job", string(text))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	o := &outcome{}
	if err := json.Unmarshal(out, o); err != nil {
		return nil, err
	}
	if o.Calls == 0 {
		return nil, errors.New("not one call was made")
	}
	return o, nil
}

// serve starts the server over HTTP.
func serve(binary string) (address string, stop func(), err error) {
	cmd := exec.Command(binary, "-http", "127.0.0.1:0")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		in.Close() // it ends with its input
		_ = cmd.Wait()
	}
	if _, err := fmt.Fscan(out, &address); err != nil {
		stop()
		return "", nil, fmt.Errorf("the server printed no address: %w", err)
	}
	return address, stop, nil
}

func last(values []float64) float64 { return values[len(values)-1] }

func median(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	return values[len(values)/2]
}

// spread is how far apart values are, as a share of their median.
func spread(values []float64) float64 {
	return (slices.Max(values) - slices.Min(values)) / median(values)
}
