// A request of HTTP and the head of its answer.
import { html } from './vendor.js'
import { took } from './result.js'

export function Exchange({ x, open, secrets, toggle }) {
  const heads = [['sent', x.sent], ['received', x.got]]
  return html`<details class="exchange" open=${open}><summary>HTTP <span class=${'num ' + (x.status >= 400 || !x.status ? 'bad' : '')}>${x.status || 'failed'}</span> <span class="dim">${x.method} ${x.url} <span class="num">${took(x.took)}</span></span></summary>
    ${x.error && html`<p class="bad">${x.error}</p>`}
    ${heads.map(([name, list]) => list?.length > 0 && html`<h3>Headers ${name}</h3><table><tbody>${list.map(h => html`<tr><th scope="row">${h.name}</th><td class=${h.secret && !secrets ? 'dim' : ''}>${h.value}</td></tr>`)}</tbody></table>`)}
    ${heads.some(([, list]) => list?.some(h => h.secret)) && html`<button type="button" class="quiet" aria-pressed=${secrets} onClick=${toggle}>${secrets ? 'hide secrets' : 'show secrets'}</button>`}</details>`
}
