//go:build race

package alone

const race = true
