package browsertest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/talaria-go/mcp/internal/test/testdep"
)

// inspected is the command with a page.
type inspected struct {
	link   string
	stderr *heard
	pid    int
	end    func() // before the test's end
	kill   func() // the same, without a word, with what it has started
}

// heard is what a command has written to standard error.
type heard struct {
	mu    sync.Mutex
	text  bytes.Buffer
	found chan string // the first link
}

var links = regexp.MustCompile(`http://127\.0\.0\.1:\d+/#k=\w+\n`)

func (h *heard) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text.Write(p)
	if link := links.FindString(h.text.String()); link != "" {
		select {
		case h.found <- strings.TrimSpace(link):
		default:
		}
	}
	return len(p), nil
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

// inspect starts the command, which ends with the test.
func inspect(t *testing.T, args ...string) *inspected {
	t.Helper()
	testdep.LookPath(t, "chromium")
	return inspectWith(t, talaria, t.TempDir(), nil, args...)
}

// inspectWith starts a command in a directory, with more in its environment.
func inspectWith(t *testing.T, program, dir string, env []string, args ...string) *inspected {
	t.Helper()
	cmd := exec.Command(program, append([]string{"inspect", "-b", "--no-open"}, args...)...)
	i := &inspected{stderr: &heard{found: make(chan string, 1)}}
	cmd.Dir, cmd.Stderr = dir, i.stderr
	cmd.Env = slices.Concat(os.Environ(), []string{"HOME=" + dir, "XDG_STATE_HOME=" + dir, "XDG_CONFIG_HOME=" + dir}, env)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	i.pid = cmd.Process.Pid
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var over sync.Once
	i.end = func() {
		over.Do(func() {
			_ = cmd.Process.Signal(os.Interrupt)
			if err := <-ended; err != nil {
				t.Errorf("talaria %q: %v\n%s", args, err, i.stderr)
			}
		})
	}
	i.kill = func() {
		over.Do(func() {
			for _, child := range children(t, i.pid) {
				_ = syscall.Kill(child, syscall.SIGKILL)
			}
			_ = cmd.Process.Kill()
			<-ended
		})
	}
	t.Cleanup(i.end)
	select {
	case i.link = <-i.stderr.found:
	case err := <-ended:
		ended <- nil
		t.Fatalf("talaria %q: %v\n%s", args, err, i.stderr)
	}
	return i
}

// children are the processes that a process has started.
func children(t *testing.T, pid int) (list []int) {
	t.Helper()
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid)) // of a good pattern
	for _, name := range threads {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // the thread has ended
		}
		for _, word := range strings.Fields(string(text)) {
			child, err := strconv.Atoi(word)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, child)
		}
	}
	if len(list) == 0 {
		t.Fatal("the command has started nothing")
	}
	return list
}

// fixture is the target of a server of this program, by its name.
func fixture(t *testing.T, name string, args ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	words := append([]string{self, "serve", name}, args...)
	for i, word := range words {
		words[i] = "'" + word + "'" // which has none of these
	}
	return strings.Join(words, " ")
}

// inspectPage starts the command and opens its page in a tab of its own.
func inspectPage(t *testing.T, args ...string) *tab {
	t.Helper()
	i := inspect(t, args...)
	b := newTab(t)
	b.open(i.link)
	return b
}

// call chooses a tool by its name and calls it with what its form has.
func (b *tab) call(name string) {
	b.t.Helper()
	b.choose(name)
	b.ctrl(enter)
}

// choose goes to a tool with the keyboard, and waits for its form.
func (b *tab) choose(name string) {
	b.t.Helper()
	b.until(`document.querySelector('nav button[data-tool]')`)
	b.press("/")
	b.write(name)
	b.until(`[...document.querySelectorAll('nav button[data-tool] .one')].some(e => e.textContent === ` + quote(name) + `)`) // lists come one after the other
	b.press(enter)
	b.until(`document.querySelector('.ask').contains(document.activeElement) && document.querySelector('.ask h2').innerText === ` + quote(name))
}
