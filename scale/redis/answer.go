package redis

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/rueidis"

	"github.com/talaria-go/mcp/scale"
)

// fill fills an entry with Rev, owner, when it is due and value, of which any may be
// missing.
func fill(e *scale.Entry, answer []rueidis.RedisMessage, known scale.Rev) error {
	if len(answer) < 2 || answer[0].IsNil() {
		return nil
	}
	rev, err := parseRev(&answer[0])
	if err != nil {
		return err
	}
	if e.Owner, err = answer[1].ToString(); err != nil {
		return odd(err)
	}
	e.Rev = rev
	if len(answer) > 2 && !answer[2].IsNil() {
		if e.Due, err = parseRev(&answer[2]); err != nil {
			return err
		}
	}
	if rev != known && len(answer) > 3 {
		e.Value, err = value(&answer[3])
	}
	return err
}

// value returns a value, which is never nil.
func value(m *rueidis.RedisMessage) ([]byte, error) {
	text, err := m.ToString()
	if err != nil {
		return nil, odd(err)
	}
	return []byte(text), nil
}

// odd is the error of an answer that is not as a script makes it.
func odd(err error) error {
	return fmt.Errorf("%w: what it keeps under this prefix is not as it was written: %w", scale.ErrUnavailable, err)
}

func parseRev(m *rueidis.RedisMessage) (scale.Rev, error) {
	text, err := m.ToString()
	if err != nil {
		return 0, odd(err)
	}
	rev, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, odd(err)
	}
	return scale.Rev(rev), nil
}

// outcome fills in what has become of a write.
func outcome(e *scale.Entry, answer []rueidis.RedisMessage) error {
	if len(answer) == 0 {
		return odd(errors.New("an empty answer"))
	}
	code, err := answer[0].AsInt64()
	if err != nil {
		return odd(err)
	}
	switch code {
	case 0:
		e.Err = scale.ErrChanged
	case 2:
		e.Err = scale.ErrFull
	}
	return fill(e, answer[1:], 0)
}

// dues reads what is due. more tells that the script has met only names of what
// is gone.
func dues(answer []rueidis.RedisMessage, part, owner string) (more bool, due []scale.Entry, err error) {
	if len(answer)%4 != 1 {
		return false, nil, odd(fmt.Errorf("%d values", len(answer)))
	}
	code, err := answer[0].AsInt64()
	if err != nil {
		return false, nil, odd(err)
	}
	for rest := answer[1:]; len(rest) > 0; rest = rest[4:] {
		name, err := rest[0].ToString()
		if err != nil {
			return false, nil, odd(err)
		}
		e := scale.Entry{Key: scale.Key{Partition: part, Name: name}, Owner: owner}
		if e.Rev, err = parseRev(&rest[1]); err != nil {
			return false, nil, err
		}
		if e.Due, err = parseRev(&rest[2]); err != nil {
			return false, nil, err
		}
		if e.Value, err = value(&rest[3]); err != nil {
			return false, nil, err
		}
		due = append(due, e)
	}
	return code == 1, due, nil
}

// messageOf reads the id, the Rev before and the data of a message.
func messageOf(parts []rueidis.RedisMessage) (m scale.Message, err error) {
	id, err := parts[0].ToString()
	if err != nil {
		return m, odd(err)
	}
	rev, _, _ := strings.Cut(id, "-")
	n, err := strconv.ParseInt(rev, 10, 64)
	if err != nil {
		return m, odd(err)
	}
	m.Rev = scale.Rev(n)
	if m.Prev, err = parseRev(&parts[1]); err != nil {
		return m, err
	}
	m.Data, err = value(&parts[2])
	return m, err
}

// isOf reports whether an error of the engine is of a kind, which its first word
// tells.
func isOf(err *rueidis.RedisError, kind string) bool {
	return strings.HasPrefix(err.Error(), kind+" ") || err.Error() == kind
}

// first returns the error of the first look that was not answered.
func first(found []scale.Entry) error {
	for i := range found {
		if found[i].Err != nil {
			return found[i].Err
		}
	}
	return nil
}
