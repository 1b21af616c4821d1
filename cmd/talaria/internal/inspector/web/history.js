// What outlives a restart, kept by the program: the calls, what was typed into forms,
// and which of them was open.
import { html, useState, useEffect } from './vendor.js'
import { get, post, server } from './api.js'
import { kindOf } from './lists.js'

// recall reads what was kept into drafts, where there is nothing newer.
export async function recall(drafts, newer, keyOf) {
  try {
    const kept = await get('/api/history')
    for (const d of kept.drafts) if (!newer(d.kind, d.tool) && !drafts.has(keyOf(d.kind, d.tool))) drafts.set(keyOf(d.kind, d.tool), { load: d.arguments })
    return kept
  } catch { return {} }
}

let timer = 0, waiting = null

// keep notes what is open and, a moment after the last change, what is typed there.
export function keep(kind, tool, args) {
  if (waiting && (waiting.kind !== kind || waiting.tool !== tool)) send()
  waiting = { kind, tool, arguments: args ?? waiting?.arguments ?? null, path: `/api/${server()}/history` }
  clearTimeout(timer)
  timer = setTimeout(send, args === undefined ? 0 : 300)
}

function send() {
  clearTimeout(timer)
  if (!waiting) return
  const { path, ...what } = waiting
  waiting = null
  post(path, what).catch(() => {}) // the page says so if the program has ended
}

addEventListener('pagehide', send)

const signs = { done: '✓', running: '…', cancelled: '–' }
const ago = at => { const d = new Date(at), s = d.toTimeString().slice(0, 5); return d.toDateString() === new Date().toDateString() ? s : d.toISOString().slice(5, 10) + ' ' + s }

// Recent are the last calls: each opens its form, filled in, with its result.
export function Recent({ calls, edit }) {
  const [most, setMost] = useState(12)
  if (!calls.length) return null
  return html`<section aria-label="Recent"><h2>Recent</h2><ul class="list">${calls.slice(0, most).map(c => html`<li key=${c.id}><button type="button" onClick=${() => edit(c, kindOf(c))}>
    <span class="one">${c.label}</span><span class="right dim num">${ago(c.at)} <span class=${'sign ' + c.state} title=${c.state}>${signs[c.state] ?? '✗'}</span></span></button></li>`)}
    ${calls.length > most && html`<li><button type="button" class="dim" onClick=${() => setMost(most + 50)}>${calls.length - most} more</button></li>`}</ul></section>`
}

// Diff shows what has changed since the call before.
export function Diff({ call }) {
  const [d, setD] = useState(null)
  useEffect(() => { get(`/api/calls/${call.id}/diff`).then(setD, e => setD({ error: e.message })) }, [call.id])
  if (!d) return null
  if (d.error) return html`<p class="bad">${d.error}</p>`
  const about = `compared with call ${d.before}` + (d.arguments ? ', which had other arguments' : '')
  if (!d.lines.length) return html`<p class="dim">The same result, ${about}.</p>`
  return html`<p class="dim">${about[0].toUpperCase() + about.slice(1)}</p><pre class="diff">${d.lines.map((l, i) => l[0] === '@' ? i > 0 && html`<span class="dim">⋯</span>`
    : l[0] === '+' ? html`<ins>${l}</ins>` : l[0] === '-' ? html`<del>${l}</del>` : html`<span>${l}</span>`)}</pre>`
}
