//go:build unix

package redis

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/auth"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/internal/test/everything"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/protocol"
)

var oldKey, newKey = []byte("the key that goes away"), []byte("the key that comes")

// rotation is a server of three replicas over one engine. Others with other keys
// take their places while clients use it, and none of those is to notice.
type rotation struct {
	*disturbed
	engine *server
	o      Options
	log    lines

	choosing sync.Mutex
	fleet    []*member
	next     int

	using    sync.WaitGroup
	over     chan struct{}
	progress []*atomic.Int64 // of each client: how often it was served
	hearers  []*hearer
	proofs   atomic.Int64
}

// member is a replica.
type member struct {
	*mcp.Server
	mcp, proven http.Handler
	store       *Store
	entering    sync.WaitGroup // requests that it has not begun to answer
}

// startRotation starts replicas that have one key, and a balancer before them.
func startRotation(t *testing.T) *rotation {
	r := &rotation{
		disturbed: &disturbed{t: t, count: map[string]int{}, began: time.Now()}, engine: start(t, "--appendonly", "yes"), over: make(chan struct{}),
	}
	r.o = user(t, r.engine)
	r.o.Timeout = 5 * time.Second // a slow machine is none whose engine is away
	for range 3 {
		r.add(oldKey)
	}
	web := httptest.NewServer(r)
	t.Cleanup(web.Close)
	t.Cleanup(func() {
		for len(r.fleet) > 0 {
			r.remove()
		}
	})
	t.Cleanup(r.using.Wait)
	r.url, r.replicas = web.URL, []string{web.URL}
	return r
}

// add starts a replica with keys.
func (r *rotation) add(keys ...[]byte) {
	logger := zerolog.New(&r.log)
	m := &member{store: open(r.t, r.o)}
	m.Server = mcp.NewServer(mcp.Info{Name: "shop", Version: "1"}, &mcp.Options{
		Store: m.store, StateKeys: keys, Logger: &logger, Timeouts: mcp.Timeouts{Session: time.Minute}, HTTP: mcp.HTTPOptions{Polling: true},
	})
	m.MustAdd(
		mcp.Tool("count", func(f *mcp.Frame, _ nothing) (string, error) {
			return strconv.Itoa(visits.Update(f, func(n int) int { return n + 1 })), nil
		}),
		mcp.Tool("tell", func(_ *mcp.Frame, in everything.NotifyIn) (string, error) {
			return "told", m.Notify(in.Session, protocol.MethodLog, map[string]any{"level": protocol.LevelInfo, "data": in.Text})
		}),
		mcp.Tool("leave", func(f *mcp.Frame, _ nothing) (string, error) {
			f.CloseStream()
			return "left", nil
		}),
		mcp.Tool("ask", func(f *mcp.Frame, _ nothing) (string, error) {
			answer, err := mcp.Elicit[secretForm](f, "question", "Which?")
			return answer.Value.Answer, err
		}),
	)
	verifier := auth.VerifierFunc(func(_ context.Context, token string) (*auth.Identity, error) {
		return &auth.Identity{Subject: "somebody", Claims: map[string]any{"cnf": map[string]any{"jkt": token}}}, nil // a token is the thumbprint
	})
	resource, err := auth.New(provenURL, verifier, &auth.Options{DPoP: auth.DPoPOptions{Store: m.store}})
	if err != nil {
		r.t.Fatal(err)
	}
	m.mcp = m.Handler()
	m.proven = resource.Bearer(m.mcp)
	r.choosing.Lock()
	defer r.choosing.Unlock()
	r.fleet = append(r.fleet, m)
}

// remove ends the oldest replica, as operations.md tells: nothing new reaches it,
// then it drains, and then it shuts down.
func (r *rotation) remove() {
	r.choosing.Lock()
	m := r.fleet[0]
	r.fleet = r.fleet[1:]
	r.choosing.Unlock()
	m.entering.Wait()
	if err := m.Drain(context.Background()); err != nil { // at once
		r.t.Error(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := m.Shutdown(ctx); err != nil {
		r.t.Error(err)
	}
	m.store.Close()
}

// roll gives all replicas other keys, one after the other. restart ends each before
// another takes its place.
func (r *rotation) roll(restart bool, keys ...[]byte) {
	for range 3 {
		if restart {
			r.remove()
		}
		r.add(keys...)
		if !restart {
			r.remove()
		}
		r.isServed()
	}
}

// ServeHTTP is the balancer.
func (r *rotation) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.choosing.Lock()
	r.next++
	m := r.fleet[r.next%len(r.fleet)]
	m.entering.Add(1)
	r.choosing.Unlock()
	entered := sync.OnceFunc(m.entering.Done)
	defer entered()
	m.mcp.ServeHTTP(answering{w, entered}, q)
}

// answering tells when an answer begins.
type answering struct {
	http.ResponseWriter
	begun func()
}

func (a answering) WriteHeader(status int) {
	a.ResponseWriter.WriteHeader(status)
	a.begun()
}

func (a answering) Write(b []byte) (int, error) {
	defer a.begun()
	return a.ResponseWriter.Write(b)
}

func (a answering) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	defer a.begun()
	return http.NewResponseController(a.ResponseWriter).Hijack()
}

func (a answering) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// uses runs a client until the load is over. It waits four times as long as what it
// does takes, so that all of them together leave the replicas time also where that is slow.
func (r *rotation) uses(once func()) {
	served := &atomic.Int64{}
	r.progress = append(r.progress, served)
	r.using.Go(func() {
		for {
			begun := time.Now()
			once()
			served.Add(1)
			select {
			case <-r.over:
				return
			case <-r.t.Context().Done(): // the test has failed
				return
			case <-time.After(2*time.Millisecond + 4*time.Since(begun)):
			}
		}
	})
}

// isServed waits until all clients have got something that they asked for after
// this.
func (r *rotation) isServed() {
	r.t.Helper()
	for i, served := range r.progress {
		before := served.Load()
		eventually(r.t, fmt.Sprint("client ", i, " is served"), func() bool { return served.Load() >= before+2 })
	}
}

// end ends the load.
func (r *rotation) end() {
	close(r.over)
	r.using.Wait()
}

// fates are words for what became of a request.
var fates = map[fate]string{done: "done", refused: "refused", unknown: "unknown", gone: "gone"}

// calls returns how many calls of counters became that.
func (r *rotation) calls(became fate) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.count["call: "+fates[became]]
}

// note counts what became of a request, and reports whether it was answered.
func (r *rotation) note(what string, became fate) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count[what+": "+fates[became]]++
	return became == done
}

// session opens a session, and returns its id.
func (r *rotation) session() string {
	_, header, o := r.send(r.t.Context(), http.MethodPost, "", "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"rotation","version":"1"}}`)
	r.note("initialize", o)
	return header.Get("Mcp-Session-Id")
}

// counter counts in a session.
func (r *rotation) counter() {
	session, n := r.session(), 0
	r.uses(func() {
		reply, _, o := r.send(r.t.Context(), http.MethodPost, session, "tools/call", `{"name":"count"}`)
		if !r.note("call", o) {
			return
		}
		got, _ := strconv.Atoi(reply.Result.Content[0].Text)
		if n++; got != n {
			r.t.Errorf("call %d is the %d", n, got)
		}
		n = got
	})
}

// hearer has a stream open in a session that does nothing else, and is told of something now and then by calls that have no
// session.
func (r *rotation) hearer() {
	h := &hearer{d: r.disturbed, session: r.session()}
	r.hearers = append(r.hearers, h)
	n := 0
	r.uses(func() {
		n++
		called := r.now()
		text := "n" + strconv.Itoa(n)
		reply, _, o := r.send(r.t.Context(), http.MethodPost, "", "tools/call", `{"name":"tell","arguments":{"session":"`+h.session+`","text":"`+text+`"}`+chaosMeta+`}`)
		if o == done && reply.Result.IsError {
			o = refused
		}
		if r.note("message", o) {
			h.note(func(a *account) { a.messages = append(a.messages, told{text, 0, called, r.now()}) })
		}
	})
}

// listen keeps the streams of hearers open until the function is called that it
// returns, which waits until all has come that was told.
func (r *rotation) listen() (end func()) {
	ctx, cancel := context.WithCancel(r.t.Context())
	var listening sync.WaitGroup
	for _, h := range r.hearers {
		listening.Go(func() {
			for ctx.Err() == nil {
				h.stream(ctx, 0)
			}
		})
	}
	return func() {
		for i, h := range r.hearers {
			eventually(r.t, "what hearers were told has come", func() bool {
				h.mu.Lock()
				defer h.mu.Unlock()
				return len(h.heard) >= len(h.messages)
			})
			if n := h.refused.Load(); n > 0 {
				r.t.Errorf("%d streams of hearer %d were refused", n, i)
			}
		}
		cancel()
		listening.Wait()
		for i, h := range r.hearers {
			v := h.judge(true, nil, r.now()+2*settled)
			r.t.Logf("hearer %d: %d streams, %d messages", i, len(h.spans), len(h.heard))
			for _, fault := range v.faults {
				r.t.Errorf("hearer %d: %s", i, fault)
			}
		}
	}
}

// leaver makes calls in a session, and takes the answers of half of them on other
// streams than theirs.
func (r *rotation) leaver() {
	session := r.session()
	r.uses(func() { r.left(session)() })
}

// left makes a call whose stream ends before its answer, which the function gets that
// it returns.
func (r *rotation) left(session string) (resume func()) {
	text, o := r.stream(http.MethodPost, session, "", fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"leave"}}`, r.ids.Add(1)))
	if !r.note("call that is left", o) {
		return func() {}
	}
	at := strings.LastIndex(text, "id: ")
	if at < 0 {
		r.t.Errorf("the stream has no id: %q", text)
		return func() {}
	}
	event, _, _ := strings.Cut(text[at+4:], "\n")
	return func() {
		text, o := r.stream(http.MethodGet, session, event, "")
		if r.note("resume", o) && !strings.Contains(text, `"left"`) {
			r.t.Errorf("what comes after %s is %q", event, text)
		}
	}
}

// stream makes a request of a session that is answered with a stream, and returns
// what that says up to its end, or to a result.
func (r *rotation) stream(method, session, last, body string) (text string, o fate) {
	ctx, cancel := context.WithTimeout(r.t.Context(), unanswered)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, method, r.url, strings.NewReader(body))
	if err != nil {
		r.t.Error(err)
		return "", unknown
	}
	q.Header = http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Session-Id": {session}, "Mcp-Protocol-Version": {"2025-11-25"},
	}
	if last != "" {
		q.Header.Set("Last-Event-Id", last)
	}
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		r.t.Error(err)
		return "", unknown
	}
	defer res.Body.Close()
	switch res.StatusCode {
	case http.StatusOK:
	case http.StatusServiceUnavailable:
		return "", refused
	case http.StatusNotFound:
		return "", gone
	default:
		r.t.Errorf("%s of a stream: %s", method, res.Status)
		return "", unknown
	}
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		text += lines.Text() + "\n"
		if strings.Contains(lines.Text(), `"result"`) {
			break
		}
	}
	return text, done
}

// asked connects a client of a revision, which answers questions with what answer
// returns, and returns what makes a call that asks.
func (r *rotation) asked(rev protocol.Revision, answer func() string) (call func()) {
	c, err := client.Connect(r.t.Context(), client.HTTP(r.url, nil), &client.Options{
		Revisions: []protocol.Revision{rev}, Timeout: time.Minute,
		Elicit: func(context.Context, *client.ElicitParams) (*client.ElicitResult, error) {
			return client.Accept(secretForm{answer()})
		},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close() })
	return func() {
		result, err := c.Call(r.t.Context(), "ask", nil)
		if err != nil || result.Text() != "this" {
			r.t.Errorf("%v: %v, %v", rev, result, err)
			return
		}
		r.note("question of "+rev.String(), done)
	}
}

// held begins what lasts longer than a deploy, and returns what ends it: an answer
// that its client comes back for, and a question.
func (r *rotation) held() (end func()) {
	session := r.session()
	resume := r.left(session)
	asked, release := make(chan struct{}), make(chan struct{})
	call := r.asked(protocol.V20260728, func() string {
		close(asked)
		<-release
		return "this"
	})
	var calling sync.WaitGroup
	calling.Go(call)
	<-asked
	return func() {
		close(release)
		calling.Wait()
		resume()
		_, _, o := r.send(r.t.Context(), http.MethodDelete, session, "", "")
		r.note("end", o)
	}
}

const provenURL = "https://shop.example.com/mcp"

// prover offers proofs of possession, each to all replicas at once, and once more to
// all of them later.
func (r *rotation) prover() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		r.t.Fatal(err)
	}
	point, err := key.PublicKey.Bytes()
	if err != nil {
		r.t.Fatal(err)
	}
	text := base64.RawURLEncoding.EncodeToString
	jwk := `{"crv":"P-256","kty":"EC","x":"` + text(point[1:33]) + `","y":"` + text(point[33:]) + `"}`
	thumbprint := sha256.Sum256([]byte(jwk))
	token := text(thumbprint[:])
	hash := sha256.Sum256([]byte(token))
	prove := func() string {
		signed := text([]byte(`{"typ":"dpop+jwt","alg":"ES256","jwk":`+jwk+`}`)) + "." +
			text(fmt.Appendf(nil, `{"jti":%q,"htm":"POST","htu":%q,"iat":%d,"ath":%q}`, rand.Text(), provenURL, time.Now().Unix(), text(hash[:])))
		digest := sha256.Sum256([]byte(signed))
		a, b, err := ecdsa.Sign(rand.Reader, key, digest[:])
		if err != nil {
			r.t.Fatal(err)
		}
		return signed + "." + text(append(a.FillBytes(make([]byte, 32)), b.FillBytes(make([]byte, 32))...))
	}
	var used []string
	r.uses(func() {
		proof := prove()
		if n, refused := r.offer(token, proof); n > 1 || n == 0 && refused == 0 {
			r.t.Errorf("a proof was accepted %d times", n)
		}
		r.proofs.Add(1)
		if used = append(used, proof); len(used) > 1 {
			again := used[int(r.proofs.Load())*7%(len(used)-1)] // of any phase
			if n, _ := r.offer(token, again); n != 0 {
				r.t.Errorf("a proof was accepted %d times later", n)
			}
		}
	})
}

// offer offers a proof to all replicas at once. It returns how many take it, and how
// many cannot tell since the store did not answer in time.
func (r *rotation) offer(token, proof string) (taken, refused int64) {
	r.choosing.Lock()
	all := append([]*member(nil), r.fleet...)
	for _, m := range all {
		m.entering.Add(1)
	}
	r.choosing.Unlock()
	var n, unknown atomic.Int64
	var offering sync.WaitGroup
	for _, m := range all {
		offering.Go(func() {
			defer m.entering.Done()
			q := httptest.NewRequest(http.MethodPost, "/mcp", strings.NewReader(add))
			q.Header = http.Header{
				"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Authorization": {"DPoP " + token}, "Dpop": {proof},
				"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"add"},
			}
			answer := httptest.NewRecorder()
			m.proven.ServeHTTP(answer, q)
			switch why := answer.Header().Get("WWW-Authenticate"); {
			case strings.Contains(why, "the proof was used before"), strings.Contains(why, "the iat of the proof is not of now"):
			case why == "" && json.Valid(answer.Body.Bytes()) && answer.Code != http.StatusServiceUnavailable: // add is no tool here
				n.Add(1)
			case answer.Code == http.StatusServiceUnavailable && strings.Contains(answer.Body.String(), "cannot be verified at the moment"):
				unknown.Add(1)
			default:
				r.t.Errorf("a proof is answered with %d %s %s", answer.Code, why, answer.Body)
			}
		})
	}
	offering.Wait()
	return n.Load(), unknown.Load()
}

// sealed returns how many entries of sessions the engine has, and how many of those,
// and of what replicas tell each other of themselves, do not open with a key.
func (r *rotation) sealed(key []byte) (all, closed int) {
	c := r.engine.client()
	defer c.Close()
	for use, part := range map[string]string{"session": "session-*", "topics": "catalogues"} {
		keys, err := seal.New(use, key)
		if err != nil {
			r.t.Fatal(err)
		}
		names, err := c.Do(r.t.Context(), c.B().Keys().Pattern("{talaria:"+r.o.Prefix+":"+part+"}:e:*").Build()).AsStrSlice()
		if err != nil {
			r.t.Fatal(err)
		}
		for _, name := range names {
			value, err := c.Do(r.t.Context(), c.B().Hget().Key(name).Field("v").Build()).AsBytes()
			if err != nil || len(value) == 0 { // nothing waits, or it is gone meanwhile
				continue
			}
			if use == "session" {
				all++
			}
			_, entry, _ := strings.Cut(name, "}:e:")
			if _, _, err := keys.Open(value, seal.Binding(entry)); err != nil {
				closed++
			}
		}
	}
	return all, closed
}

// Keys are replaced while clients use the server, as scale.md tells: added, then made
// the first, and the old one left out when nothing is sealed with it. Nobody
// notices: each call is answered, each message heard once, what a client comes back
// for is there, questions are answered, and a proof is taken once.
func TestRotation(t *testing.T) {
	for name, restart := range map[string]bool{"replaced": false, "restarted": true} {
		t.Run(name, func(t *testing.T) {
			if !restart {
				testdep.NoRace(t, "replicas that are restarted do all of it, too")
			}
			r := startRotation(t)
			for range 4 {
				r.counter()
				r.hearer()
			}
			r.leaver()
			r.prover()
			for _, rev := range []protocol.Revision{protocol.V20251125, protocol.V20260728} {
				r.uses(r.asked(rev, func() string { return "this" }))
			}
			heard := r.listen()
			for _, keys := range [][][]byte{{oldKey, newKey}, {newKey, oldKey}, {newKey}} {
				if len(keys) == 1 {
					begun := time.Now()
					eventually(t, "all that lives is sealed with the new key", func() bool {
						all, closed := r.sealed(newKey)
						return all >= len(r.hearers) && closed == 0
					})
					t.Logf("all that lives was sealed anew %v after the deploy", time.Since(begun).Round(time.Millisecond))
				} else if _, closed := r.sealed(newKey); closed == 0 {
					t.Error("nothing is sealed with the old key")
				}
				held, begun := r.held(), time.Now()
				r.roll(restart, keys...)
				held()
				t.Logf("a deploy took %v", time.Since(begun).Round(time.Millisecond))
			}
			r.end()
			heard()
			t.Logf("%d proofs; %v", r.proofs.Load(), r.count)
			for what, n := range r.count {
				if !strings.HasSuffix(what, ": done") {
					t.Errorf("%s: %d", what, n)
				}
			}
			for line := range strings.Lines(r.log.String()) {
				if strings.Contains(line, "open") {
					t.Error(line)
				}
			}
		})
	}
}

// Where the new key takes the place of the old one at once, sessions are refused,
// and none is taken for gone: the old key brings them back.
func TestRotationAtOnce(t *testing.T) {
	r := startRotation(t)
	for range 4 {
		r.counter()
	}
	r.roll(false, newKey)
	if r.calls(refused) == 0 || r.calls(gone) > 0 || r.calls(unknown) > 0 {
		t.Error("without the old key calls are not just refused")
	}
	r.roll(false, newKey, oldKey)
	before := r.calls(done)
	r.isServed()
	r.end()
	t.Log(r.count)
	if r.calls(done) < before+4 || r.calls(gone) > 0 {
		t.Error("with both keys sessions are not served")
	}
}
