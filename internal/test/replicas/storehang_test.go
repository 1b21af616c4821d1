package replicas_test

import (
	"bytes"
	"context"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// trapStore is a scale.Store that does not return.
type trapStore struct{ way func() }

func (s trapStore) Get(context.Context, ...scale.GetOp) ([]scale.Entry, error) {
	s.way()
	return nil, nil
}
func (s trapStore) Put(context.Context, ...scale.Write) ([]scale.Entry, error) {
	s.way()
	return nil, nil
}
func (s trapStore) ClaimDue(context.Context, string, string, string, int, time.Duration) ([]scale.Entry, error) {
	s.way()
	return nil, nil
}
func (s trapStore) Append(context.Context, scale.AppendOp) (scale.Rev, string, error) {
	s.way()
	return 0, "", nil
}
func (s trapStore) Read(context.Context, string, scale.Rev, string) ([]scale.Message, string, error) {
	s.way()
	return nil, "", nil
}
func (s trapStore) Take(context.Context, scale.Take) (scale.Box, error) {
	s.way()
	return scale.Box{}, nil
}
func (s trapStore) Watch(func(string, scale.Message), func()) scale.Watcher {
	s.way()
	return nil
}

// What a store does not return from costs the request that needs it, and nobody
// else; the log has it.
func TestStoreThatDoesNotReturn(t *testing.T) {
	for name, way := range map[string]func(){"panic": func() { panic("lost") }, "goexit": runtime.Goexit, "nothing": func() {}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				logger := zerolog.New(zerolog.SyncWriter(&log))
				s := harness.Fixture(t, &mcp.Options{Store: trapStore{way}, StateKeys: harness.SharedKeys, Logger: &logger})
				legacy := &harness.BareClient{T: t, H: s.Handler(), Rev: protocol.LatestLegacy, Session: "AAAAAAAAAAAAAAAAAAAAAA"}
				legacy.Want(legacy.Do(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"ping"}`), http.StatusServiceUnavailable, `"code":503`)
				legacy.Session = ""
				legacy.Want(legacy.Do(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`),
					http.StatusServiceUnavailable, `"code":503`)
				time.Sleep(10 * time.Minute) // of the bubble: it asks for messages, and for sessions that are due
				modern := &harness.BareClient{T: t, H: s.Handler(), Rev: protocol.Latest}
				modern.Want(modern.Do(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{`+harness.ModernMeta(protocol.Latest)+`}}}`, "Mcp-Method", "tools/list"), http.StatusOK, `"tools":[`)
				if err := s.Shutdown(t.Context()); err != nil {
					t.Error(err)
				}
				if !strings.Contains(log.String(), "session store") {
					t.Errorf("the log says nothing of the store: %s", log.String())
				}
			})
		})
	}
}
