// What is known of the server as a whole.
import { html, useState } from './vendor.js'
import { post } from './api.js'
import { took } from './result.js'

const levels = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency']

export function Server({ state, close }) {
  const s = state.server
  const [said, setSaid] = useState('')
  const ask = (method, params, done) => { setSaid('…'); const at = performance.now(); post('/api/request', { method, params }).then(() => setSaid(done + took(performance.now() - at)), e => setSaid(e.message)) }
  return html`<main class="alone server"><div class="bar"><h2>Server</h2><span class="space"></span><button type="button" class="quiet" onClick=${close}>close</button></div>
    <dl><dt>Target</dt><dd><code>${state.target}</code></dd>${s && html`<dt>Name</dt><dd>${s.name} ${s.version}</dd>`}<dt>Revision</dt><dd>${state.revision || 'none'}</dd><dt>Inspector</dt><dd>Talaria ${state.program}</dd></dl>
    ${s && html`<div class="bar"><button type="button" onClick=${() => ask('ping', {}, 'answered after ')}>Ping</button>
      <label>Logs from <select aria-label="least level of logs" onChange=${e => ask('logging/setLevel', { level: e.currentTarget.value }, 'set after ')}><option value="" disabled selected>as it likes</option>${levels.map(l => html`<option>${l}</option>`)}</select></label>
      <span class="dim num" role="status">${said}</span></div>`}
    ${state.instructions && html`<h3>Instructions</h3><p class="description">${state.instructions}</p>`}
    ${state.capabilities && html`<h3>Capabilities</h3><pre tabindex="0">${JSON.stringify(state.capabilities, null, 2)}</pre>`}
    ${state.stderr?.length > 0 && html`<h3>Standard error</h3><pre tabindex="0">${state.stderr.join('\n')}</pre>`}</main>`
}
