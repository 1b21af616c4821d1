package rules

// byteClass is a set of ASCII characters.
type byteClass byte

const (
	letters  byteClass = 1 << iota // a-z A-Z
	digits                         // 0-9
	blank                          // space
	dash                           // -
	hexAny                         // 0-9 a-f A-F
	lowerHex                       // 0-9 a-f
)

// charClass tells the classes of each byte. These rules run on almost every
// call, and a table is ten times as fast as a regular expression.
var charClass = func() (t [256]byteClass) {
	for c := range 26 {
		t['a'+c], t['A'+c] = letters, letters
	}
	for c := '0'; c <= '9'; c++ {
		t[c] = digits | hexAny | lowerHex
	}
	for c := 'a'; c <= 'f'; c++ {
		t[c] |= hexAny | lowerHex
		t[c-'a'+'A'] |= hexAny
	}
	t[' '], t['-'] = blank, dash
	return t
}()

// allBytes reports whether every byte of s is in set.
func allBytes(s string, set byteClass) bool {
	for i := range len(s) {
		if charClass[s[i]]&set == 0 {
			return false
		}
	}
	return true
}

// all makes a matcher for texts of one byte or more, all in set.
func all(set byteClass) func(string) bool {
	return func(s string) bool { return s != "" && allBytes(s, set) }
}

// MatchASCII reports whether a text has ASCII characters alone.
func MatchASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

func matchPrintASCII(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// matchHexadecimal is patternHexadecimal.
func matchHexadecimal(s string) bool {
	if len(s) > 2 && s[0] == '0' && s[1]|0x20 == 'x' {
		s = s[2:]
	}
	return s != "" && allBytes(s, hexAny)
}

// matchNumeric is patternNumeric.
func matchNumeric(s string) bool {
	if s != "" && (s[0] == '+' || s[0] == '-') {
		s = s[1:]
	}
	for i := range len(s) {
		if s[i] == '.' {
			return i > 0 && i+1 < len(s) && allBytes(s[:i], digits) && allBytes(s[i+1:], digits)
		}
	}
	return s != "" && allBytes(s, digits)
}

// uuidMatcher matches UUIDs of a version, or of any if version is 0. Versions
// above 3 also fix the variant. lower refuses capitals.
func uuidMatcher(version byte, lower bool) func(string) bool {
	set := hexAny
	if lower {
		set = lowerHex
	}
	return func(s string) bool {
		if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
			return false
		}
		if version != 0 && s[14] != version {
			return false
		}
		if v := s[19]; version > '3' && (v|0x20 < 'a' || v|0x20 > 'b') && v != '8' && v != '9' {
			return false
		}
		return allBytes(s[:8], set) && allBytes(s[9:13], set) && allBytes(s[14:18], set) &&
			allBytes(s[19:23], set) && allBytes(s[24:], set)
	}
}
