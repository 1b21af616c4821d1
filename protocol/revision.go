package protocol

import "slices"

// Revision is one published revision of the specification: V20241105 to
// V20260728, of which Latest is the newest. Revisions are ordered by date and
// compare with < and >; for the one difference that most code asks about there
// is Modern. The zero Revision is invalid: it has no name and is not modern.
type Revision uint8

// The revisions, oldest first. All but the last are legacy: they open a session
// with initialize. From V20260728 on the protocol is modern: every request
// carries its revision and is stateless.
const (
	V20241105 Revision = iota + 1
	V20250326
	V20250618
	V20251125
	V20260728

	// Latest is the newest revision that this package speaks.
	Latest = V20260728
	// LatestLegacy is the newest revision that has initialize.
	LatestLegacy = V20251125
)

// revisionNames are the dates by which revisions are named on the wire.
var revisionNames = [...]string{
	V20241105: "2024-11-05",
	V20250326: "2025-03-26",
	V20250618: "2025-06-18",
	V20251125: "2025-11-25",
	V20260728: "2026-07-28",
}

// String returns the date that names the revision on the wire, or "" for the
// zero Revision.
func (r Revision) String() string {
	if int(r) >= len(revisionNames) {
		return ""
	}
	return revisionNames[r]
}

// ParseRevision returns the revision with that name, a date such as
// "2025-11-25". ok is false if this package does not know it. The newest are
// compared first, because most peers use them.
func ParseRevision(name string) (Revision, bool) {
	for r := Latest; r > 0; r-- {
		if revisionNames[r] == name {
			return r, true
		}
	}
	return 0, false
}

// Revisions lists every revision, newest first.
func Revisions() []Revision {
	list := make([]Revision, 0, Latest)
	for r := Latest; r > 0; r-- {
		list = append(list, r)
	}
	return list
}

// Modern reports whether requests of r carry their own metadata and need no
// session. It is false for the zero Revision.
func (r Revision) Modern() bool { return r >= V20260728 }

// Has reports whether r has every feature in f. The zero Revision has none.
func (r Revision) Has(f Feature) bool {
	return r > 0 && int(r) < len(revisionFeatures) && revisionFeatures[r]&f == f
}

// Negotiate returns the revision with which a server answers an initialize
// request (basic/lifecycle, "Version Negotiation"): the requested one if it is
// legacy and supported, else the newest legacy one that is. ok is false if
// supported has no legacy revision; the order of supported does not matter.
func Negotiate(requested string, supported []Revision) (rev Revision, ok bool) {
	if r, known := ParseRevision(requested); known && !r.Modern() && slices.Contains(supported, r) {
		return r, true
	}
	for _, r := range supported {
		if !r.Modern() && r > rev {
			rev = r
		}
	}
	return rev, rev > 0
}
