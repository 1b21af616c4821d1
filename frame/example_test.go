package frame_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/protocol"
)

// printer stands for the client: it prints what it is sent.
type printer struct{}

func (printer) Send(message []byte) error {
	fmt.Printf("%s\n", message)
	return nil
}

func ExampleKey() {
	type Cart struct{ Items []string }
	cartKey := mcp.NewKey[Cart]("cart")

	f := frame.New(context.Background(), frame.Config{}) // the handler's Frame
	cart := cartKey.Update(f, func(c Cart) Cart {
		c.Items = append(c.Items, "apple")
		return c
	})
	fmt.Println(len(cart.Items), cart.Items[0])
	// Output: 1 apple
}

func ExampleFrame_Progress() {
	f := frame.New(context.Background(), frame.Config{
		Peer:    printer{},
		Request: frame.Request{Params: protocol.Params{Meta: protocol.Meta{ProgressToken: []byte(`"import"`)}}},
	})
	rows := []string{"a", "b"}
	for i := range rows {
		// ... work on the row ...
		if err := f.Progress(float64(i+1), float64(len(rows)), "row "+rows[i]); err != nil {
			return // the client is gone
		}
	}
	// Output:
	// {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"import","progress":1,"total":2,"message":"row a"}}
	// {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"import","progress":2,"total":2,"message":"row b"}}
}

func ExampleFrame_Log() {
	f := frame.New(context.Background(), frame.Config{Peer: printer{}, LogLevel: protocol.LevelInfo})
	_ = f.Log(protocol.LevelDebug, "the client does not want this")
	_ = f.Log(protocol.LevelWarning, map[string]int{"retries": 3}, "db")
	// Output:
	// {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","logger":"db","data":{"retries":3}}}
}

func ExampleKey_With() {
	user := mcp.NewKey[string]("user")
	authenticate := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r.WithContext(user.With(r.Context(), "ada")))
		})
	}
	// The server makes a Frame of each request; its handlers see the user.
	server := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		f := frame.New(r.Context(), frame.Config{})
		name, ok := user.Get(f)
		fmt.Println(name, ok)
	})
	authenticate(server).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/mcp", nil))
	// Output: ada true
}
