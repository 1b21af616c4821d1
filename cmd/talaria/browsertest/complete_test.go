package browsertest

import "testing"

// held holds the time of the page: what is to be done in a while is done when elapse is
// called. asked are the requests for which of is a text: of at, the address, and q, the
// body. settled is how many of their answers have come to the page. That for "a" comes
// when late is called, even if the page has given it up: it may have been on its way.
func held(of string) string {
	return `(() => {
	const { setTimeout: later, clearTimeout: drop, fetch: plain } = window, waiting = new Map()
	const held = new Promise(done => { window.late = done })
	let n = 1e9
	window.setTimeout = (f, ms, ...rest) => ms >= 100 ? (waiting.set(++n, f), n) : later(f, ms, ...rest)
	window.clearTimeout = id => waiting.delete(id) || drop(id)
	window.elapse = () => { const all = [...waiting.values()]; waiting.clear(); for (const f of all) f() }
	window.asked = []
	window.settled = 0
	window.fetch = async (at, how) => {
		const q = how?.body ? JSON.parse(how.body) : {}
		const value = ` + of + `
		if (value === undefined) return plain(at, how)
		asked.push(value)
		const r = await plain(at, { ...how, signal: undefined })
		if (value === 'a') await held
		later(() => settled++) // after the page
		return r
	}
	return true
})()`
}

// TestCompletion: the server is asked once for what is typed in one go, and an answer
// that comes late counts for nothing.
func TestCompletion(t *testing.T) {
	t.Parallel()
	b := inspectPage(t, fixture(t, "completes"))
	b.choose("greet")
	eval[bool](b, held(`q.method === 'completion/complete' ? q.params.argument.value : undefined`))
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
	shown("ab 1,ab 2")
	b.until(`settled === 2`)
	eval[bool](b, `(late(), true)`)
	b.until(`settled === 3`)
	if got := eval[string](b, `[...document.querySelectorAll('.completes [role=option]')].map(e => e.innerText).join()`); got != "ab 1,ab 2" {
		t.Errorf("a late answer counts: %s", got)
	}
	if got := eval[string](b, `document.querySelector('.ask input').value`); got != "ab" {
		t.Errorf("the field has %q", got)
	}
}
