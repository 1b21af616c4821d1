package protocol

import "fmt"

// Level is the severity of a log message, after RFC 5424. The zero Level is
// no level: nothing is to be sent.
type Level uint8

// The levels, least severe first.
const (
	LevelDebug Level = iota + 1
	LevelInfo
	LevelNotice
	LevelWarning
	LevelError
	LevelCritical
	LevelAlert
	LevelEmergency
)

var levelNames = [...]string{
	LevelDebug: "debug", LevelInfo: "info", LevelNotice: "notice", LevelWarning: "warning",
	LevelError: "error", LevelCritical: "critical", LevelAlert: "alert", LevelEmergency: "emergency",
}

// String returns the level's name on the wire, or "" for the zero Level.
func (l Level) String() string {
	if int(l) >= len(levelNames) {
		return ""
	}
	return levelNames[l]
}

// ParseLevel finds the level of that name. Any other name is an error with
// CodeInvalidParams that lists the names.
func ParseLevel(name string) (Level, *Error) {
	for l := LevelDebug; l <= LevelEmergency; l++ {
		if levelNames[l] == name {
			return l, nil
		}
	}
	return 0, Errorf(CodeInvalidParams, "unknown log level %q; use one of %v", name, levelNames[LevelDebug:])
}

// MarshalText implements encoding.TextMarshaler.
func (l Level) MarshalText() ([]byte, error) {
	if l.String() == "" {
		return nil, fmt.Errorf("protocol: no such log level: %d", l)
	}
	return []byte(l.String()), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *Level) UnmarshalText(text []byte) error {
	level, fault := ParseLevel(string(text))
	if fault != nil {
		return fault
	}
	*l = level
	return nil
}
