package browsertest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// mostRounds is how often a tool is called at most, for all that its arguments may be.
const mostRounds = 40

// kindsOfTools have each kind of control.
var kindsOfTools = []json.RawMessage{
	json.RawMessage(`{"name":"texts","inputSchema":{"type":"object","required":["plain"],"properties":{"plain":{"type":"string"},"long":{"type":"string","maxLength":500},"mark":{"type":"string","format":"uuid"},"code":{"type":"string","pattern":"^[A-Z]{3}-\\d{2}$"}}}}`),
	json.RawMessage(`{"name":"others","inputSchema":{"type":"object","required":["sure","size"],"properties":{"sure":{"type":"boolean"},"also":{"type":"boolean"},"size":{"enum":["S","M","L"]},"part":{"type":"number","minimum":0,"maximum":1},"count":{"type":["integer","null"]},"none":{"type":["string","null"],"default":null},"fixed":{"const":"as it is"}}}}`),
	json.RawMessage(`{"name":"within","inputSchema":{"type":"object","required":["list"],"properties":{"list":{"type":"array","minItems":1,"items":{"$ref":"#/$defs/one"}},"table":{"type":"array","items":{"type":"array","items":{"type":"integer"}}},"labels":{"type":"object","additionalProperties":{"$ref":"#/$defs/one"}},"place":{"type":"object","properties":{"name":{"type":"string"}}}},` +
		`"$defs":{"one":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"tags":{"type":"array","items":{"type":"string"}}}}}}}`),
	json.RawMessage(`{"name":"kinds","inputSchema":{"type":"object","required":["shape"],"properties":{"shape":{"oneOf":[{"type":"object","required":["kind","radius"],"properties":{"kind":{"const":"circle"},"radius":{"type":"number"}}},{"type":"object","required":["kind","side"],"properties":{"kind":{"const":"square"},"side":{"type":"number"}}}]},"id":{"anyOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]},"some":{"type":"array","items":{"anyOf":[{"type":"boolean"},{"type":"string"}]}}}}}`),
	json.RawMessage(`{"name":"anything","inputSchema":{"type":"object","properties":{"value":{},"values":{"type":"object"},"list":{"type":"array"},"either":{"type":["boolean","string"]},"filter":{"anyOf":[{"type":"object","properties":{},"additionalProperties":{}},{"type":"string"}]},"sort":{"anyOf":[{"const":1},{"const":-1},{"type":"object","required":["by"],"properties":{"by":{"type":"string"}}}]}}}}`),
}

// collected are the tools of the pinned servers.
func collected(t *testing.T) map[string][]json.RawMessage {
	t.Helper()
	all := map[string][]json.RawMessage{}
	for _, p := range pins {
		text, err := os.ReadFile(p.file(*pinned))
		if err != nil {
			t.Fatal(err)
		}
		var tools []json.RawMessage
		if err := json.Unmarshal(text, &tools); err != nil {
			t.Fatal(err)
		}
		all[p.name] = tools
	}
	return all
}

// TestControls: what a schema allows is entered by the roles and the names of controls,
// and the server gets just that.
func TestControls(t *testing.T) {
	t.Parallel()
	if n := measureControls(t, newTab(t), "kinds", kindsOfTools); n.entered < n.leaves || n.leaves == 0 {
		t.Errorf("%d of %d leaves", n.entered, n.leaves)
	}
}

// TestPinned does so with the tools of the pinned servers, and says what has no control.
func TestPinned(t *testing.T) {
	if *pinned == "" {
		t.Skip("-pinned names no directory; CONTRIBUTING.md has the command")
	}
	page := newTab(t)
	var sum entered
	all := collected(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		tools := all[name]
		t.Run(strings.ReplaceAll(name, "/", "-"), func(t *testing.T) {
			n := measureControls(t, page, name, tools)
			sum.leaves, sum.entered, sum.calls = sum.leaves+n.leaves, sum.entered+n.entered, sum.calls+n.calls
		})
	}
	share := 100 * float64(sum.entered) / float64(sum.leaves)
	t.Logf("%d servers: %d of %d leaves, %.1f %%, in %d calls", len(pins), sum.entered, sum.leaves, share, sum.calls)
	if !(share >= 98) {
		t.Errorf("%.1f %% of the leaves have a control", share)
	}
}

// entered says how many leaves of schemas had controls of their own, in all calls.
type entered struct{ leaves, entered, calls int }

func measureControls(t *testing.T, page *tab, server string, tools []json.RawMessage) (sum entered) {
	t.Helper()
	type turn struct {
		*plan
		rounds []value
		why    map[string]string // why a leaf does not count
	}
	var turns []*turn
	last := 0
	for _, tool := range tools {
		p, err := planOf(tool)
		if err != nil {
			t.Errorf("%v: %.200s", err, tool)
			continue
		}
		rounds, left, err := p.rounds(mostRounds)
		if err != nil || len(left) > 0 {
			t.Errorf("%s: %d leaves are in no arguments: %v", p.name, len(left), err)
			continue
		}
		turns = append(turns, &turn{p, rounds, map[string]string{}})
		last = max(last, len(rounds))
	}
	for round := range last { // in each of which all forms are empty again
		dir := t.TempDir()
		offered, arrived := filepath.Join(dir, "tools.json"), filepath.Join(dir, "calls.jsonl")
		if err := os.WriteFile(offered, bytes.Join(rawOf(tools), []byte(",")), 0o666); err != nil {
			t.Fatal(err)
		}
		i := inspect(t, fixture(t, "keeps", offered, arrived))
		b := page.in(t)
		t.Cleanup(b.tell) // before the command ends
		b.open("about:blank")
		b.open(i.link)
		b.eachTool()
		for _, turn := range turns {
			if round >= len(turn.rounds) {
				continue
			}
			sum.calls++
			want := turn.rounds[round]
			f := &form{tab: b, why: turn.why}
			f.openTool(turn.name, turn.title)
			for _, inner := range want.inner {
				f.member(0, inner)
			}
			got, err := f.send(arrived)
			if err != nil {
				want.each(func(v value) { f.miss(v, err.Error()) })
				continue
			}
			differences(want, got, func(place, why string) { turn.why[place] = cmp.Or(turn.why[place], why) })
		}
		i.end()
	}
	for _, turn := range turns {
		sum.leaves += len(turn.leaves)
		for _, place := range slices.Sorted(maps.Keys(turn.leaves)) {
			if why, is := turn.why[place]; is {
				t.Logf("not entered: %s %s: %s", turn.name, place, why)
			} else {
				sum.entered++
			}
		}
	}
	t.Logf("%s: %d tools, %d of %d leaves (%.1f %%), %d calls", server, len(tools), sum.entered, sum.leaves, 100*float64(sum.entered)/float64(max(1, sum.leaves)), sum.calls)
	return sum
}

func rawOf(tools []json.RawMessage) [][]byte {
	out := make([][]byte, len(tools))
	for i, tool := range tools {
		out[i] = tool
	}
	return out
}

// look is what the driver asks a page: nothing but roles and names, and which group
// an element is in.
const look = `window.look = {
	held: [],
	group(e) {
		for (let p = e.parentElement; p; p = p.parentElement)
			if ((p.tagName === 'FIELDSET' || p.tagName === 'SECTION' || p.hasAttribute('role')) && ['group', 'region'].includes(p.computedRole)) return p
	},
	may(e, name) { // that it is called so, which is quicker asked than what it is called
		return e.ariaLabel === name || !e.ariaLabel && ((e.ariaLabelledByElements ?? []).some(l => l.textContent.includes(name)) || e.textContent.includes(name))
	},
	all(scope, names) {
		const within = look.held[scope]
		return [...within.querySelectorAll('button, input, textarea, select, fieldset, [role]')].filter(e => names.some(([role, name]) => look.may(e, name) && e.computedRole === role && e.computedName === name) && look.group(e) === within)
	},
	async find(scope, names, last) {
		let all = []
		for (let i = 0; i < 30 && !all.length; i++) {
			await new Promise(done => setTimeout(done, i)) // the page moves the focus like that, too
			all = look.all(scope, names)
		}
		if (!all.length) return null
		if (all.length > 1 && !last) return { many: all.length }
		return look.hold(all.at(-1))
	},
	hold(e) {
		const i = look.held.push(e) - 1
		return { i, role: e.computedRole, lines: e.tagName === 'TEXTAREA', raw: e.placeholder === 'JSON', text: String(e.value ?? ''), options: e.tagName === 'SELECT' ? [...e.options].map(o => o.disabled ? null : o.text) : null, at: e.selectedIndex ?? -1 }
	},
	to(i) { // as Tab does
		const e = look.held[i]
		if (e.tabIndex < 0 || e.disabled || !e.checkVisibility({ visibilityProperty: true })) return false
		e.focus()
		e.select?.()
		return document.activeElement === e
	},
}, true`

// element is what was found in a page.
type element struct {
	I, Many int
	Role    string
	Lines   bool // it is a text area
	Raw     bool // for JSON
	Text    string
	Options []*string // of a combobox; nil for one that cannot be chosen
	At      int       // which is
}

// form enters values into the form of a tool. Groups are numbered, 0 is the form.
type form struct {
	*tab
	why map[string]string
}

// eachTool waits for the list of tools.
func (b *tab) eachTool() {
	b.t.Helper()
	b.until(`document.querySelector('nav button[data-tool]')`)
	eval[bool](b, look)
}

// openTool goes to a tool with the keyboard.
func (f *form) openTool(name, title string) {
	f.t.Helper()
	button := "[...document.querySelectorAll('nav button[data-tool]')].find(e => [" + quote(name) + ", " + quote(title) + "].includes(e.querySelector('.one').textContent))"
	f.until(button)
	eval[bool](f.tab, "("+button+".focus(), true)")
	f.press(enter)
	f.until(`document.querySelector('.ask')?.contains(document.activeElement) && document.querySelector('.ask .primary') && [...document.querySelectorAll('.ask :is(h2, .meta code)')].some(e => e.innerText === ` + quote(name) + `)`)
	eval[bool](f.tab, `(look.held = [document.querySelector('section[aria-label=Form]')], true)`)
}

// miss notes why what is at the leaves of a value does not count.
func (f *form) miss(v value, why string) {
	v.each(func(v value) {
		if f.why[v.place] == "" {
			f.why[v.place] = why
		}
	})
}

type named [2]string // a role and a name

func (f *form) first(group int, last bool, names ...named) (element, error) {
	f.t.Helper()
	text, _ := json.Marshal(names) // texts always encode
	e := eval[*element](f.tab, fmt.Sprintf("look.find(%d, %s, %t)", group, text, last))
	switch {
	case e == nil:
		return element{}, fmt.Errorf("there is no %s %q", names[0][0], names[0][1])
	case e.Many > 0:
		return element{}, fmt.Errorf("%d are a %s %q", e.Many, names[0][0], names[0][1])
	}
	return *e, nil
}

// there tells whether something is there now, and is pressed or not.
func (f *form) there(group int, role, name string, pressed ...string) bool {
	f.t.Helper()
	test := ".length > 0"
	if len(pressed) > 0 {
		test = ".some(e => e.ariaPressed === " + quote(pressed[0]) + ")"
	}
	return eval[bool](f.tab, fmt.Sprintf("look.all(%d, [[%s, %s]])%s", group, quote(role), quote(name), test))
}

// to moves the focus to an element.
func (f *form) to(e element) error {
	f.t.Helper()
	if !eval[bool](f.tab, fmt.Sprintf("look.to(%d)", e.I)) {
		return errors.New("the keyboard does not lead to it")
	}
	return nil
}

func (f *form) click(e element) error {
	f.t.Helper()
	err := f.to(e)
	if err == nil {
		f.press(enter)
	}
	return err
}

// push presses a button.
func (f *form) push(group int, name string) error {
	f.t.Helper()
	e, err := f.first(group, false, named{"button", name})
	if err == nil {
		err = f.click(e)
	}
	return err
}

// member enters a member that has a name.
func (f *form) member(group int, v value) {
	f.t.Helper()
	if err := f.field(group, v.key, v); err != nil {
		f.miss(v, err.Error())
	}
}

func (f *form) field(group int, name string, v value) error {
	f.t.Helper()
	names := []named{{"textbox", name}, {"combobox", name}, {"group", name}}
	e, err := f.first(group, false, append(names, named{"button", name + ": + set"})...)
	if err == nil && e.Role == "button" {
		if err = f.click(e); err == nil {
			if e, err = f.first(group, false, names...); err != nil { // its default is null
				e, err = f.first(group, false, named{"button", name + ": null"})
			}
		}
	}
	if err != nil {
		return err
	}
	within := group
	if e.Role == "group" {
		within = e.I
	}
	if button := name + ": null"; f.there(within, "button", button) {
		if is := f.there(within, "button", button, "true"); is != (v.text == "null") {
			if err := f.push(within, button); err != nil || v.text == "null" {
				return err
			}
			if e.Role == "button" {
				if e, err = f.first(group, false, names...); err != nil {
					return err
				}
			}
		} else if is {
			return nil
		}
	}
	if e.Role == "group" {
		return f.content(e.I, name, v)
	}
	if button := name + ": empty text"; v.text == `""` && f.there(group, "button", button) {
		return f.push(group, button)
	}
	return f.leaf(e, v)
}

// content enters a value into the group that is for it alone.
func (f *form) content(group int, name string, v value) error {
	f.t.Helper()
	if kinds := "kind of " + name; f.there(group, "combobox", kinds) {
		e, err := f.first(group, false, named{"combobox", kinds})
		if err != nil {
			return err
		}
		n, err := kindAmong(e, v)
		if err == nil {
			err = f.choose(e, n)
		}
		if err != nil {
			return err
		}
	}
	switch v.written {
	case "object":
		for _, inner := range v.inner {
			if !inner.free {
				f.member(group, inner)
			} else if err := f.further(group, inner); err != nil {
				f.miss(inner, err.Error())
			}
		}
		return nil
	case "list":
		return f.items(group, name, v)
	}
	if v.text == "null" {
		return nil // which is its kind
	}
	e, err := f.first(group, false, named{"textbox", name}, named{"combobox", name})
	if err != nil {
		return err
	}
	return f.leaf(e, v)
}

func (f *form) items(group int, name string, v value) error {
	f.t.Helper()
	if e, err := f.first(group, false, named{"button", "+ add to " + name}, named{"textbox", name}); err != nil {
		return err
	} else if e.Role == "textbox" {
		return f.leaf(e, v)
	}
	for i := 8; i >= 0; i-- { // what a default has put there
		if button := fmt.Sprint("remove ", i); f.there(group, "button", button) {
			if err := f.push(group, button); err != nil {
				return err
			}
		}
	}
	for i, inner := range v.inner {
		item := fmt.Sprint(name, " ", i)
		if err := f.push(group, "+ add to "+name); err != nil {
			return err
		}
		e, err := f.first(group, false, named{"group", item})
		if err == nil {
			err = f.content(e.I, item, inner)
		}
		if err != nil {
			f.miss(inner, err.Error())
		}
	}
	return nil
}

// further enters a member for which the schema has no name.
func (f *form) further(group int, v value) error {
	f.t.Helper()
	if err := f.push(group, "+ add a member"); err != nil {
		return err
	}
	e, err := f.first(group, true, named{"group", "further member"})
	if err != nil {
		return err
	}
	key, err := f.first(e.I, false, named{"textbox", "name of a further member"})
	if err == nil {
		err = f.write(key, v.key)
	}
	if err == nil {
		err = f.content(e.I, v.key, v)
	}
	return err
}

// kindAmong finds the option that says what a value is: a word for its type, or the
// members that an object of that kind has.
func kindAmong(e element, v value) (int, error) {
	word := map[string]string{"object": "object", "list": "list"}[v.written]
	if word == "" {
		switch c := v.text[0]; {
		case c == '"':
			word = "string"
		case c == 't' || c == 'f':
			word = "boolean"
		case c == 'n':
			word = "null"
		default:
			word = "number"
		}
	}
	best, most, alike := -1, 0, 0
	for i, o := range e.Options {
		if o == nil {
			continue
		}
		score := 0
		if fixed, ok := v.schema["const"]; ok && *o == strings.Trim(encoded(fixed), `"`) {
			score = 100
		}
		if strings.HasPrefix(*o, word) || word == "list" && strings.HasPrefix(*o, "array") || word == "number" && v.kind == "integer" && *o == "integer" {
			score = 1
		}
		if word == "object" && strings.HasPrefix(*o, "{") {
			score = 1
			for n, f := range v.fields {
				switch fixed, ok := f.schema["const"]; {
				case ok && strings.Contains(*o, f.key+": "+strings.Trim(encoded(fixed), `"`)):
					score += 100
				case ok && strings.Contains(*o, f.key+": "):
					score -= 100
				case n < 12 && strings.Contains(*o, f.key):
					score++
				}
			}
			for part := range strings.SplitSeq(strings.Trim(*o, "{}"), ",") {
				name, _, _ := strings.Cut(strings.TrimRight(strings.TrimSpace(part), "?"), ":")
				if !strings.HasPrefix(name, "…") && !slices.ContainsFunc(v.fields, func(f field) bool { return f.key == name }) {
					score -= 100 // another kind has it
				}
			}
		}
		switch {
		case score > most:
			best, most, alike = i, score, 1
		case score == most && score > 0:
			alike++
		}
	}
	if best < 0 {
		return 0, fmt.Errorf("no kind is a %s", word)
	}
	if alike > 1 { // by their order, then
		var same []int
		for i, k := range v.among.alike(v.shape) {
			if k == v.shape {
				same = append(same, i)
			}
		}
		if len(same) > 0 {
			best += min(same[0], alike-1)
		}
	}
	return best, nil
}

// alike are the kinds of a union that are written as one of them is.
func (s *shape) alike(one *shape) (all []*shape) {
	if s == nil {
		return nil
	}
	for _, k := range s.kinds {
		if k.kind == one.kind {
			all = append(all, k)
		}
	}
	return all
}

// leaf enters text, or chooses it.
func (f *form) leaf(e element, v value) error {
	f.t.Helper()
	if e.Role == "combobox" {
		var text string
		if json.Unmarshal([]byte(v.text), &text) != nil || v.text == "null" {
			text = v.text
		}
		n := slices.IndexFunc(e.Options, func(o *string) bool { return o != nil && *o == text })
		if n < 0 {
			return fmt.Errorf("it offers no %.60s", v.text)
		}
		return f.choose(e, n)
	}
	if e.Raw || e.Lines && !strings.HasPrefix(v.text, `"`) {
		f.miss(v, "it is a box for JSON")
		return f.write(e, v.JSON())
	}
	text := v.JSON()
	_ = json.Unmarshal([]byte(v.text), &text) // what is no text stays as it is
	return f.write(e, text)
}

func (f *form) write(e element, text string) error {
	f.t.Helper()
	if err := f.to(e); err != nil || text == e.Text {
		return err
	}
	if text == "" {
		f.press(kb.Backspace)
		return nil
	}
	_, err := chromedp.Call(f.ctx, input.InsertText, input.InsertTextParams{Text: text})
	return err
}

// choose takes an option with the keyboard.
func (f *form) choose(e element, n int) error {
	f.t.Helper()
	if err := f.to(e); err != nil {
		return err
	}
	steps, key := 0, kb.ArrowDown
	from, to := e.At, n
	if from > to {
		from, to, key = to-1, from-1, kb.ArrowUp
	}
	for _, o := range e.Options[from+1 : to+1] {
		if o != nil {
			steps++
		}
	}
	f.press(strings.Repeat(key, steps))
	if at := eval[int](f.tab, fmt.Sprintf("look.held[%d].selectedIndex", e.I)); at != n {
		return fmt.Errorf("the keyboard chooses option %d, and not %d", at, n)
	}
	return nil
}

// send calls the tool, and returns what arrived at the server.
func (f *form) send(arrived string) (any, error) {
	f.t.Helper()
	before, _ := os.ReadFile(arrived) // there may be none yet
	if !eval[bool](f.tab, `look.held[0].contains(document.activeElement)`) {
		return nil, errors.New("the form has lost the focus")
	}
	f.ctrl(enter)
	const ended = `document.querySelector('[data-state=done], [data-state=failed], [data-state=error], .ask [role=alert]')`
	f.until(`(window.looks = document.querySelector('.ask .primary').innerText.includes('anyway') ? (window.looks ?? 0) + 1 : 0) > 60 || ` + ended) // it tells of what was wrong before, until it is judged anew
	problems := ""
	if !eval[bool](f.tab, "!!"+ended) {
		problems = eval[string](f.tab, `[...document.querySelectorAll('.ask .bad')].map(e => e.innerText).join('; ')`)
		f.ctrl(enter)
		f.until(ended)
	}
	after, _ := os.ReadFile(arrived)
	problems += eval[string](f.tab, `document.querySelector('.ask [role=alert]')?.innerText ?? ''`)
	line := bytes.TrimSpace(after[len(before):])
	if len(line) == 0 || bytes.ContainsRune(line, '\n') {
		return nil, fmt.Errorf("%d calls arrived: %s", bytes.Count(after[len(before):], []byte("\n")), problems)
	}
	got, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
	if problems != "" {
		f.t.Logf("the page has called it wrong: %s: %.300s", problems, line)
	}
	return got, err
}
