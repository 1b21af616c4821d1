package slogwriter_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp/slogwriter"
)

func TestNew(t *testing.T) {
	for _, tt := range []struct {
		name string
		log  func(l zerolog.Logger)
		want string
	}{
		{"fields in order", func(l zerolog.Logger) {
			l.Warn().Str("b", "x\ny").Int("a", -3).Float64("f", 1.5).Bool("yes", true).Uint64("big", 1<<63).Msg("hello")
		}, `{"level":"WARN","msg":"hello","b":"x\ny","a":-3,"f":1.5,"yes":true,"big":9223372036854775808}`},
		{"objects", func(l zerolog.Logger) {
			l.Info().Strs("list", []string{"a"}).Dict("in", zerolog.Dict().Int("n", 1)).Interface("none", nil).Msg("")
		}, `{"level":"INFO","msg":"","list":["a"],"in":{"n":1},"none":null}`},
		{"an error", func(l zerolog.Logger) { l.Err(errors.New("broken")).Send() }, `{"level":"ERROR","msg":"","error":"broken"}`},
		{"trace", func(l zerolog.Logger) { l.Trace().Msg("deep") }, `{"level":"DEBUG-4","msg":"deep"}`},
		{"debug", func(l zerolog.Logger) { l.Debug().Msg("m") }, `{"level":"DEBUG","msg":"m"}`},
		{"no level", func(l zerolog.Logger) { l.Log().Msg("m") }, `{"level":"INFO","msg":"m"}`},
		{"panic", func(l zerolog.Logger) { l.WithLevel(zerolog.PanicLevel).Msg("m") }, `{"level":"ERROR+8","msg":"m"}`},
		{"fatal", func(l zerolog.Logger) { l.WithLevel(zerolog.FatalLevel).Msg("m") }, `{"level":"ERROR+4","msg":"m"}`},
	} {
		var out bytes.Buffer
		tt.log(zerolog.New(slogwriter.New(timeless(&out, slog.LevelDebug-4))))
		if got := strings.TrimSpace(out.String()); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// timeless returns a handler that leaves the time out.
func timeless(out *bytes.Buffer, level slog.Level) slog.Handler {
	return slog.NewJSONHandler(out, &slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
}

// capture keeps the last record.
type capture struct {
	slog.Handler
	last slog.Record
	err  error
}

func (c *capture) Handle(_ context.Context, r slog.Record) error { c.last = r; return c.err }

func TestTime(t *testing.T) {
	c := &capture{Handler: slog.DiscardHandler}
	c.Handler = slog.NewTextHandler(os.Stderr, nil)
	logger := zerolog.New(slogwriter.New(c))
	before := time.Now()
	logger.Info().Msg("m")
	if at := c.last.Time; at.Before(before) || at.After(time.Now()) {
		t.Errorf("an event without time is of %v", at)
	}
	logger.Info().Time(zerolog.TimestampFieldName, time.Unix(1e9, 0)).Msg("m")
	if !c.last.Time.Equal(time.Unix(1e9, 0)) {
		t.Errorf("the time is %v", c.last.Time)
	}
	logger.Info().Str(zerolog.TimestampFieldName, "yesterday").Msg("m")
	if c.last.Time.IsZero() || c.last.NumAttrs() != 1 {
		t.Errorf("another format: %+v", c.last)
	}
}

// What the handler does not want is not made, and its error is that of the write.
func TestHandler(t *testing.T) {
	var out bytes.Buffer
	w := slogwriter.New(timeless(&out, slog.LevelWarn))
	if n, err := w.WriteLevel(zerolog.InfoLevel, []byte(`{"message":"m"}`)); n != 15 || err != nil || out.Len() > 0 {
		t.Errorf("wrote %q, %d, %v", out.String(), n, err)
	}
	full := errors.New("disk full")
	c := &capture{Handler: slog.NewTextHandler(&out, nil), err: full}
	if _, err := slogwriter.New(c).WriteLevel(zerolog.ErrorLevel, []byte(`{}`)); !errors.Is(err, full) {
		t.Errorf("error %v", err)
	}
}

// Lines that are no events are messages; a level in the line counts where the
// writer is told none.
func TestLines(t *testing.T) {
	for line, want := range map[string]string{
		"plain text\n":                     `{"level":"INFO","msg":"plain text"}`,
		`{"level":"error","message":"m"}`:  `{"level":"ERROR","msg":"m"}`,
		`{"level":"nonsense","a":`:         `{"level":"INFO","msg":"{\"level\":\"nonsense\",\"a\":"}`,
		`[1]`:                              `{"level":"INFO","msg":"[1]"}`,
		`{"message":"m","level":"warn"} x`: `{"level":"INFO","msg":"m"}`,
	} {
		var out bytes.Buffer
		if _, err := slogwriter.New(timeless(&out, slog.LevelDebug)).Write([]byte(line)); err != nil {
			t.Error(err)
		}
		if got := strings.TrimSpace(out.String()); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}
