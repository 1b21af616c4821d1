package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/internal/clients/origin"
	"github.com/talaria-go/mcp/protocol"
)

func TestOfNetwork(t *testing.T) {
	tests := []struct {
		name string
		err  error
		want bool
	}{
		{"refused", &net.OpError{Op: "dial", Err: errors.New("connection refused")}, true},
		{"no such host", &net.DNSError{Err: "no such host", IsNotFound: true}, true},
		{"the end", fmt.Errorf("POST: %w", io.EOF), true},
		{"a kept connection", errors.New("POST http://x: http: server closed idle connection"), true},
		{"HTTP/2", errors.New("http2: client connection lost"), true},
		{"closed here", fmt.Errorf("read: %w", net.ErrClosed), true},
		{"too late", context.DeadlineExceeded, false},
		{"given up", context.Canceled, false},
		{"the header function", errors.New("the header function failed: no token"), false},
		{"status", &origin.StatusError{Code: 502}, false},
	}
	for _, tt := range tests {
		if got := ofNetwork(tt.err); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// A port where nobody listens may have somebody later.
func TestConnectRefused(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	_, err := Connect(t.Context(), HTTP(server.URL, nil), nil)
	var op *net.OpError
	if err == nil || !Retriable(err) || !errors.As(err, &op) || errors.Is(err, ErrTimeout) {
		t.Errorf("Connect: %v, Retriable %v", err, Retriable(err))
	}
}

// A request that the network fails is sent once more if that is harmless, and
// is Retriable in any case.
func TestNetworkFailure(t *testing.T) {
	idle := errors.New("http: server closed idle connection")
	tests := []struct {
		name      string
		method    string
		options   []CallOption
		failures  int32
		err       error
		sent      int32
		works     bool
		retriable bool
	}{
		{"harmless", "tools/list", nil, 1, idle, 2, true, true},
		{"harmless, twice", "tools/list", nil, 2, idle, 2, false, true},
		{"harmless, but slow", "tools/list", nil, 1, &net.DNSError{Err: "slow", IsTimeout: true}, 1, false, true},
		{"told not to", "tools/list", []CallOption{Retry(1)}, 1, idle, 1, false, true},
		{"perhaps done already", "tools/call", nil, 1, idle, 1, false, true},
		{"said to be harmless", "tools/call", []CallOption{Idempotent()}, 1, idle, 2, true, true},
		{"nothing of the network", "tools/list", nil, 1, errors.New("no token"), 1, false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var count atomic.Int32
			tr := &fakeHTTP{name: "http://fake", respond: func(l *fakeLink, _ context.Context, m *link.Message) error {
				switch m.Method {
				case protocol.MethodDiscover:
					l.answer(m, fakeDiscover)
				case tt.method:
					if count.Add(1) <= tt.failures {
						return fmt.Errorf("POST http://fake: %w", tt.err)
					}
					l.answer(m, `{"resultType":"complete","tools":[],"content":[]}`)
				}
				return nil
			}}
			c := connect(t, tr, &Options{Timeout: time.Minute})
			var err error
			if tt.method == protocol.MethodToolsCall {
				_, err = c.Call(t.Context(), "pay", nil, tt.options...)
			} else {
				_, err = listTools(t.Context(), c, "", tt.options...)
			}
			if (err == nil) != tt.works || count.Load() != tt.sent || err != nil && Retriable(err) != tt.retriable {
				t.Errorf("%d requests, error %v, Retriable %v", count.Load(), err, Retriable(err))
			}
		})
	}
}
