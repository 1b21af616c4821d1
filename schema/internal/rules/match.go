package rules

// byteClass is a set of ASCII characters.
type byteClass byte

// The classes.
const (
	letters  byteClass = 1 << iota // a-z A-Z
	digits                         // 0-9
	blank                          // space
	dash                           // -
	hexAny                         // 0-9 a-f A-F
	lowerHex                       // 0-9 a-f
)

// charClass has the classes of each byte. Rules on characters run on almost
// every call, and a table is ten times as fast as a regular expression.
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

// all returns a matcher for texts of at least one byte, all of them in set.
func all(set byteClass) func(string) bool {
	return func(s string) bool { return s != "" && allBytes(s, set) }
}

// MatchASCII reports whether a text consists of ASCII characters.
func MatchASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// matchPrintASCII reports whether a text consists of printable ASCII characters
// and spaces.
func matchPrintASCII(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// matchHexadecimal matches the same texts as patternHexadecimal.
func matchHexadecimal(s string) bool {
	if len(s) > 2 && s[0] == '0' && s[1]|0x20 == 'x' {
		s = s[2:]
	}
	return s != "" && allBytes(s, hexAny)
}

// matchNumeric matches the same texts as patternNumeric.
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

// uuidMatcher returns a matcher for UUIDs of a version, given as its digit, or
// of any if version is 0. Versions above 3 also fix the variant. With lower,
// capital letters are refused.
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
