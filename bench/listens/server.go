package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/talaria-go/mcp"
)

// runServer serves connections of one kind and obeys commands from standard
// input, until that ends.
func runServer(kind string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	var tell func() error
	bare := &bareServer{}
	switch kind {
	case "talaria":
		var s *mcp.Server
		if s, err = newServer(); err != nil {
			return err
		}
		go http.Serve(l, s.Handler())
		tell = func() error { return change(s) }
	case "bare":
		go bare.serve(l)
		tell = bare.tell
	default:
		return fmt.Errorf("no such kind of server: %s", kind)
	}
	fmt.Println(l.Addr())
	return obey(bare, tell)
}

func obey(bare *bareServer, tell func() error) error {
	commands := bufio.NewScanner(os.Stdin)
	for commands.Scan() {
		command, argument, _ := strings.Cut(commands.Text(), " ")
		var err error
		answer := "done"
		switch command {
		case "message":
			var text string
			text, err = strconv.Unquote(argument)
			bare.message = []byte(text)
		case "tell":
			err = tell()
		case "collect":
			debug.FreeOSMemory()
			answer, err = used()
		case "stats":
			answer, err = used()
		default:
			err = fmt.Errorf("no such command: %s", command)
		}
		if err != nil {
			return err
		}
		fmt.Println(answer)
	}
	return commands.Err()
}

// used returns the processor time in µs and the resident memory in bytes.
func used() (string, error) {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return "", err
	}
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return "", err
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		return "", err
	}
	cpu := r.Utime.Nano()/1000 + r.Stime.Nano()/1000
	return fmt.Sprint(cpu, resident*int64(os.Getpagesize())), nil
}

func newServer() (*mcp.Server, error) {
	s := mcp.NewServer(mcp.Info{Name: "listens", Version: "1.0.0"}, &mcp.Options{
		Limits: mcp.Limits{Sessions: 50_000}, // all clients are anonymous
	})
	return s, s.Add(greeting("first"))
}

func greeting(name string) mcp.Component {
	return mcp.Tool(name, func(*mcp.Frame, struct{}) (string, error) { return name, nil })
}

// change makes one change to the list of tools.
func change(s *mcp.Server) error {
	if s.Remove(mcp.KindTool, "second") == 1 {
		return nil
	}
	return s.Add(greeting("second"))
}

// bareServer writes to connections and does nothing else.
type bareServer struct {
	message []byte

	mu    sync.Mutex
	conns []net.Conn
}

func (b *bareServer) serve(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		if _, err := conn.Write([]byte("ready\n")); err != nil {
			continue
		}
		b.mu.Lock()
		b.conns = append(b.conns, conn)
		b.mu.Unlock()
	}
}

func (b *bareServer) tell() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, conn := range b.conns {
		if _, err := conn.Write(b.message); err != nil {
			return err
		}
	}
	return nil
}
