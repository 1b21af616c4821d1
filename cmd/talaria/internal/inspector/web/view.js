// The view of a tool (SEP-1865), of which this page is the host. It runs in a frame of
// another port, without an origin, and all that it says comes as messages.
import { html, useState, useEffect, useLayoutEffect, useMemo, useRef } from './vendor.js'
import { get, post, seen } from './program.js'
import { usePages } from './pages.js'
import { Code } from './json.js'
import { signs, took } from './call.js'

const origin = document.querySelector('meta[name=frames]')?.content
const sandbox = 'ui/notifications/sandbox-'
const widths = { Phone: 375, Panel: 600, Full: 0 }
const highest = 4000 // pixels
const pending = 32 // requests at a time
const longestKept = 1e6, mostKept = 4e6 // characters of a message that are kept, and of all in a second

// The variables of the specification, by those of the page.
const colors = {
  background: 'primary back,secondary raise,tertiary line,inverse text,ghost back,info pick,danger raise,success raise,warning raise,disabled raise',
  text: 'primary text,secondary dim,tertiary dim,inverse back,ghost dim,info accent,danger bad,success good,warning warn,disabled dim',
  border: 'primary line,secondary line,tertiary line,inverse text,ghost back,info accent,danger bad,success good,warning warn,disabled line',
  ring: 'primary accent,secondary line,inverse text,info accent,danger bad,success good,warning warn',
}

function variables() {
  const own = getComputedStyle(document.documentElement), all = { '--font-sans': 'system-ui, sans-serif', '--font-mono': 'ui-monospace, monospace', '--border-radius-sm': '4px', '--border-radius-md': '6px', '--border-radius-lg': '8px', '--border-width-regular': '1px' }
  for (const [of, list] of Object.entries(colors)) for (const pair of list.split(',')) {
    const [name, from] = pair.split(' ')
    all[`--color-${of}-${name}`] = own.getPropertyValue('--' + from).trim()
  }
  return all
}

const isDark = () => (document.documentElement.style.colorScheme || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : '')) === 'dark'

function useDark() {
  const [dark, set] = useState(isDark)
  useEffect(() => {
    const look = () => set(isDark()), system = matchMedia('(prefers-color-scheme: dark)'), own = new MutationObserver(look)
    system.addEventListener('change', look)
    own.observe(document.documentElement, { attributes: true })
    return () => { system.removeEventListener('change', look); own.disconnect() }
  }, [])
  return dark
}

const failure = (code, message) => Object.assign(new Error(message), { code })

// show begins a view in a box. on is told what it asks for and what happens to it.
function show(box, v, on) {
  const frame = document.createElement('iframe'), id = Math.floor(Math.random() * 2 ** 50), stop = new AbortController()
  let state = 'new', asked = 0, unsent = [], timer = 0, second = 0, kept = 0
  const log = (from, m) => {
    const now = Date.now(), short = v => typeof v === 'number' ? v : v && String(v).slice(0, 99)
    let text = JSON.stringify(m)
    if (now - second > 1000) { second = now; kept = 0 }
    if (text.length > Math.min(longestKept, mostKept - kept)) text = JSON.stringify({ jsonrpc: '2.0', id: short(m.id), method: short(m.method), ...(m.method ? { params: {} } : { result: {} }), left: text.length + ' characters' })
    kept += text.length
    unsent.push({ at: now, from, text })
    timer ||= setTimeout(flush, 100)
  }
  const flush = async () => { // in parts that the program takes
    for (let n, size; unsent.length; await post('/api/view/messages', { view: id, list: unsent.splice(0, n) }).catch(() => {})) for (n = size = 0; n < unsent.length && n < 500 && size < mostKept; n++) size += unsent[n].text.length
    timer = 0
  }
  const say = m => { m = { jsonrpc: '2.0', ...m }; frame.contentWindow?.postMessage(m, origin); log('host', m) }
  const gone = () => { removeEventListener('message', hear); frame.remove() }
  const hear = async ({ source, data: m }) => {
    if (source !== frame.contentWindow || m?.jsonrpc !== '2.0') return
    if (typeof m.method === 'string' && m.method.startsWith(sandbox)) {
      const what = m.method.slice(sandbox.length)
      if (what === 'proxy-ready') frame.contentWindow.postMessage({ jsonrpc: '2.0', method: sandbox + 'resource-ready', params: { html: v.html } }, origin)
      on.note(what, m.params ?? {})
      return
    }
    if (state === 'ended' && (m.id !== id || m.method !== undefined)) return
    try { log('view', m) } catch { return } // it is not JSON
    if (state === 'ended') gone()
    if (m.method === undefined) return
    if (m.id === undefined) {
      if (m.method === 'ui/notifications/initialized' && state === 'new') { state = 'open'; on.open() }
      if (m.method === 'ui/notifications/size-changed') on.size(m.params)
      return
    }
    let answer
    try {
      if (asked++ >= pending) throw failure(-32000, 'too many requests at once')
      answer = { result: await on.serve(m.method, m.params ?? {}, stop.signal) }
    } catch (e) { answer = { error: { code: e.code ?? -32000, message: e.message, data: e.data } } }
    asked--
    if (state !== 'ended') say({ id: m.id, ...answer })
  }
  addEventListener('message', hear)
  frame.title = 'View'
  frame.src = origin + '/?' + v.query
  box.append(frame)
  return {
    frame, send: (method, params) => { if (state === 'open') say({ method: 'ui/notifications/' + method, params }) },
    // end gives the view a second to end by itself, out of sight.
    end(reason) {
      const open = state === 'open'
      state = 'ended'
      stop.abort()
      if (!open || !document.documentElement.moveBefore) return gone()
      frame.hidden = true
      document.documentElement.moveBefore(frame, null)
      say({ id, method: 'ui/resource-teardown', params: { reason } })
      setTimeout(gone, 1000)
    },
  }
}

const lists = { 'connect-src': 'connectDomains', 'frame-src': 'frameDomains', 'base-uri': 'baseUriDomains' }

// violation says what a view must declare to load what was blocked.
function violation({ directive, blocked }) {
  const from = /^(https|wss):/.test(blocked) && URL.canParse(blocked) ? new URL(blocked).origin : ''
  return `Blocked by ${directive}: ${blocked}. ` + (from && !/form-action/.test(directive) ? `Declare "${from}" in _meta.ui.csp.${lists[directive] ?? 'resourceDomains'}.` : 'No origin that a view declares allows it.')
}

const texts = {
  violation, error: p => 'Script: ' + p.text, ended: p => `The view was closed: ${p.why}.`, flood: p => `More than ${p.most} messages or ${p.size} MB in a second: the others were dropped.`,
}

// View shows the view of a tool: while args are typed, with what a call was given, and with
// its result.
export function View({ form, call, args, state, hidden }) {
  const [v, setV] = useState(null)
  const [error, setError] = useState('')
  const [n, setN] = useState(0)
  const [width, setWidth] = useState('Full')
  const [chosen, setTheme] = useState('')
  const [mode, setMode] = useState('inline')
  const [room, setRoom] = useState(0)
  const [, redraw] = useState(0)
  const theme = useDark() ? 'dark' : 'light', box = useRef(null), own = useRef({}), tools = useRef(null)
  const o = own.current, update = () => redraw(n => n + 1)
  tools.current = state.tool?.entries ?? []
  const changing = { theme: chosen || theme, displayMode: mode, containerDimensions: { width: room, maxHeight: highest } }
  own.current.context = changing

  useEffect(() => { // again after a reload, as the server may have another one
    const stop = new AbortController()
    get('/api/view?tool=' + encodeURIComponent(form.name), stop.signal).then(v => { setError(''); setV(v) }, e => e.name !== 'AbortError' && setError(e.message))
    return () => stop.abort()
  }, [form.name, n])
  useLayoutEffect(() => {
    if (!v) return
    const o = own.current = { context: own.current.context, notes: new Set(v.problems), calls: [], asks: [], told: [] }
    if (v.asks) o.notes.add(`The view asks for ${v.asks.join(', ')}, which this host does not grant.`)
    const note = text => { if (o.notes.size < 50) o.notes.add(seen(text.slice(0, 999))); update() }
    // allow waits for what the user decides.
    const allow = (ask, signal) => new Promise((yes, no) => {
      if (o.asks.length >= 5) throw failure(-32000, 'too many questions to the user at once')
      const end = (done, value) => { o.asks = o.asks.filter(a => a !== ask); update(); done(value) }
      Object.assign(ask, { yes: () => end(yes), no: () => end(no, failure(-32000, 'the user refused it')) })
      signal.addEventListener('abort', ask.no)
      o.asks.push(ask)
      update()
    })
    const request = async (method, p, signal) => {
      const name = String(p.name ?? p.uri), entry = method === 'tools/call' && tools.current.find(t => t.name === name)
      const one = { name, arguments: JSON.stringify(p.arguments), state: 'running' }
      o.calls = [one, ...o.calls].slice(0, 50)
      try {
        if (method === 'tools/call' && !entry?.harmless) await allow({ text: `The view calls ${entry?.label ?? seen(name)}, which may be destructive.`, more: one.arguments }, signal)
        const from = performance.now()
        update()
        const r = await post('/api/view/request', { method, params: { name: p.name, uri: p.uri, arguments: p.arguments } }, signal)
        one.took = performance.now() - from
        one.state = r.error ? 'error' : r.result?.isError ? 'failed' : 'done'
        if (r.error) throw Object.assign(failure(r.error.code, r.error.message), { data: r.error.data })
        return r.result
      } catch (e) { one.state = 'error'; one.why = e.message; throw e } finally { update() }
    }
    const serve = async (method, p, signal) => {
      switch (method) {
        case 'ping': return {}
        case 'ui/initialize':
          o.modes = p.appCapabilities?.availableDisplayModes
          return {
            protocolVersion: '2026-01-26', hostInfo: { name: 'talaria-inspector', version: String(state.program) },
            hostCapabilities: { openLinks: {}, serverTools: {}, serverResources: {}, logging: {}, message: { text: {} }, updateModelContext: { text: {}, structuredContent: {} }, sandbox: { permissions: {}, csp: v.granted } },
            hostContext: { ...own.current.context, toolInfo: { tool: v.tool }, styles: { variables: variables() }, availableDisplayModes: ['inline', 'fullscreen'], locale: navigator.language, timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone, userAgent: 'talaria-inspector', platform: 'web' },
          }
        case 'tools/call': case 'resources/read': return request(method, p, signal)
        case 'ui/open-link': {
          const url = /^https?:\/\//i.test(p.url) && URL.canParse(p.url) && new URL(p.url)
          if (!url || url.username) throw failure(-32000, 'only http and https addresses can be opened')
          await allow({ text: `The view asks to open ${url.host}.`, url: url.href }, signal)
          return {}
        }
        case 'ui/message': o.told = [{ message: JSON.stringify(p) }, ...o.told].slice(0, 20); update(); return {}
        case 'ui/update-model-context': o.told = [{ context: JSON.stringify(p) }, ...o.told.filter(t => t.message)].slice(0, 20); update(); return {}
        case 'ui/request-display-mode':
          if (!['inline', 'fullscreen'].includes(p.mode) || Array.isArray(o.modes) && !o.modes.includes(p.mode)) return { mode: own.current.context.displayMode }
          setMode(p.mode)
          return { mode: p.mode }
      }
      throw failure(-32601, 'this host has no method ' + method)
    }
    const late = setTimeout(note, 5000, `The frame at ${origin} does not answer. If this page is open through a tunnel, forward that port as well.`)
    o.host = show(box.current, v, {
      serve, open: () => { o.open = true; update() }, size: p => { if (p?.height > 0) { o.high = Math.min(highest, Math.max(40, p.height)); update() } },
      note: (what, p) => { clearTimeout(late); texts[what] && note(texts[what](p)) },
    })
    o.host.frame.title = 'View of ' + form.name
    update()
    return () => { clearTimeout(late); o.host.end('the host closes the view') }
  }, [v])
  useEffect(() => {
    const look = new ResizeObserver(() => box.current?.clientWidth && setRoom(box.current.clientWidth))
    look.observe(box.current)
    return () => look.disconnect()
  }, [])
  useEffect(() => o.host?.send('host-context-changed', own.current.context), [chosen || theme, mode, room])
  useEffect(() => { // what there is of the call
    if (!o.open) return
    if (!call) {
      if (o.partial !== args) try { o.host.send('tool-input-partial', { arguments: JSON.parse(o.partial = args) }) } catch { } // it is being typed
      return
    }
    if (o.fed && o.fed !== call.id) { o.open = false; return setN(n => n + 1) } // another call has another view
    if (!o.fed) o.host.send('tool-input', { arguments: JSON.parse(call.arguments) })
    o.fed = call.id
    if (call.state === 'running' || o.ended) return
    o.ended = true
    if (call.result && call.state !== 'cancelled') o.host.send('tool-result', JSON.parse(call.result))
    else o.host.send('tool-cancelled', { reason: call.error?.message ?? (call.state === 'cancelled' ? 'the user cancelled the call' : 'there is no result') })
  }, [o.open, call?.id, call?.state, call?.result, args])
  useEffect(() => {
    const key = e => e.key === 'Escape' && setMode('inline')
    addEventListener('keydown', key)
    return () => removeEventListener('keydown', key)
  }, [])
  const [calls, pager] = usePages(o.calls ?? [], 10, 'calls of the view')
  const whole = mode === 'fullscreen'
  return html`<section class=${'viewer' + (whole ? ' whole' : '')} aria-label="View" hidden=${hidden} data-state=${o.ended ? 'fed' : o.open ? 'open' : 'loading'}>
    <div class="bar"><span class="tabs" role="group" aria-label="Width">${Object.keys(widths).map(w => html`<button aria-pressed=${w === width} onClick=${() => setWidth(w)}>${w}</button>`)}</span>
      <select aria-label="Theme of the view" value=${chosen} onChange=${e => setTheme(e.currentTarget.value)}><option value="">page theme</option><option>light</option><option>dark</option></select><span class="space"></span>
      ${whole && html`<button onClick=${() => setMode('inline')}>Close</button>`}<button class="quiet" onClick=${() => setN(n + 1)}>Reload</button>
      <button class="quiet" onClick=${() => post('/api/connect', { revision: state.pinned ?? '', plain: true }).catch(e => setError(e.message))} title="connect as a host without views">Without views</button></div>
    ${error && html`<p class="bad" role="alert">${error}</p>`}
    ${o.asks?.map(a => html`<div class="question" role="group" aria-label="The view asks"><p>${a.text}</p>${a.more && html`<${Code} text=${a.more} />`}${a.url && html`<p><code>${a.url}</code></p>`}
      <div class="bar">${a.url ? html`<a class="primary" href=${a.url} target="_blank" rel="noopener noreferrer" onClick=${a.yes}>Open</a>` : html`<button class="primary" onClick=${a.yes}>Allow</button>`}<button onClick=${a.no}>Refuse</button></div></div>`)}
    <div class=${'stage' + (v?.border === false ? ' bare' : '')} ref=${box} style=${{ width: !whole && widths[width] ? widths[width] + 'px' : '100%', height: whole ? '100%' : (o.high ?? 240) + 'px' }}></div>
    ${o.notes?.size > 0 && html`<ul class="bad small">${[...o.notes].map(t => html`<li>${t}</li>`)}</ul>`}
    ${o.told?.length > 0 && html`<h3>The model would see</h3>${o.told.map(t => html`<p class="dim">${t.context ? 'Context, from the next turn on' : 'A message'}</p><${Code} text=${t.context ?? t.message} />`)}`}
    ${calls.length > 0 && html`<h3>Calls of the view</h3>${pager}<ul class="members">${calls.map(c => html`<li><span class=${'sign ' + c.state} title=${c.state}>${signs[c.state]}</span> ${seen(c.name)} <code>${seen((c.arguments ?? '').slice(0, 200))}</code> <span class="dim num">${took(c.took)}</span> ${c.why && html`<span class="bad">${seen(c.why)}</span>`}</li>`)}</ul>`}</section>`
}
