package protocol

import "bytes"

// magic is how the bytes of one type of media begin. Both parts must be there;
// the second one is after skip bytes.
type magic struct {
	image, audio string // the media type, or "" if it is not of that kind
	first        string
	skip         int
	second       string
}

// magics has the types of images and sounds that are recognized by their
// bytes, as the WHATWG standard "MIME Sniffing" does, with FLAC, MP4 and
// AVIF added.
var magics = []magic{
	{image: "image/png", first: "\x89PNG\r\n\x1a\n"},
	{image: "image/jpeg", first: "\xff\xd8\xff"},
	{image: "image/gif", first: "GIF87a"},
	{image: "image/gif", first: "GIF89a"},
	{image: "image/webp", first: "RIFF", skip: 8, second: "WEBPVP"},
	{image: "image/bmp", first: "BM"},
	{image: "image/x-icon", first: "\x00\x00\x01\x00"},
	{image: "image/avif", skip: 4, second: "ftypavif"},
	{image: "image/svg+xml", first: "<svg"},
	{audio: "audio/wav", first: "RIFF", skip: 8, second: "WAVE"},
	{audio: "audio/mpeg", first: "ID3"},
	{audio: "audio/mpeg", first: "\xff\xfb"},
	{audio: "audio/mpeg", first: "\xff\xf3"},
	{audio: "audio/mpeg", first: "\xff\xf2"},
	{audio: "audio/ogg", first: "OggS\x00"},
	{audio: "audio/flac", first: "fLaC"},
	{audio: "audio/aiff", first: "FORM", skip: 8, second: "AIFF"},
	{audio: "audio/basic", first: ".snd"},
	{audio: "audio/midi", first: "MThd\x00\x00\x00\x06"},
	{audio: "audio/mp4", skip: 4, second: "ftyp"},
	{audio: "audio/webm", first: "\x1a\x45\xdf\xa3"},
}

// mediaType returns the type of an image or a sound by its bytes; "" if they
// begin as none that is known. kind is "image" or "audio".
func mediaType(kind string, data []byte) string {
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
