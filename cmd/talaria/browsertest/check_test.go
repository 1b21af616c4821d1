package browsertest

import "testing"

// TestLateCheck: what is wrong with the arguments is what the newest check says, also
// where the answer of an older one comes later.
func TestLateCheck(t *testing.T) {
	t.Parallel()
	b := inspectPage(t, fixture(t, "raw", `{"name":"good","inputSchema":{"type":"object","required":["note"],"properties":{"note":{"type":"string","minLength":3}}}}`))
	b.choose("good")
	b.ctrl(enter) // after which all that is wrong is shown
	b.reads("1 problem")
	eval[bool](b, held(`at.endsWith('/check') ? JSON.parse(q.value).note : undefined`))
	asked := func(want string) {
		t.Helper()
		b.until(`asked.join() === ` + quote(want))
	}
	b.write("a")
	eval[bool](b, `(elapse(), true)`)
	asked("a")
	b.press("bcd")
	eval[bool](b, `(elapse(), true)`)
	asked("a,abcd")
	b.until(`settled === 1 && !document.querySelector('.ask .bad')`)
	eval[bool](b, `(late(), true)`)
	b.until(`settled === 2`)
	if text := eval[string](b, `document.querySelector('.ask').innerText`); !eval[bool](b, `!document.querySelector('.ask .bad') && document.querySelector('.ask input').value === 'abcd'`) {
		t.Errorf("a late answer counts: %s", text)
	}
}
