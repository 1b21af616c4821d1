package browser

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/talaria-go/mcp/internal/test/testdep"
)

// TestPeer: whose a connection is, over IPv4 and over IPv4 in IPv6.
func TestPeer(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, network := range []string{"tcp4", "tcp"} {
		c, err := net.Dial(network, l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		a, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if p := peerOf(a.RemoteAddr(), a.LocalAddr()); !p.known || p.uid != os.Getuid() {
			t.Errorf("%s: %+v, want uid %d", network, p, os.Getuid())
		}
		c.Close()
		if p := peerOf(a.RemoteAddr(), a.LocalAddr()); p.known && p.uid != noOwner {
			t.Errorf("%s: closed, and still that of %+v", network, p)
		}
		a.Close()
	}
	if p := peerOf(l.Addr(), l.Addr()); p.known {
		t.Errorf("nobody is %+v", p)
	}
}

// TestOtherUser: another user of this machine has the link, and is refused.
func TestOtherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can be another user")
	}
	bash := testdep.LookPath(t, "bash")
	ask := func(guards []Guard) string {
		s := serve(t, Options{Guards: guards})
		s.start(t)
		host := strings.TrimPrefix(s.own, "http://")
		address, port, _ := strings.Cut(host, ":")
		body := `{"code":"` + s.code() + `"}`
		script := "exec 3<>/dev/tcp/" + address + "/" + port + "; printf 'POST /api/key HTTP/1.1\\r\\nHost: " + host +
			"\\r\\nSec-Fetch-Site: same-origin\\r\\nConnection: close\\r\\nContent-Length: %d\\r\\n\\r\\n%s' ${#1} \"$1\" >&3; cat <&3"
		cmd := exec.CommandContext(t.Context(), bash, "-c", script, "-", body)
		cmd.Dir = "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	if out := ask(nil); !strings.HasPrefix(out, "HTTP/1.1 403") {
		t.Errorf("another user: %s", out)
	}
	if out := ask(Guards()[1:]); !strings.HasPrefix(out, "HTTP/1.1 200") {
		t.Errorf("without the guard: %s", out)
	}
}
