package limits_test

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/schema"
)

// searched is what tools often take: some members, with rules, one of them nested.
type searched struct {
	Query  string         `json:"query" validate:"min=1,max=500" jsonschema_description:"What to look for."`
	Kinds  []string       `json:"kinds,omitempty" validate:"max=5,unique,dive,oneof=issue page file" jsonschema_description:"Kinds of what is found."`
	Limit  int            `json:"limit,omitempty" validate:"gt=0,lte=100" jsonschema:"default=20" jsonschema_description:"How many at most."`
	Since  time.Time      `json:"since,omitzero" jsonschema_description:"Not older than this."`
	Wait   time.Duration  `json:"wait,omitempty" jsonschema_description:"How long to look."`
	Author *string        `json:"author" jsonschema:"nullable" validate:"email" jsonschema_description:"Who wrote it."`
	Labels map[string]int `json:"labels,omitempty" validate:"dive,keys,alpha,endkeys" jsonschema_description:"Weights of labels."`
	Order  struct {
		By   string `json:"by" validate:"oneof=date name score" jsonschema_description:"Member to sort by."`
		Down bool   `json:"down,omitempty" jsonschema_description:"From the last to the first."`
	} `json:"order,omitzero" jsonschema_description:"How to sort."`
}

// BenchmarkAdd measures what a server with a tool costs: one that logs nothing, and one
// that looks for what hosts refuse.
func BenchmarkAdd(b *testing.B) {
	tool := mcp.Tool("search", func(context.Context, searched) (struct{}, error) { return struct{}{}, nil }, mcp.Doc("Searches."), mcp.ReadOnly())
	for _, level := range []zerolog.Level{zerolog.Disabled, zerolog.WarnLevel} {
		b.Run(level.String(), func(b *testing.B) {
			logger := zerolog.New(b.Output()).Level(level)
			b.ReportAllocs()
			for b.Loop() {
				mcp.NewServer(mcp.Info{Name: "s", Version: "1"}, &mcp.Options{Logger: &logger}).MustAdd(tool)
			}
		})
	}
}

// BenchmarkAddShare says how much longer the narrow schema makes Add: the shortest of both,
// taken in turn, so that the ratio holds on a machine that does something else, too.
func BenchmarkAddShare(b *testing.B) {
	tool := mcp.Tool("search", func(context.Context, searched) (struct{}, error) { return struct{}{}, nil }, mcp.Doc("Searches."), mcp.ReadOnly())
	plan, err := schema.Compile(reflect.TypeFor[searched](), nil)
	if err != nil {
		b.Fatal(err)
	}
	whole, narrow := time.Hour, time.Hour
	for b.Loop() {
		s := harness.Bare(mcp.Options{})
		began := time.Now()
		s.MustAdd(tool)
		added := time.Now()
		plan.Internal(facts.Private{})
		whole, narrow = min(whole, added.Sub(began)), min(narrow, time.Since(added))
	}
	b.ReportMetric(100*float64(narrow)/float64(whole-narrow), "%more")
}

// BenchmarkServer measures a server without a tool, which is a part of BenchmarkAdd.
func BenchmarkServer(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		harness.Bare(mcp.Options{})
	}
}
