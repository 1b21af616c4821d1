package frame

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/protocol"
)

// sink is a Peer that remembers what it was sent, until it fails.
type sink struct {
	mu       sync.Mutex
	messages []string
	fail     error
}

func (s *sink) Send(message []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		return s.fail
	}
	s.messages = append(s.messages, string(message))
	return nil
}

// asking returns a frame whose client wants progress under token, "" for none.
func asking(t *testing.T, rev protocol.Revision, token string, to *sink) *Frame {
	t.Helper()
	c := core.Config{Revision: rev, Peer: to, Request: &core.Request{}}
	if token != "" {
		c.Request.Params.Meta.ProgressToken = []byte(token)
	}
	return newFrame(t.Context(), c)
}

func TestProgressMessages(t *testing.T) {
	const open = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":`
	tests := []struct {
		name  string
		rev   protocol.Revision
		token string
		do    func(f *Frame) error
		want  string // "" for none
	}{
		{"total", protocol.Latest, `"t"`, func(f *Frame) error { return f.Progress(1, 4) }, open + `"t","progress":1,"total":4}}`},
		{"no total", protocol.Latest, `7`, func(f *Frame) error { return f.Progress(0.5, 0) }, open + `7,"progress":0.5}}`},
		{"zero", protocol.Latest, `7`, func(f *Frame) error { return f.Progress(0, 10) }, open + `7,"progress":0,"total":10}}`},
		{"negative", protocol.Latest, `7`, func(f *Frame) error { return f.Progress(-1, 0) }, open + `7,"progress":-1}}`},
		{"message", protocol.Latest, `7`, func(f *Frame) error { return f.Progress(1, 0, "one\ntwo") }, open + `7,"progress":1,"message":"one\ntwo"}}`},
		{"message, too early", protocol.V20241105, `7`, func(f *Frame) error { return f.Progress(1, 0, "one") }, open + `7,"progress":1}}`},
		{"no token", protocol.Latest, ``, func(f *Frame) error { return f.Progress(1, 0) }, ""},
		{"no token, back", protocol.Latest, ``, func(f *Frame) error { return errors.Join(f.Progress(1, 0), f.Progress(1, 0)) }, ""},
	}
	for _, tt := range tests {
		to := &sink{}
		if err := tt.do(asking(t, tt.rev, tt.token, to)); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if got := strings.Join(to.messages, "\n"); got != tt.want {
			t.Errorf("%s: sent %s\nwant %s", tt.name, got, tt.want)
		}
	}
}

// Progress must grow; what does not is an error and is not sent.
func TestProgressGrows(t *testing.T) {
	to := &sink{}
	f := asking(t, protocol.Latest, "1", to)
	steps := []struct {
		done, total float64
		fault       string
	}{
		{-2, 0, ""},
		{0, 10, ""},
		{0, 10, "must grow, got 0 after 0"},
		{-1, 10, "must grow, got -1 after 0"},
		{0.001, 10, ""},
		{math.NaN(), 10, "must be a number, got NaN"},
		{math.Inf(1), 10, "must be a number, got +Inf"},
		{1, math.Inf(-1), "must be a number"},
		{math.Inf(1), math.Inf(-1), "must be a number"},
		{20, 10, ""},
	}
	sent := 0
	for _, step := range steps {
		err := f.Progress(step.done, step.total)
		switch {
		case step.fault == "" && err != nil:
			t.Errorf("%v of %v: %v", step.done, step.total, err)
		case step.fault != "" && (err == nil || !strings.Contains(err.Error(), step.fault)):
			t.Errorf("%v of %v: error %v, want %q", step.done, step.total, err, step.fault)
		}
		if step.fault == "" {
			sent++
		}
		if len(to.messages) != sent {
			t.Fatalf("%v of %v: %d messages are out, want %d", step.done, step.total, len(to.messages), sent)
		}
	}
}

// Goroutines that report at once are in order on the wire.
func TestProgressConcurrent(t *testing.T) {
	to := &sink{}
	f := asking(t, protocol.Latest, "1", to)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() { _ = f.Progress(float64(i), 50) }) // those that come late fail
	}
	wg.Wait()
	last := math.Inf(-1)
	for _, message := range to.messages {
		var m struct{ Params struct{ Progress float64 } }
		if err := json.Unmarshal([]byte(message), &m); err != nil || m.Params.Progress <= last {
			t.Errorf("%s after %v (%v)", message, last, err)
		}
		last = m.Params.Progress
	}
	if last != 49 {
		t.Errorf("the last is %v, want 49", last)
	}
}

func TestAnswered(t *testing.T) {
	to := &sink{fail: ErrAnswered}
	f := newFrame(t.Context(), core.Config{Peer: to, LogLevel: protocol.LevelDebug,
		Request: &core.Request{Params: protocol.Params{Meta: protocol.Meta{ProgressToken: []byte("1")}}},
	})
	if err := f.Progress(1, 2); !errors.Is(err, ErrAnswered) {
		t.Errorf("Progress: %v, want ErrAnswered", err)
	}
	if err := f.Log(protocol.LevelError, "late"); !errors.Is(err, ErrAnswered) {
		t.Errorf("Log: %v, want ErrAnswered", err)
	}
}

// Which levels go out: legacy by the session's level, modern by the request's,
// where none means that no message is wanted.
func TestLogLevels(t *testing.T) {
	levels := []protocol.Level{
		protocol.LevelDebug, protocol.LevelInfo, protocol.LevelNotice, protocol.LevelWarning,
		protocol.LevelError, protocol.LevelCritical, protocol.LevelAlert, protocol.LevelEmergency,
	}
	for _, wanted := range append([]protocol.Level{0}, levels...) {
		to := &sink{}
		frames := map[string]*Frame{
			"legacy": newFrame(t.Context(), core.Config{Revision: protocol.V20250618, Peer: to, Session: &session{level: wanted}, LogLevel: protocol.LevelDebug}),
			"modern": newFrame(t.Context(), core.Config{Peer: to, LogLevel: wanted}),
		}
		for kind, f := range frames {
			for _, level := range append([]protocol.Level{0, protocol.LevelEmergency + 1}, levels...) {
				want := wanted != 0 && level >= wanted && level <= protocol.LevelEmergency
				to.messages = nil
				err := f.Log(level, "x")
				if got := f.LogEnabled(level); got != want || err != nil || len(to.messages) != 0 != want {
					t.Errorf("%s, wanted %v, level %v: enabled %v, sent %d, %v; want %v", kind, wanted, level, got, len(to.messages), err, want)
				}
			}
		}
	}
}

// The session's level counts when the message is sent, not when the request
// began.
func TestLogLevelChanges(t *testing.T) {
	s, to := &session{level: protocol.LevelError}, &sink{}
	f := newFrame(t.Context(), core.Config{Revision: protocol.V20250618, Peer: to, Session: s})
	_ = f.Log(protocol.LevelInfo, "before")
	s.SetLogLevel(protocol.LevelInfo)
	_ = f.Log(protocol.LevelInfo, "after")
	if got := strings.Join(to.messages, ""); strings.Contains(got, "before") || !strings.Contains(got, "after") {
		t.Errorf("sent %s, want after alone", got)
	}
}

func TestLogMessages(t *testing.T) {
	const open = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info",`
	tests := []struct {
		data   any
		logger []string
		want   string // "" for an error
	}{
		{"text", nil, open + `"data":"text"}}`},
		{map[string]int{"rows": 3}, []string{"db"}, open + `"logger":"db","data":{"rows":3}}}`},
		{nil, nil, open + `"data":null}}`},
		{json.RawMessage("{\n\t\"a\": 1\n}"), nil, open + `"data":{"a":1}}}`},
		{make(chan int), nil, ""},
	}
	for _, tt := range tests {
		to := &sink{}
		f := newFrame(t.Context(), core.Config{Peer: to, LogLevel: protocol.LevelDebug})
		err := f.Log(protocol.LevelInfo, tt.data, tt.logger...)
		if got := strings.Join(to.messages, ""); got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%v: sent %s, %v\nwant %s", tt.data, got, err, tt.want)
		}
	}
}

// The data of a message that nobody wants is not even encoded.
func TestLogDisabledCostsNothing(t *testing.T) {
	f := newFrame(t.Context(), core.Config{Peer: &sink{}})
	data := "x"
	if got := testing.AllocsPerRun(100, func() { _ = f.Log(protocol.LevelError, make(chan int)) }); got > 1 {
		t.Errorf("%v allocations with data that cannot encode: it was tried", got)
	}
	if err := f.Log(protocol.LevelError, data); err != nil {
		t.Error(err)
	}
}
