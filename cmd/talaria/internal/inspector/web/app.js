// The page: what there is on the left, a form in the middle, its result beside it,
// and what went over the wire below.
import { html, render, useState, useEffect, useLayoutEffect, useRef } from './vendor.js'
import { chooseServer, enter, failed, get, post, del, listen } from './api.js'
import { Form, make, load, placed, value } from './form.js'
import { Result } from './result.js'
import { Traffic, rowOf } from './traffic.js'
import { parse, indent } from './json.js'
import { Lists, begin, fetchAll, kinds, kindOf, wanted } from './lists.js'
import { completer } from './complete.js'
import { Server } from './server.js'
import { Asked } from './asked.js'
import { Recent, keep, recall } from './history.js'

let drafts = new Map() // the node, the text and the call of each tool, by its key
const keyOf = (kind, name) => kind === 'tool' ? name : kind + '\n' + name
let named = '' // the server that is shown, if there are several
let chosen = false // by the user, who goes on in the form
const narrow = matchMedia('(max-width: 760px)')

// link reads what an address says to show; what it does not know it leaves out.
function link() {
  const q = new URLSearchParams(location.hash.slice(1))
  const kind = Object.keys(kinds).find(k => q.has(k)) ?? 'tool'
  return { server: q.get('server'), kind, tool: q.get(kind), args: q.get('arguments') }
}

function App({ head }) {
  const [state, setState] = useState(null)
  const [lost, setLost] = useState('')
  const [lists, setLists] = useState({})
  const [{ kind, tool }, setTool] = useState(link)
  const [filter, setFilter] = useState('')
  const [traffic, setTraffic] = useState(rowOf() > 0)
  const [server, setServer] = useState(false)
  const [palette, setPalette] = useState(false)
  const [theme, setTheme] = useState(sessionStorage.getItem('theme') ?? '')
  const [edits, setEdits] = useState(0)
  const before = useRef({}) // what was open when the program ended

  useEffect(() => {
    const stop = new AbortController()
    let asking = false, again = false
    const refresh = async () => {
      if (asking) { again = true; return }
      asking = true
      do {
        again = false
        try { setState(await get('/api/state')); setLost('') } catch (e) { setLost(e.message) }
      } while (again)
      asking = false
    }
    let hidden = new AbortController()
    const follow = () => { hidden.abort(); hidden = new AbortController(); if (!document.hidden) { refresh(); listen(refresh, setLost, hidden.signal) } }
    recall(drafts, (k, name) => link().args && link().kind === k && link().tool === name, keyOf).then(h => { before.current = h; if (!stop.signal.aborted) follow() })
    document.addEventListener('visibilitychange', follow)
    const moved = () => { setTool(link()); if (rowOf()) setTraffic(true) }
    addEventListener('hashchange', moved)
    return () => { stop.abort(); hidden.abort(); document.removeEventListener('visibilitychange', follow); removeEventListener('hashchange', moved) }
  }, [])
  const ready = state?.state === 'ready', connection = state?.connection
  useEffect(() => {
    setLists({})
    if (!ready) return
    let mine = true
    const some = async all => { // something is open from the start, where there is room
      const old = before.current
      if (old.tool && (await all[Object.keys(kinds).indexOf(old.kind)])?.[1].entries.some(e => e.name === old.tool) && mine && !link().tool && !narrow.matches) return choose(old.tool, true, old.kind)
      for (const one of all) {
        const [k, l] = await one
        if (!mine || link().tool || narrow.matches) return
        if (l.entries.length) return choose(l.entries[0].name, true, k)
      }
    }
    some(fetchAll((k, l) => mine && setLists(was => ({ ...was, [k]: l }))))
    return () => { mine = false }
  }, [ready, connection])
  useEffect(() => { document.documentElement.style.colorScheme = theme; sessionStorage.setItem('theme', theme) }, [theme])
  const name = state?.server?.title || state?.server?.name || state?.target || 'Inspector'
  const questions = state?.questions ?? []
  useEffect(() => { document.title = (questions.length ? `(${questions.length}) ` : '') + name }, [name, questions.length])
  useEffect(() => {
    const key = e => {
      const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName)
      if ((e.ctrlKey || e.metaKey) && e.key === 'k') { e.preventDefault(); setPalette(true) }
      else if (e.key === '/' && !typing) { e.preventDefault(); document.getElementById('filter')?.focus() }
      else if (e.key === 't' && !typing && !e.ctrlKey && !e.metaKey && !e.altKey) setTraffic(v => !v)
    }
    addEventListener('keydown', key)
    return () => removeEventListener('keydown', key)
  }, [])
  const choose = (to, quiet, of = 'tool') => {
    setTool({ kind: of, tool: to })
    chosen = !quiet && !!to
    if (chosen && to === tool && of === kind) enterForm()
    if (chosen) keep(of, to)
    history[quiet ? 'replaceState' : 'pushState'](null, '', '#' + new URLSearchParams({ ...(named && { server: named }), ...(to && { [of]: to }), ...(quiet && rowOf() && { row: rowOf() }) }))
  }

  const light = html`<button type="button" class="quiet" aria-label="light or dark" onClick=${() => setTheme(theme === 'dark' ? 'light' : theme === 'light' ? '' : 'dark')}>${theme === 'dark' ? '◐' : theme === 'light' ? '○' : '◑'}</button>`
  if (!state) return html`<main class="alone"><h1>Inspector</h1><p role="status">${lost || failed.text || 'connecting to talaria…'}</p></main>`
  if (state.state === 'recording') return html`<div class="recorded">
    <header><h1 class="one">${state.target}</h1><span role="status">recording</span><span class="space"></span>${light}</header>
    ${lost && html`<div class="banner" role="alert">${lost}</div>`}
    <main><${Traffic} state=${state} open=${true} /></main></div>`
  // edit opens the form of a call with its arguments, and its result beside it.
  const edit = async (c, of) => {
    try { again(await get('/api/calls/' + c.id)) } catch (e) { setLost(e.message); return }
    setEdits(n => n + 1)
    choose(c.tool, false, of)
  }
  const restart = revision => post('/api/connect', { revision }).then(setState, e => setLost(e.message))
  const word = filter.toLowerCase()
  return html`
    <header>${head ?? html`<h1 class="one">${name}</h1>`}<span class=${'dot ' + state.state} aria-hidden="true"></span><span role="status">${state.state === 'failed' ? 'not connected' : state.state}</span>
      <select aria-label="revision of the protocol" value=${state.pinned ?? ''} onChange=${e => restart(e.currentTarget.value)}>
        <option value="">${state.pinned ? 'newest' : (state.revision ? state.revision + ' (newest)' : 'newest')}</option>${state.revisions.map(r => html`<option value=${r}>${r}</option>`)}</select>
      <span class="space"></span>
      <button type="button" class="quiet wide" onClick=${() => setPalette(true)}>Find <kbd>Ctrl K</kbd></button>
      <button type="button" class="quiet" onClick=${() => restart(state.pinned ?? '')}>${state.state === 'failed' ? 'try again' : 'restart'}</button>
      <button type="button" class="quiet" aria-pressed=${server} onClick=${() => setServer(!server)}>Server</button>
      ${light}</header>
    ${lost && html`<div class="banner" role="alert">${lost}</div>`}
    ${state.noise && html`<div class="banner" role="status">The server has sent what is no message: <code>${state.noise}</code>. Standard output is for messages alone; a log goes to standard error.</div>`}
    <div class=${'panes' + (tool && ready || server || state.state === 'failed' ? ' has-tool' : '')}>
      <nav aria-label="Offer"><input id="filter" type="search" placeholder="filter  /" aria-label="filter what there is" value=${filter} onInput=${e => setFilter(e.currentTarget.value)}
          onKeyDown=${e => { if (e.key === 'Enter') e.preventDefault(), Object.keys(kinds).some(k => wanted(lists[k], word).slice(0, 1).map(t => choose(t.name, false, k)).length); if (e.key === 'Escape') setFilter('') }} />
        <${Lists} lists=${lists} ready=${ready} word=${word} kind=${kind} tool=${tool} choose=${choose} />
        <${Recent} calls=${state.calls} edit=${edit} />
      </nav>
      ${server ? html`<${Server} state=${state} close=${() => setServer(false)} />`
        : state.state === 'failed' ? html`<${Failure} state=${state} restart=${() => restart(state.pinned ?? '')} />`
        : !ready ? html`<main class="alone"><p role="status">connecting to ${state.target}…</p></main>`
        : tool ? html`<${Try} key=${connection + ' ' + edits + ' ' + keyOf(kind, tool)} kind=${kind} tool=${tool} state=${state} edit=${edit} back=${() => choose('')} />`
        : html`<main class="alone"><p class="dim">Choose something on the left, or press <kbd>Ctrl K</kbd>.</p><${Asked} state=${state} /></main>`}
    </div>
    <${Traffic} state=${state} open=${traffic} toggle=${() => setTraffic(!traffic)} />
    ${palette && html`<${Palette} lists=${lists} choose=${choose} close=${() => setPalette(false)}
      actions=${[['restart the server', () => restart(state.pinned ?? '')], ['show or hide the traffic', () => setTraffic(!traffic)], ['show the server', () => setServer(true)]]} />`}`
}

// enterForm moves the focus to the first control of the form, or to what calls.
function enterForm() {
  const to = document.querySelector('.ask :is(input, select, textarea)') ?? document.querySelector('.ask')
  if (!to) return // its schema is not here yet
  chosen = false
  to.focus()
}

// again puts the arguments of a call into the draft of its tool.
function again(c) {
  const key = keyOf(kindOf(c), c.tool), d = drafts.get(key) ?? {}
  drafts.set(key, { ...d, node: null, json: null, load: c.arguments, call: c.id })
}

function Try({ kind, tool, state, edit, back }) {
  const [form, setForm] = useState(null)
  const [error, setError] = useState('')
  const [issues, setIssues] = useState([])
  const [all, setAll] = useState(false)
  const [call, setCall] = useState(null)
  const [side, setSide] = useState('result')
  const [uri, setURI] = useState('')
  const [, redraw] = useState(0)
  const draft = useRef(null)
  draft.current ??= drafts.get(keyOf(kind, tool)) ?? {}
  const d = draft.current
  drafts.set(keyOf(kind, tool), d)
  d.call ??= state.calls.find(c => c.tool === tool && kindOf(c) === kind)?.id
  const newest = useRef(0), stop = useRef(null), timer = useRef(0)

  useEffect(() => {
    get(`/api/form?kind=${kind}&tool=${encodeURIComponent(tool)}`).then(f => {
      if (f.form && !d.node) {
        d.node = make(f.form)
        const given = d.load ?? (link().tool === tool && link().kind === kind ? link().args : null)
        d.load = null
        if (given) try { load(d.node, parse(given)) } catch { d.json = given }
      }
      d.json ??= f.form ? null : '{}'
      setForm(f)
      check()
    }, e => setError(e.message))
    return () => { clearTimeout(timer.current); timer.current = null; stop.current?.abort() } // a field that goes away is left, too
  }, [])
  useLayoutEffect(() => { if (form && chosen) enterForm() }, [form])
  const text = () => d.json ?? (d.node ? value(d.node) ?? '{}' : '{}')
  // check asks the program, and returns what is wrong; an answer that comes after a
  // newer one counts for nothing.
  const check = async () => {
    clearTimeout(timer.current)
    stop.current?.abort()
    stop.current = new AbortController()
    const mine = ++newest.current
    try {
      const r = await post('/api/check', { kind, tool, value: text() }, stop.current.signal)
      if (mine === newest.current) { setIssues(r.issues ?? []); setURI(r.shown) }
      return { issues: r.issues ?? [], uri: r.uri }
    } catch (e) { if (mine === newest.current && e.name !== 'AbortError') setIssues([]) }
    return { issues: [] }
  }
  const change = () => { if (timer.current === null) return; redraw(n => n + 1); clearTimeout(timer.current); timer.current = setTimeout(check, 250); keep(kind, tool, text()) }
  const run = async () => { // what is wrong is shown first, and sent when it is meant
    setAll(true)
    setError('')
    setSide('result')
    const checked = await check()
    if (checked.issues.length && !all) return
    try {
      const r = await begin(kind, tool, text(), checked.uri)
      d.call = r.call
      redraw(n => n + 1)
    } catch (e) { setError(e.message) }
  }
  const repeat = async () => { // the call that is shown, as it was
    try { d.call = (await begin(kindOf(call), call.tool, call.arguments)).call; redraw(n => n + 1) } catch (e) { setError(e.message) }
  }
  const listed = state.calls.find(c => c.id === d.call)
  useEffect(() => {
    if (!d.call) return
    get('/api/calls/' + d.call).then(setCall, () => setCall(null))
  }, [d.call, listed?.state, listed?.progress?.Progress])
  const toJSON = () => { d.json = indent(text()); change() }
  const toForm = () => { try { const v = parse(d.json); d.node = make(form.form); load(d.node, v); d.json = null; setError(''); change() } catch (e) { setError('this is no JSON: ' + e.message) } }
  if (!form) return html`<main class="try"><p role="status" class=${error ? 'bad' : 'dim'}>${error || 'reading the schema…'}</p></main>`
  const verb = kinds[kind].verb
  const loose = issues.filter(i => d.json !== null || !placed(d.node, i.path))
  return html`<main class="try" onKeyDown=${e => { if ((e.ctrlKey || e.metaKey) && e.key === 'Enter') { e.preventDefault(); run() } }}>
    <section class="ask" aria-label="Form" tabindex="-1">
      <div class="bar"><button type="button" class="quiet back" onClick=${back}>← list</button></div>
      <h2>${form.title || form.name}</h2>
      <p class="meta">${form.title && html`<code>${form.name}</code> `}${(form.marks ?? []).map(m => html`<span class="mark">${m}</span> `)}</p>
      ${form.wrong && html`<p class="bad">${form.wrong}</p>`}
      ${form.description && html`<${Description} text=${form.description} />`}
      ${d.json === null ? html`<${Form} node=${d.node} tool=${tool} complete=${completer(kind, tool, d.node)} issues=${issues} all=${all} change=${change} />`
        : html`<textarea class="mono json" aria-label="arguments as JSON" spellcheck="false" rows="12" value=${d.json} onInput=${e => { d.json = e.currentTarget.value; change() }}></textarea>`}
      ${kind === 'template' && html`<p class="meta">URI <code>${uri}</code></p>`}
      ${loose.length > 0 && (all || d.json !== null) && html`<ul class="bad">${loose.map(i => html`<li>${i.path && i.path + ': '}${i.message}${i.hint && '; ' + i.hint}</li>`)}</ul>`}
      ${error && html`<p class="bad" role="alert">${error}</p>`}
      <div class="bar sticky"><button type="button" class="primary" onClick=${run}>${issues.length && all ? verb + ' anyway' : verb} <kbd>Ctrl ↵</kbd></button>
        ${kind !== 'resource' && html`<span class="tabs" role="group" aria-label="How arguments are typed"><button type="button" aria-pressed=${d.json === null} disabled=${!form.form} onClick=${() => d.json !== null && toForm()}>Form</button><button type="button" aria-pressed=${d.json !== null} onClick=${() => d.json === null && toJSON()}>JSON</button></span>`}
        <span class=${issues.length && all ? 'bad' : 'dim'} aria-live="polite">${all && issues.length ? (issues.length === 1 ? '1 problem' : issues.length + ' problems') : ''}</span></div>
    </section>
    <div class="side"><div class="tabs" role="group" aria-label="Beside the form"><button type="button" aria-pressed=${side === 'result'} onClick=${() => setSide('result')}>Result</button>
        <button type="button" aria-pressed=${side === 'model'} onClick=${() => setSide('model')}>${kind === 'tool' ? 'What the model sees' : 'Definition'}</button></div>
      <${Asked} state=${state} />
      ${side === 'model' ? html`<section class="result" aria-label="Definition"><p class="dim num">about ${form.tokens < 1000 ? form.tokens : (form.tokens / 1000).toFixed(1) + 'k'} tokens</p><pre class="view" tabindex="0">${form.sent}</pre></section>`
        : call ? html`<${Result} call=${call} cancel=${() => del('/api/calls/' + call.id)} repeat=${repeat} edit=${kind === 'template' ? null : () => edit(call, kind)} />`
        : !state.questions.length && html`<p class="dim empty">The result is shown here. <kbd>Ctrl ↵</kbd> ${{ Call: 'calls', Get: 'gets it', Read: 'reads it' }[verb]}.</p>`}</div>
  </main>`
}

function Description({ text }) {
  const [open, setOpen] = useState(false)
  const long = text.length > 300
  return html`<p class="description">${long && !open ? text.slice(0, 280) + '… ' : text}${long && html` <button type="button" class="quiet" aria-expanded=${open} onClick=${() => setOpen(!open)}>${open ? 'less' : 'more'}</button>`}</p>`
}

function Failure({ state, restart }) {
  const f = state.failure ?? {}
  return html`<main class="alone failure"><h2>There is no connection</h2><p class="cause">${f.cause}</p>${f.hint && html`<p>${f.hint}</p>`}
    ${f.exit && html`<p class="dim">The command ended: ${f.exit}</p>`}
    ${f.stderr?.length ? html`<h3>Last lines of standard error</h3><pre tabindex="0">${f.stderr.join('\n')}</pre>` : html`<p class="dim">Nothing was written to standard error.</p>`}
    <button type="button" class="primary" onClick=${restart}>Try again</button></main>`
}

function Palette({ lists, actions, choose, close }) {
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const box = useRef(null)
  useLayoutEffect(() => { box.current.showModal() }, [])
  const word = text.toLowerCase()
  const all = [...Object.keys(kinds).flatMap(k => (lists[k]?.entries ?? []).map(t => [t.label, () => choose(t.name, false, k), [k !== 'tool' && k, t.description].filter(Boolean).join(' · ')])), ...actions].filter(([label]) => label.toLowerCase().includes(word)).slice(0, 12)
  const pick = i => { box.current.close(); all[i]?.[1]() }
  return html`<dialog ref=${box} aria-label="Find" onClose=${close} onClick=${e => e.target === box.current && close()}>
    <input role="combobox" aria-expanded="true" aria-controls="found" aria-activedescendant=${'found-' + at} aria-label="find a tool, a prompt, a resource or an action" placeholder="a tool, a prompt, a resource or an action" value=${text} onInput=${e => { setText(e.currentTarget.value); setAt(0) }}
      onKeyDown=${e => { if (e.key === 'ArrowDown') setAt(Math.min(all.length - 1, at + 1)); else if (e.key === 'ArrowUp') setAt(Math.max(0, at - 1)); else if (e.key === 'Enter') pick(at); else return; e.preventDefault() }} />
    <ul id="found" role="listbox" aria-label="found">${all.map(([label, , help], i) => html`<li id=${'found-' + i} role="option" aria-selected=${i === at} onClick=${() => pick(i)}><span>${label}</span> <span class="dim one">${help ?? ''}</span></li>`)}</ul></dialog>`
}

// Servers are those of a configuration file, of which the page shows one. Each has
// drafts of its own.
function Servers({ first }) {
  const [list, setList] = useState(first)
  const [n, setN] = useState(Math.max(0, first.findIndex(s => s.name === link().server)))
  const known = useRef(new Map())
  useEffect(() => {
    const moved = () => { const i = first.findIndex(s => s.name === link().server); if (i >= 0) setN(i) }
    addEventListener('hashchange', moved)
    return () => removeEventListener('hashchange', moved)
  }, [])
  chooseServer(n)
  named = list[n].name
  drafts = known.current.get(n) ?? new Map()
  known.current.set(n, drafts)
  const refresh = () => get('/api/servers').then(setList, () => {})
  const choose = e => { setN(+e.currentTarget.value); history.pushState(null, '', '#' + new URLSearchParams({ server: list[+e.currentTarget.value].name })); refresh() }
  return html`<${App} key=${n} head=${html`<h1><select aria-label="server" value=${n} onFocus=${refresh} onChange=${choose}>${list.map((s, i) => html`<option value=${i}>${s.label}${s.questions ? ` (${s.questions} waiting)` : ''}</option>`)}</select></h1>`} />`
}

async function start() {
  if (!await enter()) return html`<main class="alone"><h1>Inspector</h1><p role="alert">${failed.text}</p></main>`
  const servers = await get('/api/servers').catch(() => [])
  return servers.length > 1 ? html`<${Servers} first=${servers} />` : html`<${App} />`
}
render(await start(), document.body)
