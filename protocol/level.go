package protocol

import "fmt"

// Level is the severity of a log message, after RFC 5424
// (server/utilities/logging). Levels are ordered: a greater one is more severe.
// The zero Level is invalid; as the threshold of a client it means that nothing
// is sent.
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

// levelNames are the names of the levels on the wire, in lower case.
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

// MarshalText implements [encoding.TextMarshaler]. It fails for the zero Level
// and for values beyond LevelEmergency.
func (l Level) MarshalText() ([]byte, error) {
	if l.String() == "" {
		return nil, fmt.Errorf("protocol: no such log level: %d", l)
	}
	return []byte(l.String()), nil
}

// UnmarshalText implements [encoding.TextUnmarshaler]. Names are in lower case;
// the error for any other text is an *Error with CodeInvalidParams, which lists
// them.
func (l *Level) UnmarshalText(text []byte) error {
	for level := LevelDebug; level <= LevelEmergency; level++ {
		if levelNames[level] == string(text) {
			*l = level
			return nil
		}
	}
	return Errorf(CodeInvalidParams, "unknown log level %q; use one of %v", text, levelNames[LevelDebug:])
}
