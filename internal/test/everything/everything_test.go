package everything

import (
	"bytes"
	"encoding/json"
	"image/png"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
)

// suiteTools are the names that the suite calls or looks for.
var suiteTools = []string{
	"json_schema_2020_12_tool", "test_audio_content", "test_embedded_resource", "test_error_handling",
	"test_image_content", "test_logging_tool", "test_missing_capability", "test_multiple_content_types",
	"test_simple_text", "test_streaming_elicitation", "test_tool_with_logging", "test_tool_with_progress", "test_trigger_prompt_change",
	"test_trigger_tool_change",
}

func TestServerListsWhatTheSuiteNeeds(t *testing.T) {
	const body = `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{
		"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	request := httptest.NewRequest("POST", "/mcp", strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Mcp-Protocol-Version", "2026-07-28")
	request.Header.Set("Mcp-Method", "tools/list")
	recorder := httptest.NewRecorder()
	NewServer(mcp.Options{}).Handler().ServeHTTP(recorder, request)

	var answer struct {
		Result struct {
			Tools []struct {
				Name, Description string
				InputSchema       struct {
					Properties map[string]map[string]any
				}
			}
		}
	}
	if err := json.Unmarshal(recorder.Body.Bytes(), &answer); err != nil {
		t.Fatalf("%d %s: %v", recorder.Code, recorder.Body, err)
	}
	var names, headers []string
	for _, tool := range answer.Result.Tools {
		names = append(names, tool.Name)
		if tool.Description == "" {
			t.Errorf("%s has no description", tool.Name)
		}
		for _, property := range tool.InputSchema.Properties {
			if name, ok := property["x-mcp-header"].(string); ok {
				headers = append(headers, name)
			}
		}
	}
	for _, name := range suiteTools {
		if !slices.Contains(names, name) {
			t.Errorf("no tool %s among %q", name, names)
		}
	}
	if !slices.Equal(headers, []string{"Region"}) {
		t.Errorf("arguments in headers: got %q, want Region", headers)
	}
}

func TestMedia(t *testing.T) {
	img, err := png.Decode(bytes.NewReader(redPixel().(protocol.ImageContent).Data))
	if err != nil {
		t.Fatal(err)
	}
	if r, g, b, a := img.At(0, 0).RGBA(); r != 0xffff || g != 0 || b != 0 || a != 0xffff {
		t.Errorf("pixel: got %d %d %d %d, want red", r, g, b, a)
	}
	wav := silence()
	if size := int(wav[4]); len(wav) != size+8 || string(wav[8:12]) != "WAVE" {
		t.Errorf("WAV: %d bytes, header says %d + 8", len(wav), size)
	}
}
