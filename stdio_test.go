package mcp_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
)

// TestStdioGrace sees how long a server stays when its client has closed
// standard input in the middle of a call.
func TestStdioGrace(t *testing.T) {
	const grace = 5 * time.Second
	for _, tt := range []struct {
		name    string
		tool    func(f *mcp.Frame, release <-chan struct{}) (string, error)
		grace   time.Duration
		cancel  time.Duration // when ctx ends; 0 means never
		want    error
		elapsed time.Duration
		answer  bool
	}{
		{"in time", func(*mcp.Frame, <-chan struct{}) (string, error) {
			time.Sleep(3 * time.Second)
			return "finished", nil
		}, grace, 0, nil, 3 * time.Second, true},
		{"ends when it is cancelled", func(f *mcp.Frame, _ <-chan struct{}) (string, error) {
			<-f.Done()
			return "finished", nil
		}, grace, 0, nil, grace, true},
		{"ignores its end", func(_ *mcp.Frame, release <-chan struct{}) (string, error) {
			<-release
			return "finished", nil
		}, grace, 0, mcp.ErrStillRunning, grace + 2*time.Second, false},
		{"no limit", func(*mcp.Frame, <-chan struct{}) (string, error) {
			time.Sleep(time.Hour)
			return "finished", nil
		}, -1, 0, nil, time.Hour, true},
		{"ignores the end of ctx", func(_ *mcp.Frame, release <-chan struct{}) (string, error) {
			<-release
			return "finished", nil
		}, -1, time.Minute, context.Canceled, time.Minute + 2*time.Second, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := fixture(t, &mcp.Options{Timeouts: mcp.Timeouts{Grace: tt.grace}})
				release := make(chan struct{})
				s.MustAdd(mcp.Tool("wait", func(f *mcp.Frame, _ empty) (string, error) { return tt.tool(f, release) }))
				fromServer, out := io.Pipe()
				heard := make(chan string)
				go func() {
					all, _ := io.ReadAll(fromServer)
					heard <- string(all)
				}()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.cancel > 0 {
					time.AfterFunc(tt.cancel, cancel)
				}
				in := strings.NewReader(initLine + "\n" + `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait"}}` + "\n")
				begin := time.Now()
				err := s.ServeStdioOver(ctx, in, out)
				if took := time.Since(begin); !errors.Is(err, tt.want) || took != tt.elapsed {
					t.Errorf("ServeStdio: %v after %v, want %v after %v", err, took, tt.want, tt.elapsed)
				}
				close(release)
				_ = out.Close()
				if all := <-heard; strings.Contains(all, "finished") != tt.answer {
					t.Errorf("heard %s, want the call's answer: %v", all, tt.answer)
				}
			})
		})
	}
}
