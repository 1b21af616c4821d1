package protocol_test

import (
	"fmt"
	"testing"

	"github.com/talaria-go/mcp/protocol"
)

func TestRevisions(t *testing.T) {
	for _, r := range protocol.Revisions() {
		if got, ok := protocol.ParseRevision(r.String()); !ok || got != r {
			t.Errorf("ParseRevision(%q) = %v, %v", r, got, ok)
		}
		if r.Modern() != r.Has(protocol.FeaturePerRequestMeta) {
			t.Errorf("%v: Modern and PerRequestMeta disagree", r)
		}
	}
	if _, ok := protocol.ParseRevision(""); ok {
		t.Error("the empty name is no revision")
	}
	for r, has := range map[protocol.Revision]bool{0: false, protocol.V20241105: false, protocol.V20250326: false, protocol.V20250618: true, protocol.Latest: true, protocol.Latest + 1: false} {
		if r.Has(protocol.FeatureStructuredContent|protocol.FeatureTitles) != has || r.Has(0) != (r > 0 && r <= protocol.Latest) {
			t.Errorf("%d has the features of 2025-06-18: %t, want %t", r, !has, has)
		}
	}
	if protocol.V20250618.Has(protocol.FeatureBatches) || !protocol.V20250326.Has(protocol.FeatureBatches) {
		t.Error("batches are a feature of 2025-03-26 alone")
	}
}

func TestNegotiate(t *testing.T) {
	for _, tt := range []struct {
		requested string
		supported []protocol.Revision
		want      protocol.Revision
	}{
		{"2025-06-18", protocol.Revisions(), protocol.V20250618},
		{"2024-11-05", protocol.Revisions(), protocol.V20241105},
		{"1999-01-01", protocol.Revisions(), protocol.LatestLegacy},
		{"2026-07-28", protocol.Revisions(), protocol.LatestLegacy},
		{"2025-11-25", []protocol.Revision{protocol.V20250326, protocol.V20241105}, protocol.V20250326},
		{"2025-11-25", []protocol.Revision{protocol.V20260728}, 0},
		{"2025-11-25", nil, 0},
		{"", protocol.Revisions(), protocol.LatestLegacy},
	} {
		if got, ok := protocol.Negotiate(tt.requested, tt.supported); got != tt.want || ok != (tt.want != 0) {
			t.Errorf("Negotiate(%q, %v) = %v, %v", tt.requested, tt.supported, got, ok)
		}
	}
}

func ExampleRevision_Has() {
	for _, r := range protocol.Revisions() {
		fmt.Println(r, r.Has(protocol.FeatureStructuredContent), r.Has(protocol.FeatureBatches))
	}
	// Output:
	// 2026-07-28 true false
	// 2025-11-25 true false
	// 2025-06-18 true false
	// 2025-03-26 false true
	// 2024-11-05 false false
}

func ExampleNegotiate() {
	supported := []protocol.Revision{protocol.V20241105, protocol.V20250618, protocol.V20260728}
	fmt.Println(protocol.Negotiate("2024-11-05", supported))
	fmt.Println(protocol.Negotiate("2025-11-25", supported))
	fmt.Println(protocol.Negotiate("2025-11-25", []protocol.Revision{protocol.V20260728}))
	// Output:
	// 2024-11-05 true
	// 2025-06-18 true
	//  false
}
