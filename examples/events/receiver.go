package main

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/talaria-go/mcp/client"
)

// Receiver is the endpoint of one webhook subscription. Its state is in a file, so that
// events are neither lost nor handled twice over a restart. A library for Standard Webhooks
// can replace verify.
type Receiver struct {
	path   string
	handle func(event Event) error // an error makes the server send the event again

	mu    sync.Mutex
	state state
}

// Event is what the server sends.
type Event struct {
	ID        string          `json:"eventId"`
	Name      string          `json:"name"`
	Timestamp time.Time       `json:"timestamp"`
	Data      json.RawMessage `json:"data"`
	Cursor    string          `json:"cursor"`
}

// state is what the receiver has in its file.
type state struct {
	Secret string   `json:"secret"`
	Cursor string   `json:"cursor"` // up to which all is handled
	Seen   []string `json:"seen"`   // the last ids
}

// Numbers of the receiver.
const (
	maxBody  = 256 << 10
	maxSeen  = 1_000
	maxSkew  = 5 * time.Minute
	interval = 5 * time.Minute // between refreshes; less than the server grants
)

// NewReceiver reads the file at path, or makes one with a new secret.
func NewReceiver(path string, handle func(Event) error) (*Receiver, error) {
	r := &Receiver{path: path, handle: handle}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		raw := make([]byte, 32)
		_, _ = rand.Read(raw) // never fails
		r.state.Secret = "whsec_" + base64.StdEncoding.EncodeToString(raw)
		return r, r.save()
	}
	if err != nil {
		return nil, err
	}
	return r, json.Unmarshal(text, &r.state)
}

// save writes the state. It is complete before it replaces the former one.
func (r *Receiver) save() error {
	text, err := json.Marshal(r.state)
	if err != nil {
		return err
	}
	if err := os.WriteFile(r.path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(r.path+".new", r.path)
}

// Subscribe subscribes url to the comments on a document, or refreshes that. It continues
// where the receiver has stopped.
func (r *Receiver) Subscribe(ctx context.Context, c *client.Client, document, url string) error {
	r.mu.Lock()
	params := map[string]any{
		"name": "comment.created", "arguments": Watch{document},
		"delivery": map[string]string{"mode": "webhook", "url": url, "secret": r.state.Secret},
	}
	if r.state.Cursor != "" {
		params["cursor"] = r.state.Cursor
	}
	r.mu.Unlock() // the server asks the receiver before it answers
	var granted struct {
		Truncated bool `json:"truncated"`
	}
	if err := c.Request(ctx, "events/subscribe", params, &granted); err != nil {
		return err
	}
	if granted.Truncated {
		fmt.Println("events are missing: read the comments again")
	}
	return nil
}

// ServeHTTP implements http.Handler.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
	if err != nil {
		http.Error(w, "the body is too long", http.StatusRequestEntityTooLarge)
		return
	}
	r.mu.Lock() // one message at a time
	defer r.mu.Unlock()
	if !verify(r.state.Secret, req.Header, body) {
		http.Error(w, "the signature is wrong", http.StatusUnauthorized)
		return
	}
	var message struct {
		Event
		Type      string          `json:"type"`
		Challenge string          `json:"challenge"`
		Error     json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(body, &message); err != nil {
		http.Error(w, "the body is not a message", http.StatusBadRequest)
		return
	}
	id := req.Header.Get("webhook-id")
	switch {
	case message.Type == "verification":
		_ = json.NewEncoder(w).Encode(map[string]string{"challenge": message.Challenge})
		return
	case slices.Contains(r.state.Seen, id): // the response to it was lost
	case message.Type == "gap":
		fmt.Println("events are missing: read the comments again")
	case message.Type == "terminated":
		fmt.Printf("the subscription has ended: %s\n", message.Error)
	case message.Type == "":
		err = r.handle(message.Event)
	}
	if err == nil {
		if message.Cursor != "" {
			r.state.Cursor = message.Cursor
		}
		r.state.Seen = append(r.state.Seen, id)
		r.state.Seen = r.state.Seen[max(0, len(r.state.Seen)-maxSeen):]
		err = r.save()
	}
	if err != nil {
		http.Error(w, "try again", http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// verify reports whether the secret has signed a message, within the last minutes.
func verify(secret string, header http.Header, body []byte) bool {
	seconds, err := strconv.ParseInt(header.Get("webhook-timestamp"), 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > maxSkew {
		return false
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return false
	}
	h := hmac.New(sha256.New, key)
	fmt.Fprintf(h, "%s.%d.%s", header.Get("webhook-id"), seconds, body)
	for _, signature := range strings.Fields(header.Get("webhook-signature")) {
		text, ok := strings.CutPrefix(signature, "v1,")
		got, err := base64.StdEncoding.DecodeString(text)
		if ok && err == nil && hmac.Equal(got, h.Sum(nil)) {
			return true
		}
	}
	return false
}
