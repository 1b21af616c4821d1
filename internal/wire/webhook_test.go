package wire_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp/internal/wire"
)

// The signature of the example of Standard Webhooks, with one key and with two.
func TestWebhookSignature(t *testing.T) {
	key, err := base64.StdEncoding.DecodeString("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	const want = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	at := time.Unix(1614265330, 0)
	got := wire.WebhookSignature("msg_p5jXN8AQM9LWM0D4loKWxJek", at, []byte(`{"test": 2432232314}`), key)
	if got != want {
		t.Errorf("got %s", got)
	}
	if two := wire.WebhookSignature("msg_p5jXN8AQM9LWM0D4loKWxJek", at, []byte(`{"test": 2432232314}`), key, []byte("another")); !strings.HasPrefix(two, want+" v1,") {
		t.Errorf("got %s", two)
	}
}

// Arguments that mean the same are the same text.
func TestCanonicalJSON(t *testing.T) {
	for raw, want := range map[string]string{
		``: `{}`, `null`: `{}`, ` {} `: `{}`, `{"b":1,"a":[ {"d":null,"c":true} , "x" ]}`: `{"a":[{"c":true,"d":null},"x"],"b":1}`,
		`{"\u0061":"\u00e4\/"}`: `{"a":"ä/"}`, `{"a":1.0e2}`: `{"a":1.0e2}`, `{"a":12345678901234567890}`: `{"a":12345678901234567890}`,
	} {
		if got, err := wire.CanonicalJSON([]byte(raw)); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v", raw, got, err)
		}
	}
	for _, raw := range []string{`[]`, `1`, `{`, `"x"`} {
		if got, err := wire.CanonicalJSON([]byte(raw)); err == nil {
			t.Errorf("%s: %s", raw, got)
		}
	}
}
