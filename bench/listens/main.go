// Command listens measures what open subscriptions cost a server: its memory
// for each subscriptions/listen over HTTP, and its processor time for
// notifying all of them of one change, compared with writing the same bytes
// to as many bare connections. With -sessions each is the stream that a
// legacy session opens with GET, and the session is a part of its memory.
// Linux only; it opens -n files and a few, here and in the server.
//
//	go run ./listens -n 10000 -rounds 20
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// The limits for one open subscription.
const (
	maxKiB   = 25  // of resident memory
	maxRatio = 3.0 // processor time to tell it of a change, as a multiple of a write to a bare connection
)

func main() {
	n := flag.Int("n", 10_000, "`number` of open subscriptions")
	rounds := flag.Int("rounds", 20, "`number` of changes to tell of")
	sessions := flag.Bool("sessions", false, "measure the streams of legacy sessions")
	enforce := flag.Bool("enforce", false, "exit with status 1 if a limit is missed")
	serve := flag.String("serve", "", "be a server of this `kind` for the measurement: talaria or bare")
	flag.Parse()
	var err error
	if *serve != "" {
		err = runServer(*serve)
	} else {
		err = measure(*n, *rounds, *sessions, *enforce)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "listens:", err)
		os.Exit(1)
	}
}

func measure(n, rounds int, sessions, enforce bool) error {
	request := request
	if sessions {
		request = sessionRequest
	}
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return err
	}
	if need := uint64(n + 100); files.Cur < need {
		return fmt.Errorf("%d subscriptions need ulimit -n of %d, it is %d", n, need, files.Cur)
	}
	listens, err := run("talaria", n, rounds, request, nil)
	if err != nil {
		return fmt.Errorf("talaria: %w", err)
	}
	bare, err := run("bare", n, rounds, func(string, int) (string, error) { return "\n", nil }, listens.message)
	if err != nil {
		return fmt.Errorf("bare connections: %w", err)
	}
	ratio := median(listens.cpu) / median(bare.cpu)
	what := "subscriptions"
	if sessions {
		what = "streams of sessions"
	}
	fmt.Printf("%d open %s, %s, %d processors\n\n", n, what, runtime.Version(), runtime.NumCPU())
	fmt.Printf("memory of each   %.1f KiB resident, %.1f KiB after a collection (limit %d KiB)\n", listens.resident/1024, listens.collected/1024, maxKiB)
	fmt.Printf("                 bare connection: %.1f KiB resident\n", bare.resident/1024)
	fmt.Printf("telling each     %.2f µs CPU, bare connection %.2f µs, ratio %.2f (limit %.1f)\n", median(listens.cpu), median(bare.cpu), ratio, maxRatio)
	fmt.Printf("the last hears   %.0f ms after the change, bare connection %.0f ms\n", median(listens.took), median(bare.took))
	if enforce && (listens.resident > maxKiB<<10 || ratio > maxRatio) {
		return errors.New("a limit is missed")
	}
	return nil
}

// figures are what one server costs.
type figures struct {
	resident, collected float64   // bytes of memory for each connection
	cpu                 []float64 // µs for each connection, by round
	took                []float64 // ms for all connections, by round
	message             []byte    // what one connection gets in a round
}

// run measures a server of that kind with n connections, each of which says
// first what request returns. The bare server writes message.
func run(kind string, n, rounds int, request func(addr string, i int) (string, error), message []byte) (*figures, error) {
	s, err := start(kind)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	if _, err := s.ask(fmt.Sprintf("message %q", message)); err != nil {
		return nil, err
	}
	before, err := s.stats("stats")
	if err != nil {
		return nil, err
	}
	clients, err := dial(s.addr, n, request)
	if err != nil {
		return nil, err
	}
	defer clients.close()
	f := &figures{}
	after, err := s.stats("stats")
	if err != nil {
		return nil, err
	}
	f.resident = float64(after.resident-before.resident) / float64(n)
	for range rounds + 1 { // the first warms up
		if err := f.round(s, clients); err != nil {
			return nil, err
		}
	}
	f.cpu, f.took = f.cpu[1:], f.took[1:]
	if after, err = s.stats("collect"); err != nil {
		return nil, err
	}
	f.collected = float64(after.resident-before.resident) / float64(n)
	f.message = clients.first()
	return f, nil
}

// round makes the server notify all clients, and waits until they have received
// the message.
func (f *figures) round(s *server, clients *clients) error {
	before, err := s.stats("stats")
	if err != nil {
		return err
	}
	start := time.Now()
	if _, err := s.ask("tell"); err != nil {
		return err
	}
	if err := clients.wait(); err != nil {
		return err
	}
	f.took = append(f.took, float64(time.Since(start).Microseconds())/1000)
	after, err := s.stats("stats")
	if err != nil {
		return err
	}
	f.cpu = append(f.cpu, float64(after.cpu-before.cpu)/float64(len(clients.all)))
	return nil
}

func median(values []float64) float64 {
	values = slices.Sorted(slices.Values(values))
	return values[len(values)/2]
}

// server is a server in a process of its own.
type server struct {
	cmd  *exec.Cmd
	in   *os.File
	out  *bufio.Reader
	addr string
}

func start(kind string) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	cmd := exec.Command(self, "-serve", kind)
	cmd.Stdin, cmd.Stderr = r, os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &server{cmd: cmd, in: w, out: bufio.NewReader(out)}
	if s.addr, err = s.line(); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

func (s *server) line() (string, error) {
	line, err := s.out.ReadString('\n')
	return strings.TrimSpace(line), err
}

// ask sends a command and returns the line that answers it.
func (s *server) ask(command string) (string, error) {
	if _, err := fmt.Fprintln(s.in, command); err != nil {
		return "", err
	}
	return s.line()
}

// usage is what a process has used.
type usage struct {
	cpu      int64 // µs
	resident int64 // bytes
}

func (s *server) stats(command string) (u usage, err error) {
	line, err := s.ask(command)
	if err != nil {
		return u, err
	}
	_, err = fmt.Sscan(line, &u.cpu, &u.resident)
	return u, err
}

func (s *server) stop() {
	s.in.Close() // it ends with its input
	_ = s.cmd.Wait()
}
