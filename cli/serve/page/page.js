// The page of `reformer serve`: one text (or image) at a time, its tokens with
// their probabilities, and where each of them looked.
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

// --- tokens -------------------------------------------------------------------

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
  return token.name.replace(/^bytes:/, '').replace(/\n/g, '↵');
}

// --- the text -----------------------------------------------------------------

const level = (x, steps) => steps.filter((step) => x >= step).length;
const surprise = (p) => level(-Math.log2(p), [0.5, 1.5, 3, 5]);
const weightClass = (weight, most) =>
  weight === undefined ? 0 : 1 + level(weight / most, [0.05, 0.15, 0.35, 0.7]);

function element(i, face) {
  const e = document.createElement('i');
  e.id = 't' + i;
  e.setAttribute('role', 'option');
  dress(e, i, face);
  return e;
}

function dress(e, i, face) {
  const token = tokens[i];
  e.textContent = face.text === '\n' ? '↵\n' : face.text;
  const classes = [];
  if (face.hex) classes.push('hex');
  if (i < given) classes.push('prompt');
  if (token.p !== undefined) classes.push('p' + surprise(token.p));
  if (attention) {
    const step = weightClass(attention.weights.get(i), attention.most);
    if (step) classes.push('a' + step);
  }
  if (i === at) classes.push('at');
  if (i === chosen) classes.push('chosen');
  e.className = classes.join(' ');
  const bucket = attention && attention.buckets && attention.buckets[i + 1];
  e.style.backgroundColor = bucket === undefined || bucket === null ? '' :
    `hsl(${(bucket * 137.5) % 360} 70% 50% / 0.45)`;
}

function shownEnd() { return Math.min(tokens.length, from + SHOWN); }

function draw() {
  const end = shownEnd();
  const all = faces(tokens.slice(from, end));
  const box = $('text');
  box.replaceChildren(...all.map((face, i) => element(from + i, face)));
  box.classList.toggle('looking', attention !== null);
  if (at >= from && at < end) box.setAttribute('aria-activedescendant', 't' + at);
  $('shown').hidden = tokens.length <= SHOWN;
  $('range').textContent =
    `${from.toLocaleString()} to ${end.toLocaleString()} of ${tokens.length.toLocaleString()}`;
  drawMap();
}

// Only what is new, while a text grows; a character may still be growing.
function grow(before) {
  if (tokens.length - from > SHOWN) {
    from = Math.max(0, tokens.length - SHOWN / 2);
    return draw();
  }
  const box = $('text');
  const first = Math.max(from, before - 3);
  const all = faces(tokens.slice(first));
  const stays = box.scrollTop + box.clientHeight >= box.scrollHeight - 40;
  all.forEach((face, i) => {
    const old = $('t' + (first + i));
    if (old) dress(old, first + i, face);
    else box.append(element(first + i, face));
  });
  if (stays) box.scrollTop = box.scrollHeight;
  drawMap();
}

function goTo(i) {
  at = Math.max(0, Math.min(tokens.length - 1, i));
  if (at < from || at >= shownEnd()) from = Math.max(0, at - SHOWN / 2);
  draw();
  const e = $('t' + at);
  if (e) e.scrollIntoView({block: 'nearest'});
  detail(at);
}

// --- what is known of one token -------------------------------------------------

function detail(i) {
  const token = tokens[i];
  const box = $('detail');
  if (!token) return;
  const head = document.createElement('p');
  const name = model.kind === 'bytes' ?
    `byte ${token.id} (${hex(token.id)})` : `token ${token.id}`;
  head.textContent = model.kind === 'image' ? `${pixelName(i)}: ${token.id}` :
    `${readable(token)} · ${name} · place ${i.toLocaleString()}`;
  box.replaceChildren(head);
  const line = document.createElement('p');
  line.textContent = token.p === undefined ? 'given' :
    `probability ${(100 * token.p).toFixed(1)} %, ${(-Math.log2(token.p)).toFixed(2)} bits`;
  box.append(line);
  if (!token.top) return;
  const table = document.createElement('table');
  for (const [other, p] of token.top) {
    const row = table.insertRow();
    row.insertCell().textContent = model.kind === 'image' ?
      bytesOf(other)[0] : readable({name: other});
    row.insertCell().textContent = (100 * p).toFixed(1) + ' %';
    const meter = document.createElement('meter');
    meter.value = p;
    row.insertCell().append(meter);
  }
  box.append(table);
}

// --- attention ------------------------------------------------------------------

const optional = (id) => $(id).value === '' ? undefined : Number($(id).value);

async function look(i) {
  if (i < 0 || i >= tokens.length) return;
  chosen = at = i;
  detail(i);
  fault(null);
  const [layer, head, round] = ['layer', 'head', 'round'].map(optional);
  const buckets = $('buckets').checked && layer !== undefined &&
    head !== undefined && round !== undefined;
  const question = ++asked;
  try {
    const answer = await (await ask('v1/attention', {
      tokens: tokens.map((token) => token.id), position: i, layer, head, round,
      rounds: rounds(), ...(buckets ? {buckets} : {})})).json();
    if (question !== asked) return;
    show(answer);
  } catch (error) {
    if (question === asked) fault(error);
  }
}

function show(answer) {
  const weights = new Map(answer.attended.map(([place, weight]) => [place, weight]));
  attention = {weights, most: Math.max(...weights.values(), 1e-9),
    rounds: new Map(answer.attended.map(([place, , bits]) => [place, bits])),
    buckets: answer.buckets};
  const near = answer.attended.filter(([place]) => place >= chosen - 64)
    .reduce((sum, [, weight]) => sum + weight, 0);
  const all = answer.attended.reduce((sum, [, weight]) => sum + weight, 0);
  $('summary').textContent = answer.found === 0 ? 'Nothing was found this way.' :
    `${answer.found.toLocaleString()} places; ${Math.round(100 * near / all)} % of the weight ` +
    'on the last 64' + (answer.heads > 1 ? `; the mean of ${answer.heads} heads` : '') + '.';
  $('top').replaceChildren(...answer.attended.slice(0, 12).map(topItem));
  if (model.kind === 'image') drawImage(); else draw();
  drawMap();
}

// Where a byte of an image is.
function pixelName(i) {
  const pixel = Math.floor(i / 3);
  const size = model.image_size;
  return `line ${Math.floor(pixel / size) + 1}, column ${pixel % size + 1}, ` +
    ['red', 'green', 'blue'][i % 3];
}

function topItem([place, weight]) {
  const item = document.createElement('li');
  if (model.kind === 'image') {
    item.textContent = `${(100 * weight).toFixed(1)} % ` +
      (place < 0 ? 'start' : `${pixelName(place)}: ${tokens[place].id}`);
    return item;
  }
  const around = document.createElement('code');
  const part = (a, b) => tokens.slice(Math.max(0, a), b).map(readable).join('');
  const middle = document.createElement('b');
  middle.textContent = place < 0 ? 'start' : readable(tokens[place]);
  around.append(part(place - 6, Math.max(0, place)), middle,
    place < 0 ? '' : part(place + 1, Math.min(chosen, place + 7)));
  item.append(`${(100 * weight).toFixed(1)} % `, around,
    place < 0 ? '' : ` ${(chosen - place).toLocaleString()} before`);
  return item;
}

function forget() {
  attention = null;
  chosen = -1;
  $('summary').textContent = '';
  $('top').replaceChildren();
}

const color = (name) =>
  getComputedStyle(document.documentElement).getPropertyValue(name);

// The map is about as high as it is wide, in whole cells.
function mapShape() {
  let columns = 32;
  while (columns < 256 && columns * columns < tokens.length) columns *= 2;
  const lines = Math.max(1, Math.ceil(tokens.length / columns));
  return {columns, lines, cell: 512 / columns};
}

function drawMap() {
  const canvas = $('map');
  const {columns, lines, cell} = mapShape();
  canvas.width = 512;
  canvas.height = lines * cell;
  canvas.style.aspectRatio = `${canvas.width} / ${canvas.height}`;
  const pen = canvas.getContext('2d');
  const fill = (a, b, style) => {  // cells from a to b, line by line
    pen.fillStyle = style;
    for (let line = Math.floor(a / columns); line * columns < b; ++line) {
      const x = Math.max(0, a - line * columns);
      const end = Math.min(columns, b - line * columns);
      pen.fillRect(x * cell, line * cell, (end - x) * cell, cell);
    }
  };
  const cool = color('--cool');
  const warm = color('--warm');
  fill(0, tokens.length, `rgba(${cool}, 0.08)`);
  fill(0, given, `rgba(${cool}, 0.06)`);
  if (tokens.length > SHOWN && model.kind !== 'image') {
    fill(from, shownEnd(), `rgba(${warm}, 0.08)`);
  }
  if (attention) {
    for (const [place, weight] of attention.weights) {
      const share = Math.max(0.15, Math.sqrt(weight / attention.most));
      if (place >= 0) fill(place, place + 1, `rgba(${cool}, ${share})`);
    }
  }
  if (chosen >= 0) fill(chosen, chosen + 1, `rgb(${warm})`);
  $('map-hint').textContent = tokens.length === 0 ? '' :
    `The whole text, in lines of ${columns}; darker: more weight.` +
    (model.kind === 'image' ? ' Red, green and blue one after the other.' : ' Click to go there.');
}

// --- generating -----------------------------------------------------------------

const hashes = () => model.layers.includes('lsh');
const rounds = () => hashes() && Number($('rounds').value) !== model.rounds ?
  Number($('rounds').value) : undefined;

async function* events(answer) {
  const reader = answer.body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  for (;;) {
    const {done, value} = await reader.read();
    if (done) return;
    const lines = (rest + decoder.decode(value, {stream: true})).split('\n');
    rest = lines.pop();
    const parsed = [];
    for (const line of lines) {
      if (!line.startsWith('data: ') || line === 'data: [DONE]') continue;
      const event = JSON.parse(line.slice(6));
      if (event.error) throw new Error(event.error.message);
      parsed.push(event);
    }
    if (parsed.length) yield parsed;
  }
}

function taken(event) {
  const {logprobs} = event.choices[0];
  const top = Object.entries(logprobs.top_logprobs[0])
    .map(([name, log]) => [name, Math.exp(log)]).sort((a, b) => b[1] - a[1]);
  return {id: logprobs.token_ids[0], name: logprobs.tokens[0],
    p: Math.exp(logprobs.token_logprobs[0]), top};
}

function busy(on) {
  $('go').disabled = on;
  $('stop').disabled = !on;
  document.body.classList.toggle('busy', on);
}

// Tokens of a stream, as they come: after(n) is told how many there were.
async function generate(maxTokens, after) {
  running = new AbortController();
  busy(true);
  fault(null);
  const begin = performance.now();
  let first = 0;
  let made = 0;
  let rest = '';
  const say = () => {
    const seconds = (performance.now() - first) / 1000;
    $('status').textContent = made < 2 ? 'reading the prompt …' :
      `${made.toLocaleString()} tokens, ${Math.round((made - 1) / seconds).toLocaleString()} a second; ` +
      `the first after ${Math.round(first - begin)} ms${rest}`;
  };
  say();
  try {
    const answer = await ask('v1/completions', {
      prompt: tokens.map((token) => token.id), max_tokens: maxTokens,
      temperature: Number($('temperature').value), top_p: Number($('top-p').value),
      seed: Number($('seed').value), rounds: rounds(), logprobs: 5, stream: true,
    }, running.signal);
    let before = tokens.length;
    let drawn = 0;
    for await (const some of events(answer)) {
      if (!made) first = performance.now();
      tokens.push(...some.map(taken));
      made += some.length;
      if (performance.now() - drawn < 50) continue;
      after(before);
      say();
      before = tokens.length;
      // Where tokens come faster than they are drawn, clicks must get through.
      await new Promise((go) => setTimeout(go));
      drawn = performance.now();
    }
    after(before);
  } catch (error) {
    if (error.name === 'AbortError') rest = '; stopped';
    else fault(error);
    after(given);
  } finally {
    running = null;
    busy(false);
    say();
    if (!made) $('status').textContent = '';
  }
}

async function continueText() {
  const text = $('prompt').value;
  forget();
  try {
    tokens = await tokensOf(text);
  } catch (error) {
    return fault(error);
  }
  given = tokens.length;
  from = Math.max(0, given - SHOWN / 2);
  at = -1;
  draw();
  $('text').scrollTop = $('text').scrollHeight;
  await generate(Number($('max').value), grow);
}

async function translate() {
  running = new AbortController();
  busy(true);
  fault(null);
  const begin = performance.now();
  try {
    const lines = $('prompt').value.split('\n').map((line) => line.trim());
    const answer = await (await ask('v1/completions',
      {prompt: lines}, running.signal)).json();
    $('translation').textContent =
      answer.choices.map((choice) => choice.text).join('\n');
    $('status').textContent = `${Math.round(performance.now() - begin)} ms`;
  } catch (error) {
    if (error.name !== 'AbortError') fault(error);
  } finally {
    running = null;
    busy(false);
  }
}

// --- images ---------------------------------------------------------------------

let original = null;  // RGB of the image to complete

// Where nobody has chosen an image: sky, ground and a sun.
function anImage(size) {
  const canvas = new OffscreenCanvas(size, size);
  const pen = canvas.getContext('2d');
  const sky = pen.createLinearGradient(0, 0, 0, size);
  sky.addColorStop(0, '#4a90d9');
  sky.addColorStop(1, '#cfe6fa');
  pen.fillStyle = sky;
  pen.fillRect(0, 0, size, size);
  pen.fillStyle = '#ffd75e';
  pen.beginPath();
  pen.arc(size * 0.7, size * 0.3, size * 0.14, 0, 7);
  pen.fill();
  pen.fillStyle = '#4d7c3a';
  pen.fillRect(0, size * 0.65, size, size);
  return pen.getImageData(0, 0, size, size).data;
}

async function fileImage(file, size) {
  const bitmap = await createImageBitmap(file);
  const side = Math.min(bitmap.width, bitmap.height);
  const pen = new OffscreenCanvas(size, size).getContext('2d');
  pen.drawImage(bitmap, (bitmap.width - side) / 2, (bitmap.height - side) / 2,
    side, side, 0, 0, size, size);
  return pen.getImageData(0, 0, size, size).data;
}

function setImage(rgba) {
  original = [];
  for (let i = 0; i < rgba.length; i += 4) original.push(rgba[i], rgba[i + 1], rgba[i + 2]);
  giveImage();
}

function giveImage() {
  const size = model.image_size;
  const lines = Math.floor(size * Number($('given').value) / 100);
  forget();
  given = lines * size * 3;
  tokens = original.slice(0, given).map((id) => ({id, name: String(id)}));
  at = -1;
  drawImage();
  drawMap();
}

function drawImage() {
  const size = model.image_size;
  const scale = Math.max(1, Math.floor(512 / size));
  const canvas = $('image');
  canvas.width = canvas.height = size * scale;
  const pen = canvas.getContext('2d');
  const grey = color('--line');
  const weights = new Float64Array(size * size);
  let most = 1e-9;
  if (attention) {
    for (const [place, weight] of attention.weights) {
      if (place < 0) continue;
      const pixel = Math.floor(place / 3);
      weights[pixel] += weight;
      most = Math.max(most, weights[pixel]);
    }
  }
  for (let pixel = 0; pixel < size * size; ++pixel) {
    const [r, g, b] = [0, 1, 2].map((c) => tokens[pixel * 3 + c]);
    pen.fillStyle = b ? `rgb(${r.id}, ${g.id}, ${b.id})` : grey;
    const x = (pixel % size) * scale;
    const y = Math.floor(pixel / size) * scale;
    pen.fillRect(x, y, scale, scale);
    if (weights[pixel] > 0) {
      pen.fillStyle = `rgba(255, 0, 220, ${0.9 * weights[pixel] / most})`;
      pen.fillRect(x, y, scale, scale);
    }
  }
  const frame = (i, style) => {
    const pixel = Math.floor(i / 3);
    pen.strokeStyle = style;
    pen.lineWidth = 2;
    pen.strokeRect((pixel % size) * scale - 1, Math.floor(pixel / size) * scale - 1,
      scale + 2, scale + 2);
  };
  if (at >= 0 && at !== chosen) frame(at, color('--accent'));
  if (chosen >= 0) frame(chosen, `rgb(${color('--warm')})`);
}

async function completeImage() {
  giveImage();
  let drawn = 0;
  await generate(original.length - given, () => {
    if (performance.now() - drawn < 100) return;
    drawn = performance.now();
    drawImage();
    drawMap();
  });
  drawImage();
  drawMap();
}

// --- beginning ------------------------------------------------------------------

function fill(select, names) {
  for (const [value, name] of names) select.append(new Option(name, value));
}

function fillRounds() {
  const select = $('round');
  const before = select.value;
  select.replaceChildren(new Option('all', ''));
  const count = Number($('rounds').value);
  fill(select, Array.from({length: count}, (_, i) => [i, i + 1]));
  fill(select, model.ngrams.map((n, i) => [count + i, `last ${n} the same`]));
  if (before !== '' && Number(before) < count) select.value = before;
}

function setUp(entry) {
  model = entry.reformer;
  const {kind} = model;
  document.title = entry.id + ' · Reformer';
  $('name').textContent = entry.id;
  const kinds = [...new Set(model.layers)].join(', ');
  $('about').textContent = `${model.layers.length} layers, ${kinds} attention, ` +
    `${model.heads} heads` + (model.parameters ?
    `, ${model.parameters.toLocaleString()} parameters` : '') +
    (kind === 'translation' ? '; translates' :
      `; up to ${model.context.toLocaleString()} ${kind === 'bytes' ? 'bytes' : 'tokens'}`);
  for (const id of ['rounds', 'round']) {
    $(id).parentElement.hidden = !hashes();
  }
  $('buckets-label').hidden = !hashes();
  $('rounds').max = model.most_rounds;
  $('rounds').value = model.rounds;
  $('max').max = model.context;
  $('max').value = Math.min(256, Math.max(1, model.context - 64));
  fill($('layer'), model.layers.map((name, i) => [i, `${i + 1} (${name})`]));
  fill($('head'), Array.from({length: model.heads}, (_, i) => [i, i + 1]));
  fillRounds();
  if (kind === 'numbers') {
    $('prompt-label').textContent = `Prompt: numbers from 0 to ${model.vocabulary - 1}`;
    $('prompt').value = model.task === 'duplication' ?
      '0 ' + Array.from({length: Math.floor(model.trained_length / 2) - 1},
        (_, i) => 1 + (i * 37 + i * i * 11) % (model.vocabulary - 1)).join(' ') + ' 0 ' : '';
    $('max').value = Math.max(1, Math.floor(model.trained_length / 2) - 1);
    $('temperature').value = 0;
  }
  if (kind === 'image') {
    $('prompt-row').hidden = $('text').hidden = true;
    $('image-row').hidden = $('image').hidden = false;
    $('max').parentElement.hidden = true;
    $('temperature').value = 1;
    $('go').textContent = 'Complete';
    setImage(anImage(model.image_size));
  }
  if (kind === 'translation') {
    $('text').hidden = $('right').hidden = true;
    $('translation').hidden = false;
    for (const label of document.querySelectorAll('.lm')) label.hidden = true;
    $('go').textContent = 'Translate';
    $('prompt-label').textContent = 'Sentences, a line each';
  }
  for (const output of document.querySelectorAll('output')) {
    output.value = $(output.htmlFor.value).value;
  }
  $('main').hidden = false;
  drawMap();
  ($('image').hidden ? $('prompt') : $('go')).focus();
}

async function begin() {
  const hash = new URLSearchParams(location.hash.slice(1)).get('token');
  if (hash) {
    sessionStorage.setItem('token', hash);
    history.replaceState(null, '', location.pathname);
  }
  try {
    const answer = await (await ask('v1/models')).json();
    $('token-form').hidden = true;
    fault(null);
    setUp(answer.data[0]);
  } catch (error) {
    if (error.status !== 401) throw error;
    $('token-form').hidden = false;
    $('token').focus();
  }
}

function indexOf(event) {
  const e = event.target.closest('#text i');
  return e ? Number(e.id.slice(1)) : -1;
}

function pixelAt(event) {
  const box = $('image').getBoundingClientRect();
  const size = model.image_size;
  const x = Math.floor((event.clientX - box.left) / box.width * size);
  const y = Math.floor((event.clientY - box.top) / box.height * size);
  return Math.min(tokens.length - 1, (y * size + x) * 3);
}

const moves = {ArrowLeft: -1, ArrowRight: 1, PageUp: -500, PageDown: 500};

$('token-form').addEventListener('submit', (event) => {
  event.preventDefault();
  sessionStorage.setItem('token', $('token').value);
  begin().catch(fault);
});
$('form').addEventListener('submit', (event) => {
  event.preventDefault();
  if (running) return;
  ({translation: translate, image: completeImage}[model.kind] || continueText)()
    .catch(fault);
});
$('prompt').addEventListener('keydown', (event) => {
  if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    $('form').requestSubmit();
  }
});
document.addEventListener('keydown', (event) => {
  if (event.key !== 'Escape') return;
  if (running) return running.abort();
  if (!attention) return;
  forget();
  if (model.kind === 'image') drawImage(); else draw();
});
$('stop').addEventListener('click', () => running && running.abort());
$('clear').addEventListener('click', () => {
  if (running) running.abort();
  forget();
  fault(null);
  $('status').textContent = '';
  if (model.kind === 'image') return giveImage();
  tokens = [];
  given = from = 0;
  at = -1;
  $('prompt').value = $('translation').textContent = '';
  draw();
  $('prompt').focus();
});
$('settings').addEventListener('input', (event) => {
  const output = document.querySelector(`output[for=${event.target.id}]`);
  if (output) output.value = event.target.value;
  if (event.target.id === 'rounds') fillRounds();
});
$('given').addEventListener('input', () => {
  document.querySelector('output[for=given]').value = $('given').value + '%';
  if (!running) giveImage();
});
$('file').addEventListener('change', () => {
  if (!$('file').files.length) return;
  fileImage($('file').files[0], model.image_size).then(setImage).catch(fault);
});
$('text').addEventListener('click', (event) => {
  const i = indexOf(event);
  if (i >= 0) look(i);
});
$('text').addEventListener('mouseover', (event) => {
  const i = indexOf(event);
  if (i >= 0) detail(i);
});
$('text').addEventListener('mouseleave', () => {
  if (chosen >= 0) detail(chosen);
});
$('earlier').addEventListener('click', () => goTo(from - SHOWN / 2));
$('later').addEventListener('click', () => goTo(shownEnd() + SHOWN / 2));
$('text').addEventListener('keydown', (event) => {
  if (event.key in moves) goTo((at < 0 ? tokens.length : at) + moves[event.key]);
  else if (event.key === 'Home') goTo(0);
  else if (event.key === 'End') goTo(tokens.length - 1);
  else if ((event.key === 'Enter' || event.key === ' ') && at >= 0) look(at);
  else return;
  event.preventDefault();
});
$('image').addEventListener('click', (event) => look(pixelAt(event)));
$('image').addEventListener('keydown', (event) => {
  const line = model.image_size * 3;
  const step = {ArrowLeft: -3, ArrowRight: 3, ArrowUp: -line, ArrowDown: line}[event.key];
  if (step) {
    const next = (at < 0 ? tokens.length - 3 : at) + step;
    at = Math.max(0, Math.min(tokens.length - 1, next));
    detail(at);
    drawImage();
  } else if (event.key === 'Enter' && at >= 0) {
    look(at);
  } else {
    return;
  }
  event.preventDefault();
});
$('map').addEventListener('click', (event) => {
  const box = $('map').getBoundingClientRect();
  const {columns, lines} = mapShape();
  const line = Math.floor((event.clientY - box.top) / box.height * lines);
  const column = Math.floor((event.clientX - box.left) / box.width * columns);
  if (model.kind !== 'image' && tokens.length) goTo(line * columns + column);
});
for (const id of ['layer', 'head', 'round', 'buckets']) {
  $(id).addEventListener('change', () => {
    if ($('buckets').checked) {  // of one layer, head and round
      for (const other of ['layer', 'head', 'round']) {
        if ($(other).value === '') $(other).value = '0';
      }
    }
    if (chosen >= 0) look(chosen);
  });
}
begin().catch(fault);
