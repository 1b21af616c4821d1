package openapi

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/openapi"
)

// BenchmarkGitHub makes a server of a document of 13 MB, with the time of the processor.
func BenchmarkGitHub(b *testing.B) {
	text, err := os.ReadFile(filepath.Join(testdep.Env(b, "E2E_OPENAPI", "e2e/run openapi installs the documents"), "@octokit/openapi/generated/api.github.com.json"))
	if err != nil {
		b.Fatal(err)
	}
	used := func() (cpu time.Duration, peak int64) { // and KiB
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano()), u.Maxrss
	}
	log := zerolog.Nop()
	began, _ := used()
	b.ReportAllocs()
	for b.Loop() {
		tools, _, err := openapi.Tools(text, nil)
		if err != nil {
			b.Fatal(err)
		}
		if err := mcp.NewServer(mcp.Info{Name: "api", Version: "1"}, &mcp.Options{Logger: &log}).Add(tools...); err != nil {
			b.Fatal(err)
		}
	}
	now, peak := used()
	b.ReportMetric((now-began).Seconds()/float64(b.N), "cpu-s/op")
	b.ReportMetric(float64(peak)/1024, "peak-MiB")
}
