package main

import (
	"os"
	"runtime"
	"time"

	"github.com/talaria-go/mcp"
)

// SystemOut describes the machine, the process and the request.
type SystemOut struct {
	OS         string    `json:"os"`
	Arch       string    `json:"arch"`
	CPUs       int       `json:"cpus" jsonschema_description:"processors that this process may use"`
	Hostname   string    `json:"hostname,omitempty"`
	Go         string    `json:"go" jsonschema_description:"version of Go"`
	PID        int       `json:"pid" jsonschema_description:"number of this process"`
	Time       time.Time `json:"time" jsonschema_description:"now, on the machine's clock"`
	Uptime     string    `json:"uptime" jsonschema_description:"how long this process has been serving"`
	HeapBytes  uint64    `json:"heapBytes" jsonschema_description:"memory that this process uses for data"`
	Goroutines int       `json:"goroutines"`
	Request    RequestIs `json:"request" jsonschema_description:"how this question came"`
}

// RequestIs tells how a request came.
type RequestIs struct {
	Transport string `json:"transport"`
	Revision  string `json:"revision" jsonschema_description:"revision of the protocol"`
	Client    string `json:"client,omitempty" jsonschema_description:"what the client calls itself"`
}

// system tells about what the server runs on.
type system struct {
	now     func() time.Time
	started time.Time
}

func (s *system) tool() mcp.Component {
	return mcp.Tool("system_info", s.info, mcp.Title("System information"),
		mcp.Doc("Tells about the machine, this process and this request"), mcp.ReadOnly(), mcp.OpenWorld(false))
}

func (s *system) info(f *mcp.Frame, _ struct{}) (SystemOut, error) {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	hostname, _ := os.Hostname() // left out if the machine has none
	now := s.now()
	out := SystemOut{
		OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.GOMAXPROCS(0), Hostname: hostname,
		Go: runtime.Version(), PID: os.Getpid(), Time: now, Uptime: now.Sub(s.started).Round(time.Second).String(),
		HeapBytes: memory.HeapAlloc, Goroutines: runtime.NumGoroutine(),
		Request: RequestIs{Transport: string(f.Transport().Kind), Revision: f.Revision().String()},
	}
	if client := f.ClientInfo(); client != nil {
		out.Request.Client = client.Name + " " + client.Version
	}
	return out, nil
}
