package wire

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/protocol"
)

func TestScanFilter(t *testing.T) {
	for _, tt := range []struct {
		raw, want string
		fault     string // part of its message
	}{
		{raw: `{"notifications":{}}`, want: `{}`},
		{raw: `{"_meta":{"a":[1]},"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["a","b\u0063","a"]}}`,
			want: `{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true,"resourceSubscriptions":["a","bc"]}`},
		{raw: `{"notifications":{"toolsListChanged":false,"resourceSubscriptions":[],"com.example/more":{"x":1}}}`, want: `{}`},
		{raw: `{"notifications":{"ToolsListChanged":true}}`, want: `{}`},
		{raw: `{}`, fault: "params.notifications is missing"},
		{raw: `{"notifications":[]}`, fault: "params.notifications must be an object, got array"},
		{raw: `{"notifications":{},"notifications":{}}`, fault: `duplicate member "notifications" in params`},
		{raw: `{"notifications":{"toolsListChanged":1}}`, fault: "params.notifications.toolsListChanged must be a boolean, got number"},
		{raw: `{"notifications":{"toolsListChanged":true,"toolsListChanged":false}}`, fault: `duplicate member "toolsListChanged" in params.notifications`},
		{raw: `{"notifications":{"resourceSubscriptions":"a"}}`, fault: "resourceSubscriptions must be an array, got string"},
		{raw: `{"notifications":{"resourceSubscriptions":["a",1]}}`, fault: "resourceSubscriptions/1 must be a string, got number"},
		{raw: `{"notifications":{"resourceSubscriptions":[""]}}`, fault: "resourceSubscriptions/0 is empty"},
		{raw: `{"notifications":{"resourceSubscriptions":["a","b","c","d"]}}`, fault: "more than 3 entries"},
		{raw: `{"notifications":{"resourceSubscriptions":["a","` + strings.Repeat("x", MaxURI+1) + `"]}}`, fault: "resourceSubscriptions/1 is longer than 8192 bytes"},
	} {
		var f protocol.SubscriptionFilter
		fault := ScanFilter([]byte(tt.raw), 3, &f)
		if tt.fault != "" {
			if fault == nil || fault.Code != protocol.CodeInvalidParams || !strings.Contains(fault.Message, tt.fault) {
				t.Errorf("%s: got %v, want -32602 with %q", tt.raw, fault, tt.fault)
			}
			continue
		}
		if fault != nil {
			t.Errorf("%s: %v", tt.raw, fault)
			continue
		}
		got := string(filterText(f))
		encoded, err := json.Marshal(f)
		if err != nil || got != tt.want || string(encoded) != tt.want {
			t.Errorf("%s: got %s and %s (%v), want %s", tt.raw, got, encoded, err, tt.want)
		}
	}
}

func TestChange(t *testing.T) {
	tools := NewChange(protocol.MethodToolsChanged, nil)
	updated := ResourceUpdated(`file:///"a"`)
	for _, tt := range []struct{ what, got, want string }{
		{"plain", string(tools.Plain()), `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`},
		{"list", string(tools.Append(nil, protocol.NewID(7))), `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":7}}}`},
		{"plain resource", string(updated.Plain()), `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"file:///\"a\""}}`},
		{"resource", string(updated.Append(nil, protocol.NewID("x"))), `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"x"},"uri":"file:///\"a\""}}`},
		{"acknowledged", string(AppendAcknowledged(nil, protocol.NewID(1), protocol.SubscriptionFilter{ToolsListChanged: true})),
			`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":1},"notifications":{"toolsListChanged":true}}}`},
	} {
		if tt.got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.what, tt.got, tt.want)
		}
	}
	result, err := ListenResult{Subscription: protocol.NewID("<1>")}.Append(nil, To{Revision: protocol.Latest, Meta: []byte(`"m":1`)})
	if want := `{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":"<1>","m":1}}`; err != nil || string(result) != want {
		t.Errorf("result: got %s, %v, want %s", result, err, want)
	}
}

func TestScanFilterSize(t *testing.T) {
	for _, tt := range []struct {
		uris int
		fits bool
	}{{MaxSubscribed / MaxURI, true}, {MaxSubscribed/MaxURI + 1, false}} {
		uris := make([]string, tt.uris)
		for i := range uris {
			uris[i] = strings.Repeat("x", MaxURI)
		}
		var f protocol.SubscriptionFilter
		fault := ScanFilter([]byte(`{"notifications":{"taskIds":["`+strings.Join(uris, `","`)+`"]}}`), 1000, &f)
		if fits := fault == nil; fits != tt.fits || !fits && !strings.Contains(fault.Message, "taskIds is longer than 262144 bytes") {
			t.Errorf("%d URIs: %v", tt.uris, fault)
		}
	}
}
