package arguments

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
)

// wholeObject reads an argument that is no name and value.
func wholeObject(text string) (object json.RawMessage, ok bool, err error) {
	name, isFile := strings.CutPrefix(text, "@")
	switch {
	case isFile:
		data, err := readFile(name)
		if err != nil {
			return nil, true, err
		}
		text = string(data)
	case !strings.HasPrefix(strings.TrimSpace(text), "{"):
		return nil, false, nil
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return nil, true, fmt.Errorf("invalid JSON: %w; write an object such as {\"name\": \"value\"}", err)
	}
	return json.RawMessage(text), true, nil
}

// content returns a value, or what is in the file that it names.
func content(value string) (text string, isFile bool, err error) {
	if rest, ok := strings.CutPrefix(value, `\@`); ok {
		return "@" + rest, false, nil
	}
	name, ok := strings.CutPrefix(value, "@")
	if !ok {
		return value, false, nil
	}
	data, err := readFile(name)
	return string(data), true, err
}

// maxFile bounds what an argument may take from a file.
const maxFile = 64 << 20

func readFile(name string) ([]byte, error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf(`file not found: %s; write \@ for a text that begins with @`, name)
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", name)
	case info.Size() > maxFile:
		return nil, fmt.Errorf("%s has %d bytes, more than the %d that an argument may have", name, info.Size(), maxFile)
	}
	return os.ReadFile(name)
}
