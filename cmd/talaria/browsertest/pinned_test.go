package browsertest

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp/internal/test/testdep"
)

var (
	collect = flag.Bool("collect", false, "install the pinned servers into -pinned, and keep what tools they have")
	pinned  = flag.String("pinned", "", "a directory with the tools of the pinned servers, which TestCollect has put there")
)

// pin is a server of npm that lists its tools with no account and no network.
type pin struct {
	name, version string
	integrity     string // of the tarball, as npm notes it
	args, env     []string
	tools         int
}

var pins = []pin{
	{"@browserstack/mcp-server", "1.4.2", "sha512-rBO2AWquQoITn1vsMpwxls8oZpX7+kqPDloUhtpwHubrb2BGUrqvNf1dG6QFJujU+M5OOLQ/j03JVxxcBPZgAQ==", nil, []string{"BROWSERSTACK_USERNAME=nobody", "BROWSERSTACK_ACCESS_KEY=none"}, 46},
	{"@circleci/mcp-server-circleci", "0.20.0", "sha512-CJLxxdcy4evOKgo44rIVS4xMYcg99yssmwedmEi+ldZ/UtpvTes4QcovaZP6JAOdxgmewbdTZZA05fa9Sqh5WA==", nil, []string{"CIRCLECI_TOKEN=none"}, 13},
	{"@hubspot/mcp-server", "0.4.0", "sha512-nNNrqysJrCkPb8XWl3wd2d61nTLf8IAnfWOHag4FCSRKRjSXuIE/2h4GVUcPmVhJVaN7RsIq8C43BMFV+EI9GA==", nil, []string{"PRIVATE_APP_ACCESS_TOKEN=none"}, 21},
	{"@modelcontextprotocol/server-everything", "2026.8.31", "sha512-5U3OZh8Xq0Li4nA26l6uNvV9/1suMDuWSn+NjLZIhzinhMY6N3A4DCrxVecBGPf2PsNFKTEv5krxGPRwzxc7jQ==", nil, nil, 13},
	{"@modelcontextprotocol/server-filesystem", "2026.8.31", "sha512-kKaFkyAh6oipvc9+EAbJ552JafnMnOq5nzmzWkp1jJdBhTAAGpmIpWihUG1+rfNhmEFM98gUZDdCHCDD4v6a7Q==", []string{"."}, nil, 14},
	{"@modelcontextprotocol/server-github", "2025.4.8", "sha512-8N43bQw9MlUB0piTZHK2JMh8kYPKxH57d4Z7Wb8PS4by2MkZ0FzI5xPImg3xumpev82VZw2VWHQJJJYp+WkwEw==", nil, []string{"GITHUB_PERSONAL_ACCESS_TOKEN=none"}, 26},
	{"@modelcontextprotocol/server-gitlab", "2025.4.25", "sha512-IQY57XkHjaIcSOWi+Qs9w8ZZMqhz5YOYOkU3v1CTbHU8rcIm/NhtX4/7XBeFRgXwRpvTuGP+WdnWg+1hH/wJdw==", nil, []string{"GITLAB_PERSONAL_ACCESS_TOKEN=none"}, 9},
	{"@modelcontextprotocol/server-memory", "2026.8.31", "sha512-ljj/3S4aGjxdNSQWw6gucKKGnTLdBPWxzapyY/MT2tOVyZwvxChvevXSLPwx59nKJAlVpUVW+cOlnVRXRwiqMQ==", nil, nil, 9},
	{"@modelcontextprotocol/server-sequential-thinking", "2026.8.31", "sha512-/EMH++1j2e+VmHwpibw1IUPHxA0tcQY09Yo5/OIPwW/8irEKLAufJNGSZQhCK18n8TUvV6WwZyQOuaDKxe/CeQ==", nil, nil, 1},
	{"@notionhq/notion-mcp-server", "2.5.2", "sha512-5nPSwHMnugSGAhSJS5vVIlMao+iTJO9HoWGpCnT8lJNrPy3rZMqs1V/CPiN4MuxF+5EBgRE/f/Tirl6Wfi75Mg==", nil, nil, 24},
	{"@playwright/mcp", "0.0.83", "sha512-oNcl+Ae2/IAjhfPeP46BfIkSakfmprY+aOtkv5MjrQ4lPav4/yNtPhL0iq8SlIM90oApWgBDUxaNKvktazUKOg==", nil, nil, 25},
	{"@sentry/mcp-server", "0.39.0", "sha512-sJzFkzka+1wkrCk+v/uWvl3lB0Kcu6Mb/jxlnOZyifJKhTpWv1gF6pJEmAGmf19s2f0ARAw6CsDaYuhGN+I4bw==", []string{"--access-token=none"}, nil, 9},
	{"@upstash/context7-mcp", "4.1.1", "sha512-fUARTIZGVKzlzQKDhKUg4aIQ3yEU/12STdfxJDDnLMSN7yyHiPvNHI05iFwxkv3vC8G76Wp27MwK6Jucl/C5pA==", nil, nil, 2},
	{"chrome-devtools-mcp", "1.11.0", "sha512-CytJ/5tnzrS+J/74be2P5aCOsS/mmGRHys/Si+IYC4ucrbnWAmES/dYdxGJjeUCECRcoFUilZAysdjlwqUjXIA==", nil, nil, 32},
	{"firecrawl-mcp", "3.26.0", "sha512-aJPkPDSeQAIvA1RthFsLStXf5GHWE6hZa8MC36fk3JXC9etj0kUwBF1CFl3th0DmaFTZ0gZ9+eSvauyEDdPDwA==", nil, []string{"FIRECRAWL_API_KEY=none"}, 29},
	{"mcp-server-kubernetes", "4.1.7", "sha512-c6rNCdzBBIUO3mpOSKCJjqJMpRyEJEyf3l+iw8xg/+KzThOrPVaPdxpsEvgzq8gCwKprwVL+wJUGLwuRspuwuA==", nil, nil, 23},
	{"mongodb-mcp-server", "3.0.4", "sha512-BD6Gu1qiyexMJQ/3vSBR01cuItrNM89rrh3x07OF0+YJAm8lb/+jvfIy5qSyy8tH10CYZmSspXLvvjLzsjQ3rw==", nil, nil, 27},
	{"tavily-mcp", "0.2.22", "sha512-w2pmmmn/JKcNavylDoiNtNPflWt6SK2G1SVUvg0VvdvFJQUaOzEdanAm1VUWBOhUCqmVoBYVPstGcOoWvh8RQQ==", nil, []string{"TAVILY_API_KEY=none"}, 5},
}

// file is where the tools of a server are kept.
func (p pin) file(dir string) string {
	return filepath.Join(dir, strings.NewReplacer("@", "", "/", "-").Replace(p.name)+".json")
}

// TestCollect installs the pinned servers and keeps what tools they have. No script of
// a package is run, and a tarball that is another one is not used.
func TestCollect(t *testing.T) {
	if !*collect {
		t.Skip("-collect is not set; CONTRIBUTING.md has the command")
	}
	dir, err := filepath.Abs(*pinned)
	if err != nil || *pinned == "" {
		t.Fatal("-pinned names no directory")
	}
	args := []string{"install", "--prefix", dir, "--save-exact", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"}
	for _, p := range pins {
		args = append(args, p.name+"@"+p.version)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(testdep.LookPath(t, "npm"), args...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	var lock struct {
		Packages map[string]struct{ Version, Integrity string }
	}
	if text, err := os.ReadFile(filepath.Join(dir, "package-lock.json")); err != nil {
		t.Fatal(err)
	} else if err := json.Unmarshal(text, &lock); err != nil {
		t.Fatal(err)
	}
	for _, p := range pins {
		if got := lock.Packages["node_modules/"+p.name]; got.Version != p.version || got.Integrity != p.integrity {
			t.Errorf("%s is version %s with %s, and not %s with %s", p.name, got.Version, got.Integrity, p.version, p.integrity)
			continue
		}
		tools, err := p.list(dir)
		if err != nil {
			t.Errorf("%s: %v", p.name, err)
			continue
		}
		if len(tools) != p.tools {
			t.Errorf("%s has %d tools, and not %d", p.name, len(tools), p.tools)
		}
		text, err := json.Marshal(tools)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p.file(dir), text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// list starts a server that is installed in a directory, and asks for its tools.
func (p pin) list(dir string) ([]json.RawMessage, error) {
	at := filepath.Join(dir, "node_modules", filepath.FromSlash(p.name))
	text, err := os.ReadFile(filepath.Join(at, "package.json"))
	if err != nil {
		return nil, err
	}
	var about struct{ Bin json.RawMessage }
	if err := json.Unmarshal(text, &about); err != nil {
		return nil, err
	}
	var program string
	if json.Unmarshal(about.Bin, &program) != nil {
		var several map[string]string
		if err := json.Unmarshal(about.Bin, &several); err != nil {
			return nil, err
		}
		for name, path := range several {
			if program == "" || name == filepath.Base(p.name) {
				program = path
			}
		}
	}
	node := "node"
	if modules := os.Getenv("E2E_MODULES"); modules != "" {
		node = filepath.Join(modules, "node/bin/node")
	}
	cmd := exec.Command(node, append([]string{filepath.Join(at, program)}, p.args...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), p.env...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	late := time.AfterFunc(timeLimit, func() { _ = cmd.Process.Kill() })
	defer func() {
		late.Stop()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"collect","version":"1"}}}`)
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	var all []json.RawMessage
	for lines.Scan() {
		var m struct {
			ID     int
			Error  *struct{ Message string }
			Result struct {
				Tools      []json.RawMessage
				NextCursor *string
			}
		}
		if json.Unmarshal(lines.Bytes(), &m) != nil || m.ID == 0 {
			continue // what else it says
		}
		if m.Error != nil {
			return nil, errors.New(m.Error.Message)
		}
		params := "{}"
		if m.ID == 1 {
			fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		} else if all = append(all, m.Result.Tools...); m.Result.NextCursor == nil {
			return all, nil
		} else {
			cursor, _ := json.Marshal(*m.Result.NextCursor) // a text always encodes
			params = fmt.Sprintf(`{"cursor":%s}`, cursor)
		}
		fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":"tools/list","params":%s}`+"\n", m.ID+1, params)
	}
	return nil, cmp.Or(lines.Err(), errors.New("it has ended"))
}
