// What a call has come to: as a table, a tree, text, pictures, or as it came.
import { html, useState, useEffect, useMemo } from './vendor.js'
import { parse, write, indent, Num } from './json.js'
import { Diff } from './history.js'
import { Copy } from './export.js'

const plain = v => typeof v === 'string' ? v : write(v)
const get = (v, name) => v instanceof Map ? v.get(name) : undefined

export function took(ms) {
  if (ms === undefined) return ''
  return ms < 10 ? ms.toFixed(1) + ' ms' : ms < 1000 ? Math.round(ms) + ' ms' : (ms / 1000).toFixed(1) + ' s'
}

const words = { running: 'running', done: 'done', failed: 'the tool failed', error: 'error', cancelled: 'cancelled' }
const signs = { running: '…', done: '✓', failed: '✗', error: '✗', cancelled: '–' }

export function Result({ call, cancel, repeat, edit }) {
  const [view, setView] = useState('')
  const [now, setNow] = useState(Date.now())
  useEffect(() => {
    if (call.state !== 'running') return
    const timer = setInterval(() => setNow(Date.now()), 200)
    return () => clearInterval(timer)
  }, [call.state])
  const read = useMemo(() => { try { return call.result ? parse(call.result) : null } catch { return null } }, [call.id, call.result])
  const content = contentOf(read), structured = get(read, 'structuredContent') ?? jsonOf(content)
  const rows = structured === undefined ? null : rowsOf(structured)
  const views = call.result ? [rows && 'Table', structured !== undefined && 'Tree', Array.isArray(content) && content.length > 0 && 'Content', 'Raw', call.before && 'Diff'].filter(Boolean) : []
  const chosen = views.includes(view) ? view : views[0]
  const p = call.progress
  return html`<section class="result" aria-label=${'Call ' + call.id} data-state=${call.state}>
    <div class="bar"><span class=${'sign ' + call.state} aria-hidden="true">${signs[call.state]}</span>
      <strong role="status">${words[call.state]}</strong>
      <span class="num">${call.state === 'running' ? took(Math.max(0, now - Date.parse(call.at))) : took(call.took)}</span>
      ${call.checked && (call.issues?.length ? html`<span class="bad">breaks its output schema</span>` : html`<span class="dim">matches its schema</span>`)}
      <span class="space"></span><span class="dim num">call ${call.id}</span>
      ${call.state === 'running' && html`<button type="button" onClick=${cancel}>Cancel</button>`}</div>
    ${call.earlier && (call.partial || call.cut) && html`<p class="dim">Of this call not all was kept: secrets never are, nor what is too long.</p>`}
    ${call.state === 'running' && p && html`<div class="progress"><progress max=${p.Total || undefined} value=${p.Total ? p.Progress : undefined} aria-label="progress"></progress> <span class="num">${p.Progress}${p.Total ? ' of ' + p.Total : ''}</span> ${p.Message}</div>`}
    ${call.error && html`<div class="failure"><p>${call.error.message}</p>${call.error.code ? html`<p class="dim num">code ${call.error.code}</p>` : null}${call.error.data && html`<pre tabindex="0">${indent(call.error.data)}</pre>`}</div>`}
    ${call.issues?.length > 0 && html`<ul class="bad">${call.issues.map(i => html`<li>${i.path || 'the result'}: ${i.message}</li>`)}</ul>`}
    ${call.state !== 'running' && html`<div class="tabs acts"><span class="tabs" role="group" aria-label="How the result is shown">${views.length > 1 && views.map(v => html`<button type="button" aria-pressed=${v === chosen} onClick=${() => setView(v)}>${v}</button>`)}</span>
      <span class="space"></span>${!call.partial && html`<button type="button" class="quiet" onClick=${repeat}>Run again</button>`}${edit && html`<button type="button" class="quiet" onClick=${edit}>Edit</button>`}<${Copy} key=${call.id} call=${call} /></div>`}
    <div class="view" tabindex="0" role="region" aria-label=${chosen ?? 'Result'}>
      ${chosen === 'Table' && html`<${Table} rows=${rows} />`}
      ${chosen === 'Tree' && html`<${Tree} value=${structured} open />`}
      ${chosen === 'Content' && content.map((x, i) => html`<${Content} key=${i} item=${x} />`)}
      ${chosen === 'Diff' && html`<${Diff} call=${call} />`}
      ${chosen === 'Raw' && html`<pre>${clip(call.result)}</pre>`}
    </div></section>`
}

// contentOf finds what there is to show: of a tool's result, of the messages of a
// prompt, with who says them, or of a resource.
export function contentOf(read) {
  const messages = get(read, 'messages'), contents = get(read, 'contents')
  if (Array.isArray(messages)) return messages.flatMap(m => [m, get(m, 'content')].flat().filter(x => x instanceof Map))
  if (Array.isArray(contents)) return contents.map(x => new Map([['type', 'resource'], ['resource', x]]))
  return get(read, 'content')
}

// jsonOf is what a resource says as JSON, undefined if it does not.
function jsonOf(content) {
  const r = Array.isArray(content) && content.length === 1 && get(content[0], 'resource'), text = get(r, 'text')
  if (typeof text !== 'string' || !/^\s*[[{]/.test(text)) return undefined
  try { return parse(text) } catch { return undefined }
}

const clip = text => text.length > 500000 ? text.slice(0, 500000) + '\n… ' + (text.length - 500000) + ' more characters' : text

// rowsOf finds the list of objects in a result, null if there is none.
function rowsOf(v) {
  const isRows = x => Array.isArray(x) && x.length > 0 && x.every(r => r instanceof Map && r.size > 0)
  if (isRows(v)) return v
  if (v instanceof Map) for (const x of v.values()) if (isRows(x)) return x
  return null
}

function Table({ rows }) {
  const [sort, setSort] = useState({ name: null, down: false })
  const names = [...new Set(rows.slice(0, 1000).flatMap(r => [...r.keys()]))].slice(0, 30)
  const compare = (a, b) => {
    const x = a.get(sort.name), y = b.get(sort.name)
    const by = x instanceof Num && y instanceof Num ? Number(x.text) - Number(y.text) : plain(x ?? '').localeCompare(plain(y ?? ''))
    return sort.down ? -by : by
  }
  const list = (sort.name === null ? rows : [...rows].sort(compare)).slice(0, 500)
  return html`<table><thead><tr>${names.map(n => html`<th aria-sort=${sort.name === n ? (sort.down ? 'descending' : 'ascending') : 'none'}><button type="button" class="quiet" onClick=${() => setSort({ name: n, down: sort.name === n && !sort.down })}>${n}</button></th>`)}</tr></thead>
    <tbody>${list.map(r => html`<tr>${names.map(n => { const v = r.get(n); return html`<td class=${v instanceof Num ? 'num right' : ''}>${v === undefined ? '' : plain(v)}</td>` })}</tr>`)}</tbody></table>
    ${rows.length > list.length && html`<p class="dim">${rows.length - list.length} more rows are in the tree</p>`}`
}

export function Tree({ value, name, open }) {
  const [more, setMore] = useState(100)
  const isMap = value instanceof Map
  if (!isMap && !Array.isArray(value)) return html`<div class="leaf">${name !== undefined && html`<span class="name">${name}: </span>`}<code>${clip(write(value))}</code></div>`
  const all = isMap ? [...value] : value.map((x, i) => [i, x])
  return html`<details open=${open}><summary>${name !== undefined && html`<span class="name">${name} </span>`}<span class="dim">${isMap ? `{${all.length}}` : `[${all.length}]`}</span></summary>
    <div class="branch">${all.slice(0, more).map(([n, x]) => html`<${Tree} key=${n} name=${n} value=${x} open=${all.length <= 20} />`)}
    ${all.length > more && html`<button type="button" class="quiet" onClick=${() => setMore(more + 500)}>${all.length - more} more</button>`}</div></details>`
}

// Content is one item. Pictures and sounds are shown as such and never as a
// document; all else can be saved.
export function Content({ item }) {
  const kind = get(item, 'type')
  if (item instanceof Map && item.has('role')) return html`<h3 class="role">${plain(item.get('role'))}</h3>`
  if (kind === 'text') return html`<pre class="text">${clip(plain(get(item, 'text') ?? ''))}</pre>`
  if (kind === 'image' || kind === 'audio') return html`<${Media} kind=${kind} type=${plain(get(item, 'mimeType') ?? '')} data=${get(item, 'data')} />`
  if (kind === 'resource') {
    const r = get(item, 'resource')
    if (typeof get(r, 'text') === 'string') return html`<div><div class="dim">${plain(get(r, 'uri') ?? '')}</div><pre class="text">${clip(get(r, 'text'))}</pre></div>`
    const type = plain(get(r, 'mimeType') ?? '')
    return html`<${Media} kind=${/^(image|audio)\//.exec(type)?.[1] ?? 'file'} type=${type} data=${get(r, 'blob')} name=${plain(get(r, 'uri') ?? '')} />`
  }
  return html`<pre>${clip(indent(write(item)))}</pre>`
}

function Media({ kind, type, data, name }) {
  const [url, setURL] = useState('')
  useEffect(() => {
    if (typeof data !== 'string') return
    let made = ''
    try {
      const safe = kind === 'image' ? /^image\/(png|jpeg|gif|webp|avif|svg\+xml)$/ : kind === 'audio' ? /^audio\/[\w.+-]+$/ : /^$/
      const bytes = Uint8Array.from(atob(data), c => c.charCodeAt(0))
      made = URL.createObjectURL(new Blob([bytes], { type: safe.test(type) ? type : 'application/octet-stream' }))
      setURL(made)
    } catch { setURL('') }
    return () => made && URL.revokeObjectURL(made)
  }, [data])
  if (!url) return html`<p class="bad">this ${kind} is no base64</p>`
  return html`<figure>${kind === 'image' ? html`<img src=${url} alt=${'image, ' + type} />` : kind === 'audio' ? html`<audio controls src=${url}></audio>` : null}
    <figcaption class="dim">${name || type} <a href=${url} download="content.bin">save</a></figcaption></figure>`
}
