// The verdict on a server: what hosts do not accept, and what is broken.
import { html, useState, useEffect, useMemo, useRef, useLayoutEffect } from './vendor.js'
import { count, get } from './program.js'
import { usePages } from './pages.js'
import { Code, asSent } from './json.js'

// sum is how much the verdict has that is more than a note.
export const sum = c => c ? c.fails + c.broken + c.results : 0

const weight = n => n < 1000 ? count(n, 'token') : (n / 1000).toFixed(1) + 'k tokens'
const joined = words => words.filter(Boolean).join(', ')

// Check lists all of it. go opens a tool or the like, at a place of its definition.
export function Check({ state, go, close }) {
  const [v, setV] = useState(null)
  const [as, setAs] = useState('')
  const [error, setError] = useState('')
  useEffect(() => {
    const stop = new AbortController()
    const timer = setTimeout(() => get('/api/verdict?as=' + encodeURIComponent(as), stop.signal).then(v => { setV(v); setError('') }, e => e.name !== 'AbortError' && setError(e.message)), 100)
    return () => { clearTimeout(timer); stop.abort() }
  }, [as, state.tool, state.prompt, state.resource, state.template, state.check?.results])
  const rules = useMemo(() => {
    const of = new Map()
    for (const f of v?.findings ?? []) of.set(f.rule, [...of.get(f.rule) ?? [], f])
    return [...of.values()]
  }, [v])
  const fails = rules.filter(r => r[0].fails), notes = rules.filter(r => !r[0].fails)
  const total = list => list.reduce((n, r) => n + r.length, 0)
  const by = word => total(fails.filter(r => r[0].severity === word))
  return html`<main class="alone check" aria-labelledby="check"><div class="bar"><h2 id="check">Check</h2><span class="space"></span><button class="quiet" onClick=${close}>close</button></div>
    ${error && html`<p class="bad" role="alert">${error}</p>`}
    ${!v ? !error && html`<p class="dim" role="status">checking…</p>` : html`
    <p class="num" role="status">${joined([v.broken.length && count(v.broken.length, 'broken definition'), v.results.length && count(v.results.length, 'invalid result'), ...['refused', 'changed', 'costs'].map(w => by(w) && `${by(w)} ${w}`)])
      || (v.tools === 1 ? 'Every host accepts the tool.' : `Every host accepts the ${v.tools} tools.`)}
      <span class="dim"> ${joined([total(notes) && count(total(notes), 'note'), count(v.tools, 'tool'), 'about ' + weight(v.total)])}</span></p>
    ${v.more > 0 && html`<p class="dim">${v.more} more are not listed.</p>`}
    <label class="as">Name of the server in the host's configuration <input value=${as} placeholder="none" onInput=${e => setAs(e.currentTarget.value)} /></label>
    ${v.broken.length > 0 && html`<section class="rule"><h3><span class="badge bad">broken</span> Definitions</h3><p class="dim">Clients leave these out, or drop the whole list.</p>
      <${Members} what="definitions" list=${v.broken} row=${b => html`<button class="quiet" onClick=${() => go(b.kind, b.name)}>${b.label}</button> ${b.wrong}`} /></section>`}
    ${v.results.length > 0 && html`<section class="rule"><h3><span class="badge bad">invalid</span> Results</h3><p class="dim">The last result of a tool. Clients that check it show an error instead.</p>
      <${Members} what="results" list=${v.results} row=${r => html`<button class="quiet" onClick=${() => go('tool', r.name)}>${r.label}</button> ${r.issues?.[0] ? (r.issues[0].path ? r.issues[0].path + ': ' : '') + r.issues[0].message : ''} <span class="dim num">call ${r.call}</span>`} /></section>`}
    ${fails.map(r => html`<${Rule} key=${r[0].rule} list=${r} go=${go} />`)}
    ${notes.length > 0 && html`<details class="notes"><summary>${count(total(notes), 'note')} <span class="dim">cost tokens or confirmations, or concern few hosts</span></summary>${notes.map(r => html`<${Rule} key=${r[0].rule} list=${r} go=${go} />`)}</details>`}
    ${v.tokens.length > 0 && html`<details><summary>Tokens <span class="dim">of each tool: name, description and arguments</span></summary><${Weights} list=${v.tokens} total=${v.total} go=${go} /></details>`}`}</main>`
}

const Badge = ({ of }) => html`<span class=${'badge ' + (!of.fails ? 'dim' : of.severity === 'refused' ? 'bad' : 'warn')}>${of.severity}</span>`

// Words are a sentence of the table of rules, in which code is between backquotes.
const Words = ({ text }) => text.split('`').map((part, i) => i % 2 ? html`<code>${part}</code>` : part)

function Rule({ list, go }) {
  const [first] = list
  return html`<section class="rule"><h3><${Badge} of=${first} /> ${first.rule}</h3><p><${Words} text=${first.who} />. Fix: ${first.fix}.</p>
    <${Members} what="places" list=${list} row=${f => html`${f.name ? html`<button class="quiet" onClick=${() => go('tool', f.name, f)}>${f.tool}${f.path && html` <code>${f.path}</code>`}</button>` : html`<span>the list</span>`} ${f.text}`} />
    <p class="dim">Source: <${Words} text=${first.source} />, ${first.date}</p></section>`
}

function Members({ what, list, row }) {
  const [shown, pager] = usePages(list, 20, what)
  return html`${pager}<ul class="members">${shown.map(x => html`<li>${row(x)}</li>`)}</ul>`
}

function Weights({ list, total, go }) {
  const [shown, pager] = usePages(list, 50, 'tools')
  return html`${pager}<table><thead><tr><th>Tool</th><th class="right">Tokens</th><th class="right">Share</th></tr></thead><tbody>${shown.map(t => html`<tr><td><button class="quiet" onClick=${() => go('tool', t.name)}>${t.label}</button></td><td class="num right">${t.tokens}</td><td class="num right dim">${Math.round(100 * t.tokens / (total || 1))} %</td></tr>`)}</tbody></table>`
}

const around = 140 // lines that are shown before and behind a place

const sameFinding = (a, b) => a && b && a.rule === b.rule && a.path === b.path && a.text === b.text

// Definition is what was sent of a tool or the like, with what hosts do not accept of it;
// at is the finding whose place is shown.
export function Definition({ form, at }) {
  const list = form.findings ?? []
  const [on, setOn] = useState(list.find(f => sameFinding(f, at)) ?? null)
  const [shown, pager] = usePages(list, 20, 'findings')
  const mark = useRef(null)
  useLayoutEffect(() => mark.current?.scrollIntoView({ block: 'center' }), [on])
  const parts = useMemo(() => {
    if (!on?.line) return [form.sent]
    const lines = form.sent.split('\n'), n = on.line - 1
    return [lines.slice(Math.max(0, n - around), n), lines.slice(n, n + 1), lines.slice(n + 1, n + around)].map(part => part.join('\n'))
  }, [form.sent, on])
  return html`<section class="result" aria-label="Definition"><p class="dim num">about ${weight(form.tokens)}</p>
    ${pager}${list.length > 0 && html`<ul class="members">${shown.map(f => html`<li><${Badge} of=${f} /> <button class="quiet" aria-pressed=${f === on} onClick=${() => setOn(f === on ? null : f)}>${f.rule}${f.path && html` <code>${f.path}</code>`}</button> ${f.text}. Fix: ${f.fix}.</li>`)}</ul>`}
    <div class="view" tabindex="0" role="region" aria-label="Definition as JSON">${parts.map((part, i) => part && html`<div class=${i === 1 ? 'place' : ''} ref=${i === 1 ? mark : null}><${Code} text=${part} as=${asSent} /></div>`)}</div></section>`
}
