// Where a token looked: in the text, as a list, and on the map.
'use strict';

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
    `The whole ${model.kind === 'image' ? 'image' : 'text'}, in lines of ${columns}; ` +
    'a stronger blue: more weight.' +
    (model.kind === 'image' ? ' Red, green and blue one after the other.' : ' Click to go there.');
}
