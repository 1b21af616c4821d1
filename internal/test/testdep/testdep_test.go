package testdep

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// outcome is a test that notes how it ended.
type outcome struct {
	testing.TB
	skipped, failed string
}

func (o *outcome) Helper() {}

func (o *outcome) Skip(args ...any) {
	o.skipped = fmt.Sprint(args...)
	runtime.Goexit()
}

func (o *outcome) Fatalf(format string, args ...any) {
	o.failed = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// ends runs a func as a test of its own.
func ends(t *testing.T, test func(t testing.TB)) *outcome {
	o := &outcome{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		test(o)
	}()
	<-done
	return o
}

// What is there is returned; what is not skips the test, or fails it.
func TestMissing(t *testing.T) {
	t.Setenv("NEEDS_NOTHING", "")
	for name, test := range map[string]func(t testing.TB){
		"no-such-program is not installed":         func(t testing.TB) { LookPath(t, "no-such-program") },
		"NEEDS_NOTHING is not set: nobody sets it": func(t testing.TB) { Env(t, "NEEDS_NOTHING", "nobody sets it") },
	} {
		t.Setenv(envRequire, "")
		if o := ends(t, test); !strings.Contains(o.skipped, name) || o.failed != "" {
			t.Errorf("%s: %+v", name, o)
		}
		t.Setenv(envRequire, "1")
		if o := ends(t, test); !strings.Contains(o.failed, name) || o.skipped != "" {
			t.Errorf("%s, required: %+v", name, o)
		}
	}
}

func TestThere(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if got := LookPath(t, self); filepath.Clean(got) != filepath.Clean(self) {
		t.Errorf("got %s, want %s", got, self)
	}
	t.Setenv("NEEDS_SOMETHING", "x")
	if got := Env(t, "NEEDS_SOMETHING", ""); got != "x" {
		t.Errorf("got %q", got)
	}
}
