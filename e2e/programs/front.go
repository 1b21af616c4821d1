package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"sync"
)

const (
	sessionHeader = "Mcp-Session-Id"
	versionKey    = "io.modelcontextprotocol/protocolVersion"
	maxBody       = 8 << 20

	subscriptionKey = "io.modelcontextprotocol/subscriptionId"
)

// front is the HTTP side: it finds the process that a request belongs to.
type front struct {
	command []string

	mu       sync.Mutex
	modern   *process            // started by the first modern request
	sessions map[string]*process // legacy sessions
}

func newFront(command []string) *front {
	return &front{command: command, sessions: map[string]*process{}}
}

// close ends every process.
func (f *front) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.sessions {
		p.close()
	}
	if f.modern != nil {
		f.modern.close()
	}
}

// message is what the bridge looks at in a JSON-RPC message.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Token json.RawMessage            `json:"progressToken"`
		Meta  map[string]json.RawMessage `json:"_meta"`
	} `json:"params"`
	Error *struct {
		Code int `json:"code"`
	} `json:"error"`
}

func (m *message) isCall() bool { return m.Method != "" && m.ID != nil }

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPost:
		f.post(w, r)
	case http.MethodDelete:
		f.end(w, r)
	default:
		w.Header().Set("Allow", "POST, DELETE")
		http.Error(w, "the bridge answers POST and DELETE only", http.StatusMethodNotAllowed)
	}
}

func (f *front) end(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	id := r.Header.Get(sessionHeader)
	p := f.sessions[id]
	delete(f.sessions, id)
	f.mu.Unlock()
	if p == nil {
		http.Error(w, "no such session", http.StatusNotFound)
		return
	}
	p.close()
	w.WriteHeader(http.StatusNoContent)
}

func (f *front) post(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	var line bytes.Buffer
	var msg message
	if json.Compact(&line, body) != nil || json.Unmarshal(body, &msg) != nil {
		http.Error(w, "the body is not one JSON-RPC message", http.StatusBadRequest)
		return
	}
	p, status, err := f.processFor(w, r, &msg)
	if err != nil {
		http.Error(w, err.Error(), status)
		return
	}
	line.WriteByte('\n')
	if !msg.isCall() {
		if err := p.send(line.Bytes()); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		w.WriteHeader(http.StatusAccepted)
		return
	}
	p.exchange(w, r, &msg, line.Bytes())
}

// processFor finds the process of a session, starts one for initialize, and
// takes everything else for modern.
func (f *front) processFor(w http.ResponseWriter, r *http.Request, msg *message) (*process, int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if id := r.Header.Get(sessionHeader); id != "" {
		if p := f.sessions[id]; p != nil {
			return p, 0, nil
		}
		return nil, http.StatusNotFound, errNoSession
	}
	if _, modern := msg.Params.Meta[versionKey]; msg.Method == "initialize" && !modern {
		p, err := start(f.command, false)
		if err != nil {
			return nil, http.StatusBadGateway, err
		}
		id := rand.Text()
		f.sessions[id] = p
		w.Header().Set(sessionHeader, id)
		return p, 0, nil
	}
	if f.modern == nil {
		p, err := start(f.command, true)
		if err != nil {
			return nil, http.StatusBadGateway, err
		}
		f.modern = p
	}
	return f.modern, 0, nil
}
