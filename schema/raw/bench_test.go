package raw

import (
	"fmt"
	"strings"
	"testing"
)

// A schema of an API's operation: a hundred definitions of twenty members each.
func BenchmarkCompile(b *testing.B) {
	var text strings.Builder
	text.WriteString(`{"type":"object","properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{`)
	for i := range 100 {
		if i > 0 {
			text.WriteByte(',')
		}
		fmt.Fprintf(&text, `"d%d":{"type":"object","properties":{"next":{"$ref":"#/$defs/d%d"}`, i, (i+1)%100)
		for m := range 20 {
			fmt.Fprintf(&text, `,"member_%d":{"type":"string","description":"what it is"}`, m)
		}
		text.WriteString(`}}`)
	}
	text.WriteString(`}}`)
	schema := []byte(text.String())
	b.SetBytes(int64(len(schema)))
	for b.Loop() {
		if _, err := Compile(schema); err != nil {
			b.Fatal(err)
		}
	}
}
