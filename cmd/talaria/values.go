package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// pairs reads NAME=value, of a flag that may be given many times. HTTP headers
// are also taken as they are written on the wire, "Name: value".
func pairs(flag string, list []string) (map[string]string, error) {
	out := map[string]string{}
	for _, text := range list {
		name, value, ok := strings.Cut(text, "=")
		if i := strings.Index(text, ": "); flag == "--header" && i > 0 && (!ok || i < len(name)) {
			name, value, ok = text[:i], text[i+2:], true
		}
		if !ok || name == "" || strings.ContainsAny(name, " \t\r\n") || strings.ContainsAny(value, "\r\n") {
			return nil, usage("%s %q: write %s NAME=value", flag, text, flag)
		}
		out[name] = strings.TrimSpace(value)
	}
	return out, nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// isURL tells a URL from a command line.
func isURL(text string) bool {
	scheme, _, ok := strings.Cut(text, "://")
	if ok {
		return scheme != "" && strings.Trim(strings.ToLower(scheme), "abcdefghijklmnopqrstuvwxyz+") == ""
	}
	return strings.HasPrefix(text, "unix:")
}

// must is only for mistakes of this program.
func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("talaria: %v", err))
	}
}
