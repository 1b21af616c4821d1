package wire

import (
	"errors"
	"strconv"
	"strings"
)

// CheckViewOrigin returns nil if text is an origin that a view may declare, else an error
// that continues a sentence about it; sockets allows wss:// as well. Hosts write it into
// a header of theirs, where a blank, a semicolon or a word in quotes would be more.
func CheckViewOrigin(text string, sockets bool) error {
	host, ok := strings.CutPrefix(text, "https://")
	if !ok && sockets {
		host, ok = strings.CutPrefix(text, "wss://")
	}
	switch {
	case !ok && sockets:
		return errors.New("an origin begins with https:// or wss://")
	case !ok:
		return errors.New("an origin begins with https://")
	}
	if at := strings.LastIndexByte(host, ':'); at >= 0 {
		port, err := strconv.ParseUint(host[at+1:], 10, 16)
		if err != nil || port == 0 || strconv.FormatUint(port, 10) != host[at+1:] {
			return errors.New("a port is a number from 1 to 65535")
		}
		host = host[:at]
	}
	return CheckViewHost(strings.TrimPrefix(host, "*."))
}

// CheckViewHost is CheckViewOrigin for the name of a host.
func CheckViewHost(text string) error {
	switch {
	case text == "localhost", strings.HasSuffix(text, ".localhost"):
		return errors.New("localhost differs for each user")
	case len(text) > 253, !isHostName(text):
		return errors.New("nothing follows but a host, as in api.example.com or *.example.com, in lower case, and a port; IP addresses are not allowed")
	}
	return nil
}

// isHostName reports whether text has at least two labels in lower case, of which the
// last begins with a letter: browsers take one that ends in a number for an address.
func isHostName(text string) bool {
	labels := strings.Split(text, ".")
	for _, label := range labels {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' ||
			strings.ContainsFunc(label, func(r rune) bool { return r != '-' && (r < 'a' || r > 'z') && (r < '0' || r > '9') }) {
			return false
		}
	}
	last := labels[len(labels)-1]
	return len(labels) > 1 && last[0] >= 'a'
}
