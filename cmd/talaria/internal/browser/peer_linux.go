package browser

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// established is the state of an open connection in /proc/net/tcp. One whose
// process has closed it has no owner any more, which reads as that of root.
const established = "01"

// noOwner is the uid of a peer whose process is not known.
const noOwner = -1

// peerOf finds the socket at the other end of a connection of this machine in the
// tables of the kernel. Other connections come from another network namespace,
// such as through the port of a container: then nothing is known.
func peerOf(remote, local net.Addr) peer {
	from, err := netip.ParseAddrPort(remote.String())
	to, err2 := netip.ParseAddrPort(local.String())
	if err != nil || err2 != nil || !from.Addr().Is4() || !to.Addr().Is4() {
		return peer{}
	}
	for table, ends := range map[string][2]string{
		"/proc/net/tcp":  {hex(from, ""), hex(to, "")},
		"/proc/net/tcp6": {hex(from, mapped), hex(to, mapped)},
	} {
		text, err := os.ReadFile(table)
		if err != nil {
			continue // the machine may have no such table: then no peer is found
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line) // sl local remote state queues timer retransmits uid …
			if len(f) < 8 || f[1] != ends[0] || f[2] != ends[1] {
				continue
			}
			uid, err := strconv.Atoi(f[7])
			if err != nil || f[3] != established {
				uid = noOwner
			}
			return peer{uid, true}
		}
	}
	return peer{}
}

// mapped is what the kernel writes before an IPv4 address of a socket of IPv6.
const mapped = "0000000000000000FFFF0000"

// hex writes an address as /proc/net/tcp does: its four bytes as a number of this
// machine.
func hex(a netip.AddrPort, prefix string) string {
	four := a.Addr().As4()
	return fmt.Sprintf("%s%08X:%04X", prefix, binary.NativeEndian.Uint32(four[:]), a.Port())
}
