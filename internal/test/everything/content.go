package everything

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/png"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
)

// none is the input of tools without arguments.
type none = struct{}

// contentTools return each kind of content, and an error.
func contentTools() []mcp.Component {
	return []mcp.Component{
		mcp.Tool("test_simple_text", func(*mcp.Frame, none) (string, error) {
			return "This is a simple text response for testing.", nil
		}, mcp.Doc("Returns a text")),
		mcp.Tool("test_image_content", func(*mcp.Frame, none) (protocol.Content, error) {
			return redPixel(), nil
		}, mcp.Doc("Returns an image")),
		mcp.Tool("test_audio_content", func(*mcp.Frame, none) (protocol.Content, error) {
			return protocol.AudioContent{Data: silence(), MIMEType: "audio/wav"}, nil
		}, mcp.Doc("Returns a sound")),
		mcp.Tool("test_embedded_resource", func(*mcp.Frame, none) (protocol.Content, error) {
			return embedded("test://embedded-resource", "text/plain", "This is an embedded resource content."), nil
		}, mcp.Doc("Returns a resource inside its result")),
		mcp.Tool("test_multiple_content_types", func(*mcp.Frame, none) ([]protocol.Content, error) {
			return []protocol.Content{
				protocol.TextContent{Text: "Multiple content types test:"},
				redPixel(),
				embedded("test://mixed-content-resource", "application/json", `{"test":"data","value":123}`),
			}, nil
		}, mcp.Doc("Returns a text, an image and a resource")),
		mcp.Tool("test_error_handling", func(*mcp.Frame, none) (*mcp.Result, error) {
			return mcp.NewResult().Text(intended).Fail(), nil
		}, mcp.Doc("Fails always")),
	}
}

func embedded(uri, mime, text string) protocol.Content {
	return protocol.EmbeddedResource{Resource: protocol.ResourceContents{URI: uri, MIMEType: mime, Text: text}}
}

// redPixel is the smallest image.
func redPixel() protocol.Content {
	img := image.NewRGBA(image.Rect(0, 0, 1, 1))
	img.Set(0, 0, color.RGBA{R: 255, A: 255})
	var data bytes.Buffer
	if err := png.Encode(&data, img); err != nil {
		panic(err) // a buffer takes everything
	}
	return protocol.ImageContent{Data: data.Bytes(), MIMEType: "image/png"}
}

// silence is a WAV file of one 16-bit sample at 8 kHz.
func silence() []byte {
	const rate, sample = 8000, 2
	b := []byte("RIFF")
	b = binary.LittleEndian.AppendUint32(b, 36+sample)
	b = append(b, "WAVEfmt "...)
	b = binary.LittleEndian.AppendUint32(b, 16)          // length of this chunk
	b = binary.LittleEndian.AppendUint16(b, 1)           // PCM
	b = binary.LittleEndian.AppendUint16(b, 1)           // one channel
	b = binary.LittleEndian.AppendUint32(b, rate)        // samples per second
	b = binary.LittleEndian.AppendUint32(b, rate*sample) // bytes per second
	b = binary.LittleEndian.AppendUint16(b, sample)      // bytes per sample
	b = binary.LittleEndian.AppendUint16(b, 8*sample)
	b = append(b, "data"...)
	b = binary.LittleEndian.AppendUint32(b, sample)
	return append(b, 0, 0)
}

// intended is the text that the suite looks for, capital letter and all.
const intended = "This tool intentionally returns an error for testing"
