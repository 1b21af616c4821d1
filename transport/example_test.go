package transport_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/talaria-go/mcp/transport"
)

func ExampleNewStream() {
	s := transport.NewStream(strings.NewReader("{\"a\":1}\n\n{\"b\":2}\n"), os.Stdout, nil)
	for {
		message, err := s.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err := s.Write(message); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// {"a":1}
	// {"b":2}
}
