// What the page asks of the program. The key is in no cookie, so that nothing but this
// code sends it; the tabs of one browser share it. And JSON without loss.

let key = ''
export const failed = { text: '' } // why there is no key

// address is what the address says behind #, moves tells when it changes.
export const address = () => new URLSearchParams(location.hash.slice(1))
export const moves = tell => { addEventListener('hashchange', tell); return () => removeEventListener('hashchange', tell) }

// Tabs ask each other for the key. A worker of another program would receive it, too:
// where there is one, no tab answers.
const tabs = new BroadcastChannel('key')
let good = false // the key, as far as this tab has found
tabs.onmessage = async ({ data }) => {
  if (data.ask && good && !(await navigator.serviceWorker?.getRegistrations())?.length) tabs.postMessage({ to: data.ask, key })
}

// others is the key of another tab, '' if there is none. A tab that has the key holds a lock,
// so that the first one waits for no answer.
const others = async () => (await navigator.locks?.query())?.held.some(l => l.name === 'key') ? new Promise(done => {
  const me = String(Math.random()), told = new BroadcastChannel('key')
  const end = key => { told.close(); done(key) }
  told.onmessage = ({ data }) => data.to === me && end(data.key)
  told.postMessage({ ask: me })
  setTimeout(end, 2000, '')
}) : ''

const own = one => {
  sessionStorage.setItem('key', key = one)
  if (!good) navigator.locks?.request('key', { mode: 'shared' }, () => new Promise(() => {})) // as long as the tab is there
  return good = true
}

// take makes a key that of this tab, if the program knows it.
async function take(one) {
  if (!one || (await fetch('/api/calls/0', { credentials: 'omit', headers: { Authorization: 'Bearer ' + one } })).status === 401) return false
  return own(one)
}

// enter takes the key of this tab or of another one, or trades the code of the link for
// one. A link that is opened again is not used: a second use would lock all tabs out.
export async function enter() {
  if (navigator.serviceWorker?.controller) {
    failed.text = 'A service worker of another program controls this address. Open the developer tools, Application, Service workers, and unregister it; then reload.'
    return false
  }
  const given = () => address().get('k')
  moves(() => given() && location.reload()) // a new link in this tab
  const code = given()
  if (code) history.replaceState(null, '', location.pathname)
  if (await take(sessionStorage.getItem('key')) || await take(await others())) return true
  if (code) {
    const r = await fetch('/api/key', { method: 'POST', credentials: 'omit', body: JSON.stringify({ code }) })
    const answer = await r.json()
    if (r.ok) return own(answer.key)
    failed.text = answer.error
  }
  failed.text ||= 'Open the link that the terminal shows. It contains the key to this page.'
  return false
}

class Gone extends Error {}
const ended = 'talaria has ended. Start it again, and this page reconnects.'

let current = 0
// chooseServer makes this server, of several, the one that is asked; a path that has a
// number is of that one.
export const chooseServer = n => { current = n }
export const server = () => current

async function ask(method, path, body, signal) {
  if (current && !/^.api.\d/.test(path)) path = path.replace('/api/', `/api/${current}/`)
  let r
  try {
    r = await fetch(path, { method, credentials: 'omit', signal, headers: { Authorization: 'Bearer ' + key },
      body: body === undefined ? undefined : JSON.stringify(body) })
  } catch (e) {
    throw e.name === 'AbortError' ? e : new Gone(ended)
  }
  if (r.status === 401) {
    good = false
    if (await take(await others())) return ask(method, path, body, signal)
    throw new Gone('The key of this page is not valid any more. Open the link that the terminal shows.')
  }
  if (!r.ok) throw new Error((await r.json()).error)
  return r
}

export const get = async (path, signal) => (await ask('GET', path, undefined, signal)).json()
export const post = async (path, body, signal) => (await ask('POST', path, body, signal)).json()
export const del = async path => (await ask('DELETE', path)).json()

// listen tells of the state, all of it first and then what has changed, until signal
// ends it; lost hears why it does not, for now.
export async function listen(tell, lost, signal) {
  while (!signal.aborted) {
    try {
      const reader = (await ask('GET', '/api/events', undefined, signal)).body.pipeThrough(new TextDecoderStream()).getReader()
      for (let text = '', first = true; ;) {
        const { done, value } = await reader.read()
        if (done) break
        const events = (text + value).split('\n\n')
        text = events.pop()
        for (const e of events) { tell(JSON.parse(e.slice(6)), first); first = false } // behind "data: "
      }
    } catch (e) {
      if (signal.aborted) return
      lost(e instanceof TypeError ? ended : e.message)
    }
    await new Promise(done => setTimeout(done, 1000))
  }
}

// finder makes a test of texts: each word of a query is in them, in any order; the loose one
// takes its singular, too.
export function finder(query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean)
  return (text, loose) => { text = text.toLowerCase(); return words.every(w => text.includes(w) || loose && w.length > 3 && w.endsWith('s') && text.includes(w.slice(0, -1))) }
}

export const count = (n, word) => `${n} ${word}${+n === 1 ? '' : 's'}`

// unseen are characters that are not seen, or change how others are seen; in odd is all
// that does not stay as it is.
const unseen = /(?![\ufe00-\ufe0f])[\x00-\x1f\x7f-\x9f\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{DI}]/u
const odd = /[\x00-\x08\x0b-\x1f\x7f-\x9f\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{DI}]/u

// seen makes a text of a server fit to be shown, as the program does with all others:
// nothing in it is hidden, or turns the direction of writing.
export const seen = text => odd.test(text) ? text.replaceAll('\r\n', '\n').split('\n').map(seenLine).join('\n') : text

function seenLine(text) {
  if (!odd.test(text)) return text
  const all = [...text]
  const blank = c => c === undefined || /\s/u.test(c) || unseen.test(c)
  return all.map((c, i) => {
    const n = c.codePointAt(0)
    if (c === '\t') return c
    if (n < 32 || n === 127) return String.fromCharCode(n === 127 ? 0x2421 : 0x2400 + n)
    if (n === 0x200c || n === 0x200d) return blank(all[i - 1]) || blank(all[i + 1]) ? '\ufffd' : c // where they join they stay
    return unseen.test(c) || n >= 0xfe00 && n <= 0xfe0f && blank(all[i - 1]) ? '\ufffd' : c
  }).join('')
}

// seenJSON is the same for JSON, in which such characters are escaped.
export const seenJSON = text => odd.test(text) ? text.replace(/[^\n\r\t -~]/gu, c => unseen.test(c) ? [...Array(c.length).keys()].map(i => '\\u' + c.charCodeAt(i).toString(16).padStart(4, '0')).join('') : c) : text

// Numbers keep their digits, objects are Maps in which any name is a name, and what a
// value was is known when it is written again.

export class Num { constructor(text) { this.text = text } }

// behind is where a string ends that begins here.
const behind = (text, at) => {
  for (let end = at; ;) {
    let n = end = text.indexOf('"', end + 1)
    while (text[n - 1] === '\\') n--
    if ((end - n) % 2 === 0) return end + 1
  }
}

// parse reads a JSON text; it throws what is wrong with it. It does not call itself: a
// server may nest deeper. Lists and Maps know their text.
export function parse(text) {
  JSON.parse(text) // says what is wrong better than this reader
  const open = [] // lists and Maps, each Map with the name whose value comes
  let all
  for (let at = 0, end; at < text.length; at = end) {
    const c = text[at], on = open.at(-1)
    end = at + 1
    let v
    if (c === '"') { v = text.slice(at, end = behind(text, at)); v = v.includes('\\') ? JSON.parse(v) : v.slice(1, -1) }
    else if (c === '{') v = new Map()
    else if (c === '[') v = []
    else if (c === '}' || c === ']') { const own = open.pop(); own.to.text = text.slice(own.at, end); continue }
    else if (c === ',' || c === ':' || c <= ' ') continue
    else {
      while (end < text.length && text[end] > ' ' && !',]}'.includes(text[end])) end++
      const word = text.slice(at, end)
      v = word === 'true' ? true : word === 'false' ? false : word === 'null' ? null : new Num(word)
    }
    if (!on) all = v
    else if (Array.isArray(on.to)) on.to.push(v)
    else if (on.name === undefined) { on.name = v; continue }
    else { on.to.set(on.name, v); on.name = undefined }
    if (branch(v)) open.push({ to: v, at })
  }
  return all
}

export const branch = v => v instanceof Map || Array.isArray(v)

export const write = v => v instanceof Num || branch(v) ? v.text : JSON.stringify(v)

const deepest = 40 // levels that are moved to the right

// indent writes a JSON text on lines of its own, not further to the right than is
// to be seen, or it would be as long as the depth squared; what is none stays as it is.
export function indent(text) {
  try { JSON.parse(text) } catch { return text }
  let out = '', depth = 0
  const line = () => '\n' + '  '.repeat(Math.min(depth, deepest))
  for (let at = 0, end; at < text.length; at = end) {
    const c = text[at]
    end = at + 1
    if (c === '"') out += text.slice(at, end = behind(text, at))
    else if (c === ':') out += ': '
    else if (c === ',') out += c + line()
    else if (c === '{' || c === '[') {
      while (text[end] <= ' ') end++
      if (text[end] === '}' || text[end] === ']') out += c + text[end++]
      else { depth++; out += c + line() }
    } else if (c === '}' || c === ']') { depth--; out += line() + c } else if (c > ' ') out += c
  }
  return out
}
