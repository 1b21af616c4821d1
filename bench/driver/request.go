package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"

	"github.com/talaria-go/mcp/bench/tools"
)

const (
	modernRevision = "2026-07-28"
	legacyRevision = "2025-11-25"
)

// Ids are this long, so that one can be written over another.
const firstID = 1_000_000_000

var searchIn = tools.SearchIn{
	Query: "protocol servers in go", Limit: 20, Sort: "newest", Tags: []string{"go", "protocol"}, Since: "2026-01-31",
	Filter: tools.Filter{Lang: "en", MinStars: 10, Archived: true},
}

var addIn = tools.AddIn{A: 1234, B: -987}

// arguments returns the arguments of a tool's call and the result it should
// have.
func arguments(tool string) (in, out any) {
	if tool == "add" {
		return addIn, tools.Add(addIn)
	}
	return searchIn, tools.Search(searchIn)
}

// message is a JSON-RPC message whose id can be changed in place.
type message struct {
	text []byte
	at   int // where the id starts
}

func newMessage(method string, id int, params map[string]any) message {
	m := map[string]any{"jsonrpc": "2.0", "method": method}
	if id != 0 {
		m["id"] = id
	}
	if params != nil {
		m["params"] = params
	}
	text, err := json.Marshal(m)
	if err != nil {
		panic(err) // the messages are constants
	}
	return message{text, bytes.Index(text, strconv.AppendInt(nil, int64(id), 10))}
}

// callMessage is a tools/call of the tool in the form of a revision of that kind.
func callMessage(kind, tool string) message {
	in, _ := arguments(tool)
	params := map[string]any{"name": tool, "arguments": in}
	if kind == "modern" {
		params["_meta"] = map[string]any{
			"io.modelcontextprotocol/protocolVersion":    modernRevision,
			"io.modelcontextprotocol/clientInfo":         map[string]any{"name": "bench", "version": "1.0.0"},
			"io.modelcontextprotocol/clientCapabilities": map[string]any{},
		}
	}
	return newMessage("tools/call", firstID, params)
}

func initializeMessage() message {
	return newMessage("initialize", firstID, map[string]any{
		"protocolVersion": legacyRevision, "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "bench", "version": "1.0.0"},
	})
}

func putID(dst []byte, id int) { strconv.AppendInt(dst[:0], int64(id), 10) }

// checker checks answers. The first is decoded and compared with what it
// should be; later ones need only be the same bytes except for the id. One
// that is not is decoded as well: the order of members may differ.
type checker struct {
	want     any
	template []byte
	at       int
}

func newChecker(tool string) *checker {
	_, out := arguments(tool)
	return &checker{want: out}
}

// quick reports whether text is the template with another id, and returns that.
func (c *checker) quick(text []byte) (id int, ok bool) {
	end := c.at + 10
	if c.template == nil || len(text) != len(c.template) || !bytes.Equal(text[:c.at], c.template[:c.at]) ||
		!bytes.Equal(text[end:], c.template[end:]) {
		return 0, false
	}
	for _, digit := range text[c.at:end] {
		if digit < '0' || digit > '9' {
			return 0, false
		}
		id = id*10 + int(digit-'0')
	}
	return id, true
}

// check returns the id of an answer, or what is wrong with it.
func (c *checker) check(text []byte) (int, error) {
	if id, ok := c.quick(text); ok {
		return id, nil
	}
	var answer struct {
		ID     int
		Error  json.RawMessage
		Result struct {
			IsError           bool
			Content           []struct{ Type, Text string }
			StructuredContent json.RawMessage
		}
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return 0, fmt.Errorf("answer %.300q: %w", text, err)
	}
	r := answer.Result
	if answer.Error != nil || r.IsError || len(r.Content) != 1 || r.Content[0].Type != "text" {
		return 0, fmt.Errorf("answer is not a result with one text: %.300s", text)
	}
	for _, form := range []string{string(r.StructuredContent), r.Content[0].Text} {
		got := reflect.New(reflect.TypeOf(c.want))
		if err := json.Unmarshal([]byte(form), got.Interface()); err != nil || !reflect.DeepEqual(got.Elem().Interface(), c.want) {
			return 0, fmt.Errorf("answer holds a wrong result: %.300s", text)
		}
	}
	if at := bytes.Index(text, strconv.AppendInt(nil, int64(answer.ID), 10)); at >= 0 && answer.ID >= firstID {
		c.template, c.at = bytes.Clone(text), at
	}
	return answer.ID, nil
}
