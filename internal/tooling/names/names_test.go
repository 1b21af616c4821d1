package names

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// accepted is what Claude Desktop takes.
var accepted = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// distinct checks the names of all originals, and that their order changes nothing.
func distinct(t *testing.T, originals []string, limit int) map[string]string {
	t.Helper()
	fitted := Fit(originals, limit)
	seen := map[string]string{}
	for _, original := range originals {
		name := fitted[original]
		if !accepted.MatchString(name) || len(name) > limit {
			t.Errorf("%q became %q, which is not accepted", original, name)
		}
		if other, taken := seen[name]; taken && other != original {
			t.Errorf("%q and %q both became %q", original, other, name)
		}
		if accepted.MatchString(original) && len(original) <= limit && name != original {
			t.Errorf("%q became %q, and needed no change", original, name)
		}
		seen[name] = original
	}
	reversed := slices.Clone(originals)
	slices.Reverse(reversed)
	for original, name := range Fit(reversed, limit) {
		if fitted[original] != name {
			t.Errorf("%q became %q, and %q in the other order", original, fitted[original], name)
		}
	}
	return fitted
}

func TestFit(t *testing.T) {
	long := strings.Repeat("x", 70)
	fitted := distinct(t, []string{"a.b", "a_b", "a/b", "plain", "with space", "é", "", long, long + "y"}, Max)
	for original, want := range map[string]string{"a_b": "a_b", "plain": "plain", "with space": "with_space"} {
		if fitted[original] != want {
			t.Errorf("%q became %q, want %q", original, fitted[original], want)
		}
	}
	if got := fitted["a.b"]; !regexp.MustCompile(`^a_b_[0-9a-f]{8}$`).MatchString(got) {
		t.Errorf("a.b became %q, want its digest behind it", got)
	}
	if got := fitted[long]; !strings.HasPrefix(got, long[:55]+"_") || len(got) != 64 {
		t.Errorf("a long name became %q", got)
	}
}

// TestFitTaken has a name that equals what another one becomes.
func TestFitTaken(t *testing.T) {
	thief := Fit([]string{"a.b", "a_b"}, Max)["a.b"]
	fitted := distinct(t, []string{"a.b", "a_b", thief}, Max)
	if fitted[thief] != thief {
		t.Errorf("%q became %q", thief, fitted[thief])
	}
}

func TestFitRandom(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	letters := []rune("ab_-./ é世\x00Z9")
	var all []string
	for range 100_000 {
		text := make([]rune, random.IntN(90))
		for i := range text {
			text[i] = letters[random.IntN(len(letters))]
		}
		all = append(all, string(text))
	}
	for _, limit := range []int{Max, Max - 33} {
		distinct(t, all, limit)
	}
	all = all[:0]
	for i := range 1000 {
		same := fmt.Sprintf("%s%d", strings.Repeat("n", 60), i)
		all = append(all, same+"one", same+"two", fmt.Sprintf("a.%d", i), fmt.Sprintf("a_%d", i))
	}
	distinct(t, all, Max)
}

func TestNearest(t *testing.T) {
	known := []string{"list_tools", "call_tool", "ping", "exit"}
	for typed, want := range map[string]string{
		"pnig": "ping", "PING": "ping", "list": "list_tools", "call_tol": "call_tool", "zzz": "", "": "", "quit": "exit",
	} {
		if got := Nearest(typed, known); got != want {
			t.Errorf("%q: got %q, want %q", typed, got, want)
		}
	}
}

func TestOwner(t *testing.T) {
	prefixes := []string{"git_", "git_hub_", ""}
	for full, want := range map[string]int{"git_log": 0, "git_hub_x": 1, "git_hub": 0, "git_": 2, "other": 2, "": -1} {
		if got := Owner(full, len(prefixes), func(i int) string { return prefixes[i] }); got != want {
			t.Errorf("%q: got %d, want %d", full, got, want)
		}
	}
}
