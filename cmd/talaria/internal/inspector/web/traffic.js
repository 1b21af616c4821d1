// What went over the wire: one row a request with its answer, and standard error and logs at
// their time.
import { html, useState, useEffect } from './vendor.js'
import { get } from './api.js'
import { indent } from './json.js'
import { took } from './result.js'
import { Exchange } from './exchange.js'

const chips = [['request', 'Requests'], ['notification,log,http', 'Notices'], ['stderr', 'stderr'], ['errors', 'Errors']]

const clock = at => { const d = new Date(at); return d.toTimeString().slice(0, 8) + '.' + String(d.getMilliseconds()).padStart(3, '0') }
const size = n => n < 1000 ? n + ' B' : n < 1e6 ? (n / 1000).toFixed(1) + ' kB' : (n / 1e6).toFixed(1) + ' MB'

// rowOf is the row that the address leads to, 0 for none.
export const rowOf = () => +new URLSearchParams(location.hash.slice(1)).get('row') || 0

export function Traffic({ state, open, toggle }) {
  const [kinds, setKinds] = useState('')
  const [text, setText] = useState('')
  const [page, setPage] = useState({ rows: [], kept: 0 })
  const [before, setBefore] = useState(() => rowOf() && rowOf() + 1)
  const [chosen, pick] = useState(rowOf)
  const setChosen = seq => { // the address leads to the row that is open
    pick(seq)
    const q = new URLSearchParams(location.hash.slice(1))
    if (seq) q.set('row', seq); else q.delete('row')
    history.replaceState(null, '', '#' + q)
  }
  useEffect(() => {
    const moved = () => { if (rowOf()) { pick(rowOf()); setBefore(rowOf() + 1) } }
    addEventListener('hashchange', moved)
    return () => removeEventListener('hashchange', moved)
  }, [])
  useEffect(() => {
    if (!open) return
    const stop = new AbortController()
    const timer = setTimeout(() => get(`/api/traffic?before=${before}&kinds=${kinds}&text=${encodeURIComponent(text)}`, stop.signal).then(setPage, () => {}), 50)
    return () => { clearTimeout(timer); stop.abort() }
  }, [open, kinds, text, before, before ? 0 : state.traffic, before ? 0 : state.calls[0]?.state])
  const errors = state.calls.filter(c => c.state === 'error' || c.state === 'failed').length
  const last = state.stderr?.at(-1)
  return html`<section class=${'traffic' + (open ? ' open' : '')} aria-label="Traffic">
    <div class="bar">${toggle && html`<button type="button" class="quiet" aria-expanded=${open} onClick=${toggle}>Traffic ${open ? '▾' : '▴'}</button>`}
      <span class="num dim">${!toggle ? '' : state.calls.length === 1 ? '1 call' : state.calls.length + ' calls'}${toggle ? ', ' : ''}${state.traffic} rows${errors ? `, ${errors} failed` : ''}</span>
      ${!open && last && html`<span class="one dim">stderr: ${last}</span>`}
      ${open && html`<span class="chips" role="group" aria-label="Kinds">${chips.map(([k, label]) => html`<button type="button" aria-pressed=${kinds === k} onClick=${() => { setKinds(kinds === k ? '' : k); setBefore(0) }}>${label}</button>`)}</span>
        <input type="search" placeholder="find in messages" aria-label="find in messages" value=${text} onInput=${e => { setText(e.currentTarget.value); setBefore(0) }} />
        ${before > 0 && html`<button type="button" class="quiet" onClick=${() => setBefore(0)}>newest</button>`}
        ${page.rows.length === 60 && html`<button type="button" class="quiet" onClick=${() => setBefore(page.rows.at(-1).seq)}>older</button>`}`}</div>
    ${open && html`<div class="split"><div class="rows" tabindex="0" role="region" aria-label="Messages">
      ${page.rows.length === 0 && html`<p class="dim empty">${toggle ? 'Nothing yet: call a tool, and its messages are here.' : 'Nothing was recorded that fits.'}</p>`}
      <table><tbody>${page.rows.map(r => html`<tr key=${r.seq} class=${r.status + ' ' + r.kind + (chosen === r.seq ? ' chosen' : '')}>
        <td class="num dim">${clock(r.at)}</td>
        <td>${r.kind === 'stderr' || r.kind === 'note' ? html`<span class="dim">${r.kind}</span> <span class="line">${r.name}</span>`
          : html`<button type="button" class="quiet" aria-pressed=${chosen === r.seq} onClick=${() => setChosen(chosen === r.seq ? 0 : r.seq)}><span aria-hidden="true">${r.from === 'client' ? '→' : '←'}</span> ${r.method || r.kind}</button> ${r.name}`}</td>
        <td class="num right">${r.kind === 'http' ? took(r.took) : r.kind === 'request' ? (r.status ? took(r.took ?? 0) : '…') : ''}</td>
        <td class="num right dim">${r.kind === 'stderr' || r.kind === 'http' ? '' : r.kind === 'request' ? `${size(r.out)} → ${r.in ? size(r.in) : '…'}` : size(r.out)}</td>
        <td>${r.status === 'ok' ? html`<span class="dim">ok</span>` : r.status ? html`<span class="bad">${r.status}</span>` : r.kind === 'broken' ? html`<span class="bad">broken</span>` : ''} ${r.http ? html`<span class=${'num ' + (r.http >= 400 ? 'bad' : 'dim')} title="status of HTTP">${r.http}</span>` : r.kind === 'http' ? html`<span class="bad">failed</span>` : ''}</td></tr>`)}</tbody></table></div>
      ${chosen > 0 && html`<${Message} seq=${chosen} close=${() => setChosen(0)} fresh=${(r => r && r.status + ' ' + r.http)(page.rows.find(r => r.seq === chosen))} />`}</div>`}
  </section>`
}

function Message({ seq, close, fresh }) {
  const [m, setM] = useState(null)
  const [raw, setRaw] = useState(false)
  const [secrets, setSecrets] = useState(false)
  useEffect(() => { get('/api/traffic/' + seq + (secrets ? '?secrets=shown' : '')).then(setM, e => setM({ error: e.message })) }, [seq, fresh, secrets])
  if (!m) return null
  return html`<div class="message" role="region" aria-label="Message" tabindex="0"><div class="bar"><strong>${m.row?.method || 'message'}</strong><span class="space"></span>
    <button type="button" class="quiet" aria-pressed=${raw} onClick=${() => setRaw(!raw)}>as sent</button><button type="button" class="quiet" onClick=${close}>close</button></div>
    ${m.error && html`<p class="bad">${m.error}</p>`}
    ${(m.texts ?? []).map((t, i) => t && html`<div class="dim">${i ? 'answer' : m.row.kind === 'request' ? 'request' : m.row.kind}</div><pre>${raw ? t : indent(t)}</pre>`)}
    ${(m.exchanges ?? []).map((x, i) => html`<${Exchange} key=${i} x=${x} open=${m.row.kind === 'http'} secrets=${secrets} toggle=${() => setSecrets(!secrets)} />`)}</div>`
}
