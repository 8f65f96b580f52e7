// The page of `reformer serve`: how it begins, and what its controls do.
'use strict';

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

function sayGiven() {
  document.querySelector('output[for=given]').value = $('given').value + '%';
}

function setUp(entry) {
  model = entry.reformer;
  const {kind} = model;
  document.title = entry.id + ' · Reformer';
  $('name').textContent = entry.id;
  const kinds = [...new Set(model.layers)].join(', ');
  const layers = model.layers.length;
  $('about').textContent = `${layers} layer${layers > 1 ? 's' : ''}, ${kinds} attention, ` +
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
    $('main').classList.add('single');
    $('translation').hidden = false;
    for (const label of document.querySelectorAll('.lm')) label.hidden = true;
    $('go').textContent = 'Translate';
    $('prompt-label').textContent = 'Sentences, a line each';
  }
  for (const output of document.querySelectorAll('output')) {
    output.value = $(output.htmlFor.value).value;
  }
  sayGiven();
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
  sayGiven();
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
// What is painted has the colours of its time.
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  if (!model) return;
  if (model.kind === 'image') drawImage();
  drawMap();
});
begin().catch(fault);
