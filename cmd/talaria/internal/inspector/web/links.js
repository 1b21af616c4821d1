// A resource that a result refers to, which is read where it is shown.
import { html, useState, useEffect, useRef } from './vendor.js'
import { count, get, parse, post } from './program.js'
import { plain } from './json.js'
import { Contents, at, contentOf } from './call.js'

// read reads a resource as one of the calls, and returns that when it has ended.
async function read(uri, signal) {
  let { call } = await post('/api/call', { kind: 'resource', tool: uri, arguments: '{}', anyway: true }, signal)
  while (call.state === 'running') {
    await new Promise(done => setTimeout(done, 150))
    call = await get('/api/calls/' + call.id, signal)
  }
  return call
}

export function Link({ item, room }) {
  const [call, setCall] = useState(null) // '' while it is read
  const stop = useRef(null)
  useEffect(() => () => stop.current?.abort(), [])
  const own = name => { const v = at(item, name); return v === undefined || v === null ? '' : plain(v) }
  const start = () => {
    stop.current?.abort()
    stop.current = new AbortController()
    setCall('')
    read(at(item, 'uri'), stop.current.signal).then(setCall, e => e.name !== 'AbortError' && setCall({ error: e }))
  }
  const name = own('title') || own('name') || own('uri'), about = [own('mimeType'), own('size') && count(own('size'), 'byte')].filter(Boolean).join(', ')
  return html`<div class="linked"><div class="bar"><strong>${name}</strong>${about && html`<span class="dim">${about}</span>`}<span class="space"></span>
      ${call?.id && html`<button class="quiet" onClick=${() => setCall(null)}>hide</button>`}<button aria-label=${'Read ' + name} disabled=${call === ''} onClick=${start}>${call === '' ? 'reading…' : 'Read'}</button></div>
    <code class="dim">${own('uri')}</code>${own('description') && html`<p class="description">${own('description')}</p>`}
    ${call?.error && html`<p class="bad" role="alert">${call.error.message}</p>`}
    ${call?.result && html`<${Contents} list=${contentOf(parse(call.result))} issues=${call.issues} of=${name} room=${room} />`}</div>`
}
