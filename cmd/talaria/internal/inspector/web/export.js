// A call, written for somebody else: the program makes the text, the page copies it.
import { html, useState, useRef } from './vendor.js'
import { get } from './api.js'

const forms = [['report', 'Report', 'Markdown, for a bug'], ['command', 'Command', 'talaria, for a shell'], ['curl', 'curl', 'for servers over HTTP'], ['go', 'Go test', 'with mcptest']]
let meant = false // secrets are copied, which was asked once

// Copy is a menu. What it copies has no secrets unless it is told so.
export function Copy({ call }) {
  const [kind, setKind] = useState('share')
  const [asking, setAsking] = useState(false)
  const [said, setSaid] = useState('')
  const box = useRef(null)
  const close = () => { box.current.open = false; box.current.firstElementChild.focus() }
  const copy = async as => {
    try {
      const text = as === 'result' ? call.result : (await get(`/api/export?call=${call.id}&as=${as}&kind=${kind}`)).text
      await navigator.clipboard.writeText(text)
      setSaid('copied')
      close()
    } catch (e) { setSaid(e.message) }
  }
  const secrets = e => { if (!e.currentTarget.checked) setKind('share'); else if (meant) setKind('raw'); else { e.currentTarget.checked = false; setAsking(true) } }
  return html`<details class="menu" ref=${box} onToggle=${e => { if (e.currentTarget.open) setSaid(''); setAsking(false) }} onKeyDown=${e => { if (e.key === 'Escape') { e.stopPropagation(); close() } }}>
    <summary>${said === 'copied' ? 'Copied' : 'Copy'}</summary><div role="group" aria-label="Copy">
    ${call.result && html`<button type="button" onClick=${() => copy('result')}>Result <span class="dim">JSON, as it came</span></button>`}
    ${forms.map(([as, name, what]) => html`<button type="button" data-as=${as} onClick=${() => copy(as)}>${name} <span class="dim">${what}</span></button>`)}
    <label><input type="checkbox" checked=${kind === 'raw'} onChange=${secrets} /> with secrets</label>
    ${asking && html`<p>Tokens, passwords and answers would be in it, for whoever gets it. <button type="button" onClick=${() => { meant = true; setKind('raw'); setAsking(false) }}>Copy them, too</button></p>`}
    <p class="dim" role="status">${said && said !== 'copied' ? said : kind === 'share' ? 'Secrets are masked: where there are some, it cannot be replayed.' : 'With secrets: not for others.'}</p></div></details>`
}
