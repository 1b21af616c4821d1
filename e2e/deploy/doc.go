// Package deploy tests what the folder deploy ships: each file by the program that
// reads it, and the proxies with traffic. Tests whose program is not installed are
// skipped.
package deploy
