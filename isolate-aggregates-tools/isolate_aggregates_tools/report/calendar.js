// SPDX-License-Identifier: Apache-2.0
// The room for reservations over time. What comes from the cloud is only ever
// put in as text.
'use strict';
(() => {
  // More hosts than these at once would make a page slow.
  const MOST = 40;
  const WIDTH = 1000;
  const HEIGHT = 28;
  // Amounts of storage; Nova's GB are GiB too.
  const UNITS = {
    MEMORY_MB: { size: 1024, word: 'memory' },
    DISK_GB: { size: 1, word: 'disk' },
  };

  const $ = (id) => document.getElementById(id);
  const data = JSON.parse($('room-data').textContent);
  const hosts = data.hosts.map((host) => ({
    ...host,
    periods: host.periods.map(([start, end, slots, taken, free]) => ({
      from: data.times[start][0], start: data.times[start][1],
      to: data.times[end][0], end: data.times[end][1],
      slots, taken, free,
    })),
  }));
  const number = (value) => value.toLocaleString('en');
  const state = { search: '', first: 0, row: 0, place: 0 };
  let shown = [];

  const fill = (element, text, attributes) => {
    if (text !== undefined) element.textContent = text;
    for (const [key, value] of Object.entries(attributes)) {
      element.setAttribute(key, value);
    }
    return element;
  };
  const make = (name, text, attributes = {}) =>
    fill(document.createElement(name), text, attributes);
  const draw = (name, attributes) => fill(
    document.createElementNS('http://www.w3.org/2000/svg', name),
    undefined, attributes);

  // The description of a period.

  const free = (period) => period.free
    .map((amount, place) => [amount, data.classes[place]])
    .filter(([amount]) => amount !== null)
    .map(([amount, name]) => UNITS[name]
      ? `${number(amount / UNITS[name].size)} GiB ${UNITS[name].word}`
      : `${number(amount)} ${name}`).join(', ');
  const slots = (period) => period.slots === 1 ? '1 slot'
    : `${number(period.slots)} slots`;
  const about = (host, period) => period
    ? `${host.name}, ${period.start} to ${period.end} UTC: ` +
      `${slots(period)}, free ${free(period) || 'nothing'}`
    : `${host.name} ${host.obstacle}`;

  // The picture: a line for each host, a bar for each period.

  const bar = (host, period) => {
    const from = period ? period.from * WIDTH : 0;
    const width = (period ? period.to * WIDTH : WIDTH) - from;
    const group = draw('g', {
      tabindex: -1, role: 'img', 'aria-label': about(host, period),
    });
    const across = { x: from, width };
    group.append(draw('rect', {
      ...across, height: HEIGHT, class: period ? 'rail' : 'shut',
    }));
    if (period) {
      const height = period.taken * HEIGHT;
      group.append(draw('rect', {
        ...across, y: HEIGHT - height, height,
        class: period.taken < 1 ? 'fill' : 'fill full',
      }));
    }
    group.append(draw('rect', { ...across, height: HEIGHT, class: 'edge' }));
    return group;
  };

  const line = (host) => {
    const item = make('li');
    const picture = draw('svg', {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none',
      role: 'group', 'aria-label': host.name,
    });
    const periods = host.obstacle ? [null] : host.periods;
    picture.append(...periods.map((period) => bar(host, period)));
    item.append(make('span', host.name, { title: host.name }), picture);
    return item;
  };

  const show = () => {
    const found = hosts.filter(
      (host) => host.name.toLowerCase().includes(state.search));
    if (state.first >= found.length) state.first = 0;
    shown = found.slice(state.first, state.first + MOST);
    $('rooms').replaceChildren(...shown.map(line));
    $('rooms').hidden = $('room-marks').hidden = !shown.length;
    $('room-none').hidden = Boolean(shown.length);
    $('room-pages').hidden = found.length <= MOST;
    $('room-shown').textContent = `hosts ${number(state.first + 1)} to ` +
      `${number(state.first + shown.length)} of ${number(found.length)}`;
    $('room-back').disabled = state.first === 0;
    $('room-on').disabled = state.first + MOST >= found.length;
    state.row = state.place = 0;
    lead(at(0, 0));
    tell(null);
    table();
  };

  // By keyboard: one stop of the tabulator key, arrows within.

  const bars = (row) => [...$('rooms').children[row]?.querySelectorAll('g')
    || []];
  const at = (row, place) => bars(row)[place];
  const lead = (one) => {
    $('rooms').querySelectorAll('[tabindex="0"]').forEach((other) => {
      other.setAttribute('tabindex', -1);
    });
    one?.setAttribute('tabindex', 0);
  };
  const go = (row, place) => {
    const one = at(row, place);
    if (!one) return;
    [state.row, state.place] = [row, place];
    lead(one);
    one.focus();
  };
  // The period of another host at the same time.
  const across = (by) => {
    const other = shown[state.row + by];
    if (!other) return;
    const start = shown[state.row].periods[state.place]?.from || 0;
    go(state.row + by,
      Math.max(0, other.periods.findIndex((period) => period.to > start)));
  };
  const keys = {
    ArrowLeft: () => go(state.row, state.place - 1),
    ArrowRight: () => go(state.row, state.place + 1),
    ArrowUp: () => across(-1),
    ArrowDown: () => across(1),
    Home: () => go(state.row, 0),
    End: () => go(state.row, bars(state.row).length - 1),
  };
  $('rooms').addEventListener('keydown', (event) => {
    const plain = !event.ctrlKey && !event.altKey && !event.metaKey;
    if (!plain || !(event.key in keys)) return;
    event.preventDefault();
    keys[event.key]();
  });

  // The details, of what the pointer is on or else of what has the focus.

  const detail = $('room-detail');
  const hint = detail.textContent;
  const tell = (one) => {
    detail.textContent = one ? one.getAttribute('aria-label') : hint;
  };
  const of = (event) => event.target.closest('g');
  const focused = () => document.activeElement.closest('#rooms g');
  $('rooms').addEventListener('focusin', (event) => tell(of(event)));
  $('rooms').addEventListener('focusout', () => tell(null));
  $('rooms').addEventListener('pointerover', (event) => {
    tell(of(event) || focused());
  });
  $('rooms').addEventListener('pointerleave', () => tell(focused()));
  $('rooms').addEventListener('click', (event) => {
    const one = of(event);
    if (!one) return;
    const row = [...$('rooms').children].indexOf(one.closest('li'));
    go(row, bars(row).indexOf(one));
  });

  // The same as a table.

  const row = (cells) => {
    const made = make('tr');
    made.append(...cells.map((text, place) => place ? make('td', text)
      : make('th', text, { scope: 'row' })));
    return made;
  };
  const table = () => {
    if (!$('room-table').open) return;
    $('room-rows').replaceChildren(...shown.flatMap((host) => host.obstacle
      ? [row([host.name, '', '', '', host.obstacle])]
      : host.periods.map((period) => row([
        host.name, period.start, period.end, number(period.slots),
        free(period),
      ]))));
  };
  $('room-table').addEventListener('toggle', table);

  $('search').addEventListener('input', () => {
    state.search = $('search').value.trim().toLowerCase();
    state.first = 0;
    show();
  });
  for (const [id, by] of [['room-back', -MOST], ['room-on', MOST]]) {
    $(id).addEventListener('click', () => {
      state.first += by;
      show();
    });
  }
  show();
})();
