package main

import (
	"strconv"
	"strings"
)

// screen is a terminal that is tall enough for everything: what a person would
// see after the bytes of a program. It knows what the shell uses, and leaves out
// colours.
type screen struct {
	lines    [][]rune
	row, col int
	pending  []byte // the beginning of a sequence that is not complete
}

func (s *screen) Write(p []byte) {
	text := append(s.pending, p...)
	s.pending = nil
	for len(text) > 0 {
		n := s.step(text)
		if n == 0 {
			s.pending = append([]byte(nil), text...)
			return
		}
		text = text[n:]
	}
}

// step takes one character or sequence and returns its length, 0 if it is not
// complete.
func (s *screen) step(text []byte) int {
	switch c := text[0]; {
	case c == '\r':
		s.col = 0
	case c == '\n':
		s.row++
	case c == '\b':
		s.col = max(s.col-1, 0)
	case c == 0x1b:
		return s.sequence(text)
	case c < ' ':
	default:
		length := 1
		switch {
		case c >= 0xf0:
			length = 4
		case c >= 0xe0:
			length = 3
		case c >= 0xc0:
			length = 2
		}
		if len(text) < length {
			return 0
		}
		s.put([]rune(string(text[:length]))[0])
		return length
	}
	return 1
}

func (s *screen) line() *[]rune {
	for len(s.lines) <= s.row {
		s.lines = append(s.lines, nil)
	}
	return &s.lines[s.row]
}

func (s *screen) put(r rune) {
	line := s.line()
	for len(*line) <= s.col {
		*line = append(*line, ' ')
	}
	(*line)[s.col] = r
	s.col++
}

// sequence takes a control sequence.
func (s *screen) sequence(text []byte) int {
	if len(text) < 2 {
		return 0
	}
	if text[1] != '[' {
		return 2
	}
	end := 2
	for end < len(text) && (text[end] < '@' || text[end] > '~') {
		end++
	}
	if end == len(text) {
		return 0
	}
	n, err := strconv.Atoi(string(text[2:end]))
	missing := err != nil
	switch text[end] {
	case 'K':
		line := s.line()
		switch {
		case n == 2:
			*line = nil
		case s.col < len(*line):
			*line = (*line)[:s.col]
		}
	case 'G':
		s.col = max(n-1, 0)
	case 'C':
		s.col += max(n, 1)
	case 'D':
		s.col = max(s.col-max(n, 1), 0)
	case 'A':
		s.row = max(s.row-max(n, 1), 0)
	case 'H':
		s.row, s.col = 0, 0
	case 'J':
		if n == 2 {
			s.lines = nil
		} else if missing || n == 0 {
			*s.line() = (*s.line())[:min(s.col, len(*s.line()))]
			s.lines = s.lines[:s.row+1]
		}
	}
	return end + 1
}

func (s *screen) String() string {
	var b strings.Builder
	for _, line := range s.lines {
		b.WriteString(strings.TrimRight(string(line), " ") + "\n")
	}
	return b.String()
}
