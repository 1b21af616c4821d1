// The form of a tool or a question: a tree of nodes beside the tree of controls
// that the program has made of the schema. Leaves keep what was typed, as text.
import { html, useState, useEffect, useRef } from './vendor.js'
import { count, get, post, parse, seen, seenJSON, write, Num } from './program.js'
import { Pager, ctrl } from './pages.js'

// anyKinds are those of a value of which the schema says little: JSON, or with controls.
const anyKinds = [{ kind: 'raw', label: 'JSON' }, { kind: 'text', label: 'string' }, { kind: 'number', label: 'number' }, { kind: 'bool', label: 'boolean' }, { kind: 'null', label: 'null' },
  { kind: 'object', label: 'object', free: true }, { kind: 'list', label: 'array', item: { kind: 'json', required: true } }].map(c => ({ ...c, required: true }))
const loose = ({ types = [] }) => anyKinds.filter(({ label }) => !types.length || types.includes(label) || label === 'number' && types.includes('integer') || label === 'JSON' && /object|array/.test(types)).sort((a, b) => rank(types, a) - rank(types, b))
const rank = (types, { label }) => types.findIndex(t => t === label || t === 'integer' && label === 'number') // the first is chosen at first

// make returns the node of a control. Optional ones are not set, whatever their
// default is: the server has it, too.
export function make(c) {
  if (c.kind === 'json') c = { ...c, kind: 'union', variants: loose(c) }
  else if (c.kind === 'union') c = { ...c, variants: c.variants.flatMap((v, at) => v.kind === 'json' ? loose(v).map(k => ({ ...k, at, label: v.types?.length === 1 && k.kind !== 'raw' ? v.label : k.label })) : [{ ...v, at }]) }
  const n = { c, set: !!c.required, isNull: false, text: '', nodes: new Map(), items: [], more: [], variant: 0, kinds: [], touched: false }
  if (n.set) fill(n)
  return n
}

// simple tells whether a field is drawn though it is not set: it is when something is entered.
const simple = c => /^(text|long|number|bool|date|time|datetime)$/.test(c.kind) || c.kind === 'choice' && !c.count && c.options.length <= 50

// put takes what was entered. An optional field that is empty is not set.
function put(n, text) {
  n.text = text
  if (!n.c.required && simple(n.c)) n.set = text !== ''
}

// preset is the default of a control as a person reads it, '' if there is none.
const preset = c => { const v = c.preset === undefined ? '' : parse(c.preset); return typeof v === 'string' ? seen(v) : seenJSON(c.preset) }

function fill(n) {
  const c = n.c
  if (c.preset !== undefined) { load(n, parse(c.preset)); return }
  if (c.kind === 'object') for (const f of c.fields ?? []) n.nodes.set(f.key, make(f))
  if (c.kind === 'list' && c.first) n.items = c.first.map(make)
  if (c.kind === 'union') n.kinds = c.variants.map(make)
  if (c.kind === 'choice' && !c.count && c.options.length === 1) n.text = c.options[0].value
  if (c.kind === 'bool') n.text = c.required ? 'false' : 'true'
}

// further is the control of a member that the schema has no name for.
const further = c => ({ ...(c.rest ?? { kind: 'json', key: '', label: '' }), required: true })

const typed = (c, v) => c.kind === 'raw' || c.kind === 'choice' || (anyKinds.some(k => k.kind === c.kind) ? c.kind : 'text')
  === (v === null ? 'null' : v instanceof Map ? 'object' : v instanceof Num ? 'number' : { string: 'text', boolean: 'bool' }[typeof v] ?? 'list')

// fits tells whether a value is one of a variant, or may become one.
const fits = (c, v, all) => v === null && c.null || c.variants?.some(x => fits(x, v, all)) || typed(c, v)
  && (c.kind !== 'choice' || c.count || c.options.some(o => o.value === write(v)))
  && (c.kind !== 'object' || (c.fields ?? []).every(f => v.has(f.key) ? f.kind !== 'choice' || fits(f, v.get(f.key)) : !f.required || !all && !value(make(f)))
    && (!all || c.free || c.rest || [...v.keys()].every(k => c.fields?.some(f => f.key === k))))

const made = (c, v) => { const n = make(c); load(n, v); return n }

// load puts a value into a node. What does not fit is JSON, and stays as it is.
export function load(n, v) {
  let c = n.c
  n.set = true
  n.isNull = v === null && c.null && c.variants?.[0].kind !== 'raw'
  if (n.isNull) return
  if (c.kind !== 'union' && !typed(c, v) && (c.kind !== 'number' || typeof v !== 'string')) c = { ...c, kind: 'union', variants: [{ ...c, label: c.kind, required: true, preset: undefined }] }
  switch (c.kind) {
    case 'object':
      n.nodes = new Map((c.fields ?? []).map(f => [f.key, make(f)]))
      n.more = []
      for (const [name, x] of v) {
        if (n.nodes.has(name)) load(n.nodes.get(name), x)
        else n.more.push({ name, node: made(further(c), x) })
      }
      return
    case 'list':
      n.items = v.map((x, i) => made(c.first?.[i] ?? c.item ?? further(c), x))
      return
    case 'union': {
      const find = all => c.variants.findIndex(x => fits(x, v, all))
      const at = [find(true), find(), c.variants.length].find(i => i >= 0)
      n.c = c.variants[at] ? c : { ...c, variants: [...c.variants, anyKinds[0]] }
      n.kinds = n.c.variants.map(make)
      load(n.kinds[n.variant = at], v)
      return
    }
  }
  n.text = typeof v === 'string' && !['number', 'choice', 'raw'].includes(c.kind) ? v : write(v)
}

// value is the JSON text of a node, undefined if it is not set.
export function value(n) {
  if (!n.set) return undefined
  if (n.isNull) return 'null'
  switch (n.c.kind) {
    case 'object': return '{' + [...n.nodes, ...n.more.map(m => [m.name, m.node])].flatMap(([name, x]) => (x = value(x)) ? JSON.stringify(name) + ':' + x : []).join() + '}'
    case 'list': return '[' + n.items.map(x => value(x) ?? 'null').join() + ']'
    case 'union': return value(n.kinds[n.variant])
    case 'number': case 'raw':
      try {
        const t = n.text.trim()
        JSON.parse(t)
        if (n.c.kind === 'raw' || /^[-"\d]/.test(t)) return t
      } catch { }
      return n.text ? JSON.stringify(n.text) : undefined
    case 'bool': case 'choice': return n.text || undefined
    case 'null': return 'null'
  }
  return JSON.stringify(n.text)
}

// chosen are the variants that are chosen in unions, by their places.
export function chosen(n, path = '', all = {}) {
  if (!n?.set || n.isNull) return all
  if (n.c.kind === 'union') {
    const { at } = n.c.variants[n.variant]
    if (at !== undefined) all[path] = at
    return chosen(n.kinds[n.variant], path, all)
  }
  const inner = n.c.kind === 'object' ? [...n.nodes, ...n.more.map(m => [m.name, m.node])] : n.c.kind === 'list' ? n.items.map((x, i) => [String(i), x]) : []
  for (const [name, x] of inner) chosen(x, path + escape(name), all)
  return all
}

const escape = name => '/' + name.replaceAll('~', '~0').replaceAll('/', '~1')

// encode makes an id of any text, without ':'.
const encode = text => text.replace(/[^a-zA-Z0-9]/gu, c => `-${c.codePointAt()}-`)

// below are the nodes that are drawn within one.
function below(n) {
  if (!n.set || n.isNull) return []
  return n.c.kind === 'object' ? [...n.nodes.values(), ...n.more.map(m => m.node)] : n.c.kind === 'list' ? n.items : n.c.kind === 'union' ? [n.kinds[n.variant]] : []
}

const mostDrawn = 900 // elements of a form that are drawn at a time

// elements is about how many a node takes, without those below it.
const elements = ({ c, set }) => !set && !simple(c) ? 4 : 12 + (c.kind === 'choice' ? (c.count ? 50 : c.options.length) : c.kind === 'union' ? c.variants.length : 0)

// placing is which nodes are drawn, of how many parts one; has tells whether a place of
// the value is among them.
export function placing(root) {
  const drawn = new Set()
  let last = 0, used = 0
  const place = (n, above) => { // within what is drawn with it
    const size = elements(n)
    if (used && used + size > mostDrawn) { last++; used = above }
    used += size
    n.at = last
    let here = (root.part ?? 0) === last
    for (const inner of below(n)) here = place(inner, above + size) || here
    if (here) drawn.add(n)
    return here
  }
  place(root, 0)
  if (root.part > last) { root.part = last; return placing(root) } // there is less of it now
  const has = path => {
    let n = root
    for (const name of path.split('/').slice(1)) {
      if (n.c.kind === 'union') n = n.kinds[n.variant]
      n = n.nodes.get(name.replaceAll('~1', '/').replaceAll('~0', '~')) ?? n.items[name]
      if (!n || !n.set && !simple(n.c) || !drawn.has(n)) return false
    }
    return n !== root
  }
  return { drawn, has, parts: last + 1 }
}

// Form draws a tree. issues are those of the program, by place; all shows them at
// fields that nobody has touched, too.
export function Form({ node, of, complete, issues, all, change }) {
  const { drawn, parts } = placing(node)
  // show goes to the part of a node, and to the first of these.
  const show = (n, ...ids) => { placing(node); node.part = n.at; change(); setTimeout(() => ids.map(id => document.getElementById(id)).find(e => e)?.focus()) }
  const ctx = { of, complete, issues, all, change, drawn, show }, id = encode(of)
  return html`<div class="form"><${Pager} from=${node.part ?? 0} size=${1} total=${parts} what="parts of the form" go=${n => { node.part = n; change() }} />
    <${node.c.kind === 'union' ? Control : Fields} n=${node} path="" id=${id} ctx=${ctx} /></div>`
}

const Fields = ({ n, path, id, ctx }) => html`${[...n.nodes.values()].map(f => html`<${Field} key=${f.c.key} n=${f} path=${path + escape(f.c.key)} id=${id + encode(escape(f.c.key))} ctx=${ctx} />`)}<${Further} n=${n} path=${path} id=${id} ctx=${ctx} />`

const faults = (list, id) => html`<div class="bad" id=${id + ':e'}>${list.map(i => html`<div>${i.message}${i.hint && '; ' + i.hint}</div>`)}</div>`

function Field({ n, path, id, ctx }) {
  if (!ctx.drawn.has(n)) return null
  const c = n.c
  const mine = ctx.issues.filter(i => i.path === path || i.path === '' && i.rule === 'required' && i.message.includes(`"${c.key}"`))
  const shown = mine.length && (ctx.all || n.touched)
  const touch = () => { n.touched = true; ctx.change() }
  // The button that was pressed is gone then.
  const toggle = set => { n.set = set; if (!set && simple(c)) { n.text = ''; n.isNull = false } ctx.show(n, id, id + ':g', id + ':z', id + ':s') }
  if (!n.set && !simple(c)) return html`<div class="field unset">
    <span class="label">${c.label}</span>${c.help && html`<span class="dim one">${c.help}</span>`}
    <button class="quiet" id=${id + ':s'} aria-label=${c.label + ': + set'} onClick=${() => { fill(n); if (c.preset === undefined) n.touched = false; toggle(true) }}>+ set</button></div>`
  const group = ['object', 'list', 'union'].includes(c.kind)
  const head = html`<span class="label" id=${id + ':n'}>${c.label}${c.required && html`<span class="req" title="required" aria-hidden="true"> *</span>`}</span>
    ${c.hint && html`<span class="dim">${c.hint}</span>`}${c.preset !== undefined && /^(date|time)$/.test(c.kind) && html`<span class="dim">default ${preset(c)}</span>`}
    ${!n.set && /^(text|long)$/.test(c.kind) && (c.preset !== undefined ? html`<button class="quiet" aria-label=${c.label + ': use default'} onClick=${() => { fill(n); toggle(true) }}>use default</button>`
      : html`<button class="quiet" aria-label=${c.label + ': empty text'} title="send an empty text" onClick=${() => toggle(true)}>""</button>`)}
    ${c.null && html`<button class="quiet" id=${id + ':z'} aria-label=${c.label + ': null'} aria-pressed=${n.isNull} onClick=${() => { n.isNull = !n.isNull; n.set = c.required || n.isNull || !simple(c) || n.text !== ''; touch() }}>null</button>`}
    ${!c.required && n.set && html`<button class="quiet" aria-label=${c.label + ': not set'} onClick=${() => toggle(false)}>not set</button>`}`
  const under = html`${shown ? faults(mine, id) : ''}
    ${c.wrong && html`<div class="warn">${c.wrong}</div>`}
    ${c.help && html`<div class="help" id=${id + ':h'}>${c.help}</div>`}`
  const inner = n.isNull ? html`<code class="dim">null</code>` : html`<${Control} n=${n} path=${path} id=${id} ctx=${ctx} bad=${shown} touch=${touch} />`
  if (group) return html`<fieldset class="field group" id=${id + ':g'} aria-labelledby=${id + ':n'} tabindex="-1"><legend>${head}</legend>${under}${inner}</fieldset>`
  return html`<div class="field"><label class="head" for=${id}>${head}</label>${inner}${under}</div>`
}

function Control({ n, path, id, ctx, bad, touch, label }) { // label where no element is it
  if (!ctx.drawn.has(n)) return null
  const c = n.c
  touch ??= () => { n.touched = true; ctx.change() }
  const set = e => { put(n, e.currentTarget.value); ctx.change() }
  const aria = { id, 'aria-label': label, 'aria-labelledby': label === undefined ? id + ':n' : undefined, 'aria-invalid': bad ? 'true' : undefined, 'aria-required': c.required ? 'true' : undefined, 'aria-describedby': [bad && id + ':e', c.help && id + ':h'].filter(Boolean).join(' ') || undefined }
  const own = { ...aria, value: n.text, onInput: set, onBlur: touch, placeholder: n.set ? undefined : preset(c) || undefined }
  const unset = c.preset === undefined ? 'not set' : 'default: ' + preset(c)
  switch (c.kind) {
    case 'object': return html`<div class="inner"><${Fields} n=${n} path=${path} id=${id} ctx=${ctx} /></div>`
    case 'list': return several(n, ctx) ? html`<${Several} n=${n} id=${id} path=${path} ctx=${ctx} />` : html`<${Items} n=${n} path=${path} id=${id} ctx=${ctx} label=${label || c.label || 'list'} />`
    case 'union': return html`<div class="inner"><select ...${aria} aria-labelledby=${undefined} aria-label=${'kind of ' + (label || c.label || 'value')} value=${n.variant} onChange=${e => { pick(n, +e.currentTarget.value); touch() }}>
      ${c.variants.map((v, i) => html`<option value=${i}>${v.label}</option>`)}</select>
      <${Control} key=${n.variant} n=${n.kinds[n.variant]} path=${path} id=${id + ':v'} ctx=${ctx} label=${label || c.label || 'value'} /></div>`
    case 'bool': return html`<select ...${own}>${!c.required && html`<option value="">${unset}</option>`}<option value="false">false</option><option value="true">true</option></select>`
    case 'choice': return c.count ? html`<${Combo} n=${n} aria=${aria} ctx=${ctx} touch=${touch} />`
      : html`<select ...${own}><option value="" disabled=${c.required}>${c.required ? '' : unset}</option>${c.options.map(o => html`<option value=${o.value}>${o.label}</option>`)}
        ${n.text && !c.options.some(o => o.value === n.text) && html`<option value=${n.text}>${seenJSON(n.text)}</option>`}</select>`
    case 'number': return html`<input ...${own} inputmode="decimal" autocomplete="off" />`
    case 'null': return html`<code class="dim">null</code>`
    case 'raw': return html`<textarea ...${own} class="mono" rows="3" spellcheck="false" placeholder="JSON"></textarea>`
    case 'file': return html`<${File} n=${n} aria=${aria} touch=${touch} set=${set} />`
    case 'date': case 'time': return html`<${Moment} n=${n} own=${own} />`
  }
  n.lines ||= c.kind === 'long' || n.text.includes('\n') // and keeps its box when the second one is deleted
  if (n.lines) return html`<textarea ...${own} rows="4"></textarea>`
  const insert = (e, text) => { const i = e.currentTarget; e.preventDefault(); put(n, i.value.slice(0, i.selectionStart) + text + i.value.slice(i.selectionEnd)); ctx.show(n, id) }
  aria.onPaste = e => { const text = e.clipboardData.getData('text').replace(/\r\n?/g, '\n'); if (text.trimEnd().includes('\n')) insert(e, text) } // a box of one line leaves the breaks out
  if (c.complete) return html`<${Complete} n=${n} aria=${aria} ctx=${ctx} touch=${touch} />`
  return html`<input ...${own} onPaste=${aria.onPaste} onKeyDown=${e => e.key === 'Enter' && e.shiftKey && !ctrl(e) && insert(e, '\n')} autocomplete="off" placeholder=${own.placeholder ?? (c.kind === 'datetime' ? '2026-07-28T12:00:00Z' : undefined)} />`
}

function pick(n, i) {
  const before = n.kinds[n.variant], after = n.kinds[i]
  n.variant = i
  for (const [name, node] of after.nodes ?? []) {
    const old = before.nodes?.get(name)
    if (old?.set && old.text && old.c.kind === node.c.kind && node.c.kind !== 'choice') Object.assign(node, { set: true, text: old.text })
  }
}

// several reports whether a list is values of a choice, each at most once: the one kind of list that a question has.
const several = ({ c, items }, { of }) => of.startsWith('question') && c.item?.kind === 'choice' && !c.item.count && !c.first?.length
  && items.every((x, i) => items.findIndex(y => y.text === x.text) === i && c.item.options.some(o => o.value === x.text))

function Several({ n, id, path, ctx }) {
  const mine = ctx.issues.filter(i => i.path.startsWith(path + '/')), at = o => n.items.findIndex(x => x.text === o.value)
  const toggle = o => { if (at(o) >= 0) n.items.splice(at(o), 1); else n.items.push(made(n.c.item, parse(o.value))); n.touched = true; ctx.change() }
  return html`<div class="several">${n.c.item.options.map(o => html`<label><input type="checkbox" checked=${at(o) >= 0} onChange=${() => toggle(o)} /> ${o.label}</label>`)}</div>${mine.length > 0 && faults(mine, id)}`
}

function Items({ n, path, id, ctx, label }) {
  const c = n.c, fixed = (c.first ?? []).length
  const put = (...what) => { const [x] = n.items.splice(...what); ctx.change(); return x }
  const move = (i, by) => put(i + by, 0, put(i, 1))
  const copy = (x, i) => put(i + 1, 0, made(x.c, parse(value(x) ?? 'null')))
  return html`<div class="inner">${n.items.map((x, i) => ctx.drawn.has(x) && html`<div class="item" key=${i}>
    <div class="itemhead"><span class="dim">${i < fixed ? x.c.label : i}</span>
      ${i >= fixed && [['move up', '↑', i > fixed, () => move(i, -1)], ['move down', '↓', i < n.items.length - 1, () => move(i, 1)], ['copy', 'copy', true, () => copy(x, i)], ['remove', 'remove', true, () => put(i, 1)]]
        .map(([name, sign, can, act]) => html`<button class="quiet" aria-label=${name + ' ' + i} disabled=${!can} onClick=${act}>${sign}</button>`)}</div>
    <${Item} n=${x} path=${path + '/' + i} id=${id + '-47-' + i} ctx=${ctx} label=${label + ' ' + i} /></div>`)}
    ${c.item && html`<button class="quiet" onClick=${() => { const x = make(c.item); n.touched = true; ctx.show(x, id + '-47-' + (n.items.push(x) - 1)) }}>+ add to ${label}</button>`}</div>`
}

function Item({ n, path, id, ctx, label }) {
  const mine = ctx.issues.filter(i => i.path === path)
  return html`<div aria-label=${label} role="group"><${Control} n=${n} path=${path} id=${id} ctx=${ctx} bad=${mine.length > 0} label=${label} />
    ${mine.length > 0 && faults(mine, id)}</div>`
}

function Further({ n, path, id, ctx }) {
  const c = n.c
  if (!c.free && !c.rest && !n.more.length) return null
  return html`<div class="further">${n.more.map((m, i) => ctx.drawn.has(m.node) && html`<div class="item" key=${i} role="group" aria-label=${m.name || 'further member'}>
    <input id=${id + ':k' + i} aria-label="name of a further member" value=${m.name} onInput=${e => { m.name = e.currentTarget.value; ctx.change() }} />
    <${Control} n=${m.node} path=${path + escape(m.name)} id=${id + ':m' + i} ctx=${ctx} label=${m.name || 'further member'} />
    <button class="quiet" onClick=${() => { n.more.splice(i, 1); ctx.change() }}>remove</button></div>`)}
    ${(c.rest || n.more.length > 0 || !(c.fields ?? []).length) && html`<button class="quiet" onClick=${() => { const node = make(further(c)); ctx.show(node, id + ':k' + (n.more.push({ name: '', node }) - 1)) }}>+ add a member</button>`}</div>`
}

// Combo is a choice of too many: the program is asked for those that fit.
function Combo({ n, aria, ctx, touch }) {
  const [typed, setTyped] = useState('')
  const [found, setFound] = useState(n.c.options ?? [])
  useEffect(() => {
    const stop = new AbortController()
    if (!typed && n.c.options) setFound(n.c.options)
    else get(`/api/form?${ctx.of}&list=${n.c.list}&text=${encodeURIComponent(typed)}`, stop.signal).then(setFound, () => {})
    return () => stop.abort()
  }, [typed])
  return html`<div class="combo"><input ...${aria} role="combobox" aria-expanded="true" aria-controls=${aria.id + ':l'} autocomplete="off" placeholder=${`find among ${n.c.count}`} value=${typed} onInput=${e => setTyped(e.currentTarget.value)} onBlur=${touch} />
    <select size="5" id=${aria.id + ':l'} aria-label=${'values of ' + n.c.label} value=${n.text} onChange=${e => { n.text = e.currentTarget.value; touch() }}>${found.map(o => html`<option value=${o.value}>${o.label}</option>`)}</select>
    <span class="dim" role="status">${found.length ? '' : 'Nothing found. '}${n.text ? 'chosen: ' + seenJSON(n.text) : 'none chosen'}</span></div>`
}

const maxFile = 16 << 20

function File({ n, aria, touch, set }) {
  const [note, setNote] = useState('')
  const take = async e => {
    const file = e.currentTarget.files[0]
    if (!file) return
    if (file.size > maxFile) { setNote('16 MiB at most'); return }
    const bytes = new Uint8Array(await file.arrayBuffer())
    let text = ''
    for (let i = 0; i < bytes.length; i += 0x8000) text += String.fromCharCode(...bytes.subarray(i, i + 0x8000))
    n.text = btoa(text)
    setNote(`${seen(file.name)}, ${count(file.size, 'byte')}`)
    touch()
  }
  return html`<div><input ...${aria} type="file" onChange=${take} /> <span class="dim">${note || (n.text ? count(n.text.length, 'character') + ' of base64' : '')}</span>
    <details><summary>base64</summary><textarea class="mono" rows="2" aria-label="base64" value=${n.text.length > 10000 ? '' : n.text} onInput=${set}></textarea></details></div>`
}

// Moment is a date or a time, which can be typed as text, too: a wrong one has to
// be possible.
function Moment({ n, own }) {
  const [raw, setRaw] = useState(n.text !== '' && !/^[\d:-]+$/.test(n.text))
  return html`<div class="row"><input ...${own} type=${raw ? 'text' : n.c.kind} step="1" />
    <button class="quiet" onClick=${() => setRaw(!raw)}>${raw ? 'calendar' : 'text'}</button></div>`
}

export const completer = (kind, name, node) => (argument, value, signal) => {
  const others = Object.fromEntries([...node.nodes].filter(([key, n]) => key !== argument && n.set && n.text).map(([key, n]) => [key, n.text]))
  return post('/api/request', { method: 'completion/complete', params: {
    ref: kind === 'prompt' ? { type: 'ref/prompt', name } : { type: 'ref/resource', uri: name }, argument: { name: argument, value }, context: { arguments: others } } }, signal)
}

function Complete({ n, aria, ctx, touch }) {
  const [found, setFound] = useState(null)
  const [at, setAt] = useState(-1)
  const timer = useRef(0), stop = useRef(null)
  const close = () => { clearTimeout(timer.current); stop.current?.abort(); setFound(null); setAt(-1) }
  useEffect(() => close, [])
  // look asks a while after the last key; what comes late counts for nothing.
  const look = wait => {
    clearTimeout(timer.current)
    stop.current?.abort()
    const mine = stop.current = new AbortController()
    timer.current = setTimeout(() => ctx.complete(n.c.key, n.text, mine.signal).then(
      r => { if (!mine.signal.aborted) { setFound(r); setAt(-1) } },
      e => { if (!mine.signal.aborted) setFound({ values: [], error: e.message }) }), wait)
  }
  const values = found?.values ?? [], list = aria.id + ':l'
  const pick = i => { put(n, values[i].value); close(); touch() }
  const key = e => {
    if (e.key === 'ArrowDown' && !found) look(0)
    else if (e.key === 'ArrowDown') setAt(Math.min(values.length - 1, at + 1))
    else if (e.key === 'ArrowUp' && found) setAt(Math.max(-1, at - 1))
    else if (e.key === 'Enter' && at >= 0 && !ctrl(e)) pick(at)
    else if (e.key === 'Escape' && found) close()
    else return
    e.preventDefault()
  }
  useEffect(() => document.getElementById(list + at)?.scrollIntoView({ block: 'nearest' }), [at])
  return html`<div class="completes"><input ...${aria} role="combobox" aria-autocomplete="list" aria-expanded=${values.length > 0} aria-controls=${values.length > 0 ? list : undefined} aria-activedescendant=${at >= 0 ? list + at : undefined}
      autocomplete="off" placeholder=${preset(n.c) || '↓ suggestions'} value=${n.text} onKeyDown=${key} onInput=${e => { put(n, e.currentTarget.value); ctx.change(); look(250) }} onBlur=${() => { close(); touch() }} />
    ${values.length > 0 && html`<ul id=${list} role="listbox" aria-label=${'values of ' + n.c.label}>${values.map((v, i) => html`<li id=${list + i} role="option" aria-selected=${i === at} onMouseDown=${e => { e.preventDefault(); pick(i) }}>${v.label}</li>`)}</ul>`}
    <span class="dim" role="status">${found?.error || (found && !values.length ? 'no suggestions' : found?.more ? 'type more to see further values' : '')}</span></div>`
}
