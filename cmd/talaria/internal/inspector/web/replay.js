// What leaves the page as a recording, and a call of a recording that is made again.
import { html, useState, useEffect, useRef } from './vendor.js'
import { count, get, post } from './program.js'
import { Compared, saveFile, signs, took, words } from './call.js'

// SaveTraffic saves the traffic, without secrets, as a file that --file opens.
export function SaveTraffic() {
  const [said, setSaid] = useState('')
  const save = () => { setSaid(''); get('/api/save').then(r => { saveFile(r.name, r.text); setSaid('Saved ' + r.name + (r.bare ? `, ${count(r.bare, 'message')} without content` : '')) }, e => setSaid(e.message)) }
  return html`<button class="quiet" title="a recording for --file, with secrets masked" onClick=${save}>Save</button><span class="dim" role="status">${said}</span>`
}

// Replay makes a recorded call again at the live server, the second of all.
export function Replay({ seq, live }) {
  const [call, setCall] = useState(null)
  const [lines, setLines] = useState(null)
  const [error, setError] = useState('')
  const stop = useRef(null)
  useEffect(() => () => stop.current?.abort(), [])
  const run = async () => {
    stop.current?.abort()
    const { signal } = stop.current = new AbortController()
    setLines(null)
    setError('')
    try {
      let { call } = await post('/api/1/replay', { seq }, signal)
      for (setCall(call); call.state === 'running'; setCall(call)) {
        await new Promise(done => setTimeout(done, 150))
        call = await get('/api/1/calls/' + call.id, signal)
      }
      if (call.result) setLines((await post(`/api/1/calls/${call.id}/against`, { seq }, signal)).lines)
    } catch (e) { if (e.name !== 'AbortError') setError(e.message) }
  }
  return html`<section class="replay" aria-label="Replay"><div class="bar"><button class="primary" onClick=${run} disabled=${call?.state === 'running'}>Replay</button><span class="dim one">at ${live}</span>
    ${call && html`<span class="space"></span><span class=${'sign ' + call.state} aria-hidden="true">${signs[call.state]}</span> <span role="status">${words[call.state]}</span> <span class="num">${took(call.took)}</span>`}</div>
    ${(error || call?.error) && html`<p class="bad" role="alert">${error || call.error.message}</p>`}
    ${lines && html`<${Compared} lines=${lines} about="compared with the recorded one" />`}</section>`
}
