package deploy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/internal/test/testexec"
)

// host is the name in the shipped configurations.
const host = "mcp.example.com"

// shippedReplicas are the addresses in the shipped configurations.
var shippedReplicas = []string{"10.0.0.1:8080", "10.0.0.2:8080", "10.0.0.3:8080"}

// setup is what a proxy is started with.
type setup struct {
	dir, address, cert, key string
	host                    string   // what clients call it
	replicas                []string // addresses, as many as shippedReplicas
	alone                   bool     // the replicas share no store
}

// proxy is a program with the configuration that is shipped for it.
type proxy struct {
	program, file string
	alone         []string // the lines that are no comments without a store
	body          string   // the limit of bodies in the file; "" if there is none
	bodyRaised    string
	cuts          bool // it may cut a client off that still sends, and lose the answer with that
	// prepare writes what the program is started with, of the shipped text.
	prepare func(t *testing.T, s setup, text string)
	// run returns its arguments: to check what was prepared, and to serve.
	run func(s setup, check bool) []string
}

var proxies = map[string]proxy{
	"nginx": {
		program: "nginx", file: "nginx/mcp.conf", alone: []string{"ip_hash;"}, body: "4m;", bodyRaised: "10m;",
		prepare: func(t *testing.T, s setup, text string) {
			text = replace(t, text, "443 ssl", s.address+" ssl")
			text = replace(t, text, "/etc/nginx/mcp.pem", s.cert)
			text = replace(t, text, "/etc/nginx/mcp.key", s.key)
			write(t, s.dir, "mcp.conf", text)
			user := ""
			if os.Getuid() == 0 {
				user = "user root;\n" // whose the directory is
			}
			paths := ""
			for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
				paths += fmt.Sprintf("%s_temp_path %s;\n", kind, filepath.Join(s.dir, kind))
			}
			write(t, s.dir, "nginx.conf", user+fmt.Sprintf(
				"daemon off;\npid %[1]s/pid;\nerror_log stderr;\nworker_processes 2;\nevents {}\nhttp {\naccess_log off;\n%[2]sinclude %[1]s/mcp.conf;\n}\n",
				s.dir, paths))
		},
		run: func(s setup, check bool) []string {
			args := []string{"-q", "-e", "stderr", "-c", filepath.Join(s.dir, "nginx.conf")}
			if check {
				args = append(args, "-t")
			}
			return args
		},
	},
	"haproxy": {
		program: "haproxy", file: "haproxy/haproxy.cfg",
		alone: []string{"stick-table type string", "stick store-response", "stick match"},
		prepare: func(t *testing.T, s setup, text string) {
			cert, key := read(t, s.cert), read(t, s.key)
			text = replace(t, text, "/etc/haproxy/mcp.pem", write(t, s.dir, "haproxy.pem", cert+key))
			text = replace(t, text, "bind :443", "bind "+s.address)
			write(t, s.dir, "haproxy.cfg", text)
		},
		run: func(s setup, check bool) []string {
			args := []string{"-q", "-db", "-f", filepath.Join(s.dir, "haproxy.cfg")}
			if check {
				args = append(args, "-c")
			}
			return args
		},
	},
	"caddy": {
		program: "caddy", file: "caddy/Caddyfile", alone: []string{"lb_policy ip_hash"}, body: "max_size 4MiB", bodyRaised: "max_size 10MiB", cuts: true,
		prepare: func(t *testing.T, s setup, text string) {
			_, port, err := net.SplitHostPort(s.address)
			if err != nil {
				t.Fatal(err)
			}
			// No certificate of an authority, no port but this one.
			text = replace(t, text, host+" {", fmt.Sprintf(
				"{\n\tadmin off\n\tauto_https disable_redirects\n\tdefault_bind 127.0.0.1\n\tlog {\n\t\tlevel ERROR\n\t}\n}\n%s:%s {\n\ttls %s %s", s.host, port, s.cert, s.key))
			write(t, s.dir, "Caddyfile", text)
		},
		run: func(s setup, check bool) []string {
			verb := "run"
			if check {
				verb = "validate"
			}
			return []string{verb, "--adapter", "caddyfile", "--config", filepath.Join(s.dir, "Caddyfile")}
		},
	},
}

// configure writes the configuration, with the places of this machine filled in,
// and lets the program check it.
func (p proxy) configure(t *testing.T, s setup) {
	t.Helper()
	text := read(t, filepath.Join("../../examples/deploy", p.file))
	for i, address := range shippedReplicas {
		text = replace(t, text, address, s.replicas[i])
	}
	if p.body != "" {
		text = replace(t, text, p.body, p.bodyRaised)
	}
	for _, line := range p.alone {
		if !strings.Contains(text, "# "+line) {
			t.Fatalf("%s has no comment with %q", p.file, line)
		}
		if s.alone {
			text = replace(t, text, "# "+line, line)
		}
	}
	p.prepare(t, s, text)
	cmd := p.command(t, s, true)
	cmd.Stdout, cmd.Stderr = nil, nil
	if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "[warn") || strings.Contains(string(out), "[WARNING]") {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
}

func (p proxy) command(t *testing.T, s setup, check bool) *exec.Cmd {
	cmd := exec.Command(testdep.LookPath(t, p.program), p.run(s, check)...)
	cmd.Env = append(os.Environ(), "HOME="+s.dir, "XDG_DATA_HOME="+s.dir, "XDG_CONFIG_HOME="+s.dir)
	return cmd
}

// start starts the proxy in front of replicas.
func (p proxy) start(t *testing.T, replicas []string, alone bool) *site {
	t.Helper()
	return p.serve(t, setup{host: host, replicas: replicas, alone: alone})
}

// serve starts the proxy, and stops it when the test ends.
func (p proxy) serve(t *testing.T, s setup) *site {
	t.Helper()
	testdep.LookPath(t, p.program)
	s.dir, s.address = t.TempDir(), testexec.FreeAddr(t)
	s.cert, s.key = certificate(t, s.dir)
	p.configure(t, s)
	launch(t, p.command(t, s, false))
	web := newSite(t, s)
	eventually(t, p.program+" listens", func() bool {
		conn, err := net.Dial("tcp", s.address)
		return err == nil && conn.Close() == nil
	})
	return web
}

// launch starts a program, which is told to end, and waited for, when the test
// ends.
func launch(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt) // it may have ended
		killer := time.AfterFunc(5*time.Second, func() { _ = cmd.Process.Kill() })
		defer killer.Stop()
		_ = cmd.Wait() // by the signal
	})
}

// certificate makes one that is signed by itself.
func certificate(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host, "localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return write(t, dir, "mcp.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))),
		write(t, dir, "mcp.key", string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret})))
}

// replace replaces what must be there.
func replace(t *testing.T, text, old, with string) string {
	t.Helper()
	if !strings.Contains(text, old) {
		t.Fatalf("there is no %q in\n%s", old, text)
	}
	return strings.ReplaceAll(text, old, with)
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// write writes a file and returns its name.
func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	name = filepath.Join(dir, name)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for late := time.Now().Add(timeLimit); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("not so: %s", what)
		}
	}
}

// Each program accepts the file that is shipped for it, with and without a store.
func TestConfigurations(t *testing.T) {
	for name, p := range proxies {
		for _, alone := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/alone=%v", name, alone), func(t *testing.T) {
				testdep.LookPath(t, p.program)
				s := setup{host: host, dir: t.TempDir(), address: testexec.FreeAddr(t), replicas: shippedReplicas, alone: alone}
				s.cert, s.key = certificate(t, s.dir)
				p.configure(t, s)
			})
		}
	}
}
