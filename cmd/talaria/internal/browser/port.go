package browser

import "hash/fnv"

// PortFor derives a port from what a page is about, such as the folder of a
// project and a command line: the page is at the same address when the command is
// started again, so that its tab comes back, and two projects are at two. It is below
// the ports that systems hand out by themselves, and none of those that people choose.
func PortFor(parts ...string) int {
	h := fnv.New32a()
	for _, part := range parts {
		_, _ = h.Write([]byte(part)) // never fails
		_, _ = h.Write([]byte{0})
	}
	return 21000 + int(h.Sum32()%9000)
}
