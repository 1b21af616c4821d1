package wire

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/protocol"
)

// The methods of webhooks, and the mode of delivery.
const (
	MethodEventsSubscribe   = "events/subscribe"
	MethodEventsUnsubscribe = "events/unsubscribe"
	DeliveryPoll            = "poll"
	DeliveryWebhook         = "webhook"
)

// The headers of a delivery: those of Standard Webhooks, and the id of the subscription.
const (
	HeaderWebhookID        = "webhook-id"
	HeaderWebhookTimestamp = "webhook-timestamp"
	HeaderWebhookSignature = "webhook-signature"
	HeaderSubscriptionID   = "X-MCP-Subscription-Id"
)

// The types of bodies that are not an event.
const (
	ControlVerification = "verification"
	ControlGap          = "gap"
	ControlTerminated   = "terminated"
)

// The words for what is wrong with an endpoint, for data.reason and lastError.
const (
	ReasonRefused   = "connection_refused"
	ReasonTimeout   = "timeout"
	ReasonTLS       = "tls_error"
	ReasonClient    = "http_4xx"
	ReasonServer    = "http_5xx"
	ReasonChallenge = "challenge_failed"
)

// Sizes of what a subscription keeps of its client.
const (
	maxWebhookURL = 2 << 10
	maxArguments  = 8 << 10
	minSecret     = 24
	maxSecret     = 64
	secretPrefix  = "whsec_"
)

// EventSubscribe are the params of events/subscribe without name, and those of
// events/unsubscribe, which has only Arguments and URL.
type EventSubscribe struct {
	EventPoll
	Arguments []byte // as CanonicalJSON returns it
	Mode      string
	URL       string
	Secret    []byte
	TTL       time.Duration // 0 for none
}

// ParseEventSubscribe reads the params of events/subscribe or events/unsubscribe. What
// the arguments mean is not checked, nor is the URL.
func ParseEventSubscribe(raw []byte, subscribe bool) (EventSubscribe, *protocol.Error) {
	var p EventSubscribe
	var in struct {
		Arguments json.RawMessage `json:"arguments"`
		Delivery  *struct {
			Mode   string `json:"mode"`
			URL    string `json:"url"`
			Secret string `json:"secret"`
		} `json:"delivery"`
		TTLMs *float64 `json:"ttlMs"`
	}
	if err := jsonx.Unmarshal(raw, &in); err != nil {
		return p, protocol.Errorf(protocol.CodeInvalidParams, "params: delivery is an object of strings, and ttlMs is a number or null: %w", err)
	}
	var fault *protocol.Error
	if p.EventPoll, fault = ParseEventPoll(MethodEventsSubscribe, raw); fault != nil {
		return p, fault
	}
	var err error
	if len(in.Arguments) > maxArguments {
		return p, protocol.Errorf(protocol.CodeInvalidParams, "params.arguments has %d bytes; at most %d are kept with a subscription", len(in.Arguments), maxArguments)
	}
	switch p.Arguments, err = CanonicalJSON(in.Arguments); {
	case err != nil:
		return p, protocol.Errorf(protocol.CodeInvalidParams, "params.arguments: %w", err)
	case in.Delivery == nil:
		return p, protocol.Errorf(protocol.CodeInvalidParams, "params.delivery is missing: it has the url that events are sent to")
	case in.Delivery.URL == "" || len(in.Delivery.URL) > maxWebhookURL:
		return p, protocol.Errorf(protocol.CodeInvalidParams, "params.delivery.url is an https URL of at most %d bytes; it has %d", maxWebhookURL, len(in.Delivery.URL))
	}
	p.Mode, p.URL = in.Delivery.Mode, in.Delivery.URL
	if !subscribe {
		return p, nil
	}
	secret, ok := strings.CutPrefix(in.Delivery.Secret, secretPrefix)
	if p.Secret, err = base64.StdEncoding.DecodeString(secret); !ok || err != nil || len(p.Secret) < minSecret || len(p.Secret) > maxSecret {
		return p, protocol.Errorf(protocol.CodeInvalidParams, `params.delivery.secret must be %q and the base64 of %d to %d bytes`, secretPrefix, minSecret, maxSecret)
	}
	if in.TTLMs != nil {
		p.TTL = time.Duration(math.Max(1, math.Min(*in.TTLMs, float64(maxEventAge/time.Millisecond)))) * time.Millisecond
	}
	return p, nil
}

// CanonicalJSON returns an object with its members sorted, and its numbers as they are
// written. Absent and null are an empty object.
func CanonicalJSON(raw []byte) ([]byte, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return []byte("{}"), nil
	}
	var object map[string]json.RawMessage
	if err := jsonx.Unmarshal(raw, &object); err != nil {
		return nil, err
	}
	return appendCanonical(nil, raw)
}

// appendCanonical appends a value as CanonicalJSON returns it.
func appendCanonical(dst []byte, raw json.RawMessage) ([]byte, error) {
	raw = bytes.TrimSpace(raw)
	var err error
	switch raw[0] {
	case '{':
		var object map[string]json.RawMessage
		if err = jsonx.Unmarshal(raw, &object); err != nil {
			return nil, err
		}
		dst = append(dst, '{')
		for i, name := range slices.Sorted(maps.Keys(object)) {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = appendCanonical(append(jsonx.AppendString(dst, name), ':'), object[name]); err != nil {
				return nil, err
			}
		}
		return append(dst, '}'), nil
	case '[':
		var list []json.RawMessage
		if err = jsonx.Unmarshal(raw, &list); err != nil {
			return nil, err
		}
		dst = append(dst, '[')
		for i, item := range list {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = appendCanonical(dst, item); err != nil {
				return nil, err
			}
		}
		return append(dst, ']'), nil
	case '"':
		var text string
		if err = jsonx.Unmarshal(raw, &text); err != nil {
			return nil, err
		}
		return jsonx.AppendString(dst, text), nil
	}
	return append(dst, raw...), nil
}

// EventSubscription is the result of events/subscribe.
type EventSubscription struct {
	ID            string          `json:"id"`
	RefreshBefore time.Time       `json:"refreshBefore"`
	Cursor        string          `json:"cursor"`
	Truncated     bool            `json:"truncated"`
	Status        *DeliveryStatus `json:"deliveryStatus,omitempty"` // of a refresh
}

// DeliveryStatus tells a client how the deliveries of its subscription went.
type DeliveryStatus struct {
	Active         bool       `json:"active"`
	LastDeliveryAt *time.Time `json:"lastDeliveryAt"`
	LastError      *string    `json:"lastError"`
}

// AppendControl appends a body that is not an event: a member with its name and JSON.
func AppendControl(dst []byte, kind, member string, value []byte) []byte {
	dst = jsonx.AppendString(append(dst, `{"type":`...), kind)
	dst = jsonx.AppendString(append(dst, ','), member)
	return append(append(append(dst, ':'), value...), '}')
}

// WithCursor appends an event with its cursor. The event is a JSON object with members.
func WithCursor(dst, event []byte, cursor string) []byte {
	dst = append(append(dst, event[:len(event)-1]...), `,"cursor":`...)
	return append(jsonx.AppendString(dst, cursor), '}')
}

// WebhookSignature returns the value of the signature header: a signature with each key.
func WebhookSignature(id string, at time.Time, body []byte, keys ...[]byte) string {
	signed := strconv.AppendInt(append([]byte(id), '.'), at.Unix(), 10)
	signed = append(append(signed, '.'), body...)
	var all []string
	for _, key := range keys {
		h := hmac.New(sha256.New, key)
		h.Write(signed)
		all = append(all, "v1,"+base64.StdEncoding.EncodeToString(h.Sum(nil)))
	}
	return strings.Join(all, " ")
}
