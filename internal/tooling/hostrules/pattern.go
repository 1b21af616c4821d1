package hostrules

import (
	"strconv"
	"strings"
)

// read reports whether a pattern has look-around, and whether Python's re knows its
// escapes and groups.
func read(p string) (look, python bool) {
	python = true
	class := false
	for i := 0; i < len(p); i++ {
		switch c := p[i]; {
		case c == '\\':
			if i++; i == len(p) {
				return look, false
			}
			python = python && escape(p[i:])
		case class:
			class = c != ']'
		case c == '[':
			class = true
			if strings.HasPrefix(p[i+1:], "^]") {
				i += 2
			} else if strings.HasPrefix(p[i+1:], "]") || strings.HasPrefix(p[i+1:], "^") {
				i++
			}
		case strings.HasPrefix(p[i:], "(?"):
			rest := p[i+2:]
			switch {
			case strings.HasPrefix(rest, "=") || strings.HasPrefix(rest, "!") || strings.HasPrefix(rest, "<=") || strings.HasPrefix(rest, "<!"):
				look = true
			case strings.HasPrefix(rest, "<"):
				python = false
			}
		}
	}
	return look, python
}

// escape reports whether Python's re knows the escape whose characters after the
// backslash begin rest.
func escape(rest string) bool {
	c := rest[0]
	hexadecimal := func(n int) bool {
		if len(rest) <= n {
			return false
		}
		_, err := strconv.ParseUint(rest[1:1+n], 16, 32)
		return err == nil
	}
	switch {
	case c == 'x':
		return hexadecimal(2)
	case c == 'u':
		return hexadecimal(4)
	case c == 'U':
		return hexadecimal(8)
	case 'a' <= c|0x20 && c|0x20 <= 'z':
		return strings.IndexByte("AbBdDsSwWZafnrtv", c) >= 0
	}
	return true
}

// plainly reports whether llama.cpp makes a grammar of a pattern, as its
// _visit_pattern and the reader of grammars do: both anchors, no special groups, and
// no escape that grammars lack. most is the greatest count of a repetition.
func plainly(p string) (plain bool, most int) {
	if len(p) < 2 || p[0] != '^' || p[len(p)-1] != '$' {
		return false, 0
	}
	p = p[1 : len(p)-1]
	depth := 0
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case '(':
			if depth++; strings.HasPrefix(p[i+1:], "?") {
				return false, 0
			}
		case ')':
			if depth--; depth < 0 {
				return false, 0
			}
		case ']', '}':
			return false, 0
		case '[':
			n, ok := class(p[i+1:])
			if !ok {
				return false, 0
			}
			i += n
		case '{':
			length := strings.IndexByte(p[i:], '}')
			if length < 0 {
				return false, 0
			}
			for _, n := range strings.SplitN(p[i+1:i+length], ",", 2) {
				count, err := strconv.Atoi(n)
				if n != "" && err != nil {
					return false, 0
				}
				most = max(most, count)
			}
			i += length
		case '\\':
			if i++; i == len(p) || strings.IndexByte(`^$.[]()|{}*+?\"nrt`, p[i]) < 0 && (strings.IndexByte("xu", p[i]) < 0 || !escape(p[i:])) {
				return false, 0
			}
		}
	}
	return depth == 0, most
}

// class reads a class after its bracket, and returns how many bytes it has with the
// one that closes it.
func class(p string) (n int, ok bool) {
	if strings.HasPrefix(p, "]") || strings.HasPrefix(p, "^]") {
		return 0, false
	}
	for i := 0; i < len(p); i++ {
		switch p[i] {
		case ']':
			return i + 1, true
		case '\\':
			if i++; i == len(p) || strings.IndexByte(`\[]"nrt`, p[i]) < 0 && (strings.IndexByte("xu", p[i]) < 0 || !escape(p[i:])) {
				return 0, false
			}
		}
	}
	return 0, false
}
