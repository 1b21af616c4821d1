// Package slogwriter passes the logs of this module, which are written with
// zerolog, to a slog.Handler:
//
//	logger := zerolog.New(slogwriter.New(slog.Default().Handler())).Level(zerolog.InfoLevel)
//	s := mcp.NewServer(info, &mcp.Options{Logger: &logger})
//
// Every option of this module that takes a zerolog.Logger accepts such a
// logger. Events are decoded from their JSON and become records with the same
// fields in the same order. Nothing is buffered and there are no goroutines.
package slogwriter

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strconv"
	"time"

	"github.com/rs/zerolog"
)

// New returns a writer for zerolog.New that hands each event to h, if h is
// enabled for its level, as a record with the event's message, time, and fields
// in their order. An event without time has that of its writing. Trace is four
// below slog.LevelDebug, fatal and panic are four and eight above
// slog.LevelError; an event without level has slog.LevelInfo. What h returns is
// the error of the write.
//
// An event is encoded before h can refuse it: a Level of the zerolog.Logger
// saves that. The writer is safe for concurrent use, as a slog.Handler is.
func New(h slog.Handler) zerolog.LevelWriter { return writer{h} }

// writer is the zerolog.LevelWriter that New returns.
type writer struct{ handler slog.Handler }

// Write implements io.Writer, for a line whose level is a field.
func (w writer) Write(line []byte) (int, error) {
	var event map[string]json.RawMessage
	var name string
	_ = json.Unmarshal(line, &event) // what is not an event has no level
	_ = json.Unmarshal(event[zerolog.LevelFieldName], &name)
	level, err := zerolog.ParseLevel(name)
	if err != nil {
		level = zerolog.NoLevel
	}
	return w.WriteLevel(level, line)
}

// WriteLevel implements zerolog.LevelWriter.
func (w writer) WriteLevel(level zerolog.Level, line []byte) (int, error) {
	ctx := context.Background()
	to := levelOf(level)
	if !w.handler.Enabled(ctx, to) {
		return len(line), nil
	}
	return len(line), w.handler.Handle(ctx, recordOf(to, line))
}

// levelOf returns the slog level for a zerolog level.
func levelOf(level zerolog.Level) slog.Level {
	switch level {
	case zerolog.TraceLevel:
		return slog.LevelDebug - 4
	case zerolog.DebugLevel:
		return slog.LevelDebug
	case zerolog.WarnLevel:
		return slog.LevelWarn
	case zerolog.ErrorLevel:
		return slog.LevelError
	case zerolog.FatalLevel:
		return slog.LevelError + 4
	case zerolog.PanicLevel:
		return slog.LevelError + 8
	}
	return slog.LevelInfo
}

// recordOf returns the record for an event. Text that is no JSON object, as
// from a zerolog that was built for CBOR, becomes the message.
func recordOf(level slog.Level, line []byte) slog.Record {
	record := slog.NewRecord(time.Time{}, level, "", 0)
	fields := json.NewDecoder(bytes.NewReader(line))
	fields.UseNumber()
	if start, err := fields.Token(); err != nil || start != json.Delim('{') {
		return slog.NewRecord(time.Now(), level, string(bytes.TrimSpace(line)), 0)
	}
	for fields.More() {
		name, err := fields.Token()
		key, ok := name.(string)
		var value json.RawMessage
		if err != nil || !ok || fields.Decode(&value) != nil {
			return slog.NewRecord(time.Now(), level, string(bytes.TrimSpace(line)), 0)
		}
		attr := slog.Attr{Key: key, Value: valueOf(value)}
		switch key {
		case zerolog.MessageFieldName:
			record.Message = attr.Value.String()
		case zerolog.LevelFieldName:
		case zerolog.TimestampFieldName:
			at, err := time.Parse(zerolog.TimeFieldFormat, attr.Value.String())
			if err != nil { // another format, which the handler may know
				record.AddAttrs(attr)
				continue
			}
			record.Time = at
		default:
			record.AddAttrs(attr)
		}
	}
	if record.Time.IsZero() {
		record.Time = time.Now()
	}
	return record
}

// valueOf returns a JSON value as a slog.Value: text, a number or a boolean,
// and for everything else the JSON itself.
func valueOf(value json.RawMessage) slog.Value {
	switch value[0] {
	case '"':
		var text string
		_ = json.Unmarshal(value, &text) // it is a string
		return slog.StringValue(text)
	case 't', 'f':
		return slog.BoolValue(value[0] == 't')
	case 'n':
		return slog.AnyValue(nil)
	case '{', '[':
		return slog.AnyValue(value)
	}
	if n, err := strconv.ParseInt(string(value), 10, 64); err == nil {
		return slog.Int64Value(n)
	}
	if n, err := strconv.ParseUint(string(value), 10, 64); err == nil {
		return slog.Uint64Value(n)
	}
	if n, err := strconv.ParseFloat(string(value), 64); err == nil {
		return slog.Float64Value(n)
	}
	return slog.AnyValue(value)
}
