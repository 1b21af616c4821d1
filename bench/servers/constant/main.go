// Constant answers tools/call with bytes that were made when it started: it looks
// for the tool and the id in the text of a message, and decodes nothing. Its cost
// is that of net/http, or of a pair of pipes, for messages of that size.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/talaria-go/mcp/bench/internal/serve"
	"github.com/talaria-go/mcp/bench/tools"
)

// idLength is the length of every id that the driver sends.
const idLength = 10

// head and tails are the parts of an answer before and after its id.
var head = []byte(`{"jsonrpc":"2.0","id":`)

type tails struct{ add, search []byte }

func tail(result any) []byte {
	text, err := json.Marshal(result)
	if err != nil {
		panic(err) // the results are constants
	}
	quoted, _ := json.Marshal(string(text)) // of a string: never fails
	return fmt.Appendf(nil, `,"result":{"content":[{"type":"text","text":%s}],"structuredContent":%s}}`, quoted, text)
}

var idKey, searchName = []byte(`"id":`), []byte(`"name":"search"`)

// answer returns the id in a message, and what follows it in the answer.
func (t tails) answer(message []byte) (id, tail []byte, err error) {
	at := bytes.Index(message, idKey)
	if at < 0 || len(message) < at+len(idKey)+idLength {
		return nil, nil, errors.New("no id")
	}
	id = message[at+len(idKey):][:idLength]
	if bytes.Contains(message, searchName) {
		return id, t.search, nil
	}
	return id, t.add, nil
}

func (t tails) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		var id, tail []byte
		if id, tail, err = t.answer(body); err == nil {
			w.Header().Set("Content-Type", "application/json")
			w.Write(append(append(append(make([]byte, 0, len(head)+len(id)+len(tail)), head...), id...), tail...))
			return
		}
	}
	http.Error(w, err.Error(), http.StatusBadRequest)
}

// stdio answers line by line and flushes when no more input waits.
func (t tails) stdio(context.Context) error {
	in, out := bufio.NewReaderSize(os.Stdin, 1<<16), bufio.NewWriterSize(os.Stdout, 1<<16)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return err
		}
		id, tail, err := t.answer(line)
		if err != nil {
			return err
		}
		for _, part := range [][]byte{head, id, tail, {'\n'}} {
			out.Write(part)
		}
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}

func main() {
	in := tools.SearchIn{Query: "protocol servers in go", Limit: 20} // what the driver asks for
	t := tails{tail(tools.Add(tools.AddIn{A: 1234, B: -987})), tail(tools.Search(in))}
	serve.Main(serve.Server{
		HTTP:  func() (http.Handler, error) { return t, nil },
		Stdio: t.stdio,
	})
}
