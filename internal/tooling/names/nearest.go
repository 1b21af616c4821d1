package names

import "strings"

// Nearest returns the name that was probably meant, "" if none is near: one that
// differs only in case, that begins with what was typed, or that is a typo or
// two away.
func Nearest(typed string, names []string) string {
	best, least := "", 3
	for _, name := range names {
		switch {
		case strings.EqualFold(typed, name):
			return name
		case typed != "" && strings.HasPrefix(name, typed) && least > 0:
			best, least = name, 0
		default:
			if d := distance(typed, name); d < least && d < len(name) {
				best, least = name, d
			}
		}
	}
	return best
}

// distance counts the letters to change, add, drop or swap (optimal string
// alignment).
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	if n := len(x) - len(y); n > 3 || n < -3 {
		return 4
	}
	rows := make([][]int, len(x)+1)
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(x); i++ {
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(x)][len(y)]
}
