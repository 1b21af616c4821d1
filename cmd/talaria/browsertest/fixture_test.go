package browsertest

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// serve is a server that this program is as a child of the command: most of them
// are broken, each in one way.
func serve(name string, args []string) {
	s := &server{}
	switch name {
	case "exits":
		fmt.Fprintln(os.Stderr, "reading the configuration\nno such table: bills")
		os.Exit(3)
	case "noisy":
		fmt.Println("Bills is starting up ...")
		fmt.Fprintln(os.Stderr, "listening")
	case "hangs":
		fmt.Fprintln(os.Stderr, "waiting for the database")
		select {} // which the command ends
	case "old":
		s.revision = "1999-12-31"
	case "onebad":
		s.tools = `{"name":"good","inputSchema":{"type":"object"}},{"name":"bad","description":5,"inputSchema":{"type":"object"}}`
	case "cursor":
		s.cursor = "again"
	case "odd":
		s.odd = true
	case "grows":
		s.tools, s.grows = growing(""), true
	case "restless":
		go restless()
	case "dies":
		s.dies = true
	case "says":
		s.says = true
	case "shows":
		s.also = `,"resources":{}`
		s.tools, s.answers = showing()
	case "endings":
		serveEndings(s, args[0])
	case "tasks":
		serveTasks(len(args) > 0)
		return
	case "events":
		serveEvents(strings.Join(args, ""))
		return
	case "much":
		serveMuch(s)
	case "views":
		s.tools, s.answers = viewing(args)
		s.also = `,"resources":{}`
	case "asks":
		serveQuestions(s, strings.Join(args, ""))
	case "completes":
		s.also = `,"prompts":{},"completions":{}`
	case "floods":
		s.floods = true
	case "raw":
		s.tools = args[0]
	case "raw-says":
		s.tools, s.says = args[0], true
	case "keeps":
		tools, err := os.ReadFile(args[0])
		if err == nil {
			s.arrived, err = os.OpenFile(args[1], os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		s.tools = string(tools)
	case "hostile":
		s.also, s.answers = `,"prompts":{},"resources":{}`, hostile()
	}
	s.run()
}

// growing is a tool that takes a note, and more.
func growing(more string) string {
	return `{"name":"good","inputSchema":{"type":"object","required":["note"],"properties":{"note":{"type":"string"}` + more + `}}}`
}

// server speaks 2025-11-25 by hand, since no framework lets one be wrong.
type server struct {
	revision, tools, cursor        string
	also                           string            // capabilities
	arrived                        *os.File          // a line for the arguments of each call, as they came
	answers                        map[string]string // by method, and what is called, before all others
	dies, floods, grows, odd, says bool
	asks                           map[string]string // during calls, by their tools; the results are the answers
	asking                         json.RawMessage   // the call
}

func (s *server) run() {
	if s.revision == "" {
		s.revision = "2025-11-25"
	}
	if s.tools == "" {
		s.tools = `{"name":"good","inputSchema":{"type":"object"}}`
	}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var m struct {
			ID            json.RawMessage
			Method        string
			Result, Error json.RawMessage
			Params        struct {
				Name, URI string
				Argument  struct{ Value string }
				Arguments json.RawMessage
			}
		}
		if json.Unmarshal(in.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		if m.Method == "" {
			if s.asking != nil {
				text, _ := json.Marshal(string(m.Result) + string(m.Error)) // texts always encode
				fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":%s}]}}`+"\n", s.asking, text)
			}
			continue
		}
		if asks := s.asks[m.Params.Name]; asks != "" && m.Method == "tools/call" {
			s.asking = m.ID
			fmt.Printf(`{"jsonrpc":"2.0","id":"s1",%s}`+"\n", asks)
			continue
		}
		if m.Params.URI == "x://gone" {
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32002,"message":"there is no x://gone"}}`+"\n", m.ID)
			continue
		}
		if text := cmp.Or(s.answers[m.Method+" "+m.Params.URI], s.answers[strings.TrimSpace(m.Method+" "+m.Params.Name)]); text != "" {
			fmt.Println(strings.Replace(text, "$id", string(m.ID), 1))
			continue
		}
		result := ""
		switch m.Method {
		case "initialize":
			result = fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{"tools":{}%s},"serverInfo":{"name":"bills","version":"1"}}`, s.revision, s.also)
		case "resources/list":
			result = `{"resources":[]}`
		case "resources/templates/list":
			result = `{"resourceTemplates":[]}`
		case "prompts/list":
			result = `{"prompts":[{"name":"greet","arguments":[{"name":"who","required":true}]}]}`
		case "completion/complete":
			value := m.Params.Argument.Value
			result = fmt.Sprintf(`{"completion":{"values":[%q,%q]}}`, value+" 1", value+" 2")
		case "ping":
			result = `{}`
		case "tools/list":
			result = `{"tools":[` + s.tools + `]`
			if s.cursor != "" {
				result += fmt.Sprintf(`,"nextCursor":%q`, s.cursor)
			}
			result += "}"
		case "tools/call":
			if s.arrived != nil {
				fmt.Fprintf(s.arrived, "%s\n", m.Params.Arguments)
			}
			if s.dies {
				fmt.Fprintln(os.Stderr, "panic: division by zero")
				os.Exit(2)
			}
			if s.floods {
				go flood()
			}
			if s.says {
				fmt.Fprintln(os.Stderr, "Traceback:\n    at run()")
				fmt.Println(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","logger":"db","data":"slow query"}}`)
			}
			if s.grows {
				s.tools = growing(`,"more":{"type":"string"}`) + `,{"name":"later","inputSchema":{"type":"object"}}`
				fmt.Println(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
			}
			result = `{"content":[{"type":"text","text":"done"}]}`
			if s.odd {
				const name = "pay\u202enoisrev\u200b\u00ad"
				result = `{"structuredContent":{"rows":[{"` + name + `":"` + name + `"}]},"content":[{"type":"text","text":"\u0007` + name + `"},` +
					`{"type":"image","mimeType":"image/` + name + `","data":"AAAA"},{"type":"resource","resource":{"uri":"x://` + name + `","mimeType":"` + name + `","blob":"AAAA"}},` +
					`{"type":"resource","resource":{"uri":"y://` + name + `","text":"` + name + `"}}]}`
			}
		default:
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`+"\n", m.ID)
			continue
		}
		fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result)
	}
}

// restless says that the tools have changed, again and again.
func restless() {
	for range time.Tick(50 * time.Millisecond) {
		fmt.Println(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	}
}

// flood sends more messages than an inspector keeps, as fast as they are taken, and
// then 500 a second.
func flood() {
	n, rest := 0, strings.Repeat("and so on ", 20)
	send := func() {
		n++
		fmt.Printf(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"row %d of an import, %s"}}`+"\n", n, rest)
	}
	for range 400_000 {
		send()
	}
	fmt.Fprintln(os.Stderr, "steady")
	for range time.Tick(20 * time.Millisecond) {
		for range 10 {
			send()
		}
	}
}
