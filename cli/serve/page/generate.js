// Continuations and translations, as they come.
'use strict';

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
    const texts = answer.choices.map((choice) => choice.text);
    $('translation').textContent = texts.join('\n');
    $('status').textContent = `${Math.round(performance.now() - begin)} ms` +
      (texts.some((text) => text) ? '' : '; the model ended at once, with nothing');
  } catch (error) {
    if (error.name !== 'AbortError') fault(error);
  } finally {
    running = null;
    busy(false);
  }
}
