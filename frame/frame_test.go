package frame

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/protocol"
)

// session is a Session as small as it gets.
type session struct {
	id           string
	initialized  bool
	info         *protocol.Implementation
	capabilities protocol.ClientCapabilities
	level        protocol.Level
	assigns      core.Values
}

func (s *session) ID() string                                 { return s.id }
func (s *session) Initialized() bool                          { return s.initialized }
func (s *session) ClientInfo() *protocol.Implementation       { return s.info }
func (s *session) Capabilities() *protocol.ClientCapabilities { return &s.capabilities }
func (s *session) LogLevel() protocol.Level                   { return s.level }
func (s *session) SetLogLevel(l protocol.Level)               { s.level = l }
func (s *session) Assigns() *core.Values                      { return &s.assigns }

type contextKey struct{}

func TestFrameIsItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("why")
		ctx, cancel := context.WithCancelCause(context.WithValue(t.Context(), contextKey{}, "value"))
		timed, stop := context.WithTimeout(ctx, time.Minute)
		defer stop()
		f := newFrame(timed, core.Config{})
		if deadline, ok := f.Deadline(); !ok || time.Until(deadline) != time.Minute {
			t.Errorf("Deadline() = %v, %v", deadline, ok)
		}
		if got := f.Value(contextKey{}); got != "value" {
			t.Errorf("Value = %v", got)
		}
		if f.Err() != nil {
			t.Errorf("Err() = %v", f.Err())
		}
		child, stopChild := context.WithCancel(f)
		defer stopChild()
		cancel(cause)
		<-f.Done()
		<-child.Done()
		if !errors.Is(f.Err(), context.Canceled) || context.Cause(f) != cause || context.Cause(child) != cause {
			t.Errorf("Err %v, cause %v, of a child %v; want canceled and the cause in both", f.Err(), context.Cause(f), context.Cause(child))
		}
	})
}

func TestFrom(t *testing.T) {
	f := newFrame(t.Context(), core.Config{})
	with := f.WithContext(context.WithValue(f, contextKey{}, 1))
	other := newFrame(f, core.Config{})
	tests := []struct {
		name string
		ctx  context.Context
		want *Frame
	}{
		{"no frame", t.Context(), nil},
		{"itself", f, f},
		{"a child", context.WithValue(context.WithoutCancel(f), contextKey{}, 1), f},
		{"WithContext", with, with},
		{"a frame inside a frame", other, other},
	}
	for _, tt := range tests {
		if got, ok := Internal(facts.Private{}).From(tt.ctx); got != tt.want || ok != (tt.want != nil) {
			t.Errorf("%s: From = %p, %v; want %p", tt.name, got, ok, tt.want)
		}
	}
}

// WithContext changes the context and nothing else: both frames are the same
// request, with the same values and the same progress.
func TestWithContext(t *testing.T) {
	sent := &sink{}
	f := newFrame(t.Context(), core.Config{
		Request: &core.Request{ID: protocol.NewID(1), Method: "tools/call", Params: protocol.Params{Meta: protocol.Meta{ProgressToken: []byte("9")}}},
		Peer:    sent, LogLevel: protocol.LevelInfo,
	})
	ctx, cancel := context.WithCancel(f)
	g := f.WithContext(ctx).WithContext(context.WithValue(ctx, contextKey{}, "inner"))
	if g.Request() != f.Request() || g.Revision() != f.Revision() || g.String() != f.String() {
		t.Error("the copy is another request")
	}
	if g.Value(contextKey{}) != "inner" || f.Value(contextKey{}) != nil {
		t.Error("the context of the copy is not its own")
	}
	g.Set("k", 1)
	if v, _ := f.Get("k"); v != 1 {
		t.Errorf("a value kept through the copy is %v in the original", v)
	}
	if err := g.Progress(2, 0); err != nil {
		t.Error(err)
	}
	if f.Progress(1, 0) == nil {
		t.Error("progress went back through the original")
	}
	if err := g.Log(protocol.LevelInfo, "x"); err != nil || len(sent.messages) != 2 {
		t.Errorf("Log: %v; %d messages", err, len(sent.messages))
	}
	cancel()
	if g.Err() == nil || f.Err() != nil {
		t.Errorf("after cancel: copy %v, original %v", g.Err(), f.Err())
	}
}

func TestDefaults(t *testing.T) {
	f := newFrame(t.Context(), core.Config{})
	if f.Revision() != protocol.Latest {
		t.Errorf("revision %v, want the latest", f.Revision())
	}
	if f.SessionID() != "" || f.session != nil || !f.Initialized() {
		t.Error("a frame without session has one, or is not ready")
	}
	if f.ClientInfo() != nil || f.ClientCapabilities() == nil {
		t.Errorf("client info %v, capabilities %v; want nil and not nil", f.ClientInfo(), f.ClientCapabilities())
	}
	if err := errors.Join(f.Progress(1, 2), f.Log(protocol.LevelError, "x")); err != nil {
		t.Errorf("without a peer: %v", err)
	}
}

func TestClientOfSession(t *testing.T) {
	s := &session{id: "s1", info: &protocol.Implementation{Name: "old"}}
	f := newFrame(t.Context(), core.Config{Revision: protocol.V20250618, Session: s,
		// Modern metadata in a legacy request says nothing.
		Request: &core.Request{Params: protocol.Params{Meta: protocol.Meta{ClientInfo: []byte(`{"name":"new"}`)}}},
	})
	if f.SessionID() != "s1" || f.session != core.Session(s) || f.ClientInfo() != s.info || f.ClientCapabilities() != &s.capabilities {
		t.Error("what the session says is not what the frame says")
	}
	if f.Initialized() {
		t.Error("Initialized before the session is")
	}
	s.initialized = true
	if !f.Initialized() {
		t.Error("not Initialized though the session is")
	}
}

func TestClientOfModernRequest(t *testing.T) {
	tests := []struct {
		name, info, capabilities string
		wantInfo                 *protocol.Implementation
		wantSampling             bool
	}{
		{"both", `{"name":"n","version":"v"}`, `{"sampling":{}}`, &protocol.Implementation{Name: "n", Version: "v"}, true},
		{"no info", ``, `{}`, nil, false},
		{"odd members", `{"name":5,"version":"v","more":[]}`, `{"elicitation":7,"sampling":{}}`, &protocol.Implementation{Version: "v"}, true},
	}
	for _, tt := range tests {
		meta := protocol.Meta{ClientCapabilities: []byte(tt.capabilities)}
		if tt.info != "" {
			meta.ClientInfo = []byte(tt.info)
		}
		f := newFrame(t.Context(), core.Config{Request: &core.Request{Params: protocol.Params{Meta: meta}}})
		if got := f.ClientInfo(); !reflect.DeepEqual(got, tt.wantInfo) {
			t.Errorf("%s: info %+v, want %+v", tt.name, got, tt.wantInfo)
		}
		if got := f.ClientCapabilities().Sampling != nil; got != tt.wantSampling {
			t.Errorf("%s: sampling %v, want %v", tt.name, got, tt.wantSampling)
		}
		info, capabilities := f.ClientInfo(), f.ClientCapabilities()
		if info != f.ClientInfo() || capabilities != f.ClientCapabilities() {
			t.Errorf("%s: decoded twice", tt.name)
		}
	}
}

// String is for logs: it shows no content.
func TestString(t *testing.T) {
	f := newFrame(t.Context(), core.Config{Revision: protocol.V20251125,
		Request: &core.Request{ID: protocol.NewID("a"), Method: "tools/call", Params: protocol.Params{Name: "secret"}},
	})
	if got, want := f.String(), `frame(tools/call "a", 2025-11-25)`; got != want {
		t.Errorf("String() = %s, want %s", got, want)
	}
}

// A Frame with another context is a small view: middleware makes one for each
// call.
func BenchmarkWithContext(b *testing.B) {
	f := newFrame(context.Background(), core.Config{})
	b.ReportAllocs()
	for b.Loop() {
		_ = f.WithContext(f)
	}
}
