package lists_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/mcptest"
)

// webhookSecret is the secret of the subscriptions of the tests.
var webhookSecret = "whsec_" + base64.StdEncoding.EncodeToString([]byte("0123456789abcdef0123456789abcdef"))

// delivery is a request that a receiver has got.
type delivery struct {
	at                            time.Time
	id, subscription, path, keys  string // keys: the names of those that have signed
	Type, EventID, Cursor, Reason string
	Challenge                     string
	Data                          struct{ Text string }
	Error                         struct{ Code int }
	raw                           string
	header                        http.Header
}

// receiver is an endpoint. As an http.RoundTripper it needs no network.
type receiver struct {
	t       testing.TB
	secrets map[string]string // by name
	// answer returns what the nth request that is not a challenge gets; nil is 204.
	answer func(d *delivery, w http.ResponseWriter)
	// agree answers challenges; nil returns them.
	agree func(d *delivery, w http.ResponseWriter)

	mu  sync.Mutex
	got []delivery
}

func newReceiver(t testing.TB) *receiver {
	return &receiver{t: t, secrets: map[string]string{"one": webhookSecret}}
}

// RoundTrip implements http.RoundTripper.
func (r *receiver) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Context().Err() != nil {
		return nil, req.Context().Err()
	}
	w := httptest.NewRecorder()
	r.ServeHTTP(w, req)
	return w.Result(), nil
}

// ServeHTTP implements http.Handler.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	d := delivery{
		at: time.Now(), id: req.Header.Get("webhook-id"), subscription: req.Header.Get("X-MCP-Subscription-Id"), path: req.URL.Path, raw: string(body), header: req.Header,
	}
	if err != nil || json.Unmarshal(body, &d) != nil || req.Method != "POST" || req.Header.Get("Content-Type") != "application/json" || d.id == "" || d.subscription == "" {
		r.t.Errorf("received %s %v %s", req.Method, req.Header, body)
	}
	var keys []string
	for name, secret := range r.secrets {
		key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		h := hmac.New(sha256.New, key)
		fmt.Fprintf(h, "%s.%s.%s", d.id, req.Header.Get("webhook-timestamp"), body)
		if slices.Contains(strings.Fields(req.Header.Get("webhook-signature")), "v1,"+base64.StdEncoding.EncodeToString(h.Sum(nil))) {
			keys = append(keys, name)
		}
	}
	slices.Sort(keys)
	d.keys = strings.Join(keys, " ")
	if at, err := strconv.ParseInt(req.Header.Get("webhook-timestamp"), 10, 64); err != nil || time.Since(time.Unix(at, 0)).Abs() > time.Minute || d.keys == "" {
		r.t.Errorf("signature: %v", req.Header)
	}
	r.mu.Lock()
	r.got = append(r.got, d)
	r.mu.Unlock()
	switch {
	case d.Type == "verification" && r.agree != nil:
		r.agree(&d, w)
	case d.Type == "verification":
		fmt.Fprintf(w, `{"challenge":%q}`, d.Challenge)
	case r.answer != nil:
		r.answer(&d, w)
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

// all returns what has come so far.
func (r *receiver) all() []delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// texts returns the texts of the events, and the types of other messages.
func (r *receiver) texts() string {
	var all []string
	for _, d := range r.all() {
		all = append(all, d.Type+d.Data.Text)
	}
	return strings.Join(all, " ")
}

// wait waits until what has come is want.
func (r *receiver) wait(want string) {
	r.t.Helper()
	for end := time.Now().Add(time.Minute); r.texts() != want; time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("received %q, want %q", r.texts(), want)
		}
	}
}

// hooked returns options with webhooks to loopback addresses, or over a transport.
func hooked(opts *mcp.Options, over http.RoundTripper) *mcp.Options {
	if opts == nil {
		opts = &mcp.Options{}
	}
	opts.Webhooks = &mcp.WebhookOptions{Loopback: true, Transport: over}
	return opts
}

// subscribeTo returns the params of a subscription to the comments on a document.
func subscribeTo(document, url, members string) string {
	return fmt.Sprintf(`{"name":"comment.created","arguments":{"document":%q},"delivery":{"mode":"webhook","url":%q,"secret":%q}%s}`, document, url, webhookSecret, members)
}

// unsubscribeFrom returns the params that end such a subscription.
func unsubscribeFrom(document, url string) string {
	return fmt.Sprintf(`{"name":"comment.created","arguments":{"document":%q},"delivery":{"url":%q}}`, document, url)
}

// granted is the result of a subscription.
type granted struct {
	ID, Cursor     string
	RefreshBefore  time.Time
	Truncated      bool
	DeliveryStatus *struct {
		Active         bool
		LastDeliveryAt *time.Time
		LastError      *string
	}
}

// subscribe subscribes, and fails the test if that fails.
func subscribe(t testing.TB, c poller, params string) (g granted) {
	t.Helper()
	answer := c.Ask("events/subscribe", params)
	var r struct{ Result *granted }
	if err := json.Unmarshal([]byte(answer), &r); err != nil || r.Result == nil {
		t.Fatalf("subscribe %s: %s", params, answer)
	}
	return *r.Result
}

var ann = mcptest.As(mcp.Identity{Subject: "ann"})

// A subscription in every revision, with a store and without: challenge, events that match
// and in order, refresh, end.
func TestWebhooks(t *testing.T) {
	for name, opts := range map[string]func(t *testing.T) *mcp.Options{
		"alone": func(*testing.T) *mcp.Options { return nil }, "store": withStore,
	} {
		t.Run(name, func(t *testing.T) {
			var s *mcp.Server
			mcptest.Each(t, func() *mcp.Server { s = eventServer(hooked(opts(t), nil)); return s }, func(t *testing.T, client *mcptest.Client) {
				c, r := pipe{client}, newReceiver(t)
				server := httptest.NewServer(r)
				defer server.Close()
				if got := strings.Replace(c.Ask("events/list", "{}"), `"push",`, "", 1); !strings.Contains(got, `"webhook"]`) {
					t.Errorf("list: %s", got)
				}
				emit(t, s, "a", "before")
				g := subscribe(t, c, subscribeTo("a", server.URL, ""))
				if in := time.Until(g.RefreshBefore); g.Truncated || g.Cursor == "" || in < 14*time.Minute || in > time.Hour || g.DeliveryStatus != nil {
					t.Errorf("granted %+v", g)
				}
				for _, text := range []string{"one", "two", "three"} {
					emit(t, s, "a", text)
					emit(t, s, "b", "other")
				}
				r.wait("verification one two three")
				all := r.all()
				for i, want := range []string{"", "id-one", "id-two", "id-three"} {
					if d := all[i]; d.subscription != g.ID || i > 0 && (d.id != want || d.EventID != want || d.Cursor == "") || i == 0 && !strings.HasPrefix(d.id, "msg_verification_") {
						t.Errorf("delivery %d: %+v", i, d)
					}
				}
				page := poll(t, c, fmt.Sprintf(`"name":"comment.created","arguments":{"document":"a"},"cursor":%q`, all[2].Cursor))
				if texts(page) != "three" {
					t.Errorf("after the cursor of two: %+v", page)
				}
				again := subscribe(t, c, subscribeTo("a", server.URL, `,"cursor":null,"ttlMs":1`))
				if again.ID != g.ID || again.Truncated || again.DeliveryStatus == nil || !again.DeliveryStatus.Active || time.Until(again.RefreshBefore) > 5*time.Minute {
					t.Errorf("refreshed: %+v", again)
				}
				emit(t, s, "a", "four")
				r.wait("verification one two three four")
				if got := c.Ask("events/unsubscribe", unsubscribeFrom("a", server.URL)); !strings.Contains(got, `"result":{`) {
					t.Errorf("unsubscribe: %s", got)
				}
				if got := c.Ask("events/unsubscribe", unsubscribeFrom("a", server.URL)); !strings.Contains(got, `"result":{`) {
					t.Errorf("second unsubscribe: %s", got)
				}
				emit(t, s, "a", "five")
				subscribe(t, c, subscribeTo("a", server.URL, fmt.Sprintf(`,"cursor":%q`, all[3].Cursor)))
				r.wait("verification one two three four four five")
			}, ann)
		})
	}
}

// What is wrong with a request to subscribe.
func TestWebhookFaults(t *testing.T) {
	who := mcp.Identity{Subject: "ann"}
	const url = "http://127.0.0.1:1/"
	params := func(of string) string { return strings.Replace(subscribeTo("a", url, ""), url, of, 1) }
	for name, c := range map[string]struct {
		as             *mcp.Identity
		params, want   string
		off, unhooking bool
	}{
		"no webhooks":         {as: &who, params: subscribeTo("a", url, ""), want: `"code":-32014,"message":"comment.created is not delivered by \"webhook\"","data":{"feature":"deliveryMode","value":"webhook"}`, off: true},
		"another mode":        {as: &who, params: strings.Replace(subscribeTo("a", url, ""), `"mode":"webhook"`, `"mode":"queue"`, 1), want: `"code":-32014`},
		"anonymous":           {params: subscribeTo("a", url, ""), want: `"code":-32012`},
		"unknown":             {as: &who, params: strings.Replace(subscribeTo("a", url, ""), "comment.created", "x", 1), want: `"code":-32011`},
		"no delivery":         {as: &who, params: `{"name":"comment.created","arguments":{"document":"a"}}`, want: `params.delivery is missing`},
		"delivery a list":     {as: &who, params: `{"name":"comment.created","arguments":{"document":"a"},"delivery":[]}`, want: `"code":-32602`},
		"arguments":           {as: &who, params: strings.Replace(subscribeTo("a", url, ""), `"document":`, `"doc":`, 1), want: `"code":-32602`},
		"arguments a list":    {as: &who, params: strings.Replace(subscribeTo("a", url, ""), `{"document":"a"}`, `["document"]`, 1), want: `"code":-32602`},
		"long arguments":      {as: &who, params: subscribeTo(strings.Repeat("a", 9<<10), url, ""), want: `at most 8192 are kept`},
		"short secret":        {as: &who, params: strings.Replace(subscribeTo("a", url, ""), webhookSecret, "whsec_"+base64.StdEncoding.EncodeToString(make([]byte, 23)), 1), want: `params.delivery.secret must be`},
		"long secret":         {as: &who, params: strings.Replace(subscribeTo("a", url, ""), webhookSecret, "whsec_"+base64.StdEncoding.EncodeToString(make([]byte, 65)), 1), want: `params.delivery.secret must be`},
		"no prefix":           {as: &who, params: strings.Replace(subscribeTo("a", url, ""), "whsec_", "", 1), want: `params.delivery.secret must be`},
		"no URL":              {as: &who, params: params(""), want: `params.delivery.url`},
		"relative":            {as: &who, params: params("/hook"), want: `must be an absolute https URL`},
		"another scheme":      {as: &who, params: params("file:///etc/passwd"), want: `must be an absolute https URL`},
		"http":                {as: &who, params: params("http://example.com/"), want: `must be an https URL`},
		"user":                {as: &who, params: params("https://a:b@example.com/"), want: `must be an absolute https URL`},
		"long URL":            {as: &who, params: params("https://example.com/" + strings.Repeat("a", 2<<10)), want: `at most 2048 bytes`},
		"private":             {as: &who, params: params("https://10.0.0.1/"), want: `"code":-32015,"message":"the callback cannot be reached","data":{"reason":"connection_refused"}`},
		"address in disguise": {as: &who, params: params("https://0x7f.1/"), want: `"code":-32015`},
		"nobody listens":      {as: &who, params: params("http://127.0.0.1:1/"), want: `"code":-32015,"message":"the callback cannot be reached","data":{"reason":"connection_refused"}`},
		"ttl a text":          {as: &who, params: subscribeTo("a", url, `,"ttlMs":"1"`), want: `"code":-32602`},
		"end of nothing":      {as: &who, params: unsubscribeFrom("a", url), want: `"result":{`, unhooking: true},
		"end without a URL":   {as: &who, params: `{"name":"comment.created","arguments":{"document":"a"}}`, want: `params.delivery is missing`, unhooking: true},
		"end by nobody":       {params: unsubscribeFrom("a", url), want: `"code":-32012`, unhooking: true},
	} {
		t.Run(name, func(t *testing.T) {
			options := []mcptest.Option{}
			if c.as != nil {
				options = append(options, mcptest.As(*c.as))
			}
			opts := hooked(nil, nil)
			if c.off {
				opts = nil
			}
			method := "events/subscribe"
			if c.unhooking {
				method = "events/unsubscribe"
			}
			mcptest.Each(t, func() *mcp.Server { return eventServer(opts) }, func(t *testing.T, client *mcptest.Client) {
				if got := (pipe{client}).Ask(method, c.params); !strings.Contains(got, c.want) {
					t.Errorf("got %s, want %s", got, c.want)
				}
			}, options...)
		})
	}
}

// What an endpoint answers decides whether and when an event is sent again.
func TestWebhookAttempts(t *testing.T) {
	status := func(all ...int) func(n int, w http.ResponseWriter) {
		return func(n int, w http.ResponseWriter) {
			if all[min(n, len(all)-1)] == 429 {
				w.Header().Set("Retry-After", "30")
			}
			w.WriteHeader(all[min(n, len(all)-1)])
		}
	}
	for name, c := range map[string]struct {
		answer func(n int, w http.ResponseWriter)
		after  []int // seconds between the attempts
		reason string
	}{
		"accepted":           {status(204), nil, ""},
		"again":              {status(503, 500, 200), []int{1, 10}, ""},
		"never":              {status(500), []int{1, 10, 60, 300}, "retries"},
		"refused":            {status(404), []int{1, 10, 60}, "refused"},
		"redirected":         {status(302), []int{1, 10, 60, 300}, "retries"},
		"gone":               {status(410), nil, "gone"},
		"too large":          {status(413), nil, "too_large"},
		"later":              {status(429, 204), []int{30}, ""},
		"too early":          {status(425), []int{1, 10, 60, 300}, "retries"},
		"a panic":            {func(int, http.ResponseWriter) { panic("s3cret") }, []int{1, 10, 60, 300}, "retries"},
		"ends its goroutine": {func(int, http.ResponseWriter) { runtime.Goexit() }, []int{1, 10, 60, 300}, "retries"},
		"does not return":    {func(int, http.ResponseWriter) { time.Sleep(time.Minute) }, []int{12, 21, 71, 311}, "retries"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newReceiver(t)
				var n atomic.Int32
				r.answer = func(d *delivery, w http.ResponseWriter) {
					if d.Data.Text == "first" {
						c.answer(int(n.Add(1))-1, w)
					}
				}
				opts := hooked(nil, r)
				s := ended(t, eventServer(opts))
				var mu sync.Mutex
				told := map[string]string{}
				s.Observe(mcp.Observer{Event: func(e mcp.Event) {
					mu.Lock()
					defer mu.Unlock()
					if strings.HasPrefix(e.Kind, "delivery.") {
						told[e.Kind] += e.Reason + " " + e.Name + ";"
					}
				}})
				client := pipe{mcptest.New(t, s, ann)}
				subscribe(t, client, subscribeTo("a", hookURL, ""))
				emit(t, s, "a", "first")
				emit(t, s, "a", "second")
				time.Sleep(20 * time.Minute) // longer than any attempt
				var at []time.Time
				for _, d := range r.all() {
					if d.Data.Text == "first" {
						at = append(at, d.at)
					}
				}
				if len(at) != len(c.after)+1 {
					t.Fatalf("%d attempts: %v", len(at), at)
				}
				for i, want := range c.after {
					if got := at[i+1].Sub(at[i]).Seconds(); got < float64(want)*0.79-2 || got > float64(want)*1.21+2 {
						t.Errorf("attempt %d after %v s, want %d", i+2, got, want)
					}
				}
				mu.Lock()
				defer mu.Unlock()
				if dropped := told["delivery.dropped"]; c.reason != "" && dropped != c.reason+" comment.created;" || c.reason == "" && dropped != "" {
					t.Errorf("told %v", told)
				}
				if c.reason == "" && told["delivery.done"] != " comment.created; comment.created;" {
					t.Errorf("told %v", told)
				}
				if all := r.texts(); !strings.HasSuffix(all, " second") {
					t.Errorf("received %s", all)
				}
			})
		})
	}
}
