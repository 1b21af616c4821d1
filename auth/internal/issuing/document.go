package issuing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/talaria-go/mcp/internal/outbound"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/visible"
)

// Limits of the metadata documents of clients.
const (
	maxDocument   = 16 << 10 // bytes
	fetchTimeout  = 5 * time.Second
	maxFetches    = 16 // at a time
	maxDocuments  = 1_000
	leastDocument = time.Minute // time for which one is kept
	mostDocument  = 24 * time.Hour
)

// documents fetches and keeps the metadata documents of clients.
type documents struct {
	web    *http.Client
	cache  *lru.Cache[string, *document]
	places chan struct{} // has a value for each fetch in progress
}

// document is a client until a time. It does not change.
type document struct {
	client *Client
	until  time.Time
}

// init makes the cache. web nil stands for a client that reaches public addresses,
// without a proxy, and follows no redirects: a request for a document must not make this
// server probe a private network.
func (d *documents) init(web *http.Client) {
	if web == nil {
		web = &http.Client{
			Transport: outbound.New(outbound.Config{Direct: true}), Timeout: fetchTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	d.web, d.places = web, make(chan struct{}, maxFetches)
	d.cache, _ = lru.New[string, *document](maxDocuments) // fails only for a size below 1
}

// kept returns a client whose document is kept, or nil.
func (d *documents) kept(id string) *Client {
	if doc, ok := d.cache.Get(id); ok && time.Now().Before(doc.until) {
		return doc.client
	}
	return nil
}

// errFetch is the error of a document that cannot be fetched. Its cause is not for
// the client, which could probe a network with it.
var errFetch = errors.New("the client's metadata cannot be had")

// client returns the client whose client_id is the URL of its document.
func (d *documents) client(ctx context.Context, id string) (*Client, error) {
	if c := d.kept(id); c != nil {
		return c, nil
	}
	u, err := url.Parse(id)
	if err != nil || u.Hostname() == "" || strings.Trim(u.Path, "/") == "" || strings.Contains(id, "#") || u.User != nil || slices.ContainsFunc(strings.Split(u.Path, "/"), dots) {
		return nil, errors.New("the client_id is no URL of a metadata document")
	}
	select {
	case d.places <- struct{}{}:
		defer func() { <-d.places }()
	default:
		return nil, fmt.Errorf("%w: too many at a time", errFetch)
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	var c *Client
	var keep time.Duration
	// On a goroutine of its own: the transport may be users' code.
	err = safely.Try(func() (err error) { c, keep, err = d.fetch(ctx, id, u.Hostname()); return err })
	if err != nil {
		return nil, err
	}
	d.cache.Add(id, &document{c, time.Now().Add(keep)})
	return c, nil
}

// dots reports whether a segment of a path leads elsewhere.
func dots(segment string) bool { return segment == "." || segment == ".." }

// fetch fetches a document and checks that it is this client's. It returns for how
// long it may be kept.
func (d *documents) fetch(ctx context.Context, id, host string) (*Client, time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, id, nil)
	if err != nil {
		return nil, 0, err
	}
	req.Header.Set("Accept", "application/json")
	res, err := d.web.Do(req)
	if err != nil {
		return nil, 0, errFetch
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, 0, errFetch
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxDocument+1))
	if err != nil || len(text) > maxDocument {
		return nil, 0, errFetch
	}
	var m metadata
	switch err := decode(text, &m); {
	case err != nil:
		return nil, 0, errors.New("the client's metadata is no JSON object")
	case m.ID != id:
		return nil, 0, errors.New("the client_id in the client's metadata differs")
	case m.AuthMethod != "" && m.AuthMethod != methodNone:
		return nil, 0, errors.New("the client's metadata has a token_endpoint_auth_method other than none, which this server does not have for such clients")
	case strings.TrimSpace(m.Name) == "":
		return nil, 0, errors.New("the client's metadata has no client_name")
	}
	if err := m.check(); err != nil {
		return nil, 0, err
	}
	return &Client{
		ID: id, Name: visible.Line(m.Name, maxName), Verified: host, RedirectURIs: m.RedirectURIs, Method: methodNone,
		Refresh: slices.Contains(m.GrantTypes, GrantRefresh), full: id,
	}, keepFor(res.Header.Get("Cache-Control")), nil
}

// keepFor returns for how long a document may be kept, as its Cache-Control says
// within the limits.
func keepFor(control string) time.Duration {
	keep := leastDocument
	for directive := range strings.SplitSeq(strings.ToLower(control), ",") {
		directive = strings.TrimSpace(directive)
		if directive == "no-store" || directive == "no-cache" {
			return leastDocument
		}
		if age, ok := strings.CutPrefix(directive, "max-age="); ok {
			if seconds, err := strconv.Atoi(age); err == nil && seconds > 0 {
				keep = time.Duration(min(seconds, int(mostDocument/time.Second))) * time.Second
			}
		}
	}
	return max(keep, leastDocument)
}
