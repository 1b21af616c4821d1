package jsonx

// Skip reads one value of any kind, checks it whole (syntax, Unicode, depth,
// and duplicate members at every level unless AllowDuplicates is set) and
// returns its text.
func (s *Scanner) Skip() (text []byte, err error) {
	c := s.space()
	start := s.Pos
	switch kindOf[c] {
	case String:
		_, err = s.Str()
	case Number:
		_, _, err = s.Number()
	case Bool:
		_, err = s.Bool()
	case Null:
		err = s.Null()
	case Array:
		err = s.skipArray()
	case Object:
		err = s.skipObject()
	default:
		err = s.unexpected("a value")
	}
	return s.Buf[start:s.Pos], err
}

// skipArray and skipObject call Skip for what is inside. The recursion is
// bounded by MaxDepth.
func (s *Scanner) skipArray() error {
	more, err := s.ArrayStart()
	for more && err == nil {
		if _, err = s.Skip(); err == nil {
			more, err = s.ArrayNext()
		}
	}
	return err
}

// manyMembers is the number of members from which a map finds duplicate names
// faster than comparing each with each.
const manyMembers = 24

// skipObject reads an object and compares the names of its members. The names
// of all open objects are in one slice, s.names, those of this one from base
// on; that saves an allocation for each object.
func (s *Scanner) skipObject() error {
	base := len(s.names)
	var seen map[string]struct{}
	more, err := s.ObjectStart()
	for more && err == nil {
		s.space()
		at := s.Pos
		var name []byte
		if name, err = s.Name(); err != nil {
			return err
		}
		if !s.AllowDuplicates {
			if seen, err = s.noteName(name, at, base, seen); err != nil {
				return err
			}
		}
		if _, err = s.Skip(); err == nil {
			more, err = s.ObjectNext()
		}
	}
	if err == nil {
		s.names = s.names[:base]
	}
	return err
}

// noteName records a member name of the object whose names begin at base and
// returns a DuplicateError if the object has it already. seen is the set of
// names once there are manyMembers of them; the caller keeps the one that is
// returned.
func (s *Scanner) noteName(name []byte, at, base int, seen map[string]struct{}) (map[string]struct{}, error) {
	if seen == nil {
		for _, n := range s.names[base:] {
			if n == string(name) {
				return nil, &DuplicateError{Offset: at, Name: n}
			}
		}
	} else if _, dup := seen[string(name)]; dup {
		return nil, &DuplicateError{Offset: at, Name: string(name)}
	}
	str := s.nameString(name)
	s.names = append(s.names, str)
	if seen == nil && len(s.names)-base == manyMembers {
		seen = make(map[string]struct{}, 2*manyMembers)
		for _, n := range s.names[base:] {
			seen[n] = struct{}{}
		}
	} else if seen != nil {
		seen[str] = struct{}{}
	}
	return seen, nil
}
