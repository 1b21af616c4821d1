//go:build unix

package redis

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp/scale"
)

// What an engine or Options must not be is said at Open, with what to do, and
// without the password.
func TestOpenRefuses(t *testing.T) {
	engine := start(t)
	o := user(t, engine)
	replica := start(t)
	replica.say("REPLICAOF", "127.0.0.1", strconv.Itoa(engine.port))
	evicting := start(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	other := user(t, engine)
	engine.say("SET", "{talaria:"+other.Prefix+":}format", "2")
	narrow := user(t, engine)
	engine.say("ACL", "SETUSER", narrow.Prefix, "-publish")
	without := func(o Options, change func(o *Options)) Options { change(&o); return o }
	for name, tt := range map[string]struct {
		options Options
		want    string
		gone    bool
	}{
		"no prefix":       {without(o, func(o *Options) { o.Prefix = "" }), "1 to 32 of a-z", false},
		"a bad prefix":    {without(o, func(o *Options) { o.Prefix = "a}b" }), "1 to 32 of a-z", false},
		"a bad URL":       {without(o, func(o *Options) { o.URL = "redis://me:secret-x@127.0.0.1:%zz" }), "Options.URL", false},
		"another scheme":  {without(o, func(o *Options) { o.URL = "http://me:secret-x@127.0.0.1" }), "Options.URL", false},
		"a bad time":      {without(o, func(o *Options) { o.Timeout = -1 }), "Timeout", false},
		"nobody there":    {without(o, func(o *Options) { o.URL = "redis://me:secret-x@127.0.0.1:1" }), "refused", true},
		"a wrong secret":  {without(o, func(o *Options) { o.URL = strings.Replace(o.URL, "secret-", "secret-wrong-", 1) }), "WRONGPASS", true},
		"another's keys":  {without(o, func(o *Options) { o.Prefix = "another" }), ACL("another"), true},
		"evicts":          {user(t, evicting), "set noeviction", false},
		"is a replica":    {user(t, replica), "is a replica", false},
		"another format":  {other, "has format 2, and this version has 1", false},
		"a right missing": {narrow, ACL(narrow.Prefix), true},
	} {
		s, err := Open(t.Context(), tt.options)
		if err == nil {
			s.Close()
			t.Errorf("%s: it is opened", name)
			continue
		}
		if !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret-") || errors.Is(err, scale.ErrUnavailable) != tt.gone {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
}

func TestCheckInfo(t *testing.T) {
	const fine = "# Server\r\nredis_version:7.2.4\r\nvalkey_version:8.1.0\r\nrole:master\r\nmaxmemory:0\r\nmaxmemory_policy:volatile-lru\r\n"
	for info, want := range map[string]string{
		fine: "",
		strings.Replace(fine, "maxmemory:0", "maxmemory:1", 1): "noeviction",
		strings.Replace(fine, "7.2.4", "6.2.14", 1):            "7 is needed",
		strings.Replace(fine, "7.2.4", "10.0.1", 1):            "",
		"": "7 is needed",
		strings.Replace(fine, "role:master", "role:slave", 1): "replica",
	} {
		err := checkInfo(info, false)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", info, err, want)
		}
	}
	if err := checkInfo(strings.Replace(fine, "role:master", "role:slave", 1), true); err != nil {
		t.Errorf("a replica of a cluster: %v", err)
	}
}

// Each machine of a cluster is looked at, but for those that are gone.
func TestOpenCluster(t *testing.T) {
	cluster := startCluster(t, 0)
	o := user(t, cluster...)
	cluster[2].say("CONFIG", "SET", "maxmemory", "100mb")
	cluster[2].say("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	if s, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "set noeviction") {
		t.Errorf("with a machine that evicts: %v, %v", s, err)
	}
	cluster[2].say("CONFIG", "SET", "maxmemory-policy", "noeviction")
	open(t, o)
}

// Opening ends with its context, though nothing answers.
func TestOpenEnds(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	begun := time.Now()
	if _, err := Open(ctx, Options{URL: "redis://" + listener.Addr().String(), Prefix: "x"}); !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) > 400*time.Millisecond {
		t.Errorf("%v after %v", err, time.Since(begun))
	}
}

// Credentials are asked for each connection; if they do not return, there is
// none.
func TestCredentialsThatDoNotReturn(t *testing.T) {
	engine := start(t)
	o := user(t, engine)
	name, secret := o.Prefix, "secret-"+o.Prefix
	o.URL = "redis://" + engine.address()
	o.Credentials = func() (string, string, error) { return name, secret, nil }
	s := open(t, o)
	if err := put(t.Context(), s, "x"); err != nil {
		t.Error(err)
	}
	for what, fail := range map[string]func(){
		"panics":             func() { panic("secret-panic") },
		"ends its goroutine": runtime.Goexit,
		"returns an error":   nil,
	} {
		o.Credentials = func() (string, string, error) {
			if fail != nil {
				fail()
			}
			return "", "", errors.New("no credentials today")
		}
		if _, err := Open(t.Context(), o); !errors.Is(err, scale.ErrUnavailable) || strings.Contains(err.Error(), "secret-") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A certificate is checked, as its system or Options.TLS say.
func TestTLS(t *testing.T) {
	cert, key, roots := certificate(t)
	engine := start(t)
	port := freePort(t)
	engine.say("CONFIG", "SET", "tls-cert-file", cert, "tls-key-file", key, "tls-ca-cert-file", cert, "tls-auth-clients", "no", "tls-port", strconv.Itoa(port))
	o := user(t, engine)
	o.Timeout = 10 * time.Second // a loaded machine takes long for a handshake
	o.URL = strings.Replace(o.URL, "redis://", "rediss://", 1)
	o.URL = strings.Replace(o.URL, engine.address(), "127.0.0.1:"+strconv.Itoa(port), 1)
	if _, err := Open(t.Context(), o); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("with an unknown certificate: %v", err)
	}
	o.TLS = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}
	s := open(t, o)
	listen(t, s, "box").hears(t, s, "box")
}

// certificate writes a certificate for the loopback address, and its key.
func certificate(t *testing.T) (cert, key string, roots *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, content []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	roots = x509.NewCertPool()
	public, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots.AddCert(public)
	return write("cert", "CERTIFICATE", der), write("key", "PRIVATE KEY", secret), roots
}

// A socket of the system serves as well.
func TestSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	engine := start(t, "--unixsocket", path)
	o := user(t, engine)
	o.URL = strings.Replace(o.URL, engine.address(), path, 1)
	o.URL = strings.Replace(o.URL, "redis://", "unix://", 1)
	s := open(t, o)
	listen(t, s, "box").hears(t, s, "box")
}

// Servers with prefixes of their own do not meet on one engine.
func TestPrefixes(t *testing.T) {
	engine := start(t)
	a, b := open(t, user(t, engine)), open(t, user(t, engine))
	e := listen(t, b, "box")
	if err := put(t.Context(), a, "of a"); err != nil {
		t.Fatal(err)
	}
	if es, err := b.Get(t.Context(), scale.GetOp{Key: theKey}); err != nil || es[0].Rev != 0 {
		t.Errorf("%v, %v", es, err)
	}
	listen(t, a, "box").hears(t, a, "box")
	e.hears(t, b, "box")
	if _, _, err := a.Append(t.Context(), scale.AppendOp{Box: "box", Data: []byte("only a")}); err != nil {
		t.Fatal(err)
	}
	if heard, _ := e.has("only a"); heard {
		t.Error("a message is heard under another prefix")
	}
}

// All keys end by themselves, but the one that tells the format.
func TestKeysEnd(t *testing.T) {
	engine := start(t)
	s := open(t, user(t, engine))
	for i := range 10 {
		w := scale.Write{Key: scale.Key{Partition: "p", Name: strconv.Itoa(i)}, Value: []byte("x"), TTL: 100 * time.Millisecond, DueIn: time.Hour, Index: "i", Limit: "l", Max: 100}
		es, err := s.Put(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Get(t.Context(), scale.GetOp{Key: w.Key, Known: es[0].Rev, TTL: 200 * time.Millisecond}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Append(t.Context(), scale.AppendOp{Box: w.Key.Name, Data: []byte("x"), Keep: 1000, TTL: 100 * time.Millisecond}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Take(t.Context(), scale.Take{Box: w.Key.Name, Reader: "me", TTL: 200 * time.Millisecond}); err != nil {
			t.Fatal(err)
		}
	}
	client := engine.client()
	defer client.Close()
	eventually(t, "the keys are gone", func() bool {
		keys, err := client.Do(t.Context(), client.B().Keys().Pattern("*").Build()).AsStrSlice()
		return err == nil && len(keys) == 1 && strings.HasSuffix(keys[0], "format")
	})
}
