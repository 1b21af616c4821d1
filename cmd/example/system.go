package main

import (
	"runtime"
	"time"

	"github.com/talaria-go/mcp"
)

// SystemOut describes the machine and the request.
type SystemOut struct {
	OS        string    `json:"os"`
	Arch      string    `json:"arch"`
	Go        string    `json:"go" jsonschema_description:"version of Go"`
	Time      time.Time `json:"time" jsonschema_description:"now, on the machine's clock"`
	Transport string    `json:"transport" jsonschema_description:"how this request came"`
	Revision  string    `json:"revision" jsonschema_description:"revision of the protocol that it speaks"`
	Client    string    `json:"client,omitempty" jsonschema_description:"what the client calls itself"`
}

func systemTool() mcp.Component {
	return mcp.Tool("system_info", systemInfo, mcp.Title("System information"),
		mcp.Doc("Tells about the machine, its clock and this request"), mcp.ReadOnly(), mcp.OpenWorld(false))
}

func systemInfo(f *mcp.Frame, _ struct{}) (SystemOut, error) {
	out := SystemOut{
		OS: runtime.GOOS, Arch: runtime.GOARCH, Go: runtime.Version(), Time: time.Now(),
		Transport: string(f.Transport()), Revision: f.Revision().String(),
	}
	if client := f.ClientInfo(); client != nil {
		out.Client = client.Name + " " + client.Version
	}
	return out, nil
}
