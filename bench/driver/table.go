package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// table has the outcome of one case.
type table struct {
	name    string
	servers []server
	samples map[string][]sample // by server, one a round
	missing map[string]bool     // servers that do not answer in this case
}

func median[T int64 | float64 | time.Duration](samples []sample, of func(sample) T) T {
	var values []T
	for _, s := range samples {
		values = append(values, of(s))
	}
	slices.Sort(values)
	middle := len(values) / 2
	if len(values)%2 == 0 {
		return (values[middle-1] + values[middle]) / 2
	}
	return values[middle]
}

// ratio returns by how much more CPU a call costs on one server than on
// another: the median of the rounds' ratios, each of two measurements that
// were next to each other. It is 0 if one of them is missing.
func (t table) ratio(name, other string) float64 {
	a, b := t.samples[name], t.samples[other]
	if len(a) == 0 || len(a) != len(b) {
		return 0
	}
	var ratios []float64
	for i := range a {
		ratios = append(ratios, float64(a[i].cpu)/float64(b[i].cpu))
	}
	slices.Sort(ratios)
	return ratios[len(ratios)/2]
}

// spread is how far apart the rounds are: the range over the median.
func spread(samples []sample) float64 {
	cpu := func(s sample) time.Duration { return s.cpu }
	most := slices.MaxFunc(samples, func(a, b sample) int { return int(a.cpu - b.cpu) })
	least := slices.MinFunc(samples, func(a, b sample) int { return int(a.cpu - b.cpu) })
	return float64(most.cpu-least.cpu) / float64(median(samples, cpu)) * 100
}

func (t table) print(out io.Writer) {
	fmt.Fprintf(out, "\n%s\n", t.name)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	head := "server\treq/s\tCPU µs\tspread %\tp50 ms\tp99 ms\tRSS MiB\t"
	for _, s := range t.servers {
		head += "CPU / " + s.name + "\t"
	}
	fmt.Fprintln(w, head)
	for _, s := range t.servers {
		samples := t.samples[s.name]
		if len(samples) == 0 {
			fmt.Fprintln(w, s.name+strings.Repeat("\t-", 6+len(t.servers))+"\t")
			continue
		}
		fmt.Fprintf(w, "%s\t%.0f\t%.1f\t%.0f\t%.2f\t%.2f\t%.1f\t", s.name,
			median(samples, func(s sample) float64 { return s.rate }),
			micros(median(samples, func(s sample) time.Duration { return s.cpu })),
			spread(samples),
			micros(median(samples, func(s sample) time.Duration { return s.p50 }))/1000,
			micros(median(samples, func(s sample) time.Duration { return s.p99 }))/1000,
			float64(median(samples, func(s sample) int64 { return s.rss }))/(1<<20))
		for _, other := range t.servers {
			if r := t.ratio(s.name, other.name); r > 0 {
				fmt.Fprintf(w, "%.2f\t", r)
			} else {
				fmt.Fprint(w, "-\t")
			}
		}
		fmt.Fprintln(w)
	}
	w.Flush()
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// limits are how much CPU a call on one server may cost, as a multiple of
// another, in each case whose name has this beginning and end.
var limits = []struct {
	server, other   string
	transport, tool string
	most            float64
}{
	{"talaria", "constant", "http/", "/add", 1.35},
	{"talaria", "floor", "http/", "/add", 1.15},
	{"talaria", "floor", "http/", "/search", 0.7},
	{"talaria", "floor", "stdio/", "/add", 1.1},
	{"protected", "unchecked", "http/", "", 1.15},
}

// printLimits says how Talaria stands, and whether it is within every limit.
func printLimits(out io.Writer, tables []table) (within bool) {
	within = true
	for _, t := range tables {
		for _, l := range limits {
			r := t.ratio(l.server, l.other)
			if r == 0 || !strings.HasPrefix(t.name, l.transport) || !strings.HasSuffix(t.name, l.tool) {
				continue
			}
			verdict := "within"
			if r > l.most {
				verdict, within = "over", false
			}
			fmt.Fprintf(out, "\n%s: %s / %s = %.2f, %s the limit of %.2f", t.name, l.server, l.other, r, verdict, l.most)
		}
	}
	fmt.Fprintln(out)
	return within
}
