// What a server or a caller wrote is only ever put into the page as text: `put` is the one way in, and the page's
// Content-Security-Policy (Trusted Types) lets no other through.
const POLL = 2000, SAMPLES = 90, ROWS = 300;
const byId = (id) => document.getElementById(id);

// Letters that are not seen, or turn others around: shown by their number.
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\u115f\u1160\u17b4\u17b5\u2800\u3164\ufe00-\ufe0f\uffa0\u{e0100}-\u{e01ef}]/gu;

function put(node, text) {
  let from = 0;
  for (const found of text.matchAll(UNSEEN)) {
    if (found.index > from) node.append(text.slice(from, found.index));
    const code = found[0].codePointAt(0).toString(16).toUpperCase().padStart(4, '0');
    node.append(el('span', { class: 'unseen' }, `U+${code}`));
    from = found.index + found[0].length;
  }
  if (from < text.length) node.append(text.slice(from));
  return node;
}

function el(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  for (const child of children) {
    if (child instanceof Node) node.append(child);
    else if (child !== null && child !== undefined) put(node, String(child));
  }
  return node;
}

// A text that others wrote, by itself so that it turns nothing else around.
const text = (what, more = '') => el('span', { class: `text ${more}` }, what);
const code = (what, more = '') => el('code', { class: `text ${more}` }, what);
const sub = (what) => el('span', { class: 'sub text' }, what);

function set(node, what) {
  if (node.textContent !== what) node.textContent = what;
}

const count = (number) => number.toLocaleString('en-US');
const clock = (time) => new Date(time).toLocaleTimeString('en-GB');
const moment = (time) => `${time.slice(0, 10)} ${clock(time)}`;
const plural = (number, word) => `${count(number)} ${word}${number === 1 ? '' : 's'}`;

function age(seconds) {
  if (seconds < 90) return `${seconds} s ago`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min ago`;
  return seconds < 129600 ? `${Math.round(seconds / 3600)} h ago` : `${Math.round(seconds / 86400)} days ago`;
}

// Puts `rows` (keyed) into `body` and leaves alone what is there already, so that a selection survives.
function keyed(body, rows, make) {
  const old = new Map([...body.children].map((row) => [row.dataset.key, row]));
  const wanted = rows.map(([key, value]) => {
    const row = old.get(key) ?? make(value);
    row.dataset.key = key;
    return row;
  });
  const keep = new Set(wanted);
  for (const row of old.values()) if (!keep.has(row)) row.remove();
  wanted.forEach((row, at) => {
    if (body.children[at] !== row) body.insertBefore(row, body.children[at] ?? null);
  });
}

// --- The head -------------------------------------------------------------------------------------------------------

function state(kind, what) {
  const node = byId('state');
  node.className = `state ${kind}`;
  set(node, what);
  document.body.classList.toggle('stale', kind === 'bad' && what.startsWith('No answer'));
}

function head({ status }) {
  const { configuration: now, ready, missing } = status;
  if (ready) state('good', 'Ready');
  else state('warn', 'Not ready');
  const facts = [
    ['Version', status.version],
    ['Generation', count(now.generation)],
    ['In force since', moment(now.loaded_at)],
    ['Digest', now.digest.replace('sha256:', '').slice(0, 16)],
    ['Servers', count(status.servers.length)],
  ];
  keyed(byId('facts'), facts.map(([name, value]) => [`${name} ${value}`, [name, value]]), ([name, value]) =>
    el('div', {}, el('dt', {}, name), el('dd', {}, text(value))));
  const alerts = [];
  if (!ready) alerts.push(['warn', 'Not ready: calls cannot be decided yet', missing]);
  if (now.last_fault) {
    alerts.push(['bad', `The reload of ${moment(now.last_fault.at)} changed nothing`, now.last_fault.faults]);
  }
  if (now.needs_restart.length) alerts.push(['warn', 'Changed in the files, and in force only after a restart', now.needs_restart]);
  keyed(byId('alerts'), alerts.map((alert) => [JSON.stringify(alert), alert]), ([kind, title, lines]) =>
    el('div', { class: `alert ${kind}` }, el('strong', {}, title), el('ul', {}, ...lines.map((line) => el('li', { class: 'text' }, line)))));
}

// --- Decisions ------------------------------------------------------------------------------------------------------

const OUTCOMES = [
  ['allow', 'Allowed', 'good'],
  ['refuse', 'Refused', 'bad'],
  ['would_refuse', 'Would refuse (shadow)', 'warn'],
  ['answer', 'Answered by a gate', 'calm'],
  ['pass', 'Passed unmatched', 'calm'],
  ['abort', 'Aborted', 'calm'],
];
const SVG = 'http://www.w3.org/2000/svg';
let last = null;

const tiles = OUTCOMES.map(([key, name, kind]) => {
  const svg = document.createElementNS(SVG, 'svg');
  for (const [name, value] of [['viewBox', `0 0 ${SAMPLES - 1} 30`], ['preserveAspectRatio', 'none'], ['aria-hidden', 'true']]) svg.setAttribute(name, value);
  const [area, line] = ['area', 'line'].map((part) => {
    const path = document.createElementNS(SVG, 'path');
    path.setAttribute('class', part);
    svg.append(path);
    return path;
  });
  const [rate, all] = [el('span', { class: 'rate' }, '–'), el('span', { class: 'all' }, '\u00a0')];
  byId('tiles').append(el('li', { class: `tile ${kind}`, 'data-outcome': key }, el('span', { class: 'what' }, name), rate, all, svg));
  return { key, rate, all, area, line, seen: [] };
});

function decisions({ decisions: now, clock_ms: at }) {
  const seconds = last ? (at - last.at) / 1000 : 0;
  for (const tile of tiles) {
    set(tile.all, `${count(now[tile.key])} in all`);
    if (seconds <= 0) continue;
    // A reload that takes a server away takes its counts along.
    const rate = Math.max(0, now[tile.key] - last.now[tile.key]) / seconds;
    tile.seen = [...tile.seen, rate].slice(-SAMPLES);
    set(tile.rate, rate >= 100 ? count(Math.round(rate)) : rate ? rate.toFixed(1) : '0');
    const most = Math.max(1, ...tile.seen), first = SAMPLES - tile.seen.length;
    const points = tile.seen.map((value, at) => `${first + at},${(28 - (value / most) * 25).toFixed(1)}`);
    tile.line.setAttribute('d', `M${points.join('L')}`);
    tile.area.setAttribute('d', `M${first},30L${points.join('L')}L${SAMPLES - 1},30Z`);
  }
  last = { now, at };
}

// --- Refusals -------------------------------------------------------------------------------------------------------

let known = null;

function refusals({ refusals: all }) {
  const cell = (label, ...children) => el('td', label ? { role: 'cell', 'data-label': label } : { role: 'cell' }, ...children);
  keyed(byId('refusals-rows'), all.map((one) => [one.id + one.at, one]), (one) => {
    const reason = cell('', el('span', { class: 'reason text' }, one.reason), one.enforced ? null : el('span', { class: 'tag' }, 'recorded only'), one.rung ? sub(one.rung) : null);
    const what = cell('', code(one.capability || one.method || '–'), one.capability && one.method ? sub(one.method) : null, one.detail ? sub(one.detail) : null);
    return el('tr', { role: 'row', class: one.enforced ? '' : 'recorded' },
      cell('', el('time', { datetime: one.at, title: one.at }, clock(one.at))), reason, what,
      cell('Caller', text(one.principal || 'unknown')), cell('Server', text(one.server || 'none')), cell('Decision', code(one.id, 'id')));
  });
  byId('refusals-box').hidden = !all.length;
  byId('refusals-empty').hidden = all.length > 0;
  set(byId('refusals-empty'), 'Nothing was refused since this process started.');
  set(byId('refusals-count'), all.length ? String(all.length) : '');
  const ids = new Set(all.map((one) => one.id));
  const fresh = known ? [...ids].filter((id) => !known.has(id)).length : 0;
  if (fresh) set(byId('said'), `${plural(fresh, 'new refusal')} at ${clock(Date.now())}`);
  known = ids;
}

// --- Servers --------------------------------------------------------------------------------------------------------

function servers({ status }) {
  const row = (one) => {
    const keys = !one.keys ? '–' : one.keys.age_seconds === null ? 'not had yet' : `had ${age(one.keys.age_seconds)}`;
    const listing = !one.last_listing ? 'none yet' : `${one.last_listing.result === 'ok' ? '' : 'failed, '}${age(one.last_listing.age_seconds)}`;
    const gates = one.gates.map((gate) => `${gate.name}${gate.state === 'resting' ? ' (resting)' : ''}`).join(', ');
    return [text(one.name), text(`${one.kind}, ${one.mode}`), text(String(one.capabilities)), text(String(one.drift.length)), text(listing), text(keys), text(gates || '–')];
  };
  const labels = ['', '', 'Capabilities', 'Drifted', 'Last listing', 'Keys', 'Gates'];
  keyed(byId('servers-rows'), status.servers.map((one) => [one.name, one]), () =>
    el('tr', { role: 'row' }, ...labels.map((label, at) => at ? el('td', { role: 'cell', 'data-label': label, class: at === 2 || at === 3 ? 'number' : '' }) : el('th', { role: 'rowheader', scope: 'row' }))));
  status.servers.forEach((one, at) => row(one).forEach((value, column) => {
    const place = byId('servers-rows').children[at].children[column];
    if (place.textContent !== value.textContent) place.replaceChildren(value);
  }));
}

// --- Drift ----------------------------------------------------------------------------------------------------------

// The lines of two texts in pairs: [old, new], one of them null where it has no counterpart.
function pairs(old, now) {
  let [start, end] = [0, 0];
  while (start < old.length && start < now.length && old[start] === now[start]) start += 1;
  while (end < old.length - start && end < now.length - start && old[old.length - 1 - end] === now[now.length - 1 - end]) end += 1;
  const [a, b] = [old.slice(start, old.length - end), now.slice(start, now.length - end)];
  const same = (lines) => lines.map((line) => [line, line]);
  return [...same(old.slice(0, start)), ...between(a, b), ...same(old.slice(old.length - end))];
}

function between(a, b) {
  const side = (olds, news) => Array.from({ length: Math.max(olds.length, news.length) }, (_, at) => [olds[at] ?? null, news[at] ?? null]);
  // A table beyond this would hold the page up; then all of it is said to differ.
  if (a.length * b.length > 1e6) return side(a, b);
  const table = Array.from({ length: a.length + 1 }, () => new Uint32Array(b.length + 1));
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) table[i][j] = a[i] === b[j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
  }
  const all = [];
  let [i, j, olds, news] = [0, 0, [], []];
  const flush = () => {
    all.push(...side(olds, news));
    [olds, news] = [[], []];
  };
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      flush();
      all.push([a[i], b[j]]);
      [i, j] = [i + 1, j + 1];
    } else if (j >= b.length || (i < a.length && table[i + 1][j] >= table[i][j + 1])) olds.push(a[i++]);
    else news.push(b[j++]);
  }
  flush();
  return all;
}

// One side of a pair; what is not on the other side is marked.
function half(kind, sign, line, other) {
  if (line === null) return el('td');
  const cell = el('td', { class: kind }, el('span', { class: 'sign' }, sign));
  if (!kind || other === null) return put(cell, line);
  const [own, its] = [[...line], [...other]];
  let [start, end] = [0, 0];
  while (start < own.length && start < its.length && own[start] === its[start]) start += 1;
  while (end < own.length - start && end < its.length - start && own[own.length - 1 - end] === its[its.length - 1 - end]) end += 1;
  const part = (from, to) => own.slice(from, to).join('');
  put(cell, part(0, start));
  if (start < own.length - end) cell.append(put(el('mark'), part(start, own.length - end)));
  return put(cell, part(own.length - end));
}

function compared(one) {
  const body = el('tbody');
  const [old, now] = [one.recorded, one.offered].map((text) => text.split('\n'));
  const rows = pairs(old, now).map(([was, is]) => {
    const same = was === is;
    return [same, el('tr', { class: same ? 'same' : 'differs' }, half(same ? '' : 'was', same ? ' ' : '−', was, is), half(same ? '' : 'now', same ? ' ' : '+', is, was))];
  });
  const near = (at) => rows.slice(Math.max(0, at - 3), at + 4).some(([same]) => !same);
  let folded = [];
  const fold = () => {
    if (folded.length < 3) body.append(...folded);
    else {
      const hidden = folded;
      const button = el('button', { type: 'button' }, `${hidden.length} lines that are the same`);
      const row = el('tr', { class: 'fold' }, el('td', { colspan: '2' }, button));
      button.addEventListener('click', () => row.replaceWith(...hidden));
      body.append(row);
    }
    folded = [];
  };
  rows.forEach(([, row], at) => {
    if (!near(at)) return folded.push(row);
    fold();
    return body.append(row);
  });
  fold();
  const titles = el('thead', {}, el('tr', {}, el('th', { scope: 'col' }, 'Recorded'), el('th', { scope: 'col' }, 'Offered now')));
  return el('table', { class: 'diff' }, el('caption', { class: 'vh' }, `The definition of ${one.label} as recorded and as offered`), titles, body);
}

function drift({ drift: all, drift_more: more }) {
  byId('drift-list').replaceChildren(...all.map((one) => {
    const title = el('div', { class: 'title' }, el('h3', {}, code(one.label)), el('span', { class: 'note' }, 'on ', text(one.server)),
      one.cut ? el('span', { class: 'tag' }, 'long: shown in part') : null);
    const body = one.offered === null ? el('p', { class: 'more' }, 'The server offers it no longer.') : compared(one);
    return el('article', { class: 'drifted' }, title, body);
  }), ...(more ? [el('p', { class: 'more' }, `${plural(more, 'further definition')} drifted: /status names them.`)] : []));
  byId('drift-empty').hidden = all.length > 0;
  set(byId('drift-empty'), 'Every definition that was listed is as it was recorded.');
  const sum = all.length + more;
  set(byId('drift-count'), sum ? String(sum) : '');
  byId('drift-count').className = sum ? 'count loud' : 'count';
}

// --- Access ---------------------------------------------------------------------------------------------------------

let matrices = [];

function access() {
  const wanted = byId('filter').value.trim().toLowerCase();
  const has = (...texts) => !wanted || texts.some((text) => text.toLowerCase().includes(wanted));
  const all = (items, found) => (found.length ? found : items);
  byId('access-list').replaceChildren(...matrices.map((one) => {
    const rows = one.capabilities.filter((row) => has(row.label, row.permission, ...row.scopes));
    const roles = one.roles.map((name, at) => [name, at]).filter(([name]) => has(name));
    const rules = one.rules.filter((rule) => has(rule.who, ...rule.roles));
    const [shownRows, shownRoles] = [roles.length ? all(one.capabilities, rows) : rows, all(one.roles.map((name, at) => [name, at]), roles)];
    const titles = el('tr', {}, el('th', { scope: 'col' }, 'Capability'), el('th', { scope: 'col', class: 'permission' }, 'Permission'), el('th', { scope: 'col', class: 'permission' }, 'Scopes'),
      ...shownRoles.map(([name]) => el('th', { scope: 'col', class: 'cell' }, text(name))));
    const body = shownRows.slice(0, ROWS).map((row) => {
      const may = new Set(row.roles);
      return el('tr', {}, el('th', { scope: 'row' }, code(row.label), el('span', { class: 'sub text narrow' }, [row.permission, ...row.scopes].join(' '))), el('td', { class: 'permission' }, text(row.permission)), el('td', { class: 'permission' }, text(row.scopes.join(' ') || '–')),
        ...shownRoles.map(([, at]) => el('td', { class: `cell ${may.has(at) ? 'yes' : 'no'}` }, el('span', { class: 'vh' }, may.has(at) ? 'yes' : 'no'))));
    });
    const box = (label, ...children) => el('div', { class: 'scroll matrix-box', tabindex: '0', role: 'region', 'aria-label': label }, ...children);
    const more = shownRows.length > ROWS ? el('p', { class: 'more' }, `${count(shownRows.length - ROWS)} more: narrow them down with the filter.`) : null;
    const matrix = shownRows.length
      ? box(`Access on ${one.server}`, el('table', { class: 'matrix' }, el('caption', { class: 'vh' }, `Which role may call which capability of ${one.server}`), el('thead', {}, titles), el('tbody', {}, ...body)), more)
      : el('p', { class: 'empty' }, one.capabilities.length ? 'Nothing here matches the filter.' : 'Nothing of this server is priced: nothing can be called.');
    const who = el('table', { class: 'matrix' }, el('caption', { class: 'vh' }, `Which callers of ${one.server} have which role`),
      el('thead', {}, el('tr', {}, el('th', { scope: 'col' }, 'Callers'), el('th', { scope: 'col' }, 'Roles'))),
      el('tbody', {}, ...rules.slice(0, ROWS).map((rule) => el('tr', {}, el('th', { scope: 'row' }, text(rule.who)), el('td', {}, rule.deny ? el('span', { class: 'tag' }, 'denied, whatever other rules say') : text(rule.roles.join(', ') || 'none'))))));
    return el('div', { class: 'server' }, el('h3', {}, text(one.server), el('span', { class: 'note' }, `${plural(one.capabilities.length, 'capability').replace('capabilitys', 'capabilities')}, ${plural(one.roles.length, 'role')}`)), matrix,
      rules.length ? box(`Rules of ${one.server}`, who) : null);
  }));
}

let typing = 0;
byId('filter').addEventListener('input', () => {
  clearTimeout(typing);
  typing = setTimeout(access, 120);
});

// --- The clockwork --------------------------------------------------------------------------------------------------

let details = null, answered = null;

async function get(path) {
  const response = await fetch(path, { cache: 'no-store', credentials: 'omit', signal: AbortSignal.timeout(4500) });
  if (!response.ok) throw new Error(`HTTP ${response.status}`);
  return response.json();
}

async function poll() {
  try {
    const now = await get('page.json');
    [head, decisions, refusals, servers].forEach((show) => show(now));
    if (now.details !== details) {
      const more = await get('page.json?details');
      drift(more);
      matrices = more.access;
      access();
      details = more.details;
    }
    answered = Date.now();
  } catch {
    state('bad', answered ? `No answer since ${clock(answered)}` : 'No answer');
  }
}

async function loop() {
  if (!document.hidden) await poll();
  setTimeout(loop, POLL);
}
loop();
