package share

import (
	"strconv"
	"testing"
)

// Nothing is kept of a principal that has given back what it took.
func TestPrincipalsAreForgotten(t *testing.T) {
	s := New("places", 1000, 0, Same)
	for n := range 100_000 {
		principal := strconv.Itoa(n)
		if full := s.Take(principal, 1+n%3); full != nil {
			t.Fatal(full)
		}
		if full := s.Take(principal, 1000); full == nil {
			t.Fatal("there is room for all")
		}
		s.Give(principal, 1+n%3)
	}
	if len(s.of) != 0 || s.used != 0 {
		t.Errorf("%d principals, %d places", len(s.of), s.used)
	}
}
