package protocol

import (
	"bytes"
	"fmt"
	"mime"
	"reflect"
	"strings"
)

// magic is how the bytes of one type of media begin. Both parts must be there;
// the second one is after skip bytes.
type magic struct {
	image, audio string // the media type, or "" if it is not of that kind
	first        string
	skip         int
	second       string
}

// magics has the types of images and sounds that are recognized by their
// bytes, as the WHATWG standard "MIME Sniffing" does, with FLAC, MP4, AAC, AVIF,
// HEIC, TIFF and SVG added.
var magics = []magic{
	{image: "image/png", first: "\x89PNG\r\n\x1a\n"},
	{image: "image/jpeg", first: "\xff\xd8\xff"},
	{image: "image/gif", first: "GIF87a"},
	{image: "image/gif", first: "GIF89a"},
	{image: "image/webp", first: "RIFF", skip: 8, second: "WEBPVP"},
	{image: "image/bmp", first: "BM"},
	{image: "image/x-icon", first: "\x00\x00\x01\x00"},
	{image: "image/avif", skip: 4, second: "ftypavif"},
	{image: "image/heic", skip: 4, second: "ftypheic"},
	{image: "image/tiff", first: "II*\x00"},
	{image: "image/tiff", first: "MM\x00*"},
	{image: "image/svg+xml", first: "<svg"},
	{image: "image/svg+xml", first: "<?xml"}, // no other image is XML
	{audio: "audio/wav", first: "RIFF", skip: 8, second: "WAVE"},
	{audio: "audio/mpeg", first: "ID3"},
	{audio: "audio/mpeg", first: "\xff\xfb"},
	{audio: "audio/mpeg", first: "\xff\xf3"},
	{audio: "audio/mpeg", first: "\xff\xf2"},
	{audio: "audio/aac", first: "\xff\xf1"},
	{audio: "audio/aac", first: "\xff\xf9"},
	{audio: "audio/ogg", first: "OggS\x00"},
	{audio: "audio/flac", first: "fLaC"},
	{audio: "audio/aiff", first: "FORM", skip: 8, second: "AIFF"},
	{audio: "audio/basic", first: ".snd"},
	{audio: "audio/midi", first: "MThd\x00\x00\x00\x06"},
	{audio: "audio/mp4", skip: 4, second: "ftyp"},
	{audio: "audio/webm", first: "\x1a\x45\xdf\xa3"},
}

// unknownType is the media type of bytes that their author does not know.
const unknownType = "application/octet-stream"

// mediaType returns the type of an image or a sound: named, or by its bytes if that says
// nothing; "" if they begin as none that is known. kind is "image" or "audio".
func mediaType(kind, named string, data []byte) string {
	if named = strings.TrimSpace(named); named != "" && named != unknownType {
		return named
	}
	for _, m := range magics {
		name := m.image
		if kind == "audio" {
			name = m.audio
		}
		if name != "" && bytes.HasPrefix(data, []byte(m.first)) &&
			len(data) >= m.skip && bytes.HasPrefix(data[m.skip:], []byte(m.second)) {
			return name
		}
	}
	return ""
}

// checkMedia checks what the author of a result says of an image or a sound.
func checkMedia(kind, named string, a *Annotations) error {
	if named = strings.TrimSpace(named); named == "" || named == unknownType {
		return a.check() // the type is found by the bytes, or missed when they are sent
	}
	base, family := splitMedia(named)
	switch {
	case family == "":
		return fmt.Errorf("the %s content has the MIMEType %q, which is not a media type: write it as %s/…", kind, named, kind)
	case family == kind, kind == "audio" && (family == "video" || base == "application/ogg"): // containers of sound
		return a.check()
	}
	return fmt.Errorf("the %s content has the MIMEType %q: leave it empty, or name one that begins with %s/", kind, named, kind)
}

// splitMedia returns a media type without its parameters, and the part before the slash;
// "" if it is not a media type.
func splitMedia(named string) (base, family string) {
	base, _, err := mime.ParseMediaType(named)
	family, subtype, _ := strings.Cut(base, "/")
	if err != nil || subtype == "" {
		return "", ""
	}
	return base, family
}

// checkURI checks the URI, and the type, of a resource that an item is about.
func checkURI(what, uri, named string, a *Annotations) error {
	if !hasScheme(uri) {
		return fmt.Errorf("the %s has the URI %q, which has no scheme: write it as clients read the resource, such as file:///…", what, uri)
	}
	if _, family := splitMedia(named); family == "" && strings.TrimSpace(named) != "" {
		return fmt.Errorf("the %s has the MIMEType %q, which is not a media type: write it as type/subtype", what, named)
	}
	return a.check()
}

// hasScheme reports whether uri is absolute. One letter with a backslash or a single slash
// is the drive of a path.
func hasScheme(uri string) bool {
	head, rest, ok := strings.Cut(uri, ":")
	if !ok || head == "" || len(head) == 1 && (strings.HasPrefix(rest, `\`) || strings.HasPrefix(rest, "/") && !strings.HasPrefix(rest, "//")) {
		return false
	}
	for i := range len(head) {
		letter := 'a' <= head[i]|0x20 && head[i]|0x20 <= 'z'
		if !letter && (i == 0 || strings.IndexByte("0123456789+-.", head[i]) < 0) {
			return false
		}
	}
	return true
}

// escapeURI returns uri with the bytes percent-encoded that a URI cannot have, as
// clients that parse URIs (WHATWG URL) make it.
func escapeURI(uri string) string {
	var b []byte
	for i := 0; i < len(uri); i++ {
		c := uri[i]
		bad := c <= ' ' || c >= 0x7f || strings.IndexByte("\"<>\\^`{|}", c) >= 0 || c == '%' && !isEscape(uri[i:])
		if bad && b == nil {
			b = append(make([]byte, 0, len(uri)+16), uri[:i]...)
		}
		switch {
		case bad:
			b = fmt.Appendf(b, "%%%02X", c)
		case b != nil:
			b = append(b, c)
		}
	}
	if b == nil {
		return uri
	}
	return string(b)
}

// isEscape reports whether text begins with a percent-encoded byte.
func isEscape(text string) bool {
	return len(text) >= 3 && strings.Trim(text[1:3], "0123456789ABCDEFabcdef") == ""
}

// checkContent checks an item; nil is left to what sends it.
func checkContent(i int, item Content) error {
	if item == nil {
		return nil
	}
	if v := reflect.ValueOf(item); v.Kind() == reflect.Pointer && v.IsNil() {
		return fmt.Errorf("content item %d is a nil %T", i, item)
	}
	if err := item.check(); err != nil {
		return fmt.Errorf("content item %d: %w", i, err)
	}
	return nil
}
