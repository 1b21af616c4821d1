package deploy

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/internal/test/testdep"
)

// promtool runs promtool in a directory.
func promtool(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), testdep.LookPath(t, "promtool"), args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// The alerts are well-formed, and each of them has a test beside it that passes.
func TestAlerts(t *testing.T) {
	const dir = "../../examples/deploy/prometheus"
	promtool(t, dir, "check", "rules", "--lint-fatal", "alerts.yml")
	promtool(t, dir, "test", "rules", "alerts_test.yml")
	tests, total := read(t, dir+"/alerts_test.yml"), 0
	for line := range strings.Lines(read(t, dir+"/alerts.yml")) {
		if _, name, ok := strings.Cut(line, "- alert: "); ok {
			total++
			if !strings.Contains(tests, "alertname: "+strings.TrimSpace(name)+"\n        exp_alerts:\n") {
				t.Errorf("no test has the alert %s come", strings.TrimSpace(name))
			}
		}
	}
	if total < 8 {
		t.Errorf("found %d alerts only", total)
	}
}

// dashboard is what is looked at of the dashboard.
type dashboard struct {
	Panels []struct {
		Title   string
		GridPos struct{ X, Y, W, H int }
		Targets []struct{ Expr string }
	}
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	if err := json.Unmarshal([]byte(read(t, "../../examples/deploy/grafana/dashboard.json")), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// Prometheus takes every query of the dashboard, and no panel covers another.
func TestDashboard(t *testing.T) {
	fill := strings.NewReplacer("$job", "shop", "$__rate_interval", "5m")
	rules, total, taken := "groups:\n- name: panels\n  rules:\n", 0, map[[2]int]string{}
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			total++
			expr := fill.Replace(target.Expr)
			if strings.Contains(expr, "$") {
				t.Errorf("%s: what is the variable in %s?", p.Title, target.Expr)
			}
			rules += fmt.Sprintf("  - record: panel:%d\n    expr: %q\n", total, expr)
		}
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if other, ok := taken[at]; ok {
					t.Fatalf("%s lies upon %s", p.Title, other)
				}
				taken[at] = p.Title
			}
		}
	}
	if total < 15 {
		t.Errorf("found %d queries only", total)
	}
	dir := t.TempDir()
	write(t, dir, "panels.yml", rules)
	promtool(t, dir, "check", "rules", "panels.yml")
}

// Alerts and dashboard ask for what package telemetry emits, and for nothing else of
// its kind.
func TestNames(t *testing.T) {
	emitted := map[string]bool{}
	for _, found := range regexp.MustCompile(`"((?:mcp|talaria|gen_ai|error)\.[a-z_.]+)"`).FindAllStringSubmatch(read(t, "../../telemetry/names.go"), -1) {
		emitted[strings.ReplaceAll(found[1], ".", "_")] = true
	}
	queries := read(t, "../../examples/deploy/prometheus/alerts.yml")
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			queries += target.Expr + "\n"
		}
	}
	// What the exporter for Prometheus appends: units, and what a series counts.
	suffix := regexp.MustCompile(`(_seconds|_bytes)?(_bucket|_count|_sum|_total)?$`)
	asked := regexp.MustCompile(`\b(mcp|talaria|gen_ai|error)_[a-z_]+`).FindAllString(queries, -1)
	for _, name := range asked {
		if !emitted[name] && !emitted[suffix.ReplaceAllString(name, "")] {
			t.Errorf("nothing emits %s", name)
		}
	}
	if len(asked) < 40 {
		t.Errorf("found %d names only", len(asked))
	}
}
