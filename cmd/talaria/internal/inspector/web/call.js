// One thing that a server offers: its form in the middle, what a call came to beside it,
// and what the server asks meanwhile.
import { html, useState, useEffect, useLayoutEffect, useMemo, useRef } from './vendor.js'
import { address, count, get, post, del, server, parse, seen, write, indent } from './program.js'
import { Tree, ctrl, usePages } from './pages.js'
import { Code, Long, Table, Value, asSent, jsonOf, plain, rowsOf } from './json.js'
import { Markdown, isMarkdown } from './markdown.js'
import { Link } from './links.js'
import { Icon, Splitter } from './looks.js'
import { Form, chosen, completer, load, make, placing, value } from './form.js'
import { Definition } from './check.js'
import { View } from './view.js'

export const kinds = {
  tool: { title: 'Tools', verb: 'Call' }, prompt: { title: 'Prompts', verb: 'Get' },
  resource: { title: 'Resources', verb: 'Read' }, template: { title: 'Templates', verb: 'Read' }, event: { title: 'Events', verb: 'Watch' },
}

export const kindOf = call => ({ 'prompts/get': 'prompt', 'resources/read': 'resource', 'events/stream': 'event' })[call.method] ?? 'tool'

// page is what there is one of: drafts have the node, the text and the call of each tool,
// by its key; chosen says that the user has chosen, and goes on in the form; place is what
// of its definition is to be shown.
export const page = { drafts: new Map(), chosen: false, place: null }
export const keyOf = (kind, name) => kind === 'tool' ? name : kind + '\n' + name

// link reads what an address says to show; what it does not know it leaves out.
export function link() {
  const q = address()
  const kind = Object.keys(kinds).find(k => q.has(k)) ?? 'tool'
  return { server: q.get('server'), kind, tool: q.get(kind), args: q.get('arguments') }
}

// enterForm moves the focus to the first control of the form, or to what calls.
export function enterForm() {
  const to = document.querySelector('.ask :is(input, select, textarea)') ?? document.querySelector('.ask')
  if (!to) return // its schema is not here yet
  page.chosen = false
  to.focus()
}

// enterFault moves the focus to the first control with a problem, or to the button of an empty list.
function enterFault() {
  const wrong = document.querySelector('.ask :is(.field, [role=group]) > .bad')?.parentElement
  ;(wrong?.querySelector('[aria-invalid=true]') ?? wrong?.querySelector('.inner :is(button, input, select, textarea)'))?.focus()
}

export function again(c) {
  const key = keyOf(kindOf(c), c.tool), d = page.drafts.get(key) ?? {}
  page.drafts.set(key, { ...d, node: null, json: null, load: c.arguments, call: c.id })
}

const stacked = matchMedia('(max-width: 1000px)') // the result is below the form

let timer = 0, waiting = null

// keep notes, a moment after the last change, what is typed into a form.
function keep(kind, tool, args) {
  if (waiting && (waiting.kind !== kind || waiting.tool !== tool)) send()
  waiting = { kind, tool, arguments: args, path: `/api/${server()}/history` }
  clearTimeout(timer)
  timer = setTimeout(send, 300)
}

function send() {
  clearTimeout(timer)
  if (!waiting) return
  const { path, ...what } = waiting
  waiting = null
  post(path, what).catch(() => {}) // the page says so if the program has ended
}

addEventListener('pagehide', send)

export function Try({ kind, tool, state, edit, back }) {
  const list = state[kind]
  const [form, setForm] = useState(null)
  const [error, setError] = useState('')
  const [issues, setIssues] = useState([])
  const [all, setAll] = useState(false)
  const [call, setCall] = useState(null)
  const [place] = useState(page.place)
  const [side, setSide] = useState(place ? 'model' : 'result')
  const [uri, setURI] = useState('')
  const [live, setLive] = useState(false) // the view of the tool runs: for a call of this page, or as the user wants it
  const [viewed, setViewed] = useState(true) // it is what is shown of the result
  const [, redraw] = useState(0)
  const draft = useRef(null)
  if (!draft.current) {
    draft.current = page.drafts.get(keyOf(kind, tool)) ?? {}
    draft.current.call ??= state.calls.find(c => c.tool === tool && kindOf(c) === kind)?.id
  }
  const d = draft.current
  page.drafts.set(keyOf(kind, tool), d)
  const newest = useRef(0), stop = useRef(null), timer = useRef(0)

  useEffect(() => { // a list that has changed has a new form, into which goes what was typed
    const gone = new AbortController()
    get(`/api/form?kind=${kind}&tool=${encodeURIComponent(tool)}`, gone.signal).then(f => {
      const drawn = JSON.stringify(f.form)
      if (f.form && (!d.node || d.drawn !== drawn)) {
        const asked = link().tool === tool && link().kind === kind ? link().args : null
        const given = d.node ? value(d.node) : d.load ?? asked ?? f.draft
        d.asked = asked ?? d.asked
        d.node = make(f.form)
        d.drawn = drawn
        d.load = null
        if (given) try { load(d.node, parse(given)) } catch { d.json = given }
      }
      d.json ??= f.form ? null : '{}'
      setError('')
      setForm(f)
      if (form || d.json !== null || kind === 'template') check()
    }, e => e.name !== 'AbortError' && setError(e.message))
    return () => gone.abort()
  }, [list])
  useEffect(() => () => { clearTimeout(timer.current); timer.current = null; stop.current?.abort() }, []) // a field that goes away is left, too
  useLayoutEffect(() => { if (form && page.chosen) enterForm() }, [form])
  const text = () => d.json ?? (d.node && value(d.node)) ?? '{}'
  const variants = () => d.json === null ? chosen(d.node) : {}
  // check asks what is wrong; an answer that comes after a newer one counts for nothing.
  const check = async () => {
    const mine = newer()
    try {
      const r = await post('/api/check', { kind, tool, value: text(), chosen: variants() }, stop.current.signal)
      if (mine === newest.current) { setIssues(r.issues ?? []); setURI(r.shown) }
    } catch (e) { if (mine === newest.current && e.name !== 'AbortError') setIssues([]) }
  }
  const newer = () => { clearTimeout(timer.current); stop.current?.abort(); stop.current = new AbortController(); return ++newest.current }
  const change = () => { if (timer.current === null) return; redraw(n => n + 1); clearTimeout(timer.current); timer.current = setTimeout(check, 250); keep(kind, tool, text()) }
  const begin = async (kind, tool, args, anyway, chosen) => {
    setError('')
    try {
      const r = await post('/api/call', { kind, tool, arguments: args, anyway, chosen })
      if (r.call) { d.call = r.call.id; setCall(r.call); setLive(true); setTimeout(() => stacked.matches && document.querySelector('.side')?.scrollIntoView()) }
      return r.issues ?? []
    } catch (e) { setError(e.message) }
    return []
  }
  const run = async () => { // what is wrong is shown first, and sent when it is meant
    setAll(true)
    setSide('result')
    const mine = newer(), wrong = await begin(kind, tool, text(), all, variants())
    if (mine !== newest.current) return
    setIssues(wrong)
    if (wrong.length && !all) setTimeout(enterFault) // the call was refused
  }
  const calls = useRef(null)
  calls.current = form && run
  useEffect(() => { // from anywhere
    const key = e => { if (ctrl(e) && e.key === 'Enter' && !document.querySelector('dialog[open]')) { e.preventDefault(); calls.current?.() } }
    addEventListener('keydown', key)
    return () => removeEventListener('keydown', key)
  }, [])
  const repeat = () => begin(kindOf(call), call.tool, call.arguments, true) // the call that is shown, as it was
  d.call = state.calls.find(c => c.again && c.again === d.call)?.id ?? d.call // a server that was built again has made it again
  const listed = state.calls.find(c => c.id === d.call)
  useEffect(() => {
    if (d.call && (call?.id !== d.call || call.state === 'running' && listed && (listed.state !== 'running' || listed.events !== call.events))) get('/api/calls/' + d.call).then(setCall, () => setCall(null))
  }, [d.call, call?.state, listed?.state, listed?.events])
  const toJSON = () => { d.json = indent(text()); change() }
  const toForm = () => { try { const v = parse(d.json); d.node = make(form.form); load(d.node, v); d.json = null; setError(''); change() } catch (e) { setError('invalid JSON: ' + e.message) } }
  if (!form) return html`<main class="try"><p role="status" class=${error ? 'bad' : 'dim'}>${error || 'reading the schema…'}</p></main>`
  const verb = kinds[kind].verb
  const drawn = d.json === null && placing(d.node)
  const loose = issues.filter(i => !drawn || !drawn.has(i.path))
  return html`<main class="try">
    <section class="ask" aria-label="Form" tabindex="-1">
      <div class="bar"><button class="quiet back" onClick=${back}>← list</button></div>
      <h2><${Icon} kind=${kind} />${form.title || form.name}</h2>
      <p class="meta">${form.title && html`<code>${form.name}</code> `}${form.marks?.map(m => html`<span class=${'mark ' + m.replace(/\W/g, '')}>${m}</span> `)}</p>
      ${form.wrong && html`<p class="bad">${form.wrong}</p>`}
      ${form.description && html`<${Description} text=${form.description} />`}
      ${kind === 'tool' && d.json === null && d.node.c.kind === 'object' && !d.node.nodes.size && !d.node.more.length && !d.node.c.rest && html`<p class="dim">This tool ${d.node.c.free ? 'declares' : 'takes'} no arguments.</p>`}
      ${d.json === null ? html`<${Form} node=${d.node} of=${'tool=' + encodeURIComponent(tool) + (kind === 'tool' ? '' : '&kind=' + kind)} complete=${completer(kind, tool, d.node)} issues=${issues} all=${all} change=${change} />`
        : html`<textarea class="mono json" aria-label="arguments as JSON" spellcheck="false" rows="12" value=${d.json} onInput=${e => { d.json = e.currentTarget.value; change() }}></textarea>`}
      ${kind === 'template' && html`<p class="meta">URI <code>${uri}</code></p>`}
      ${loose.length > 0 && (all || d.json !== null) && html`<ul class="bad">${loose.map(i => html`<li>${i.path && seen(i.path) + ': '}${i.message}${i.hint && '; ' + i.hint}</li>`)}</ul>`}
      ${error && html`<p class="bad" role="alert">${error}</p>`}
      <div class="bar sticky"><button class="primary" onClick=${run}>${issues.length && all ? verb + ' anyway' : verb} <kbd>Ctrl ↵</kbd></button>
        ${kind !== 'resource' && html`<span class="tabs" role="group" aria-label="How arguments are typed"><button aria-pressed=${d.json === null} disabled=${!form.form} onClick=${() => d.json !== null && toForm()}>Form</button><button aria-pressed=${d.json !== null} onClick=${() => d.json === null && toJSON()}>JSON</button></span>`}
        <span class=${issues.length && all ? 'bad' : 'dim'} aria-live="polite">${all && issues.length ? count(issues.length, 'problem') : ''}</span></div>
    </section>
    <${Splitter} name="form" label="width of the form" /><div class="side"><div class="tabs" role="group" aria-label="Beside the form"><button aria-pressed=${side === 'result'} onClick=${() => setSide('result')}>Result</button>
        <button aria-pressed=${side === 'model'} onClick=${() => setSide('model')}>${kind === 'tool' ? 'What the model sees' : 'Definition'}</button></div>
      <${Asked} state=${state} />
      ${side === 'model' ? html`<${Definition} form=${form} at=${place} />`
        : call ? html`<${Result} call=${listed?.state === 'running' && listed.id === call.id ? { ...call, progress: listed.progress, task: listed.task } : call} cancel=${() => del('/api/calls/' + call.id)} http=${state.http} repeat=${repeat} edit=${kind === 'template' ? null : () => edit(call, kind)}
            view=${form.view && { live, see: on => { setViewed(on); if (on) setLive(true) } }} />`
        : !state.questions.length && html`<p class="dim empty">The result appears here. <kbd>Ctrl ↵</kbd> ${{ Call: 'calls the tool', Get: 'gets the prompt', Read: 'reads the resource', Watch: 'shows events as they come' }[verb]}.${form.view && !live && html` <button onClick=${() => setLive(true)}>Open the view</button>`}</p>`}
      ${form.view && live && html`<${View} form=${form} call=${call} args=${text()} state=${state} hidden=${side === 'model' || !!call && !viewed} />`}</div>
  </main>`
}

// flowing joins the lines of a docstring that were broken because they were full, and removes
// the indentation that all lines except the first share.
function flowing(text) {
  const [first, ...rest] = text.trim().split('\n')
  const indents = rest.filter(l => l.trim()).map(l => l.search(/\S/)), by = indents.length ? Math.min(...indents) : 0
  return [first, ...rest.map(l => l.slice(by))].join('\n').replace(/(^\S[^\n]{48,}[^\n.:;!?])\n(?=[\p{L}("'`])/gmu, '$1 ')
}

function Description({ text: given }) {
  const text = useMemo(() => flowing(given), [given])
  const [open, setOpen] = useState(false)
  const long = text.length > 300
  return html`<p class="description">${long && !open ? text.slice(0, 280) + '… ' : text}${long && html` <button class="quiet" aria-expanded=${open} onClick=${() => setOpen(!open)}>${open ? 'less' : 'more'}</button>`}</p>`
}

export const at = (v, name) => v instanceof Map ? v.get(name) : undefined

export const took = ms => ms === undefined ? '' : ms < 10 ? ms.toFixed(1) + ' ms' : ms < 1000 ? Math.round(ms) + ' ms' : (ms / 1000).toFixed(1) + ' s'

export const words = { running: 'running', done: 'done', failed: 'the tool failed', invalid: 'invalid result', error: 'error', cancelled: 'cancelled' }
export const signs = { running: '…', done: '✓', failed: '✗', invalid: '✗', error: '✗', cancelled: '–' }

function useNow(every, on) {
  const [now, set] = useState(Date.now())
  useEffect(() => {
    const timer = on && setInterval(() => set(Date.now()), every)
    return () => clearInterval(timer)
  }, [on])
  return now
}

function Result({ call, cancel, http, repeat, edit, view: own }) {
  const [view, setView] = useState('')
  const now = useNow(200, call.state === 'running')
  const { content, structured, rows, rest, first } = useMemo(() => { try { return partsOf(parse(call.result)) } catch { return {} } }, [call.id, call.result])
  const views = call.result ? [first && 'Content', rows && 'Table', structured !== undefined && 'Tree', content?.length > 0 && !first && 'Content', 'Raw', call.before && 'Diff'].filter(Boolean) : []
  if (own) views.unshift('View')
  const chosen = views.includes(view) ? view : views[own && !own.live ? 1 : 0]
  useLayoutEffect(() => own?.see(chosen === 'View'), [chosen])
  const doubted = call.state === 'done' && kindOf(call) === 'tool' && /^\s*(error|exception|traceback)\b/i.test(textOf(content?.[0]?.item) ?? '')
  const p = call.progress, [issues, pager] = usePages(call.issues ?? [], 5, 'faults')
  return html`<section class="result" aria-label=${'Call ' + call.id} data-state=${call.state}>
    <div class="bar"><span class=${'sign ' + call.state} aria-hidden="true">${signs[call.state]}</span>
      <strong role="status">${words[call.state]}</strong>
      <span class="num">${call.state === 'running' ? took(Math.max(0, now - Date.parse(call.at))) : took(call.took)}</span>
      ${call.checked && (call.state === 'invalid' ? html`<span class="bad">does not match its output schema</span>` : html`<span class="dim">matches its output schema</span>`)}
      <span class="space"></span><span class="dim num">call ${call.id}</span>
      ${call.state === 'running' && html`<button onClick=${cancel}>Cancel</button>`}</div>
    ${call.earlier && (call.partial || call.cut) && html`<p class="dim">Only a part of this call was kept: secrets and long texts are left out.</p>`}
    ${call.state === 'running' && p && !(call.task && !p.Progress) && html`<div class="progress"><progress max=${p.Total || undefined} value=${p.Total ? p.Progress : undefined} aria-label="progress"></progress> <span class="num">${p.Progress}${p.Total ? ' of ' + p.Total : ''}</span> ${p.Message}</div>`}
    ${call.state === 'running' && call.task && html`<p role="status">This call runs as a task: ${call.task.message || call.task.status.replace('_', ' ')}.</p>`}
    ${call.state === 'running' && kindOf(call) === 'event' && html`<p role="status">${count(call.events ?? 0, 'event')} received. The newest come first.</p>`}
    ${call.error && html`<div class="failure"><p>${call.error.message}</p>${call.error.code ? html`<p class="dim num">code ${call.error.code}</p>` : null}${call.error.data && html`<div tabindex="0" role="region" aria-label="Data of the error"><${Code} text=${call.error.data} /></div>`}</div>`}
    ${doubted && html`<p class="warn" role="note">The text begins like an error, but the result does not set isError, so hosts treat the call as successful.</p>`}
    ${pager}${issues.length > 0 && html`<ul class="bad">${issues.map(i => html`<li>${seen(i.path) || 'the result'}: ${i.message}</li>`)}</ul>`}
    ${call.state !== 'running' && html`<div class="tabs acts"><span class="tabs" role="group" aria-label="How the result is shown">${views.map(v => html`<button aria-pressed=${v === chosen} onClick=${() => setView(v)}>${v}</button>`)}</span>
      <span class="space"></span>${!call.partial && html`<button class="quiet" onClick=${repeat}>Run again</button>`}${edit && html`<button class="quiet" onClick=${edit}>Edit</button>`}<${Copy} key=${call.id} call=${call} http=${http} /></div>`}
    ${chosen !== 'View' && html`<div class="view" tabindex="0" role="region" aria-label=${chosen ?? 'Result'}>
      ${chosen === 'Table' && html`<${Table} key=${call.id} rows=${rows} />${rest?.size > 0 && html`<${Tree} key=${-call.id} name="Other members" value=${rest} />`}`}
      ${chosen === 'Tree' && html`<${Tree} key=${call.id} value=${structured} />`}
      ${chosen === 'Content' && html`<${Contents} key=${call.id} list=${content} issues=${call.issues} of=${call.label} lone=${structured !== undefined} />`}
      ${chosen === 'Diff' && html`<${Diff} call=${call} />`}
      ${chosen === 'Raw' && html`<${Code} text=${call.result} as=${asSent} label="Raw result" />`}
    </div>`}</section>`
}

function partsOf(read) {
  const content = contentOf(read), texts = content.map(x => textOf(x.item)).filter(x => x !== undefined)
  const events = at(read, 'events')
  const structured = at(read, 'structuredContent') ?? events ?? (content.length === 1 ? jsonOf(texts[0]) : undefined)
  const lone = typeof structured === 'string' || structured instanceof Map && structured.size === 1 && typeof [...structured.values()][0] === 'string'
  // Pictures and long texts are read at once, and so is a text that is all that there is.
  const first = content.some(x => mediaOf(x.item)) || texts.some(x => (lone || x.length > 300 || x.trim().includes('\n')) && jsonOf(x) === undefined)
  const rows = structured === undefined ? null : Array.isArray(events) && events.length ? events.map(eventRow) : rowsOf(structured)
  return { content, structured, first, rows, rest: structured instanceof Map && new Map([...structured].filter(([, v]) => v !== rows)) } // a table hides nothing
}

// eventRow is an event as a row: its time, what it has, and its id.
const eventRow = e => {
  const data = at(e, 'data'), time = at(e, 'timestamp')
  return new Map([['timestamp', typeof time === 'string' ? time.replace(/(\.\d{3})\d+/, '$1') : time], ...(data instanceof Map ? data : [['data', data]]), ['eventId', at(e, 'eventId')]])
}

// contentOf finds what there is to show, each with its place: of a tool's result, of the
// messages of a prompt, with who says them, or of a resource.
export function contentOf(read) {
  const messages = at(read, 'messages'), contents = at(read, 'contents'), content = at(read, 'content')
  const placed = (list, name, item = x => x) => list.map((x, i) => ({ item: item(x), at: `/${name}/${i}` }))
  if (Array.isArray(messages)) return placed(messages, 'messages').flatMap(m => [{ item: m.item, at: at(m.item, 'role') === undefined ? m.at : '' }, ...[at(m.item, 'content') ?? []].flat().map(item => ({ item, at: m.at }))])
  if (Array.isArray(contents)) return placed(contents, 'contents', x => new Map([['type', 'resource'], ['resource', x]]))
  return Array.isArray(content) ? placed(content, 'content') : []
}

// textOf is the text of an item, undefined if it has none.
function textOf(item) {
  const text = at(item, 'type') === 'text' ? at(item, 'text') : at(at(item, 'resource'), 'text')
  return typeof text === 'string' ? text : undefined
}

// mediaOf is image or audio, if an item is.
const mediaOf = item => /^(image|audio)$/.exec(at(item, 'type'))?.[1] ?? /^(image|audio)\//.exec(at(at(item, 'resource'), 'blob') !== undefined && at(at(item, 'resource'), 'mimeType'))?.[1]

export function Contents({ list, issues = [], of, lone, room = 1400 }) {
  const [part, pager, from] = usePages(list, 50, 'parts')
  const wrong = new Map(issues.map(i => [i.path, i.message]))
  return html`${pager}${part.map((x, i) => html`${wrong.has(x.at) && html`<p class="bad">${wrong.get(x.at)}</p>`}<${Content} key=${from + i} item=${x.item} of=${of} lone=${lone && list.length === 1} room=${Math.floor(room / part.length)} />`)}`
}

// Text is that of an item: JSON as a table or a tree, and Markdown; what was sent is a click away.
// Lone JSON has lines, as its table and its tree are in other places.
function Text({ text, type = '', name, of, lone, room }) {
  const [sent, setSent] = useState(false)
  const shown = useMemo(() => seen(text), [text])
  const kind = useMemo(() => jsonOf(text) !== undefined ? 'json' : /markdown/i.test(type) || !type && isMarkdown(text) ? 'markdown' : '', [text, type])
  const bar = (kind || name) && html`<div class="bar part">${name && html`<span class="dim one">${name}</span>`}<span class="space"></span>
    ${name && html`<${Save} text=${text} name=${fileName(name, type || 'text/plain', of)} />`}${kind && html`<button class="quiet" aria-pressed=${sent} onClick=${() => setSent(!sent)}>as sent</button>`}</div>`
  return html`<div class="text">${bar}${sent || !kind ? html`<${Long} text=${shown} name="text" label="Text" />`
    : kind === 'markdown' ? html`<${Markdown} text=${text} room=${room} />`
    : lone ? html`<${Code} text=${text} />` : html`<${Value} text=${text} room=${room} />`}</div>`
}

// saveFile lets the browser save a text.
export function saveFile(name, text) {
  const url = URL.createObjectURL(new Blob([text])), a = document.createElement('a')
  Object.assign(a, { href: url, download: name }).click()
  setTimeout(() => URL.revokeObjectURL(url), 60e3)
}

function Save({ text, name }) {
  return html`<button class="quiet" data-name=${name} onClick=${() => saveFile(name, text)}>save</button>`
}

// Content is one item. Pictures and sounds are shown as such and never as a
// document; all else can be saved.
function Content({ item, of, lone, room }) {
  const kind = at(item, 'type'), text = textOf(item)
  if (item instanceof Map && item.has('role')) return html`<h3 class="role">${plain(item.get('role'))}</h3>`
  if (kind === 'text' && text !== undefined) return html`<${Text} text=${text} of=${of} lone=${lone} room=${room} />`
  if (kind === 'image' || kind === 'audio') return html`<${Media} kind=${kind} type=${plain(at(item, 'mimeType') ?? '')} data=${at(item, 'data')} of=${of} />`
  if (kind === 'resource_link' && typeof at(item, 'uri') === 'string') return html`<${Link} item=${item} room=${room} />`
  const r = kind === 'resource' && at(item, 'resource'), uri = plain(at(r, 'uri') ?? '')
  if (r && text !== undefined) return html`<${Text} text=${text} type=${plain(at(r, 'mimeType') ?? '')} name=${uri || 'resource'} of=${of} lone=${lone} room=${room} />`
  if (typeof at(r, 'blob') === 'string') return html`<${Media} kind=${mediaOf(item) ?? 'file'} type=${plain(at(r, 'mimeType') ?? '')} data=${at(r, 'blob')} name=${uri} of=${of} />`
  return html`<${Code} text=${write(item)} />`
}

const endings = { jpeg: 'jpg', plain: 'txt', markdown: 'md', mpeg: 'mp3', 'octet-stream': '', document: 'docx', sheet: 'xlsx', presentation: 'pptx', gzip: 'gz' }

// fileName is what a file is called that is saved: as its URI ends, or as what gave it, with
// the ending of its type.
function fileName(uri, type, of) {
  const [family, full = ''] = type.toLowerCase().split(';')[0].trim().split('/'), short = full.replace(/^x-|\+.*|.*\.|[^\w+.-]/g, '').slice(0, 12), ending = endings[short] ?? short
  let name = uri.split(/[?#]/)[0].split('/').at(-1)
  try { name = decodeURIComponent(name) } catch { } // as it is written, then
  name = (name || of || 'content').replace(/[^\p{L}\p{N}._-]+/gu, '_').replace(/^\.+/, '').slice(-80) || 'content'
  const has = /\.(\w{1,12})$/.exec(name)?.[1].toLowerCase()
  return has && (has === ending || has === full || !/^(image|audio|video)$/.test(family)) ? name : `${name}.${ending || 'bin'}`
}

function Media({ kind, type, data, name = '', of }) {
  const [{ url, size, bad }, show] = useState({})
  useLayoutEffect(() => {
    let url
    try {
      const safe = { image: /^image\/(png|jpeg|gif|webp|avif|bmp|svg\+xml)$/, audio: /^audio\/[\w.+-]+$/ }[kind], own = type.toLowerCase().split(';')[0].trim()
      const bytes = Uint8Array.from(atob(data), c => c.charCodeAt(0))
      show({ url: url = URL.createObjectURL(new Blob([bytes], { type: safe?.test(own) ? own : 'application/octet-stream' })), size: bytes.length })
    } catch { show({}) }
    return () => url && URL.revokeObjectURL(url)
  }, [data])
  if (!url) return html`<p class="bad">this ${kind} is not valid base64</p>`
  const fail = () => show({ url, size, bad: true })
  return html`<figure>${bad ? html`<p class="bad">The browser cannot show this ${kind} (${type || 'no type'}, ${count(size, 'byte')}).</p>` : kind === 'image' ? html`<img src=${url} alt=${'image, ' + type} onError=${fail} />` : kind === 'audio' ? html`<audio controls src=${url} onError=${fail}></audio>` : null}
    <figcaption class="dim">${name || type} <a href=${url} download=${fileName(name, type, of)}>save</a></figcaption></figure>`
}

function Diff({ call }) {
  const [d, setD] = useState(null)
  useEffect(() => { get(`/api/calls/${call.id}/diff`).then(setD, e => setD({ error: e.message })) }, [call.id])
  if (!d) return null
  if (d.error) return html`<p class="bad">${d.error}</p>`
  return html`<${Compared} lines=${d.lines} about=${`compared with call ${d.before}` + (d.arguments ? ', which had other arguments' : '')} />`
}

// Compared is two results, line by line.
export function Compared({ lines, about }) {
  const [part, pager, from] = usePages(lines, 400, 'lines')
  if (!lines.length) return html`<p class="dim">The same result, ${about}.</p>`
  return html`<p class="dim">${about[0].toUpperCase() + about.slice(1)}</p>${pager}<pre class="diff">${part.map((l, i) => l[0] === '@' ? from + i > 0 && html`<span class="dim">⋯</span>`
    : l[0] === '+' ? html`<ins>${seen(l)}</ins>` : l[0] === '-' ? html`<del>${seen(l)}</del>` : html`<span>${seen(l)}</span>`)}</pre>`
}

const forms = [['report', 'Report', 'Markdown, for a bug'], ['command', 'Command', 'talaria, for a shell'], ['curl', 'curl', 'for servers over HTTP'], ['go', 'Go test', 'with mcptest']]
let meant = false // secrets are copied, which was asked once

// Copy is a call, written for somebody else: the program makes the text, the page
// copies it. What it copies has no secrets unless it is told so.
function Copy({ call, http }) {
  const [kind, setKind] = useState('share')
  const [asking, setAsking] = useState(false)
  const [said, setSaid] = useState('')
  const box = useRef(null)
  const close = () => { box.current.open = false; box.current.firstElementChild.focus() }
  const copy = async (as, of = kind, done = close) => {
    try {
      await navigator.clipboard.writeText((await get(`/api/export?call=${call.id}&as=${as}&kind=${of}`)).text)
      setSaid(done === close ? 'copied' : 'reported')
      done()
    } catch (e) { box.current.open = true; setTimeout(setSaid, 50, e.message) } // the menu says it
  }
  const secrets = e => { if (!e.currentTarget.checked) setKind('share'); else if (meant) setKind('raw'); else { e.currentTarget.checked = false; setAsking(true) } }
  return html`<button class="quiet" title="copy a report in Markdown, with secrets masked" onClick=${() => copy('report', 'share', () => {})}>${said === 'reported' ? 'Copied' : 'Report'}</button><details class="menu" ref=${box} onToggle=${e => { if (e.currentTarget.open) setSaid(''); setAsking(false) }} onKeyDown=${e => { if (e.key === 'Escape') { e.stopPropagation(); close() } }}>
    <summary>${said === 'copied' ? 'Copied' : 'Copy'}</summary><div role="group" aria-label="Copy">
    ${call.result && html`<button onClick=${() => copy('result')}>Result <span class="dim">JSON, as it came</span></button>`}
    ${forms.filter(([as]) => (http || as !== 'curl') && (kindOf(call) !== 'event' || !/curl|go/.test(as))).map(([as, name, what]) => html`<button data-as=${as} onClick=${() => copy(as)}>${name} <span class="dim">${what}</span></button>`)}
    <label><input type="checkbox" checked=${kind === 'raw'} onChange=${secrets} /> with secrets</label>
    ${asking && html`<p>The text will contain tokens, passwords and answers. <button onClick=${() => { meant = true; setKind('raw'); setAsking(false) }}>Copy with secrets</button></p>`}
    <p class="dim" role="status">${said && !/^(copied|reported)$/.test(said) ? said : kind === 'share' ? 'Secrets are masked. A call with masked secrets cannot be replayed.' : 'Contains secrets: do not share.'}</p></div></details>`
}

export function Asked({ state }) {
  const [shown, pager] = usePages(state.questions, 1, 'questions')
  return html`${pager}${shown.map(q => html`<${Question} key=${q.id} q=${q} />`)}`
}

// asked is the form of a question: all of it is open, as it is short.
function asked(form) {
  const node = make(form)
  for (const n of node.nodes.values()) if (!n.set && (n.c.preset !== undefined || n.c.kind === 'bool')) load(n, parse(n.c.preset ?? 'false'))
  return node
}

function Question({ q }) {
  const node = useRef(null)
  node.current ??= q.form ? asked(q.form) : null
  const [issues, setIssues] = useState([])
  const [text, setText] = useState('')
  const [json, setJSON] = useState(null) // a sample as JSON, if that is wanted
  const [error, setError] = useState('')
  const [, redraw] = useState(0)
  const now = useNow(1000, true)
  const box = useRef(null), field = useRef(null)
  useLayoutEffect(() => { (field.current ?? box.current)?.focus() }, [])
  const sample = () => json ?? JSON.stringify({ ...JSON.parse(q.template), content: { type: 'text', text } }, null, 2)
  const waits = Math.max(0, Math.round((now - Date.parse(q.since)) / 1000))
  const say = async action => {
    const content = q.kind === 'form' ? value(node.current) ?? '{}' : q.kind === 'sample' ? sample() : ''
    try {
      if (action === 'accept' && q.kind === 'form') {
        const r = await post('/api/check', { question: q.id, value: content })
        setIssues(r.issues ?? [])
        if (r.issues?.length) return
      }
      await post('/api/questions', { id: q.id, action, content })
      document.querySelector('.ask .primary')?.focus()
    } catch (e) { setError(e.message) }
  }
  const key = e => { if (ctrl(e) && e.key === 'Enter') { e.preventDefault(); e.stopPropagation(); if (q.kind !== 'url') say('accept') } }
  const href = /^https?:\/\//i.test(q.url) && URL.canParse(q.url) && new URL(q.url).href
  const from = (q.calls ?? []).map(c => c.id ? `${c.label} (call ${c.id})` : c.label).join(', '), asks = q.kind === 'sample' ? ' asks a model' : ' asks'
  return html`<section class="question" aria-label="The server asks" tabindex="-1" ref=${box} onKeyDown=${key}>
    <div class="bar"><strong>${q.calls?.length === 1 ? from + asks : 'The server' + asks}</strong>${q.calls?.length !== 1 && html`<span class="dim">${from ? 'during ' + from : 'outside of calls'}</span>`}<span class="space"></span><span class="dim num">waits ${Math.floor(waits / 60)}:${String(waits % 60).padStart(2, '0')}</span></div>
    ${q.message && html`<p class="description">${q.kind === 'sample' && html`<strong>System </strong>`}${q.message}</p>`}
    ${q.kind === 'url' && !href && html`<p class="bad">The server asks you to visit an address that is not opened.</p>`}
    ${href && html`<p>The server asks you to visit <strong>${new URL(href).host}</strong>: <a href=${href} target="_blank" rel="noopener noreferrer">${href}</a></p>`}
    ${q.kind === 'form' && html`<${Form} node=${node.current} of=${'question=' + q.id} issues=${issues} all=${true} change=${() => redraw(n => n + 1)} />`}
    ${issues.filter(i => !placing(node.current).has(i.path)).map(i => html`<p class="bad">${seen(i.path)} ${i.message}</p>`)}
    ${q.kind === 'sample' && html`<${Conversation} text=${q.params} /><div class="bar"><label class="label" for=${'sample-' + q.id}>Your answer as the model</label><span class="space"></span><button class="quiet" aria-pressed=${json !== null} onClick=${() => { if (json !== null) try { setText(String(JSON.parse(json).content.text ?? text)) } catch { } setJSON(json === null ? sample() : null) }}>JSON</button></div>
      <textarea id=${'sample-' + q.id} ref=${field} class=${json === null ? '' : 'mono'} rows="9" spellcheck=${json === null} value=${json ?? text} onInput=${e => (json === null ? setText : setJSON)(e.currentTarget.value)}></textarea>`}
    ${error && html`<p class="bad" role="alert">${error}</p>`}
    <div class="bar">${(q.kind !== 'url' || href) && html`<button class="primary" onClick=${() => say('accept')}>${q.kind === 'sample' ? 'Answer' : 'Accept'}</button>`}<button onClick=${() => say('decline')}>${q.kind === 'sample' ? 'Refuse' : 'Decline'}</button>
      ${q.kind !== 'sample' && html`<button onClick=${() => say('cancel')}>Cancel</button>`}</div></section>`
}

function Conversation({ text }) {
  const [read, rest] = useMemo(() => {
    try {
      const all = parse(text)
      return [all, new Map([...all].filter(([name]) => name !== 'messages' && name !== 'systemPrompt'))]
    } catch { return [] }
  }, [text])
  if (!read) return html`<pre tabindex="0">${seen(text)}</pre>`
  return html`<div class="conversation" tabindex="0" role="region" aria-label="Conversation"><${Contents} list=${contentOf(read) ?? []} />
    <${Tree} name="Other parameters" value=${rest} /></div>`
}
