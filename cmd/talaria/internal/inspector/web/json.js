// JSON with colours, as lines, a table or a tree; and long texts, of which those lines are
// drawn that are in view.
import { html, useState, useLayoutEffect, useMemo, useRef } from './vendor.js'
import { Num, branch, indent, parse, seen, seenJSON, write } from './program.js'
import { Tree, usePages } from './pages.js'

const tokens = /("(?:[^"\\]+|\\.)*")(\s*:)?|-?\d[\d.eE+-]*|\b(?:true|false|null)\b/g

const widest = 4000 // characters of a line that has colours

// parts are those of a line, each with its class: a name, a text, a number, or a word.
function parts(line) {
  if (line.length > widest) return [['', line]]
  const all = []
  let from = 0
  for (const m of line.matchAll(tokens)) {
    if (m.index > from) all.push(['', line.slice(from, m.index)])
    all.push([m[1] ? (m[2] ? 'jk' : 'js') : /\d/.test(m[0]) ? 'jn' : 'jw', m[1] ?? m[0]], ['', m[2] ?? ''])
    from = m.index + m[0].length
  }
  return [...all, ['', line.slice(from)]].filter(([, text]) => text)
}

const paint = list => list.map(([name, text]) => name ? html`<span class=${name}>${text}</span>` : text)

// Code is JSON that is shown in lines; what is not JSON stays as it is.
export function Code({ text, label = 'JSON', as = indent }) {
  const lines = useMemo(() => seenJSON(as(text)), [text, as])
  return html`<${Long} text=${lines} label=${label} of=${parts} />`
}

export const asSent = text => text

const same = line => [['', line]]

// Long is a text of any length. A short one is drawn as it is.
export function Long({ text, label, of = same, name = '' }) {
  const lines = useMemo(() => text.split('\n'), [text])
  if (lines.length <= 300 && text.length <= 40e3) return html`<pre class=${name}>${of === same ? text : lines.map((l, i) => [i ? '\n' : '', paint(of(l))])}</pre>`
  return html`<${Rows} lines=${lines} of=${of} label=${label} />`
}

const high = 20 // pixels of a row

// cut is the part of a line that is one row.
function cut(list, from, to) {
  let at = 0
  return list.map(([name, text]) => {
    const start = at
    at += text.length
    return [name, text.slice(Math.max(0, from - start), Math.max(0, to - start))]
  }).filter(([, text]) => text)
}

// Rows scrolls through lines: rows of one height, into which long lines are broken.
function Rows({ lines, of, label }) {
  const box = useRef(null), probe = useRef(null)
  const [width, setWidth] = useState(0)
  const [top, setTop] = useState(0)
  useLayoutEffect(() => {
    const measure = () => setWidth(Math.max(20, Math.floor((box.current.clientWidth - 16) / (probe.current.offsetWidth / 100))))
    const seen = new ResizeObserver(measure)
    measure()
    seen.observe(box.current)
    return () => seen.disconnect()
  }, [])
  const rows = useMemo(() => { // the line of each row and where it begins
    const all = []
    if (width) lines.forEach((l, n) => { for (let at = 0; at === 0 || at < l.length; at += width) all.push(n, at) })
    return all
  }, [lines, width])
  const total = rows.length / 2, from = Math.max(0, Math.floor(top / high) - 30)
  const shown = []
  for (let i = from; i < Math.min(total, from + 110); i++) {
    const line = lines[rows[2 * i]], at = rows[2 * i + 1]
    shown.push(html`<div key=${i}>${line.length > widest ? line.slice(at, at + width) : paint(cut(of(line), at, at + width))}\n</div>`)
  }
  return html`<div class="lines mono" tabindex="0" role="region" aria-label=${label} ref=${box} onScroll=${e => setTop(e.currentTarget.scrollTop)}><span ref=${probe} class="probe" aria-hidden="true">${'0'.repeat(100)}</span>
    <div style=${{ height: total * high + 'px' }}><div style=${{ transform: `translateY(${from * high}px)` }}>${shown}</div></div></div>`
}

export const plain = v => typeof v === 'string' ? seen(v) : seenJSON(write(v))

export function rowsOf(v) {
  const isRows = x => Array.isArray(x) && x.length > 0 && x.every(r => r instanceof Map && r.size > 0)
  if (isRows(v)) return v
  if (v instanceof Map) for (const x of v.values()) if (isRows(x)) return x
  return null
}

export function Table({ rows, room = 700 }) {
  const [sort, setSort] = useState({ name: null, down: false })
  const names = useMemo(() => [...new Set(rows.slice(0, 1000).flatMap(r => [...r.keys()]))].slice(0, 30), [rows])
  const compare = (a, b) => {
    const x = a.get(sort.name), y = b.get(sort.name)
    const by = x instanceof Num && y instanceof Num ? Number(x.text) - Number(y.text) : plain(x ?? '').localeCompare(plain(y ?? ''))
    return sort.down ? -by : by
  }
  const all = useMemo(() => sort.name === null ? rows : [...rows].sort(compare), [rows, sort])
  const [list, pager] = usePages(all, Math.max(5, Math.floor(room / (names.length + 1))), 'rows')
  const numbers = new Set(names.filter(n => list.some(r => r.get(n) instanceof Num) && list.every(r => r.get(n) === undefined || r.get(n) === null || r.get(n) instanceof Num)))
  return html`${pager}<div class="wide"><table><thead><tr>${names.map(n => html`<th class=${numbers.has(n) ? 'right' : ''} aria-sort=${sort.name === n ? (sort.down ? 'descending' : 'ascending') : 'none'}><button class="quiet" onClick=${() => setSort({ name: n, down: sort.name === n && !sort.down })}>${seen(n)}${sort.name === n ? (sort.down ? ' ↓' : ' ↑') : ''}</button></th>`)}</tr></thead>
    <tbody>${list.map(r => html`<tr>${names.map(n => { const v = r.get(n); return html`<td class=${v instanceof Num ? 'num right' : ''}>${v === undefined ? '' : branch(v) ? plain(v).replace(/\n\s*/g, ' ') : plain(v)}</td>` })}</tr>`)}</tbody></table></div>`
}

const known = new Map() // texts that were read last, as several parts of the page ask for one

// jsonOf is the object or the array that a text is; undefined if it is none.
export function jsonOf(text) {
  if (!/^\s*[[{]/.test(text)) return
  if (!known.has(text)) {
    let v
    try { v = parse(text) } catch { }
    if (text.length < 1e4) return v
    if (known.size > 3) known.clear()
    known.set(text, v)
  }
  return known.get(text)
}

// Value is JSON of a text as a table or a tree.
export function Value({ text, room }) {
  const [value, rows] = useMemo(() => { const v = jsonOf(text); return [v, rowsOf(v)] }, [text])
  return rows ? html`<${Table} rows=${rows} room=${room} />` : html`<${Tree} value=${value} most=${Math.max(20, Math.floor(room / 7))} />`
}
