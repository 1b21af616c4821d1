// Package testproc runs tests that measure the memory of their process in one of
// their own: what earlier tests have left, and let go in the meantime, would be
// a part of what they measure.
package testproc

import (
	"os"
	"os/exec"
	"regexp"
	"testing"

	"github.com/talaria-go/mcp/internal/test/testdep"
)

// envIsolated is set in the environment of such a process.
const envIsolated = "TALARIA_TEST_ALONE"

// Isolated reports whether the calling test, which must not be a subtest, has a
// process of its own. If not, it is run in one, with the outcome of that, and has
// nothing left to do.
func Isolated(t *testing.T) bool {
	t.Helper()
	testdep.NoRace(t, "it measures memory")
	if os.Getenv(envIsolated) != "" {
		return true
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+regexp.QuoteMeta(t.Name())+"$", "-test.v")
	cmd.Env = append(os.Environ(), envIsolated+"=1")
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, text)
	} else {
		t.Logf("%s", text)
	}
	return false
}
