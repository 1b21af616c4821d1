// The page: what there is on the left, one of it in the middle, and what went over the
// wire below.
import { html, render, useState, useEffect, useLayoutEffect, useRef } from './vendor.js'
import { address, chooseServer, count, enter, failed, finder, get, post, listen, indent, moves, seen, seenJSON } from './program.js'
import { ctrl, usePages } from './pages.js'
import { Code, asSent } from './json.js'
import { Check, sum } from './check.js'
import { Running, Tasks } from './tasks.js'
import { Replay, SaveTraffic } from './replay.js'
import { Icon, Splitter, setPanes } from './looks.js'
import { Asked, Try, again, enterForm, keyOf, kinds, kindOf, link, page, signs, took, words } from './call.js'

let named = '' // the server that is shown, if there are several
const narrow = matchMedia('(max-width: 760px)')

// App shows one server. several hears of all that there are, and tells whether it is
// this one that is wanted.
function App({ head, several }) {
  const [state, setState] = useState(null) // and each list, by its kind
  const [lost, setLost] = useState('')
  const [{ kind, tool }, setTool] = useState(link)
  const [traffic, setTraffic] = useState(rowOf() > 0)
  const [server, show] = useState('') // or check, in the place of the form
  const setServer = on => show(on ? 'server' : '')
  const [palette, setPalette] = useState(false)
  const [theme, setTheme] = useState(sessionStorage.getItem('theme') ?? '')
  const [edits, setEdits] = useState(0)
  const before = useRef(null) // what was open when the page or the program ended

  useEffect(() => {
    const told = (news, all) => {
      if (news.servers && !several(news.servers)) return
      if (!before.current) setPanes(news.open?.panes)
      before.current ??= news.open
      setLost('')
      setState(was => all ? news : { ...was, ...news })
    }
    let shown = new AbortController()
    const follow = () => { shown.abort(); shown = new AbortController(); if (!document.hidden) listen(told, setLost, shown.signal) }
    follow()
    document.addEventListener('visibilitychange', follow)
    const end = moves(() => {
      const to = link()
      const key = keyOf(to.kind, to.tool)
      if (to.args && page.drafts.get(key)?.asked !== to.args) { page.drafts.delete(key); setEdits(n => n + 1) } // a form that is open is filled in, too, but not when the user comes back to it
      setTool(to)
      if (rowOf()) setTraffic(true)
    })
    return () => { shown.abort(); document.removeEventListener('visibilitychange', follow); end() }
  }, [])
  const ready = state?.state === 'ready', connection = state?.connection
  useEffect(() => { // something is open from the start, where there is room
    if (!ready || link().tool || narrow.matches) return
    const { kind: k, tool: name } = before.current
    if (name && !state[k]) return // it comes
    if (name && state[k].entries.some(e => e.name === name)) return choose(name, true, k)
    for (const k of Object.keys(kinds)) {
      if (!state[k]) return
      if (state[k].entries.length) return choose(state[k].entries[0].name, true, k)
    }
  }, [ready, connection, ...Object.keys(kinds).map(k => state?.[k])])
  useEffect(() => { if (state && !narrow.matches && document.activeElement === document.body) document.getElementById('filter')?.focus() }, [!state]) // what is typed first is a name
  useEffect(() => { document.documentElement.style.colorScheme = theme; sessionStorage.setItem('theme', theme) }, [theme])
  const name = state?.server?.title || state?.server?.name || state?.target || 'Inspector'
  const questions = state?.questions ?? []
  useEffect(() => { document.title = (questions.length ? `(${questions.length}) ` : '') + name }, [name, questions.length])
  useEffect(() => {
    const key = e => {
      const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName)
      if (ctrl(e) && e.key === 'k') { e.preventDefault(); setPalette(true) }
      else if (ctrl(e) && e.key === 'Enter' && !document.querySelector('.try, dialog[open]')) setLost('No form is open. Choose a tool first.')
      else if (e.key === '/' && !typing) { e.preventDefault(); document.getElementById('filter')?.focus() }
      else if (e.key === 't' && !typing && !ctrl(e) && !e.altKey) setTraffic(v => !v)
    }
    addEventListener('keydown', key)
    return () => removeEventListener('keydown', key)
  }, [])
  const choose = (to, quiet, of = 'tool', place = null) => {
    setLost('')
    setTool({ kind: of, tool: to })
    page.place = place
    if (!quiet) show('')
    page.chosen = !quiet && !!to
    if (page.chosen && to === tool && of === kind) enterForm()
    history[quiet ? 'replaceState' : 'pushState'](null, '', '#' + new URLSearchParams({ ...(named && { server: named }), ...(to && { [of]: to }), ...(quiet && rowOf() && { row: rowOf() }) }))
  }

  const [next, sign] = { dark: ['light', '◐'], light: ['', '○'] }[theme] ?? ['dark', '◑']
  const light = html`<button class="quiet" aria-label="light or dark" onClick=${() => setTheme(next)}>${sign}</button>`
  if (!state) return html`<${Alone} role="status" text=${lost || failed.text || 'connecting to talaria…'} />`
  if (state.state === 'recording') return html`<div class="recorded">
    <header>${head || html`<h1 class="one">${state.target}</h1>`}<span role="status">recording</span><span class="space"></span>${light}</header>
    ${lost && html`<div class="banner" role="alert">${lost}</div>`}
    <main><${Traffic} state=${state} open=${true} /></main></div>`
  // edit opens the form of a call with its arguments, and its result beside it.
  const edit = async (c, of) => {
    try { again(await get('/api/calls/' + c.id)) } catch (e) { setLost(e.message); return }
    setEdits(n => n + 1)
    choose(c.tool, false, of)
  }
  const restart = (revision = state.pinned ?? '') => post('/api/connect', { revision }).catch(e => setLost(e.message))
  const revision = html`<select aria-label="revision of the protocol" value=${state.pinned ?? ''} onChange=${e => restart(e.currentTarget.value)}>
        <option value="">${state.pinned || !state.revision ? 'automatic' : state.revision + ' (automatic)'}</option>${state.revisions.map(r => html`<option value=${r}>${r}</option>`)}</select>`
  return html`
    <header>${head || html`<h1 class="one">${name}</h1>`}<span class=${'dot ' + state.state} aria-hidden="true"></span><span role="status" class="state">${state.state === 'failed' ? 'not connected' : state.state}</span>
      ${revision}
      <span class="space"></span>
      <button class="quiet wide" onClick=${() => setPalette(true)}>Find <kbd>Ctrl K</kbd></button>
      <button class="quiet" aria-label=${state.state === 'failed' ? 'try again' : state.http ? 'reconnect' : 'restart'} onClick=${() => restart()}><span aria-hidden="true" class="thin">↻</span><span class="full">${state.state === 'failed' ? 'try again' : state.http ? 'reconnect' : 'restart'}</span></button>
      <button class="quiet" aria-pressed=${server === 'check'} onClick=${() => show(server === 'check' ? '' : 'check')}>Check${sum(state.check) > 0 && html` <span class="bad num">${sum(state.check)}</span>`}</button>
      <button class="quiet" aria-pressed=${server === 'server'} onClick=${() => setServer(server !== 'server')}>Server</button>
      ${light}</header>
    ${lost && html`<div class="banner" role="alert">${lost}</div>`}
    ${state.unbuilt && html`<div class="banner" role="alert"><strong>The server does not build.</strong> ${state.connection > 0 && 'The one before continues.'}<pre>${state.unbuilt}</pre></div>`}
    ${state.plain && html`<div class="banner" role="status">Connected as a host without views. <button onClick=${() => post('/api/connect', { revision: state.pinned ?? '', plain: false }).catch(e => setLost(e.message))}>With views</button></div>`}
    ${state.noise && html`<div class="banner" role="status">The server wrote a line to standard output that is not an MCP message: <code>${state.noise}</code>. Write logs to standard error.</div>`}
    <div class=${'panes' + (tool && ready || server || state.state === 'failed' ? ' has-tool' : '')}>
      <${Offer} state=${state} ready=${ready} kind=${kind} tool=${tool} choose=${choose} edit=${edit} />
      ${server === 'check' && ready ? html`<${Check} state=${state} go=${(k, name, place) => choose(name, false, k, place)} close=${() => show('')} />`
        : server === 'server' ? html`<${Server} state=${state} revision=${revision} close=${() => setServer(false)} />`
        : state.state === 'failed' ? html`<${Failure} state=${state} restart=${() => restart()} />`
        : !ready ? html`<main class="alone"><p role="status">connecting to ${state.target}…</p></main>`
        : tool && !state[kind] ? html`<main class="alone"><p role="status">reading the list…</p></main>`
        : tool ? html`<${Try} key=${connection + ' ' + edits + ' ' + keyOf(kind, tool)} kind=${kind} tool=${tool} state=${state} edit=${edit} back=${() => choose('')} />`
        : html`<main class="alone"><p class="dim">Choose something on the left, or press <kbd>Ctrl K</kbd>.</p><${Asked} state=${state} /></main>`}
    </div>
    <${Traffic} state=${state} open=${traffic} toggle=${() => setTraffic(!traffic)} />
    ${palette && html`<${Palette} lists=${state} choose=${choose} close=${() => setPalette(false)}
      actions=${[[state.http ? 'reconnect' : 'restart the server', () => restart()], ['show or hide the traffic', () => setTraffic(!traffic)], ['check what hosts accept', () => show('check')], ['show the server', () => setServer(true)]]} />`}`
}

// Offer is what there is on the left. What is typed into the filter draws nothing else.
function Offer({ state, ready, kind, tool, choose, edit }) {
  const [filter, setFilter] = useState('')
  const finds = finder(filter)
  return html`<nav aria-label="Offer"><div class="lists"><input id="filter" type="search" placeholder="filter  /" aria-label="filter the lists" value=${filter} onInput=${e => setFilter(e.currentTarget.value)}
        onKeyDown=${e => { if (e.key === 'Enter' && !ctrl(e)) e.preventDefault(), Object.keys(kinds).some(k => wanted(state[k], finds).slice(0, 1).map(t => choose(t.name, false, k)).length); if (e.key === 'Escape') setFilter('') }} />
      <${Lists} lists=${state} ready=${ready} word=${filter.trim()} finds=${finds} kind=${kind} tool=${tool} choose=${choose} />
      <${Running} calls=${state.calls} edit=${edit} />
      <${Recent} calls=${state.calls} problem=${state.problem} edit=${edit} /></div>
    <${Splitter} name="nav" label="width of the list" /></nav>`
}

function Alone({ role, text }) {
  return html`<header><h1 id="title">Inspector</h1></header><main class="alone" aria-labelledby="title"><p role=${role}>${text}</p></main>`
}

function Failure({ state, restart }) {
  const f = state.failure ?? {}
  return html`<main class="alone failure"><h2>Not connected</h2><p class="cause">${seen(f.cause ?? '')}</p>${f.hint && html`<p>${seen(f.hint)}</p>`}
    ${f.exit && html`<p class="dim">The command exited: ${f.exit}</p>`}
    ${f.stderr?.length ? html`<h3>Last lines of standard error</h3><pre tabindex="0">${f.stderr.join('\n')}</pre>` : html`<p class="dim">Nothing was written to standard error.</p>`}
    <button class="primary" onClick=${restart}>Try again</button></main>`
}

function Palette({ lists, actions, choose, close }) {
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const box = useRef(null)
  useLayoutEffect(() => { box.current.showModal() }, [])
  const finds = finder(text)
  const all = [...Object.keys(kinds).flatMap(k => wanted(lists[k], finds).map(t => [t.label, () => choose(t.name, false, k), [k !== 'tool' && k, t.title, t.description].filter(Boolean).join(' · '), k])), ...actions.filter(([label]) => finds(label))].slice(0, 12)
  const pick = i => { box.current.close(); all[i]?.[1]() }
  return html`<dialog ref=${box} aria-labelledby="find" onClose=${close} onClick=${e => e.target === box.current && close()}>
    <h2 id="find">Find</h2>
    <input role="combobox" aria-expanded="true" aria-controls="found" aria-activedescendant=${'found-' + at} aria-label="find" placeholder="a tool, a prompt, a resource or an action" value=${text} onInput=${e => { setText(e.currentTarget.value); setAt(0) }}
      onKeyDown=${e => { if (e.key === 'ArrowDown') setAt(Math.min(all.length - 1, at + 1)); else if (e.key === 'ArrowUp') setAt(Math.max(0, at - 1)); else if (e.key === 'Enter') pick(at); else return; e.preventDefault() }} />
    <ul id="found" role="listbox" aria-label="found">${all.map(([label, , help, kind], i) => html`<li id=${'found-' + i} role="option" aria-selected=${i === at} onClick=${() => pick(i)}><span>${kind && html`<${Icon} kind=${kind} />`}${label}</span> <span class="dim one">${help ?? ''}</span></li>`)}</ul>${!all.length && html`<p class="dim" role="status">Nothing found.</p>`}</dialog>`
}

// Servers are those of a configuration file, of which the page shows one. Each has
// drafts of its own.
function Servers() {
  const [list, setList] = useState([])
  const [n, setN] = useState(0)
  const known = useRef(new Map()), all = useRef([])
  const wanted = () => all.current.findIndex(s => s.name === link().server)
  useEffect(() => moves(() => wanted() >= 0 && setN(wanted())), [])
  const several = servers => {
    const first = !all.current.length
    setList(all.current = servers)
    if (first && wanted() > 0) setN(wanted())
    return !first || wanted() <= 0
  }
  chooseServer(n)
  named = list[n]?.name ?? ''
  page.drafts = known.current.get(n) ?? new Map()
  known.current.set(n, page.drafts)
  const choose = e => { setN(+e.currentTarget.value); history.pushState(null, '', '#' + new URLSearchParams({ server: list[+e.currentTarget.value].name })) }
  return html`<${App} key=${n} several=${several} head=${list.length > 1 && html`<h1><select aria-label="server" value=${n} onChange=${choose}>${list.map((s, i) => html`<option value=${i}>${s.label}${s.questions ? ` (${s.questions} waiting)` : ''}</option>`)}</select></h1>`} />`
}

const wanted = (list, finds) => {
  const found = loose => (list?.entries ?? []).filter(t => finds([t.label, t.name, t.title, t.description].join(' '), loose)), exact = found()
  return exact.length ? exact : found(true)
}

const shown = 120 // entries of all lists

// shares is how many entries of each list are drawn: short ones leave the others their room.
function shares(all) {
  const most = {}
  let room = shown, rest = all.length
  for (const [k, found] of all.toSorted((a, b) => a[1].length - b[1].length)) room -= Math.min(found.length, most[k] = Math.floor(room / rest--))
  return most
}

function Lists({ lists, ready, word, finds, kind, tool, choose }) {
  const move = e => {
    const by = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1 }[e.key]
    if (!by) return
    e.preventDefault()
    const all = [...e.currentTarget.querySelectorAll('button[data-tool]')]
    all[Math.min(all.length - 1, Math.max(0, all.indexOf(document.activeElement) + by))]?.focus()
  }
  const all = Object.keys(kinds).map(k => [k, wanted(lists[k], finds)]), some = all.filter(([, found]) => found.length), most = shares(some)
  return html`<div onKeyDown=${move}>${all.map(([k, found]) => {
    const list = lists[k], title = kinds[k].title
    if (!found.length && !list?.error && !(k === 'tool' && list)) return null
    return html`<section key=${k} aria-label=${title}><h2><${Icon} kind=${k} />${title} <span class="num dim">${list ? (word ? `${found.length} of ${list.entries.length}` : list.entries.length) : ''}</span></h2>
      ${list?.error && html`<p class="bad">${list.error}</p>`}${list?.note && html`<p class="dim">${list.note}</p>`}
      ${ready && k === 'tool' && list?.entries.length === 0 && !list.error && html`<p class="dim empty">This server has no tools.</p>`}
      <${List} kind=${k} what=${title.toLowerCase()} entries=${found} most=${most[k] ?? 0} word=${word} tool=${k === kind ? tool : null} choose=${choose} /></section>`
  })}${word && !some.length && html`<p class="dim empty" role="status">Nothing found.</p>`}</div>`
}

function List({ kind, what, entries, most, word, tool, choose }) {
  const [list, pager, from] = usePages(entries, most, what, word)
  return html`${pager}<ul class="list">${list.map((t, i) => html`<li key=${t.name + ' ' + (from + i)}><button data-tool aria-current=${t.name === tool ? 'true' : undefined} onClick=${() => choose(t.name, false, kind)}>
    <span class="one">${t.label}</span><span class="space"></span>${t.view && html`<span class="dim" title="has a view" aria-label="has a view" role="img">▣</span>`}${t.wrong && html`<span class="bad" title=${t.wrong} aria-label="is broken" role="img">!</span>`}${t.fails > 0 && html`<span class="warn num" title=${count(t.fails, 'finding') + ' of Check'} aria-label=${count(t.fails, 'finding')} role="img">${t.fails}</span>`}</button></li>`)}</ul>`
}

const ago = at => { const d = new Date(at), s = d.toTimeString().slice(0, 5); return d.toDateString() === new Date().toDateString() ? s : d.toISOString().slice(5, 10) + ' ' + s }

function Recent({ calls, problem, edit }) {
  const [list, pager] = usePages(calls, 12, 'calls')
  if (!calls.length && !problem) return null
  return html`<section aria-label="Recent"><h2>Recent</h2>${problem && html`<p class="bad small" role="status">${problem}</p>`}${pager}<ul class="list">${list.map(c => html`<li key=${c.id}><button onClick=${() => edit(c, kindOf(c))}>
    <span class="one"><${Icon} kind=${kindOf(c)} />${c.label}</span><span class="right dim num">${ago(c.at)} <span class=${'sign ' + c.state} title=${c.state}>${signs[c.state]}</span></span></button></li>`)}</ul></section>`
}

const levels = 'debug info notice warning error critical alert emergency'.split(' ')

function Server({ state, revision, close }) {
  const s = state.server
  const [said, setSaid] = useState('')
  const ask = (method, params, done) => { setSaid('…'); const at = performance.now(); post('/api/request', { method, params }).then(() => setSaid(done + took(performance.now() - at)), e => setSaid(e.message)) }
  return html`<main class="alone server"><div class="bar"><h2>Server</h2><span class="space"></span><button class="quiet" onClick=${close}>close</button></div>
    <dl><dt>Target</dt><dd><code>${state.target}</code></dd>${s && html`<dt>Name</dt><dd>${s.name} ${s.version}</dd>`}<dt>Revision</dt><dd>${state.revision || 'none'} <span class="thin">${revision}</span></dd><dt>Inspector</dt><dd>Talaria ${state.program}</dd></dl>
    ${s && html`<div class="bar"><button onClick=${() => ask('ping', {}, 'answered after ')}>Ping</button>
      ${state.logs && html`<label>Log level <select onChange=${e => ask('logging/setLevel', { level: e.currentTarget.value }, 'set after ')}><option value="" disabled selected>server default</option>${levels.map(l => html`<option>${l}</option>`)}</select></label>`}
      <span class="dim num" role="status">${said}</span></div>`}
    ${state.tasks && html`<${Tasks} />`}
    ${state.instructions && html`<h3>Instructions</h3><p class="description">${state.instructions}</p>`}
    ${state.capabilities && html`<h3>Capabilities</h3><div class="boxed" tabindex="0" role="region" aria-label="Capabilities"><${Code} text=${JSON.stringify(state.capabilities)} /></div>`}
    ${state.stderr?.length > 0 && html`<h3>Standard error</h3><pre class="boxed" tabindex="0">${state.stderr.join('\n')}</pre>`}</main>`
}

const chips = [['request', 'Requests'], ['notification,http', 'Notices'], ['log', 'Logs'], ['stderr', 'stderr'], ['errors', 'Errors']]

const clock = at => { const d = new Date(at); return d.toTimeString().slice(0, 8) + '.' + String(d.getMilliseconds()).padStart(3, '0') }
const size = n => n < 1000 ? n + ' B' : n < 1e6 ? (n / 1000).toFixed(1) + ' kB' : (n / 1e6).toFixed(1) + ' MB'

const severe = /^(error|critical|alert|emergency)$/, fine = /^(ok|version negotiation|not offered)$/ // levels; statuses that are no failures

const mostRows = 60 // rows that are drawn, as many as the program sends

const rowOf = () => +address().get('row') || 0
const here = () => rowOf() ? 'before=' + (rowOf() + 1) : ''

function Traffic({ state, open, toggle }) {
  const [kinds, setKinds] = useState('')
  const [text, setText] = useState('')
  const [page, setPage] = useState({ rows: [] }) // and kept, once they are here
  const [at, go] = useState(here) // '' is the newest, as they come
  const [chosen, pick] = useState(rowOf)
  const setChosen = seq => { // the address leads to the row that is open
    pick(seq)
    const q = address()
    if (seq) q.set('row', seq); else q.delete('row')
    history.replaceState(null, '', '#' + q)
  }
  useEffect(() => moves(() => { if (rowOf()) { pick(rowOf()); go(here()) } }), [])
  useEffect(() => {
    if (!open) return
    const stop = new AbortController()
    const timer = setTimeout(() => get(`/api/traffic?${at}&kinds=${kinds}&text=${encodeURIComponent(text)}`, stop.signal).then(p => at[0] === 'f' && p.rows.length < mostRows ? go('') : setPage(p), () => {}), 50)
    return () => { clearTimeout(timer); stop.abort() }
  }, [open, kinds, text, at, at ? 0 : state.traffic, at ? 0 : state.calls[0]?.state])
  const box = useRef(null), end = useRef(null)
  useLayoutEffect(() => { if (end.current !== null) box.current.scrollTop = end.current; end.current = null }, [page])
  // key goes on where the rows that are drawn end, and to either end of all.
  const key = e => {
    const r = box.current, { rows } = page
    const to = e.key === 'Home' ? '' : e.key === 'End' ? 'from=1' : e.key === 'PageDown' && rows.length === mostRows && r.scrollTop + r.clientHeight > r.scrollHeight - 2 ? 'before=' + rows.at(-1).seq
      : e.key === 'PageUp' && at && rows.length && r.scrollTop < 2 ? 'from=' + (rows[0].seq + 1) : at
    if (to === at || ctrl(e)) return
    e.preventDefault()
    r.focus()
    end.current = to[0] === 'f' ? 1e9 : 0
    go(to)
  }
  const calls = state.calls.filter(c => !c.earlier), errors = calls.filter(c => /error|failed|invalid/.test(c.state)).length
  const last = state.stderr?.at(-1), call = calls[0]
  const show = () => { toggle(); get('/api/traffic?kinds=request').then(p => setChosen(p.rows.find(r => r.method === call.method && !r.view)?.seq ?? 0), () => {}) }
  return html`<section class=${'traffic' + (open ? ' open' : '')} aria-label="Traffic">
    ${open && toggle && html`<${Splitter} name="traffic" label="height of the traffic" />`}<div class="bar">${toggle && html`<button class="quiet" aria-expanded=${open} onClick=${toggle}>Traffic ${open ? '▾' : '▴'}</button>`}
      <span class="num dim">${toggle && calls.length > 0 && count(calls.length, 'call') + ', '}${count(state.traffic - (state.lines ?? 0), 'message')}${state.lines > 0 && html`<span class="full">, ${count(state.lines, 'line')} of stderr</span>`}${errors ? `, ${errors} failed` : ''}</span>${page.dropped > 0 && html` <span class="bad num">${count(page.dropped, 'message')} dropped: too many at once</span>`}
      ${!open && call && html`<button class="quiet one" title="show its messages" onClick=${show}>→ ${call.method} ${call.label} <span class=${'sign ' + call.state}>${words[call.state]}</span> <span class="num">${took(call.took)}</span></button>`}
      ${!open && last && html`<span class="one dim">stderr: ${last}</span>`}
      ${open && html`<span class="chips" role="group" aria-label="Kinds">${chips.map(([k, label]) => html`<button aria-pressed=${kinds.split(':')[0] === k} onClick=${() => { setKinds(kinds.split(':')[0] === k ? '' : k); go('') }}>${label}</button>`)}</span>
        ${kinds.startsWith('log') && html`<select aria-label="least level" value=${kinds.slice(4)} onChange=${e => { setKinds(['log', e.currentTarget.value].filter(Boolean).join(':')); go('') }}><option value="">every level</option>${levels.slice(1).map(l => html`<option value=${l}>${l}${l !== 'emergency' && ' or worse'}</option>`)}</select>`}
        <input type="search" placeholder="find in messages" aria-label="find in messages" value=${text} onInput=${e => { setText(e.currentTarget.value); go('') }} />
        <${SaveTraffic} />
        ${at && html`<button class="quiet" onClick=${() => go('')}>newest</button>`}
        ${page.rows.length === mostRows && html`<button class="quiet" onClick=${() => go('before=' + page.rows.at(-1).seq)}>older</button>`}`}</div>
    ${open && html`<div class="split"><div class="rows" tabindex="0" role="region" aria-label="Messages" ref=${box} onKeyDown=${key}>
      ${page.kept !== undefined && !page.rows.length && html`<p class="dim empty">${kinds || text ? 'Nothing found.' : 'No messages.'}</p>`}
      <table>${page.rows.length > 0 && html`<thead><tr><th>Time</th><th>Message</th><th class="right">Took</th><th class="right">Size</th><th>Status</th></tr></thead>`}<tbody>${page.rows.map(r => html`<tr key=${r.seq} class=${r.kind + (chosen === r.seq ? ' chosen' : '')}>
        <td class="num dim">${clock(r.at)}</td>
        <td>${r.kind === 'stderr' || r.kind === 'note' ? html`<span class="dim">${r.kind}</span> <span class="mono">${r.name}</span>`
          : html`<button class="quiet" aria-pressed=${chosen === r.seq} onClick=${() => setChosen(chosen === r.seq ? 0 : r.seq)}><span aria-hidden="true">${r.from === 'client' ? '→' : '←'}</span> ${r.view && html`<span class="dim">view</span> `}${r.method || r.kind}</button> ${r.level && html`<span class=${severe.test(r.level) ? 'bad' : 'dim'}>${r.level}</span>`} ${r.name}`}</td>
        <td class="num right">${r.kind === 'http' ? took(r.took) : r.kind === 'request' ? (r.status ? took(r.took ?? 0) : '…') : ''}</td>
        <td class="num right dim">${r.kind === 'stderr' || r.kind === 'http' ? '' : r.kind === 'request' ? `${size(r.out)} → ${r.in ? size(r.in) : '…'}` : size(r.out)}</td>
        <td><span class=${r.status ? (fine.test(r.status) ? 'dim' : 'bad') : r.kind === 'broken' ? 'bad' : ''}>${r.status || r.kind === 'broken' && r.kind}</span> ${r.http ? html`<span class=${'num ' + (r.http >= 400 && !fine.test(r.status) ? 'bad' : 'dim')} title="status of HTTP">${r.http}</span>` : r.kind === 'http' ? html`<span class="bad">failed</span>` : ''}</td></tr>`)}</tbody></table></div>
      ${chosen > 0 && html`<${Message} seq=${chosen} live=${state.state === 'recording' && state.servers?.length > 1 && state.servers[1].label} close=${() => setChosen(0)} fresh=${(r => r && r.status + ' ' + r.http)(page.rows.find(r => r.seq === chosen))} />`}</div>`}
  </section>`
}

function Message({ seq, live, close, fresh }) {
  const [m, setM] = useState(null)
  const [raw, setRaw] = useState(false)
  const [secrets, setSecrets] = useState(false)
  useEffect(() => { get('/api/traffic/' + seq + (secrets ? '?secrets=shown' : '')).then(setM, e => setM({ error: e.message })) }, [seq, fresh, secrets])
  const [one, show] = useState(null) // the exchange that is open
  if (!m) return null
  return html`<div class="message" role="region" aria-label="Message" tabindex="0"><div class="bar"><strong>${m.row?.method || 'message'}</strong><span class="space"></span>
    <button class="quiet" aria-pressed=${raw} onClick=${() => setRaw(!raw)}>as sent</button><button class="quiet" onClick=${close}>close</button></div>
    ${m.error && html`<p class="bad">${m.error}</p>`}
    ${(m.texts ?? []).map((t, i) => t && html`<div class="dim">${i ? 'answer' : m.row.kind}</div><${Code} text=${t} as=${raw ? asSent : indent} label=${i ? 'Answer' : 'Message'} />`)}
    ${live && /^(tools\/call|prompts\/get|resources\/read)$/.test(m.row?.method) && m.row.from === 'client' && html`<${Replay} key=${seq} seq=${seq} live=${live} />`}
    ${m.exchanges?.map((x, i) => html`<${Exchange} key=${i} x=${x} open=${one === null ? m.row.kind === 'http' : one === i} show=${is => show(is ? i : -1)} secrets=${secrets} toggle=${() => setSecrets(!secrets)} />`)}</div>`
}

function Exchange({ x, open, show, secrets, toggle }) {
  const heads = [['sent', x.sent], ['received', x.got]]
  return html`<details class="exchange" open=${open} onToggle=${e => e.currentTarget.open !== open && show(!open)}><summary>HTTP <span class=${'num ' + (x.status >= 400 || !x.status ? 'bad' : '')}>${x.status || 'failed'}</span> <span class="dim">${x.method} ${x.url} <span class="num">${took(x.took)}</span></span></summary>
    ${x.error && html`<p class="bad">${x.error}</p>`}
    ${open && heads.map(([name, list]) => list?.length > 0 && html`<h3>Headers ${name}</h3><table><tbody>${list.map(h => html`<tr><th scope="row">${h.name}</th><td class=${h.secret && !secrets ? 'dim' : ''}>${h.value}</td></tr>`)}</tbody></table>`)}
    ${heads.some(([, list]) => list?.some(h => h.secret)) && html`<button class="quiet" aria-pressed=${secrets} onClick=${toggle}>${secrets ? 'hide secrets' : 'show secrets'}</button>`}</details>`
}

render(await enter() ? html`<${Servers} />` : html`<${Alone} role="alert" text=${failed.text} />`, document.body)
