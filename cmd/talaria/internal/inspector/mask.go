package inspector

import (
	"bytes"
	"container/list"
	"encoding/base64"
	"errors"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/record"
	"github.com/talaria-go/mcp/internal/visible"
)

// The bounds of a mask. A secret that is shorter than the least cannot be
// distinguished from other text; beyond the others nothing can be shared.
const (
	minSecret  = 4
	maxSecrets = 4096
	maxSecret  = 4 << 20 // bytes, in total
	maxSteps   = 20_000_000
)

// masked stands for a secret. It is shorter than any of them, so that masking what is
// masked comes to an end.
const masked = "***"

// The errors of what cannot be shared.
var (
	errUnmaskable = errors.New("there are too many secrets to mask: restart the inspector")
	errTooLong    = errors.New("it takes too long to look for secrets in this: copy it raw, and look yourself")
)

// mask knows secrets by their values, and finds them wherever they are, whole, in any
// mix of the ways in which JSON, URLs, Go and a shell write text. mu guards all.
//
// What the user has given stays known. What changes with each request, or is the
// server's to make, is known until there is too much of it, and apart: a server that
// makes many has those of the client known nevertheless.
type mask struct {
	mu             sync.Mutex
	own            secrets
	sent, received secrets
}

// secrets are some of a mask, by their values, with their places in the order in which
// they were seen last.
type secrets struct {
	seen  map[string]*list.Element
	order list.List // the oldest first
	size  int
	over  bool // there were more than the bounds allow
}

// add takes secrets that the user has given. Those that are too short are left out.
func (m *mask) add(texts ...string) { m.into(&m.own, texts...) }

// into takes secrets. At the limit, secrets of the server that were not seen for
// longest are dropped. A secret of the server that is too long is not kept: otherwise
// nothing could be shared any more.
func (m *mask) into(to *secrets, texts ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, text := range texts {
		for _, form := range []string{text, strings.TrimSpace(text), broken(text), visible.Text(text, 0), visible.Line(text, 0)} {
			if len(form) < minSecret || isWord(form) {
				continue
			}
			if at, known := to.seen[form]; known {
				to.order.MoveToBack(at)
				continue
			}
			full := func() bool { return len(to.seen) >= maxSecrets || to.size+len(form) > maxSecret }
			for to != &m.own && len(form) <= maxSecret && full() {
				to.forget()
			}
			if full() {
				to.over = to != &m.received
				continue
			}
			if to.seen == nil {
				to.seen = map[string]*list.Element{}
			}
			to.size += len(form)
			to.seen[form] = to.order.PushBack(form)
		}
	}
}

// forget drops the one that was not seen for longest.
func (s *secrets) forget() {
	oldest, _ := s.order.Remove(s.order.Front()).(string)
	delete(s.seen, oldest)
	s.size -= len(oldest)
}

// addHeader takes the value of a header or the like, if it may be a secret: with its
// scheme, without it, and what Basic has in it.
func (m *mask) addHeader(to *secrets, name, value string) {
	if likely(name, value) {
		m.into(to, value)
	}
	scheme, rest, ok := strings.Cut(value, " ")
	if !ok || !likely(name, rest) {
		return
	}
	m.into(to, rest)
	if plain, err := base64.StdEncoding.DecodeString(rest); err == nil && strings.EqualFold(scheme, "basic") {
		m.into(to, string(plain))
		if _, password, ok := strings.Cut(string(plain), ":"); ok {
			m.into(to, password)
		}
	}
}

// addURL takes the secrets of a URL: its password, or a token before its host, and
// what is in its query.
func (m *mask) addURL(to *secrets, u *url.URL) {
	if password, ok := u.User.Password(); ok {
		m.into(to, password)
	} else if token := u.User.Username(); likely("", token) {
		m.into(to, token)
	}
	for name, values := range u.Query() {
		for _, value := range values {
			if likely(name, value) {
				m.into(to, value)
			}
		}
	}
}

// broken is text as encoders of JSON write what is no UTF-8.
func broken(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	return string([]rune(text)) // each bad byte becomes U+FFFD
}

// hide returns text without any secret. A server that makes secrets and texts to look
// for them long gets an error instead.
func (m *mask) hide(text string) (string, error) {
	var first [256][]string
	m.mu.Lock()
	over := false
	for _, list := range []*secrets{&m.own, &m.sent, &m.received} {
		over = over || list.over
		for secret := range list.seen {
			first[secret[0]] = append(first[secret[0]], secret)
		}
	}
	m.mu.Unlock()
	if over {
		return "", errUnmaskable
	}
	out := []byte(text)
	left := maxSteps
	for range 100 { // what is next to a mark can make a secret with it
		f := &finder{text: out, memo: map[int][]unit{}, left: left}
		ranges := f.ranges(first)
		if left = f.left; left < 0 {
			return "", errTooLong
		}
		if len(ranges) == 0 {
			return string(out), nil
		}
		out = replaced(out, ranges)
	}
	return masked, nil
}

// cover hides what is secret in a text, all of it in case of doubt, and reports
// whether there was something.
func (m *mask) cover(text *string) bool {
	hidden, err := m.hide(*text)
	if err != nil {
		hidden = masked
	}
	same := hidden == *text
	*text = hidden
	return !same
}

// exchange hides what is secret in an exchange of HTTP, whatever its headers are called.
func (m *mask) exchange(x *record.Exchange) {
	m.cover(&x.URL)
	m.cover(&x.Error)
	for _, list := range [][]record.Header{x.Sent, x.Got} {
		for n := range list {
			list[n].Secret = m.cover(&list[n].Value) || list[n].Secret
		}
	}
}

// nested is how often an escape may be escaped again, such as JSON in a text of JSON.
const nested = 3

// finder looks for secrets in a text.
type finder struct {
	text []byte
	memo map[int][]unit // what escapes can mean, by place and depth
	left int            // how many steps may still be taken; below 0 nothing is found any more
}

// unit is what some bytes of a text mean: themselves, or what is escaped there.
type unit struct {
	is  string
	end int
}

// begins reports whether an escape may begin so.
func begins(c byte) bool { return c == '\\' || c == '%' || c == '+' || c == '\'' }

// ranges returns those that have secrets, in order and apart from each other. The
// secrets come by their first byte.
func (f *finder) ranges(first [256][]string) (ranges [][2]int) {
	for at := range f.text {
		for _, begin := range f.units(at, nested) {
			for _, secret := range first[begin.is[0]] {
				f.left--
				end := f.match(at, secret)
				switch n := len(ranges); {
				case end < 0:
				case n > 0 && at < ranges[n-1][1]: // they overlap
					ranges[n-1][1] = max(ranges[n-1][1], end)
				default:
					ranges = append(ranges, [2]int{at, end})
				}
			}
		}
	}
	return ranges
}

// match returns where a secret ends that begins at a place, -1 if none does.
func (f *finder) match(at int, secret string) int {
	last := -1
	reached := map[unit]bool{} // places with what is left there: many ways lead to one
	todo := []unit{{secret, at}}
	for len(todo) > 0 {
		left := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if left.is == "" {
			last = max(last, left.end)
			continue
		}
		for _, u := range f.units(left.end, nested) {
			rest, ok := strings.CutPrefix(left.is, u.is)
			next := unit{rest, u.end}
			if !ok || reached[next] {
				continue
			}
			if len(todo) > 0 || begins(f.text[left.end]) {
				reached[next] = true
			}
			todo = append(todo, next)
		}
	}
	return last
}

// units returns what can be meant at a place: the byte there, and what is escaped,
// whose characters are escaped in turn, or not.
func (f *finder) units(at, depth int) []unit {
	if f.left--; at >= len(f.text) || f.left < 0 {
		return nil
	}
	plain := unit{string(f.text[at : at+1]), at + 1}
	if depth == 0 || !begins(f.text[at]) {
		return []unit{plain}
	}
	key := at*(nested+1) + depth
	if known := f.memo[key]; known != nil {
		return known
	}
	list := []unit{plain}
	add := func(is string, end int) {
		if u := (unit{is, end}); !slices.Contains(list, u) {
			list = append(list, u)
		}
	}
	for _, u := range f.units(at, depth-1) {
		add(u.is, u.end)
		switch u.is {
		case "%":
			f.digits(u.end, 2, depth-1, func(n uint32, end int) { add(string([]byte{byte(n)}), end) })
		case "+":
			add(" ", u.end)
		case "'":
			for _, rest := range []string{`\''`, `"'"'`} {
				f.literal(u.end, rest, depth-1, func(end int) { add("'", end) })
			}
		case "\\":
			for _, v := range f.units(u.end, depth-1) {
				f.escaped(v, depth-1, add)
			}
		}
	}
	f.memo[key] = list
	return list
}

// short are the escapes with a letter.
var short = map[string]string{"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "a": "\a", "v": "\v"}

// escaped adds what a backslash and a character mean.
func (f *finder) escaped(v unit, depth int, add func(is string, end int)) {
	if is, ok := short[v.is]; ok {
		add(is, v.end)
	}
	switch {
	case v.is == "x":
		f.digits(v.end, 2, depth, func(n uint32, end int) { add(string([]byte{byte(n)}), end) })
	case v.is == "U":
		f.digits(v.end, 8, depth, func(n uint32, end int) { add(string(rune(n)), end) })
	case v.is == "u":
		f.digits(v.end, 4, depth, func(n uint32, end int) {
			if !utf16.IsSurrogate(rune(n)) {
				add(string(rune(n)), end)
				return
			}
			f.literal(end, `\u`, depth, func(end int) {
				f.digits(end, 4, depth, func(low uint32, end int) { add(string(utf16.DecodeRune(rune(n), rune(low))), end) })
			})
		})
	case len(v.is) == 1 && !alphanumeric(v.is[0]):
		add(v.is, v.end)
	}
}

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// literal calls found with each end of a text that is at a place.
func (f *finder) literal(at int, text string, depth int, found func(end int)) {
	if text == "" {
		found(at)
		return
	}
	for _, u := range f.units(at, depth) {
		if rest, ok := strings.CutPrefix(text, u.is); ok {
			f.literal(u.end, rest, depth, found)
		}
	}
}

// digits calls found with each number of n hexadecimal digits at a place.
func (f *finder) digits(at, count, depth int, found func(n uint32, end int)) {
	var more func(at, left int, n uint32)
	more = func(at, left int, n uint32) {
		if left == 0 {
			found(n, at)
			return
		}
		for _, u := range f.units(at, depth) {
			if digit, err := strconv.ParseUint(u.is, 16, 8); err == nil && len(u.is) == 1 {
				more(u.end, left-1, n<<4|uint32(digit))
			}
		}
	}
	more(at, count, 0)
}

func replaced(text []byte, ranges [][2]int) []byte {
	var out bytes.Buffer
	from := 0
	for _, r := range ranges {
		out.Write(text[from:r[0]])
		out.WriteString(masked)
		from = r[1]
	}
	out.Write(text[from:])
	return out.Bytes()
}

// addFlags takes the secrets of a command line, which is shown before anything is sent.
func (m *mask) addFlags(words []string) {
	for i := 1; i < len(words); i++ {
		switch words[i-1] {
		case "--token":
			m.addHeader(&m.own, "token", words[i])
		case "--header", "--env":
			if part := setting.FindStringSubmatch(words[i]); part != nil {
				m.addSetting(part[1], part[3])
			}
		}
	}
}

// learn takes the secrets of a transport: the environment that a command is given.
func (m *mask) learn(t client.Transport) {
	command, ok := t.(*client.CommandTransport)
	if !ok {
		return
	}
	for _, text := range command.Env {
		name, value, _ := strings.Cut(text, "=")
		m.addSetting(name, value)
	}
}

// addSetting takes what may be secret in a variable or a header that the user has set.
func (m *mask) addSetting(name, value string) {
	m.addHeader(&m.own, name, value)
	if u, err := url.Parse(value); err == nil && u.Host != "" {
		m.addURL(&m.own, u)
	}
}
