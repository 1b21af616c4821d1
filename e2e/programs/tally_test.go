package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write makes a file and its directories.
func write(t *testing.T, name, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestRun(t *testing.T) {
	const (
		good = `{"id":"a","name":"A","description":"does a","status":"SUCCESS"}`
		bad  = `{"id":"b","name":"B","description":"does b","status":"FAILURE","errorMessage":"got nothing"}`
		warn = `{"id":"c","name":"C","description":"should c","status":"WARNING"}`
		info = `{"id":"d","name":"D","description":"says d","status":"INFO"}`
	)
	tests := []struct {
		name, checks, exceptions string
		ok                       bool
		want                     []string
	}{
		{"passes", good + "," + warn + "," + info, "", true,
			[]string{"warning http 2025-06-18 ping c", "1 scenarios, 1 passed, 0 failed, 1 warnings", "1 passed, 0 failed\n"}},
		{"fails", good + "," + bad, "", false,
			[]string{"FAILED http 2025-06-18 ping b\n    B: got nothing", "1 passed, 1 failed\n"}},
		{"excepted", good + "," + bad, "http 2025-06-18 ping b # later", true,
			[]string{"1 failing checks are exceptions", "1 passed, 0 failed\n"}},
		{"passes now", good, "http 2025-06-18 ping a", false,
			[]string{"FAILED http 2025-06-18 ping a", "take it off the list", "1 passed, 1 failed\n"}},
		{"nothing", info, "", false, []string{"0 passed, 0 failed\n"}},
		{"no result", "", "", false,
			[]string{"FAILED http 2025-06-18 ping\n    the suite wrote no result", "0 passed, 1 failed\n"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			plan := write(t, filepath.Join(dir, "plan"), "# plan\n2025-06-18 ping http\n\n2025-06-18 other http\n")
			exceptions := write(t, filepath.Join(dir, "exceptions"), test.exceptions)
			if test.checks != "" {
				write(t, filepath.Join(dir, "http/2025-06-18/server-ping-2026-01-01/checks.json"), "["+test.checks+"]")
			}
			var out strings.Builder
			ok, err := count([]string{"-plan", plan, "-except", exceptions, "-only", "pin", dir}, &out)
			if err != nil || ok != test.ok {
				t.Fatalf("count = %v, %v; want %v\n%s", ok, err, test.ok, out.String())
			}
			for _, want := range test.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("output lacks %q:\n%s", want, out.String())
				}
			}
		})
	}
}

func TestRunNeedsFullRows(t *testing.T) {
	plan := write(t, filepath.Join(t.TempDir(), "plan"), "\n2025-06-18 ping\n")
	_, err := count([]string{"-plan", plan, t.TempDir()}, os.Stdout)
	if err == nil || !strings.Contains(err.Error(), "plan:2: want at least 3 words, got 2") {
		t.Fatalf("err = %v", err)
	}
}

// TestRunOfClients: results of clients have no prefix, and the suite's own
// verdict counts too.
func TestRunOfClients(t *testing.T) {
	for _, failed := range []bool{false, true} {
		dir := t.TempDir()
		plan := write(t, filepath.Join(dir, "plan"), "2025-11-25 auth/dpop client\n")
		write(t, filepath.Join(dir, "client/2025-11-25/auth/dpop-2026-01-01/checks.json"), `[{"id":"a","status":"SUCCESS"}]`)
		write(t, filepath.Join(dir, "client/2025-11-25/auth/dpop-nonce-2026-01-01/checks.json"), `[{"id":"b","status":"FAILURE"}]`)
		if failed {
			write(t, filepath.Join(dir, "client/2025-11-25/auth/dpop.failed"), "")
		}
		var out strings.Builder
		ok, err := count([]string{"-plan", plan, "-prefix", "", dir}, &out)
		if err != nil || ok == failed || strings.Contains(out.String(), "ended with an error") != failed {
			t.Errorf("failed=%t: count = %v, %v\n%s", failed, ok, err, out.String())
		}
	}
}
