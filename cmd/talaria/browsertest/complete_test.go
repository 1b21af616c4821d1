package browsertest

import "testing"

// held holds the time of the page: what is to be done in a while is done when elapse is
// called. asked are the completions that the page has asked for, settled how many of them
// are answered, or given up.
const held = `(() => {
	const { setTimeout: later, clearTimeout: drop, fetch: plain } = window, waiting = new Map()
	let n = 1e9
	window.setTimeout = (f, ms, ...rest) => ms >= 100 ? (waiting.set(++n, f), n) : later(f, ms, ...rest)
	window.clearTimeout = id => waiting.delete(id) || drop(id)
	window.elapse = () => { const all = [...waiting.values()]; waiting.clear(); for (const f of all) f() }
	window.asked = []
	window.settled = 0
	window.fetch = (at, how) => {
		const made = plain(at, how), q = how?.body ? JSON.parse(how.body) : {}
		if (q.method === 'completion/complete') {
			asked.push(q.params.argument.value)
			made.then(r => r.clone().text()).catch(() => '').then(() => later(() => settled++)) // after the page
		}
		return made
	}
	return true
})()`

// TestCompletion: the server is asked once for what is typed in one go, and an answer
// that comes late counts for nothing.
func TestCompletion(t *testing.T) {
	t.Parallel()
	b := inspectPage(t, fixture(t, "completes"))
	b.choose("greet")
	eval[bool](b, held)
	shown := func(want string) {
		t.Helper()
		b.until(`[...document.querySelectorAll('.completes [role=option]')].map(e => e.innerText).join() === ` + quote(want))
	}
	asked := func(want string) {
		t.Helper()
		if got := eval[string](b, `asked.join()`); got != want {
			t.Fatalf("asked for %q, and not for %q", got, want)
		}
	}
	b.press("xyz")
	asked("")
	eval[bool](b, `(elapse(), true)`)
	asked("xyz")
	shown("xyz 1,xyz 2")

	b.write("a")
	eval[bool](b, `(elapse(), true)`)
	asked("xyz,a")
	b.press("b")
	eval[bool](b, `(elapse(), true)`)
	asked("xyz,a,ab")
	b.until(`settled === 3`)
	shown("ab 1,ab 2")
	if got := eval[string](b, `document.querySelector('.ask input').value`); got != "ab" {
		t.Errorf("the field has %q", got)
	}
}
