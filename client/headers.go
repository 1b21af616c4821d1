package client

import (
	"net/http"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/wire"
)

// mirror returns h with the headers that mirror args. It does not change h.
func (t *toolInfo) mirror(h http.Header, args []byte) http.Header {
	if args == nil {
		return h
	}
	h = h.Clone()
	if h == nil {
		h = http.Header{}
	}
	for _, p := range t.headers {
		if text, ok := headerText(jsonx.Lookup(args, p.Path)); ok {
			name, _ := wire.HeaderParam(p)
			h.Set(name, wire.EncodeHeaderValue(text))
		}
	}
	return h
}

// headerText returns the value of a header for the JSON text of an argument; ok
// is false if there is nothing to mirror.
func headerText(raw []byte) (text string, ok bool) {
	s := jsonx.Scanner{Buf: raw}
	switch s.Peek() {
	case jsonx.String:
		b, err := s.Str()
		return string(b), err == nil
	case jsonx.Bool:
		return string(raw), true
	case jsonx.Number:
		n, integer, err := s.Number()
		if err != nil || integer {
			return string(n), err == nil
		}
		plain, form := jsonx.Integer(n, 20)
		if form != jsonx.Whole {
			return string(n), true // not an integer that fits: the server will say so
		}
		return string(plain), true
	}
	return "", false
}
