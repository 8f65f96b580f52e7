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

// Of a model of bytes: negative of a token that is none.
const byteOf = (token) => token.id - model.byte_offset;

async function tokensOf(text) {
  if (model.kind === 'bytes') {
    return Array.from(new TextEncoder().encode(text),
      (byte) => ({id: byte + model.byte_offset, name: byteName(byte)}));
  }
  const answer = await (await ask('v1/tokens', {prompt: text})).json();
  return answer.tokens.map((id, i) => ({id, name: answer.names[i]}));
}

// The bytes of a token that are no text by themselves; null: it is text.
function partOf(token) {
  if (model.kind !== 'bytes') {
    return token.name.startsWith('bytes:') ? bytesOf(token.name) : null;
  }
  return byteOf(token) < 128 ? null : Uint8Array.of(byteOf(token));
}

// Whether its first byte is a character's second, third or fourth.
const goesOn = (token) => {
  const bytes = partOf(token);
  return bytes !== null && (bytes[0] & 0xC0) === 0x80;
};

function faceOf(token) {
  const byte = model.kind === 'bytes' ? byteOf(token) :
    token.name.length === 1 ? token.name.charCodeAt(0) : 32;
  if (byte < 0) return {text: `[${token.id}]`, hex: true};
  const unseen = (byte < 32 && byte !== 10 && byte !== 9) || byte === 127;
  return unseen ? {text: hex(byte), hex: true} : {text: token.name, hex: false};
}

// What each of some tokens shows: a character stands where its first byte is,
// and its other bytes show nothing.
function faces(part) {
  const all = part.map(faceOf);
  for (let i = 0; i < part.length; ++i) {
    const first = partOf(part[i]);
    if (first === null) continue;
    all[i] = {text: Array.from(first, hex).join(''), hex: true};
    const bytes = [];
    for (let j = i; j < part.length && bytes.length < 4; ++j) {
      const more = partOf(part[j]);
      if (more === null) break;
      bytes.push(...more);
      try {
        all[i] = {text: utf8.decode(Uint8Array.from(bytes)), hex: false};
      } catch { continue; }
      for (let k = i + 1; k <= j; ++k) all[k] = {text: '', hex: false};
      i = j;
      break;
    }
  }
  return all;
}

const hex = (byte) => byte.toString(16).padStart(2, '0');

function readable(token) {
  if (!token) return 'start';
  if (token.name === '\n') return '↵';
  if (token.name === ' ') return '␣';
  if (token.name === '') return token.id === undefined ? '[]' : `[${token.id}]`;
  return token.name.replace(/^bytes:/, '').replace(/\n/g, '↵')
    .replace(/[\0-\x1f\x7f]/g, (sign) => '\\x' + hex(sign.charCodeAt(0)).toUpperCase());
}
