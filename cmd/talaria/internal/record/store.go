package record

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/tooling/recording"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/protocol"
)

// The bounds of a Store: what it keeps, and how many texts may wait to be read.
// Beyond them the oldest are dropped, and those that come.
const (
	maxKept   = 64 << 20
	maxRows   = 200_000
	perRow    = 300 // bytes that a row takes next to its texts
	maxName   = 500 // bytes of what a row shows of its text
	maxQueued = 4096
	maxAgreed = 4096
)

// Store keeps what goes between a client and a server, the newest of it. Its
// texts are read by one goroutine, so that who adds one never waits. All methods
// are safe for concurrent use.
type Store struct {
	changed func() // called after rows have changed, without the lock
	queue   chan queued
	ended   chan struct{}

	mu      sync.Mutex
	rows    []*Row
	next    int64
	lines   int64 // rows of standard error, of all that there ever were
	kept    int
	open    map[string]*Row  // requests without an answer, by connection, direction and id
	agreed  map[string]int64 // connections on which a revision was agreed, with the last row by then
	dropped int64            // texts that came too fast
	search  string           // what was searched last
	n       int              // counts what was searched; 0 is nothing
}

// queued is what waits to be taken: an entry, or an exchange whose body is the text.
type queued struct {
	recording.Entry
	exchange *Exchange
}

// NewStore returns a Store whose goroutine Close ends. changed is called often,
// and must not block.
func NewStore(changed func()) *Store {
	s := &Store{changed: changed, queue: make(chan queued, maxQueued), ended: make(chan struct{}), open: map[string]*Row{}, agreed: map[string]int64{}}
	go func() {
		defer close(s.ended)
		for q := range s.queue {
			if q.exchange != nil {
				s.exchange(q.Entry, q.exchange)
			} else {
				s.take(q.Entry)
			}
		}
	}()
	return s
}

// Close ends the Store. Nothing may be added any more.
func (s *Store) Close() {
	close(s.queue)
	<-s.ended
}

// Load takes an entry with its text, and waits where too many wait.
func (s *Store) Load(e recording.Entry) { s.queue <- queued{Entry: e} }

// Add takes an entry. It copies its text, and where too many wait it drops it.
func (s *Store) Add(e recording.Entry) {
	e.Text = bytes.Clone(e.Text)
	if e.At.IsZero() {
		e.At = time.Now()
	}
	s.enqueue(queued{Entry: e})
}

func (s *Store) enqueue(q queued) {
	select {
	case s.queue <- q:
	default:
		s.mu.Lock()
		s.dropped++
		s.mu.Unlock()
	}
}

// envelope is what is read of a message.
type envelope struct {
	ID     json.RawMessage `json:"id,omitempty"`
	Method string          `json:"method"`
	Params params          `json:"params"`
	Result struct {
		IsError json.RawMessage `json:"isError,omitempty"`
	} `json:"result"`
	Error json.RawMessage `json:"error,omitempty"`
}

// take makes a row of an entry, or adds it to that of its request.
func (s *Store) take(e recording.Entry) {
	row := &Row{At: e.At, From: "client", Out: len(e.Text), View: strings.HasPrefix(e.Conn, ViewConn), conn: e.Conn}
	row.texts[0] = e.Text
	if e.Dir == recording.In || e.Dir == recording.Err {
		row.From = "server"
	}
	switch e.Dir {
	case recording.Err, recording.Note:
		row.Kind = map[recording.Dir]string{recording.Err: "stderr", recording.Note: "note"}[e.Dir]
		row.Name = visible.Output(string(e.Text), maxName)
		if row.HTTP = e.HTTP; e.HTTP != 0 {
			row.Status = s.answered(e)
		}
		s.add(row, "")
		return
	}
	var m envelope
	if err := jsonx.Unmarshal(e.Text, &m); err != nil && m.Method == "" && m.ID == nil {
		row.Kind, row.Name = "broken", visible.Line(string(e.Text), maxName)
		s.add(row, "")
		return
	}
	if m.Method == "" {
		s.answer(e, m, row)
		return
	}
	row.Method, row.Kind = visible.Line(m.Method, visible.Name), "notification"
	row.Name = m.Params.says(m.Method)
	key := ""
	if len(m.ID) > 0 {
		row.Kind, key = "request", keyOf(e.Conn, e.Dir, m.ID)
	} else if m.Method == protocol.MethodLog {
		row.Kind, row.Level = "log", visible.Line(text(m.Params.Level), visible.Name)
	}
	s.add(row, key)
}

// keyOf returns the key of a request in Store.open. Ids of one value are one id, as 1 and
// 1.0 are; an invalid id is compared as text.
func keyOf(conn string, dir recording.Dir, id json.RawMessage) string {
	text := string(id)
	var known protocol.ID
	if known.UnmarshalJSON(id) == nil {
		text = known.Canonical().String()
	}
	return conn + " " + string(dir) + " " + text
}

// setHTTP notes the status of HTTP that a message was answered with. s.mu is held.
func (s *Store) setHTTP(r *Row, status int) {
	r.HTTP = status
	if r.Status == "" && r.Method == protocol.MethodDiscover && s.negotiates(r) && refusesProbe(status) {
		r.Status = Negotiation
	}
}

// answered gives a message to the server the status of HTTP that a recording has for it:
// the request that is named, or else the last message of the connection. It returns the
// status of that row if it is an expected one.
func (s *Store) answered(e recording.Entry) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var row *Row
	if len(e.ID) > 0 {
		row = s.open[keyOf(e.Conn, recording.Out, e.ID)]
	} else {
		for n := len(s.rows) - 1; n >= max(0, len(s.rows)-lookedAt) && row == nil; n-- {
			if r := s.rows[n]; r.conn == e.Conn && r.From == "client" && r.Kind != "note" {
				row = r
			}
		}
	}
	if row == nil {
		return ""
	}
	s.setHTTP(row, e.HTTP)
	if row.expected() {
		return row.Status
	}
	return ""
}

// answer joins an answer to its request.
func (s *Store) answer(e recording.Entry, m envelope, alone *Row) {
	other := recording.In
	if e.Dir == recording.In {
		other = recording.Out
	}
	key := keyOf(e.Conn, other, m.ID)
	s.mu.Lock()
	row := s.open[key]
	if row == nil && e.Dir == recording.In && (len(m.ID) == 0 || string(m.ID) == "null") && len(m.Error) > 0 {
		key, row = s.refused(e.Conn)
	}
	if row == nil {
		s.mu.Unlock()
		alone.Kind = "broken"
		alone.Name = "an answer to no request: " + visible.Line(string(e.Text), maxName)
		s.add(alone, "")
		return
	}
	delete(s.open, key)
	row.texts[1], row.In, row.missed = e.Text, len(e.Text), 0
	row.Took = float64(e.At.Sub(row.At).Microseconds()) / 1000
	switch {
	case len(m.Error) > 0:
		row.Status = "error"
		var fault struct{ Code protocol.Code }
		switch readable := jsonx.Unmarshal(m.Error, &fault) == nil; {
		case readable && s.negotiates(row) && (row.negotiates(fault.Code) || row.Method == protocol.MethodInitialize && s.agreed[row.conn] != 0):
			row.Status = Negotiation
		case readable && row.Method == protocol.MethodResourceTemplates && fault.Code == protocol.CodeMethodNotFound:
			row.Status = NotOffered
		}
	case string(m.Result.IsError) == "true":
		row.Status = "failed"
	default:
		row.Status = "ok"
		if row.Method == protocol.MethodDiscover || row.Method == protocol.MethodInitialize {
			s.agree(row)
		}
	}
	s.kept += len(e.Text)
	s.trim()
	s.mu.Unlock()
	s.changed()
}

// negotiates reports whether a request was sent before a revision was agreed on its
// connection. s.mu is held.
func (s *Store) negotiates(r *Row) bool {
	last := s.agreed[r.conn]
	return last == 0 || r.Seq <= last
}

// agree notes that a request has agreed on a revision. A server that starts slowly answers the
// probe when the client has sent initialize, too, and may have refused that first. s.mu is held.
func (s *Store) agree(row *Row) {
	if s.agreed[row.conn] != 0 {
		return
	}
	if len(s.agreed) >= maxAgreed {
		clear(s.agreed)
	}
	s.agreed[row.conn] = s.next
	for n := len(s.rows) - 1; n >= max(0, len(s.rows)-lookedAt) && row.Method == protocol.MethodDiscover; n-- {
		if r := s.rows[n]; r.conn == row.conn && r.Method == protocol.MethodInitialize && r.Status == "error" {
			r.Status = Negotiation
		}
	}
}

// refused returns the request of a connection that an error without an id answers: one
// that HTTP refuses, or the probe of the revision, on which older servers answer so. s.mu
// is held.
func (s *Store) refused(conn string) (key string, row *Row) {
	for at, r := range s.open {
		if r.conn == conn && r.From == "client" && (r.HTTP >= 400 || r.Method == protocol.MethodDiscover) && (row == nil || r.Seq > row.Seq) {
			key, row = at, r
		}
	}
	return key, row
}

func (s *Store) add(row *Row, key string) {
	s.mu.Lock()
	s.next++
	row.Seq = s.next
	if row.Kind == "stderr" {
		s.lines++
	}
	s.rows = append(s.rows, row)
	s.kept += perRow + len(row.texts[0]) + row.more
	if key != "" {
		s.open[key] = row
	}
	s.trim()
	s.mu.Unlock()
	s.changed()
}

// trim drops the oldest. s.mu is held.
func (s *Store) trim() {
	n := 0
	for n < len(s.rows)-1 && (s.kept > maxKept || len(s.rows)-n > maxRows) {
		s.kept -= perRow + len(s.rows[n].texts[0]) + len(s.rows[n].texts[1]) + s.rows[n].more
		n++
	}
	if n == 0 {
		return
	}
	clear(s.rows[:n]) // the array goes when it is full; to copy it each time would be 1.6 MB a message
	s.rows = s.rows[n:]
	for key, row := range s.open {
		if row.Seq < s.rows[0].Seq {
			delete(s.open, key)
		}
	}
}

// Query says which rows are wanted.
type Query struct {
	Before int64    // older than this one; 0 means from the newest on
	From   int64    // the oldest of this one and those that are newer; 0 means the newest of all
	Kinds  []string // nil means all; "errors" is what has gone wrong, "log:LEVEL" log notifications from that level on
	Text   string   // is in it, in upper or lower case
	Limit  int
}

// Page is a part of the rows.
type Page struct {
	Rows    []Row `json:"rows"`  // the newest first
	Total   int64 `json:"total"` // of all that there ever were
	Lines   int64 `json:"-"`     // how many of them are lines of standard error
	Kept    int   `json:"kept"`
	Dropped int64 `json:"dropped,omitempty"` // texts that came too fast to be kept
}

// Rows returns what a query asks for. A page asks for the same again whenever there is
// something new: what does not have the text is not looked through twice.
func (s *Store) Rows(q Query) Page {
	s.mu.Lock()
	if q.Text != "" && q.Text != s.search {
		s.search = q.Text
		s.n++
	}
	search := s.n
	rows := s.rows[:len(s.rows):len(s.rows)]
	p := Page{Rows: []Row{}, Total: s.next, Lines: s.lines, Kept: len(rows), Dropped: s.dropped}
	s.mu.Unlock()
	text := newFinder(q.Text)
	for n := range rows {
		if len(p.Rows) == q.Limit {
			break
		}
		if q.From == 0 {
			n = len(rows) - 1 - n
		}
		s.mu.Lock()
		at := rows[n]
		if at == nil { // dropped in the meantime, as all that is older
			s.mu.Unlock()
			continue
		}
		if q.Text != "" && at.missed == search {
			s.mu.Unlock()
			continue
		}
		row := *at // an answer may come in the meantime
		s.mu.Unlock()
		if row.Seq < q.From || q.Before > 0 && row.Seq >= q.Before || !wanted(&row, q.Kinds) {
			continue
		}
		if !text.in(row.texts[0]) && !text.in(row.texts[1]) {
			s.mu.Lock()
			if len(at.texts[1]) == len(row.texts[1]) {
				at.missed = search
			}
			s.mu.Unlock()
			continue
		}
		p.Rows = append(p.Rows, row)
	}
	if q.From > 0 {
		slices.Reverse(p.Rows)
	}
	return p
}

func wanted(row *Row, kinds []string) bool {
	for _, kind := range kinds {
		if least, ok := strings.CutPrefix(kind, "log:"); ok {
			var level, from protocol.Level
			if row.Kind == "log" && from.UnmarshalText([]byte(least)) == nil && level.UnmarshalText([]byte(row.Level)) == nil && level >= from {
				return true
			}
		}
		if kind == row.Kind || kind == "errors" && (row.Status == "error" || row.Status == "failed" || row.Kind == "broken" || row.HTTP >= 400 && !row.expected()) {
			return true
		}
	}
	return len(kinds) == 0
}

// Texts returns a row and its texts, as they went over the wire.
func (s *Store) Texts(seq int64) (row Row, request, answer []byte, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.rows) == 0 || seq < s.rows[0].Seq || seq > s.next {
		return Row{}, nil, nil, false
	}
	r := s.rows[seq-s.rows[0].Seq]
	return *r, r.texts[0], r.texts[1], true
}

// Entries returns what the rows were made of, the oldest first: the newest of them, as far as
// their texts have most bytes. The headers of HTTP are left out. The texts must not be changed.
func (s *Store) Entries(most int) []recording.Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []recording.Entry
	for _, r := range slices.Backward(s.rows) {
		if r == nil {
			continue
		}
		if most -= len(r.texts[0]) + len(r.texts[1]); most < 0 {
			break
		}
		dir, back := recording.Out, recording.In
		if r.From == "server" {
			dir, back = back, dir
		}
		switch r.Kind {
		case "stderr":
			dir = recording.Err
		case "note":
			dir = recording.Note
		case "http":
			continue // an exchange without a message
		}
		e := recording.Entry{At: r.At, Dir: dir, Conn: r.conn, Text: r.texts[0]}
		if r.Kind == "note" {
			e.HTTP = r.HTTP
		}
		list = append(list, e)
		if r.HTTP != 0 && r.Kind != "note" && dir == recording.Out {
			list = append(list, recording.Entry{At: r.At, Dir: recording.Note, Conn: r.conn, HTTP: r.HTTP})
		}
		if r.texts[1] != nil {
			list = append(list, recording.Entry{At: r.At.Add(time.Duration(r.Took * float64(time.Millisecond))), Dir: back, Conn: r.conn, Text: r.texts[1]})
		}
	}
	slices.SortStableFunc(list, func(a, b recording.Entry) int { return a.At.Compare(b.At) })
	return list
}

// Exchange takes an exchange, which belongs to the row of the message that is its
// body, or else has a row of its own. Where too many wait it drops it.
func (s *Store) Exchange(conn string, body []byte, x Exchange) {
	s.enqueue(queued{recording.Entry{At: x.At, Conn: conn, Text: body}, &x})
}

// exchange joins an exchange to the row of its message.
func (s *Store) exchange(e recording.Entry, x *Exchange) {
	s.mu.Lock()
	var row *Row
	for n := len(s.rows) - 1; n >= max(0, len(s.rows)-lookedAt) && len(e.Text) > 0; n-- {
		r := s.rows[n]
		mine := 0 // which of its texts the client has sent
		if r.From == "server" {
			mine = 1
		}
		if r.conn == e.Conn && bytes.Equal(r.texts[mine], e.Text) && (row == nil || len(r.exchanges) == 0) {
			if row = r; len(r.exchanges) == 0 {
				break
			}
		}
	}
	if row != nil {
		if len(row.exchanges) < maxExchanges {
			row.exchanges = append(row.exchanges, *x)
			row.more += x.size()
			s.kept += x.size()
		}
		s.setHTTP(row, x.Status)
		s.trim()
		s.mu.Unlock()
		s.changed()
		return
	}
	status := ""
	switch {
	case x.Status == http.StatusMethodNotAllowed && (x.Method == http.MethodGet || x.Method == http.MethodDelete):
		status = NotOffered
	case x.Status == http.StatusOK && x.Method == http.MethodGet: // over the older transport, which the client tries after this
		for _, r := range s.open {
			if r.conn == e.Conn && r.Method == protocol.MethodInitialize && r.Status == "" && refusesTransport(r.HTTP) {
				r.Status = Negotiation
			}
		}
	}
	s.mu.Unlock()
	s.add(&Row{At: e.At, Kind: "http", From: "client", Method: x.Method, Name: x.URL, Took: x.Took, HTTP: x.Status, Status: status, conn: e.Conn,
		exchanges: []Exchange{*x}, more: x.size()}, "")
}

// Exchanges returns those of a row, without the values of secrets unless they are
// asked for.
func (s *Store) Exchanges(seq int64, secrets bool) []Exchange {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.rows) == 0 || seq < s.rows[0].Seq || seq > s.next {
		return nil
	}
	list := slices.Clone(s.rows[seq-s.rows[0].Seq].exchanges)
	for n := range list {
		if !secrets {
			list[n] = list[n].masked()
		}
	}
	return list
}
