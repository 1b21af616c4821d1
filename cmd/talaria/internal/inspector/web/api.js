// What the page asks of the program that has served it. The key is that of this
// tab alone: it is in no cookie, so that nothing but this code sends it.

let key = ''
export const failed = { text: '' } // why there is no key

// enter trades the code of the link for a key, or takes the key of this tab.
export async function enter() {
  if (navigator.serviceWorker?.controller) {
    failed.text = 'A service worker of another program controls this address. Open the developer tools, Application, Service workers, and unregister it; then reload.'
    return false
  }
  const code = new URLSearchParams(location.hash.slice(1)).get('k')
  if (code) {
    history.replaceState(null, '', location.pathname)
    const r = await fetch('/api/key', { method: 'POST', credentials: 'omit', body: JSON.stringify({ code }) })
    const answer = await r.json()
    if (r.ok) sessionStorage.setItem('key', answer.key)
    else failed.text = answer.error
  }
  key = sessionStorage.getItem('key') ?? ''
  if (!key && !failed.text) failed.text = 'Open the link that the terminal shows: it has the key to this page.'
  return !!key
}

export class Gone extends Error {}

let chosen = 0
// chooseServer makes this server, of several, the one that is asked; a path that has a
// number is of that one.
export const chooseServer = n => { chosen = n }
export const server = () => chosen
const at = path => chosen && path !== '/api/servers' && !/^.api.\d/.test(path) ? path.replace('/api/', `/api/${chosen}/`) : path

async function ask(method, path, body, signal) {
  let r
  try {
    r = await fetch(at(path), { method, credentials: 'omit', signal, headers: { Authorization: 'Bearer ' + key },
      body: body === undefined ? undefined : JSON.stringify(body) })
  } catch (e) {
    if (e.name === 'AbortError') throw e
    throw new Gone('talaria has ended: start it again, and this page goes on')
  }
  const answer = await r.json()
  if (r.status === 401) throw new Gone('the key is no longer good: open the link that the terminal shows')
  if (!r.ok) throw new Error(answer.error)
  return answer
}

export const get = (path, signal) => ask('GET', path, undefined, signal)
export const post = (path, body, signal) => ask('POST', path, body, signal)
export const del = path => ask('DELETE', path)

// listen calls fn at each change, until signal ends it. A page that is hidden
// does not listen.
export async function listen(fn, lost, signal) {
  while (!signal.aborted) {
    try {
      const r = await fetch(at('/api/events'), { credentials: 'omit', signal, headers: { Authorization: 'Bearer ' + key } })
      if (r.status === 401) throw new Gone('the key is no longer good: open the link that the terminal shows')
      const reader = r.body.getReader()
      for (;;) {
        const { done } = await reader.read()
        if (done) break
        fn()
      }
    } catch (e) {
      if (signal.aborted) return
      lost(e instanceof Gone ? e.message : 'talaria has ended: start it again, and this page goes on')
    }
    await new Promise(done => setTimeout(done, 1000))
  }
}
