package schema

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/go-playground/validator/v10"

	"github.com/talaria-go/mcp/internal/facts"
)

// searchArgs is the input that the performance targets are stated for.
type searchArgs struct {
	Query  string       `json:"query" validate:"required,min=1,max=100"`
	Limit  int          `json:"limit" validate:"min=1,max=100"`
	Sort   string       `json:"sort" validate:"oneof=asc desc"`
	Tags   []string     `json:"tags" validate:"max=10,dive,min=1"`
	Since  string       `json:"since" validate:"datetime=2006-01-02"`
	Filter searchFilter `json:"filter"`
}

type searchFilter struct {
	Lang   string  `json:"lang" validate:"len=2"`
	Score  float64 `json:"score" validate:"min=0,max=1"`
	Strict bool    `json:"strict"`
}

const searchJSON = `{"query":"golang mcp server","limit":25,"sort":"desc","tags":["go","mcp","schema"],"since":"2026-01-31","filter":{"lang":"en","score":0.75,"strict":true}}`

func compile[T any](t testing.TB, opts *Options) *Plan {
	t.Helper()
	p, err := Compile(reflect.TypeFor[T](), opts)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func BenchmarkDecode(b *testing.B) {
	p := compile[searchArgs](b, nil)
	data := []byte(searchJSON)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		var in searchArgs
		if err := p.Decode(context.Background(), data, &in); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReference is what Decode is compared with.
func BenchmarkReference(b *testing.B) {
	v := validator.New(validator.WithRequiredStructEnabled())
	data := []byte(searchJSON)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		var in searchArgs
		if err := json.Unmarshal(data, &in); err != nil {
			b.Fatal(err)
		}
		if err := v.Struct(&in); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		compile[searchArgs](b, nil)
	}
}

// BenchmarkNarrow measures the second schema of arguments, a part of what it costs to add
// a tool, beside BenchmarkCompile.
func BenchmarkNarrow(b *testing.B) {
	p := compile[searchArgs](b, nil)
	b.ReportAllocs()
	for b.Loop() {
		p.Internal(facts.Private{})
	}
}

// TestDecodeAllocations holds Decode to its ceiling.
func TestDecodeAllocations(t *testing.T) {
	p := compile[searchArgs](t, nil)
	data := []byte(searchJSON)
	got := testing.AllocsPerRun(200, func() {
		var in searchArgs
		if err := p.Decode(context.Background(), data, &in); err != nil {
			t.Fatal(err)
		}
	})
	if got > 12 {
		t.Errorf("Decode made %v allocations, want at most 12", got)
	}
}
