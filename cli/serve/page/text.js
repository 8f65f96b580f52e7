// The text as it is shown, with probabilities or attention as colours, and what
// is known of one of its tokens.
'use strict';

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
  box.classList.toggle('bucketed', Boolean(attention && attention.buckets));
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
  let first = Math.max(from, before - 3);
  while (first > from && goesOn(tokens[first])) --first;
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

function detail(i) {
  const token = tokens[i];
  const box = $('detail');
  if (!token) return;
  const head = document.createElement('p');
  const name = model.kind === 'bytes' && byteOf(token) >= 0 ?
    `byte ${byteOf(token)} (${hex(byteOf(token))})` : `token ${token.id}`;
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
