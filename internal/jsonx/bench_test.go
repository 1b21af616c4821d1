package jsonx

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unsafe"
)

type row struct {
	ID      int      `json:"id"`
	Title   string   `json:"title"`
	Score   float64  `json:"score"`
	Tags    []string `json:"tags"`
	Updated string   `json:"updated"`
	Active  bool     `json:"active,omitempty"`
}

type page struct {
	Total int    `json:"total"`
	Rows  []row  `json:"rows"`
	Next  string `json:"next,omitempty"`
}

func benchPage() page {
	p := page{Total: 1234, Next: "cursor"}
	for i := range 20 {
		p.Rows = append(p.Rows, row{i + 1000, fmt.Sprintf("Result number %d of the search", i), float64(i) * 0.37,
			[]string{"go", "search"}, "2026-07-28T10:00:00Z", i%2 == 0})
	}
	return p
}

func BenchmarkEncode(b *testing.B) {
	v := benchPage()
	want, _ := json.Marshal(v)
	b.Run("jsonx", func(b *testing.B) {
		e, err := NewEncoder(reflect.TypeFor[page]())
		if err != nil {
			b.Fatal(err)
		}
		var buf []byte
		b.SetBytes(int64(len(want)))
		b.ReportAllocs()
		for b.Loop() {
			buf, _ = e.AppendPointer(buf[:0], unsafe.Pointer(&v))
		}
		if !bytes.Equal(buf, want) {
			b.Fatal("wrong text")
		}
	})
	b.Run("encoding", func(b *testing.B) {
		b.SetBytes(int64(len(want)))
		b.ReportAllocs()
		for b.Loop() {
			json.Marshal(&v)
		}
	})
	var tree any
	json.Unmarshal(want, &tree)
	b.Run("any/jsonx", func(b *testing.B) {
		e, err := NewEncoder(reflect.TypeFor[any]())
		if err != nil {
			b.Fatal(err)
		}
		var buf []byte
		b.ReportAllocs()
		for b.Loop() {
			buf, _ = e.Append(buf[:0], tree)
		}
	})
	b.Run("any/encoding", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			json.Marshal(tree)
		}
	})
}

func BenchmarkSkip(b *testing.B) {
	text, _ := json.Marshal(benchPage())
	many := manyNames(1000, "last")
	for name, text := range map[string][]byte{"page": text, "members": many} {
		b.Run(name+"/jsonx", func(b *testing.B) {
			var s Scanner
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				s.Reset(text)
				if _, err := s.Skip(); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/encoding", func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				json.Valid(text)
			}
		})
	}
}

func BenchmarkText(b *testing.B) {
	text, _ := json.Marshal(benchPage())
	long := strings.Repeat("a plain text with nothing to escape ", 60)
	var buf []byte
	b.Run("string", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			buf = AppendStringBytes(buf[:0], text)
		}
	})
	b.Run("plain", func(b *testing.B) {
		b.SetBytes(int64(len(long)))
		for b.Loop() {
			buf = AppendString(buf[:0], long)
		}
	})
	b.Run("compact", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			buf, _ = Compact(buf[:0], text)
		}
	})
	short := []byte(`"a short name"`)
	b.Run("scan/short", func(b *testing.B) {
		for b.Loop() {
			s := Scanner{Buf: short}
			s.Str()
		}
	})
	quoted := AppendString(nil, long)
	b.Run("scan/long", func(b *testing.B) {
		b.SetBytes(int64(len(quoted)))
		for b.Loop() {
			s := Scanner{Buf: quoted}
			s.Str()
		}
	})
}

// Encoding into a buffer that is large enough costs no memory.
func TestEncoderAllocations(t *testing.T) {
	v := benchPage()
	e, err := NewEncoder(reflect.TypeFor[page]())
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 0, 1<<16)
	for name, f := range map[string]func(){
		"AppendPointer": func() { e.AppendPointer(buf, unsafe.Pointer(&v)) },
		"Append":        func() { e.Append(buf, &v) },
		"AppendString":  func() { AppendString(buf, v.Rows[0].Title) },
	} {
		if n := testing.AllocsPerRun(50, f); n > 0 {
			t.Errorf("%s allocates %v times", name, n)
		}
	}
}
