package mcp

import (
	"fmt"
	"reflect"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/protocol"
)

// contentsForm turns what a func returned, behind a pointer, into contents.
type contentsForm struct {
	mime     string // the default; "" if contents name their own
	contents func(out any) ([]protocol.ResourceContents, error)
}

func (c contentsForm) mimeOr(told string) string {
	if told != "" {
		return told
	}
	return c.mime
}

// contentsOf decides the form of contents by the func's result type.
func contentsOf(out reflect.Type) (contentsForm, error) {
	switch {
	case out == reflect.TypeFor[string]():
		return contentsForm{"text/plain", func(out any) ([]protocol.ResourceContents, error) {
			return []protocol.ResourceContents{{Text: *out.(*string)}}, nil
		}}, nil
	case out == reflect.TypeFor[[]byte]():
		return contentsForm{"application/octet-stream", func(out any) ([]protocol.ResourceContents, error) {
			return []protocol.ResourceContents{{Blob: binary(*out.(*[]byte))}}, nil
		}}, nil
	case out == reflect.TypeFor[protocol.ResourceContents]():
		return contentsForm{"", func(out any) ([]protocol.ResourceContents, error) {
			return []protocol.ResourceContents{*out.(*protocol.ResourceContents)}, nil
		}}, nil
	case out == reflect.TypeFor[[]protocol.ResourceContents]():
		return contentsForm{"", func(out any) ([]protocol.ResourceContents, error) {
			// A copy: what is missing gets filled in.
			return append([]protocol.ResourceContents(nil), *out.(*[]protocol.ResourceContents)...), nil
		}}, nil
	case out == nil || out.Implements(contentType) || out == reflect.TypeFor[[]protocol.Content]() || out == reflect.TypeFor[*Result]() || out.Implements(typedResultType) || out == reflect.TypeFor[*Messages]():
		return contentsForm{}, fmt.Errorf("a resource cannot return %v; return string, []byte, mcp.ResourceContents or a type of your own for JSON", out)
	}
	encoder, err := jsonx.NewEncoder(out)
	if err != nil {
		return contentsForm{}, fmt.Errorf("result: %w", err)
	}
	return contentsForm{"application/json", func(out any) ([]protocol.ResourceContents, error) {
		text, err := encoder.Append(nil, out)
		if err != nil {
			return nil, err
		}
		return []protocol.ResourceContents{{Text: string(text)}}, nil
	}}, nil
}

// binary makes sure that empty data is sent as data, not as text.
func binary(data []byte) []byte {
	if data == nil {
		return []byte{}
	}
	return data
}
