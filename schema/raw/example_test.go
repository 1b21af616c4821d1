package raw_test

import (
	"fmt"

	"github.com/talaria-go/mcp/schema/raw"
)

func ExampleCompile() {
	s, err := raw.Compile([]byte(`{"type":"object","properties":{"n":{"type":"integer","maximum":5}}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Check([]byte(`{"n":9}`)))
	// Output:
	// /n: must be at most 5; got 9
}
