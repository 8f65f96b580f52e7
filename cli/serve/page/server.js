// What the page asks of the server.
'use strict';

const key = () => sessionStorage.getItem('token') || '';

async function ask(path, body, signal) {
  const headers = key() ? {Authorization: 'Bearer ' + key()} : {};
  const answer = await fetch(path, body === undefined ? {headers} :
    {method: 'POST', headers: {...headers, 'Content-Type': 'application/json'},
      body: JSON.stringify(body), signal});
  if (answer.ok) return answer;
  let sentence = answer.status + ' ' + answer.statusText;
  try { sentence = (await answer.json()).error.message; } catch { /* as it is */ }
  throw Object.assign(new Error(sentence), {status: answer.status});
}

function fault(error) {
  $('fault').hidden = !error;
  $('fault').textContent = error ? error.message || String(error) : '';
}
