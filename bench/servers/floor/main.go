// Floor answers tools/call with only net/http and encoding/json. It decodes
// the call into structs and encodes the same result as the others, structured
// and as text. There is no protocol, no session and no check.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/talaria-go/mcp/bench/internal/serve"
	"github.com/talaria-go/mcp/bench/tools"
)

type request struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"params"`
}

type content struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type result struct {
	Content    []content       `json:"content"`
	Structured json.RawMessage `json:"structuredContent"`
}

type response struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  result          `json:"result"`
}

// call decodes arguments, runs the tool and encodes its result.
func call[In, Out any](tool func(In) Out, arguments []byte) ([]byte, error) {
	var in In
	if err := json.Unmarshal(arguments, &in); err != nil {
		return nil, err
	}
	return json.Marshal(tool(in))
}

func answer(message []byte) ([]byte, error) {
	var req request
	if err := json.Unmarshal(message, &req); err != nil {
		return nil, err
	}
	var out []byte
	var err error
	switch req.Params.Name {
	case "add":
		out, err = call(tools.Add, req.Params.Arguments)
	case "search":
		out, err = call(tools.Search, req.Params.Arguments)
	default:
		err = fmt.Errorf("no tool %q", req.Params.Name)
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(response{"2.0", req.ID, result{[]content{{"text", string(out)}}, out}})
}

func serveHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		body, err = answer(body)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(body)
}

// serveStdio answers line by line and flushes when no more input waits.
func serveStdio(context.Context) error {
	in, out := bufio.NewReaderSize(os.Stdin, 1<<16), bufio.NewWriterSize(os.Stdout, 1<<16)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return err
		}
		text, err := answer(line)
		if err != nil {
			return err
		}
		out.Write(text)
		out.WriteByte('\n')
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}

func main() {
	serve.Main(serve.Server{
		HTTP:  func() (http.Handler, error) { return http.HandlerFunc(serveHTTP), nil },
		Stdio: serveStdio,
	})
}
