package jsonx

// Lookup returns the JSON text at a path of member names inside raw, nil if
// there is none. raw must be text that was checked before.
func Lookup(raw []byte, path []string) []byte {
	for _, name := range path {
		if raw = memberText(raw, name); raw == nil {
			return nil
		}
	}
	return raw
}

func memberText(raw []byte, want string) []byte {
	s := Scanner{Buf: raw, MaxDepth: len(raw) + 1}
	if s.Peek() != Object {
		return nil
	}
	more, err := s.ObjectStart()
	for more && err == nil {
		name, nameErr := s.Name()
		if nameErr != nil {
			return nil
		}
		found := string(name) == want
		s.Peek()
		start := s.Pos
		s.SkipChecked()
		if found {
			return s.Buf[start:s.Pos]
		}
		more, err = s.ObjectNext()
	}
	return nil
}
