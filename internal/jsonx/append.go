package jsonx

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
)

// AppendInt appends v in decimal.
func AppendInt(dst []byte, v int64) []byte { return strconv.AppendInt(dst, v, 10) }

// errNotFinite is the error for floating-point numbers that have no JSON form.
var errNotFinite = errors.New("NaN and infinities have no JSON form")

// AppendFloat appends the shortest number that reads back as the same float of
// the given size, 32 or 64 bits. Numbers from 1e-6 up to 1e21 are written in
// plain digits, others with an exponent, as encoding/json does. NaN and
// infinities are errors; dst is then returned as it was.
func AppendFloat(dst []byte, v float64, size int) ([]byte, error) {
	abs := math.Abs(v)
	switch {
	case abs < 1<<53 && v == math.Trunc(v) && (size == 64 || abs < 1<<24):
		if v == 0 && math.Signbit(v) {
			return append(dst, '-', '0'), nil
		}
		return strconv.AppendInt(dst, int64(v), 10), nil
	case v != v || abs > math.MaxFloat64:
		return dst, errNotFinite
	}
	tiny, huge := abs < 1e-6, abs >= 1e21
	if size == 32 {
		tiny, huge = float32(abs) < 1e-6, float32(abs) >= 1e21
	}
	if !tiny && !huge {
		return strconv.AppendFloat(dst, v, 'f', -1, size), nil
	}
	dst = strconv.AppendFloat(dst, v, 'e', -1, size)
	// One digit of exponent is enough: 1e-9, not 1e-09.
	if n := len(dst); n >= 4 && dst[n-4] == 'e' && dst[n-3] == '-' && dst[n-2] == '0' {
		dst = append(dst[:n-2], dst[n-1])
	}
	return dst, nil
}

// Compact appends src without the white space between its tokens, after
// checking that src is one JSON value as Scanner.Skip demands. Half a surrogate pair
// becomes U+FFFD. On an error it returns dst as it was.
func Compact(dst, src []byte) ([]byte, error) {
	s := Scanner{Buf: src}
	return s.compact(dst)
}

// Plain returns v as encoding/json encodes it, without the escapes that HTML needs.
func Plain(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// stringEnd returns the index behind the string that begins at i, in text that
// has been checked.
func stringEnd(b []byte, i int) int {
	for i = plainRun(b, i+1); b[i] != '"'; i = plainRun(b, i) {
		if b[i] == '\\' {
			i++
		}
		i++
	}
	return i + 1
}
