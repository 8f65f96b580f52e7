// One text (or image) at a time: its tokens, and what each of them shows.
'use strict';

const $ = (id) => document.getElementById(id);
const SHOWN = 3000;  // tokens that are elements of the page at a time
const utf8 = new TextDecoder('utf-8', {fatal: true});

let model = null;  // as /v1/models describes it
let tokens = [];   // {id, name, p?, top?}: the prompt's and generated ones
let given = 0;     // of them, the prompt's
let from = 0;      // the first of those that are shown
let at = -1;       // where the keyboard is
let chosen = -1;   // whose attention is shown
let attention = null;
let running = null;  // AbortController of a stream
let asked = 0;     // questions on attention: only the last one's answer counts

// What the server calls a token: bytes that are no text by themselves have
// their hexadecimal numbers.
function bytesOf(name) {
  if (!name.startsWith('bytes:')) return new TextEncoder().encode(name);
  return Uint8Array.from(name.slice(6).matchAll(/\\x(..)/g),
    (found) => parseInt(found[1], 16));
}

const byteName = (byte) => byte < 128 ? String.fromCharCode(byte) :
  'bytes:\\x' + byte.toString(16).toUpperCase().padStart(2, '0');

async function tokensOf(text) {
  if (model.kind === 'bytes') {
    return Array.from(new TextEncoder().encode(text),
      (byte) => ({id: byte, name: byteName(byte)}));
  }
  const answer = await (await ask('v1/tokens', {prompt: text})).json();
  return answer.tokens.map((id, i) => ({id, name: answer.names[i]}));
}

// What each of some tokens shows: a character stands where its first byte is,
// and its other bytes show nothing.
function faces(part) {
  const all = part.map((token) => ({text: token.name, hex: false}));
  if (model.kind !== 'bytes') return all;
  for (let i = 0; i < part.length; ++i) {
    const byte = part[i].id;
    if (byte < 128) {
      if ((byte < 32 && byte !== 10 && byte !== 9) || byte === 127) {
        all[i] = {text: hex(byte), hex: true};
      }
      continue;
    }
    const size = byte >= 240 ? 4 : byte >= 224 ? 3 : 2;
    const bytes = Uint8Array.from(part.slice(i, i + size), (token) => token.id);
    try {
      all[i].text = utf8.decode(bytes);
      for (let j = 1; j < size; ++j) all[i + j].text = '';
      i += size - 1;
    } catch {
      all[i] = {text: hex(byte), hex: true};
    }
  }
  return all;
}

const hex = (byte) => byte.toString(16).padStart(2, '0');

function readable(token) {
  if (!token) return 'start';
  if (token.name === '\n') return '↵';
  if (token.name === ' ') return '␣';
  return token.name.replace(/^bytes:/, '').replace(/\n/g, '↵')
    .replace(/[\0-\x1f\x7f]/g, (sign) => '\\x' + hex(sign.charCodeAt(0)).toUpperCase());
}
