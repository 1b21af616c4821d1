package mcptest_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/internal/tooling/recording"
	"github.com/talaria-go/mcp/mcptest"
)

// endedT is a testing.TB that ends before the test that has it.
type endedT struct {
	testing.TB
	failed   bool
	cleanups []func()
	log      string
}

func (e *endedT) Helper()           {}
func (e *endedT) Failed() bool      { return e.failed }
func (e *endedT) Cleanup(fn func()) { e.cleanups = append(e.cleanups, fn) }
func (e *endedT) Logf(format string, args ...any) {
	e.log += fmt.Sprintf(format, args...)
}

func (e *endedT) end() {
	for i := len(e.cleanups) - 1; i >= 0; i-- {
		e.cleanups[i]()
	}
}

// TestRecord: a test that fails leaves what was said, one that does not nothing.
func TestRecord(t *testing.T) {
	for _, failed := range []bool{false, true} {
		dir := t.TempDir()
		t.Setenv("TMPDIR", dir)
		e := &endedT{TB: t, failed: failed}
		traced := 0
		record := mcptest.Record(e)
		first := mcptest.New(e, newServer(nil), record, mcptest.Trace(func(bool, []byte) { traced++ }))
		second := mcptest.New(e, newServer(nil), record, mcptest.OverHTTP())
		first.Call("sum", sumIn{20, 22})
		second.Call("sum", sumIn{1, 1})
		e.end()
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		if !failed {
			if len(files) > 0 || e.log != "" {
				t.Errorf("a test that passed leaves %v and says %q", files, e.log)
			}
			continue
		}
		_, name, _ := strings.Cut(e.log, " is in ")
		info, err := os.Stat(name)
		if err != nil || info.Mode().Perm() != 0o600 || !strings.Contains(name, "TestRecord") {
			t.Fatalf("it says %q: %v", e.log, err)
		}
		file, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		said := map[string]int{}
		for entry, err := range recording.Read(file) {
			if err != nil {
				t.Error(err)
			}
			said[entry.Conn+" "+string(entry.Dir)]++
			if entry.HTTP == 200 && len(entry.ID) > 0 {
				said["200"]++
			}
			if entry.Conn == "1" && entry.Dir == recording.In && strings.Contains(string(entry.Text), "42") {
				said["42"]++
			}
		}
		if traced != 4 || said["42"] != 1 || said["1 out"] != 2 || said["1 in"] != 2 || said["2 out"] != 2 || said["2 in"] != 2 || said["200"] != 2 || said["2 note"] != 2 || said["1 note"] != 0 {
			t.Errorf("recorded %v, traced %d", said, traced)
		}
	}
}
