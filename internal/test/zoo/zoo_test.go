package zoo

import "testing"

func TestCases(t *testing.T) {
	n, corners, names := 0, 0, map[string]bool{}
	for _, c := range Cases() {
		if c.Group == Corner {
			corners++
		} else {
			n++
		}
		if names[c.Group+" "+c.Name] {
			t.Errorf("%s %s is there twice", c.Group, c.Name)
		}
		names[c.Group+" "+c.Name] = true
	}
	if n != 651 || corners != 46 {
		t.Errorf("%d types and %d corners, want 651 and 46", n, corners)
	}
}
