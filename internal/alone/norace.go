//go:build !race

package alone

const race = false
