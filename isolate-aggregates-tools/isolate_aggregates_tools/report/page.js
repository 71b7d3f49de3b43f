// SPDX-License-Identifier: Apache-2.0
// The matrix, the search box and the filters. What comes from the cloud is
// only ever put in as text.
'use strict';
(async () => {
  // What is large is packed, and markup of the page itself.
  const unpack = async (template) => {
    const bytes = Uint8Array.from(
      atob(template.content.textContent), (one) => one.charCodeAt(0));
    const text = await new Response(new Blob([bytes]).stream()
      .pipeThrough(new DecompressionStream('deflate'))).text();
    template.replaceWith(
      document.createRange().createContextualFragment(text));
  };
  const packed = [...document.querySelectorAll('template.packed')];
  if (packed.length) await Promise.all(packed.map(unpack));

  // More rows than these at once would make a page slow, and more columns than
  // fit would scroll; the rest is a button, or an arrow key, away.
  const most = { row: 60, column: 2 };
  // More locks or findings than these make a page long.
  const MOST_ITEMS = 20;
  // Until the others are asked for, so that the matrix is near.
  const FIRST_FINDINGS = 3;
  // More names of locks than these make the head of a column long.
  const MOST_LOCKS = 2;
  // More names than these hide what comes after them.
  const MOST_NAMES = 8;
  const SIGNS = { yes: '✓', some: '◐', no: '×' };
  const WORDS = {
    yes: 'may use all of them',
    some: 'may use some of them',
    no: 'may use none of them',
  };
  // Of the hosts that a request may use, or not.
  const FULL = '0 free';
  const TITLES = {
    yes: [SIGNS.yes, 'may be used'],
    'yes full': [`${FULL} on`, 'may be used, no room now'],
    no: [SIGNS.no],
  };
  const WORDS_OF_ONE = { yes: 'may use it', no: 'may not use it' };

  const $ = (id) => document.getElementById(id);
  const data = JSON.parse($('cells').textContent);
  const root = document.documentElement;
  const grid = $('grid');
  const panel = $('reason');
  const state = {
    view: 'alike', words: [], rows: 'all', only: null,
    order: 'given',
    first: { row: 0, column: 0 },
    // The cell that the tabulator key leads to; row and column -1 are heads.
    row: 0, column: 0,
  };
  let shown = { row: [], column: [] };
  let open = null;

  const format = new Intl.NumberFormat('en');
  const number = (value) => format.format(value);
  const count = (value, one, many) =>
    `${number(value)} ${value === 1 ? one : many}`;
  const make = (name, text, attributes = {}) => {
    const element = document.createElement(name);
    if (text !== undefined) element.textContent = text;
    for (const [key, value] of Object.entries(attributes)) {
      element.setAttribute(key, value);
    }
    return element;
  };
  const fold = (text) => text.toLowerCase();
  const holds = (text) => state.words.every((word) => text.includes(word));

  // What there is.

  // All hosts, with the index of their group and their aggregates.
  const hosts = new Map();
  data.groups.forEach((group, place) => {
    for (const name of group.hosts) {
      const kind = data.room?.kinds[hosts.size];
      hosts.set(name, { place, kind, aggregates: [] });
    }
  });
  const names = [...hosts.keys()];
  // Numbers are written as the first and the last of each run.
  const numbersIn = (runs) => {
    const some = [];
    for (let at = 0; at < runs.length; at += 2) {
      for (let one = runs[at]; one <= runs[at + 1]; one++) some.push(one);
    }
    return some;
  };
  for (const column of data.columns.aggregate) {
    column.hosts = numbersIn(column.hosts).map((host) => names[host]);
    column.groups = [...new Set(
      column.hosts.map((host) => hosts.get(host).place))];
    for (const host of column.hosts) {
      hosts.get(host).aggregates.push(column.name);
    }
  }
  const hostsOf = (column) => column.hosts ??= column.groups
    .flatMap((place) => data.groups[place].hosts).sort();
  const aggregatesOf = (some) => new Set(
    some.flatMap((host) => hosts.get(host).aggregates));
  data.columns.host = [...names].sort().map((name) => (
    { name, hosts: [name], groups: [hosts.get(name).place] }));
  // The names of the locks of each group of hosts.
  const locks = data.groups.map((_, place) => data.columns.lock
    .filter(({ groups }) => groups.includes(place))
    .map(({ name }) => name).join(' + '));
  // A cause has the name of the flavor between its parts.
  const causeOf = (reason, row) => data.reasons[reason].cause
    .join(`flavor ${row.flavor}`);
  // Of the aggregates in a reason, only those of the hosts are named.
  const namesIn = (reason, those) => data.reasons[reason].aggregates
    .map((place) => data.columns.aggregate[place].name)
    .filter((name) => those.has(name));
  const wording = (cause, aggregates) => (aggregates.length
    ? `${aggregates.length === 1 ? 'aggregate' : 'aggregates'} ` +
      `${few(aggregates)}: ${cause}`
    : cause);
  // The ids of projects and reservations, which are long, by their beginnings.
  const brief = (text) => text.replace(
    /\b([0-9a-f]{8})-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}\b/g, '$1…');
  const sizeOf = (cells) => data.groups.reduce((sum, group, place) =>
    sum + (cells[place] === 0 ? group.hosts.length : 0), 0);
  // For each group of hosts, 0 if it may be used, or the reasons why not.
  const lines = data.lines.map((line) => {
    const cells = data.groups.map(() => 0);
    for (const term of numbersIn(line)) {
      const [reason, ...places] = data.terms[term];
      for (const place of numbersIn(places)) {
        cells[place] = [...cells[place] || [], reason];
      }
    }
    return cells;
  });
  // How many hosts each of them allows, once it is asked for.
  const sizes = [];
  for (const row of data.rows) {
    row.text = fold(
      [row.flavor, ...row.keys.map(([, text]) => text)].join('\n'));
  }
  for (const columns of Object.values(data.columns)) {
    for (const column of columns) {
      const some = hostsOf(column);
      column.text = fold(
        [column.name, ...some, ...aggregatesOf(some),
          ...column.groups.map((place) => locks[place])].join('\n'));
    }
  }
  // The rows of the table: each flavor with the chosen image, in the chosen
  // project. The rows of the page are each flavor with each image; of other
  // projects there are the lines.
  const chosen = (what) => $(`try-${what}`)?.selectedIndex ?? 0;
  let table = [];
  // The groups of hosts that any of the rows may use.
  let usable = new Set();
  const tabulate = () => {
    const other = data.tries[chosen('project') - 1];
    table = [];
    for (let place = chosen('image'); place < data.rows.length;
      place += data.images) {
      const row = data.rows[place];
      const line = other ? other[place] : row.cells;
      sizes[line] ??= sizeOf(lines[line]);
      table.push({
        ...row, name: row.flavor, cells: lines[line], size: sizes[line],
      });
    }
    usable = new Set();
    for (const cells of new Set(table.map((row) => row.cells))) {
      cells.forEach((held, place) => { if (held === 0) usable.add(place); });
    }
  };
  const verdict = (row, column) => {
    const may = column.groups.filter((place) => row.cells[place] === 0).length;
    if (!may) return 'no';
    return may === column.groups.length ? 'yes' : 'some';
  };

  // How many more servers fit on the hosts that may be used, if it is known.
  const roomOn = (row, some) => {
    const fits = data.room?.lines[row.room];
    const may = some.map((name) => hosts.get(name))
      .filter(({ place }) => row.cells[place] === 0);
    return !fits || !may.length ? ''
      : number(may.reduce((sum, { kind }) => sum + fits[kind], 0));
  };
  // What is allowed is of no use now where there is no room.
  const look = (word, room) => (room === '0' ? `${word} full` : word);
  const withRoom = (text, room) => {
    if (room === '0') return `${text}, no room now`;
    return room ? `${text}, room for ${room} more` : text;
  };

  // What is shown of it.

  const choose = () => {
    let rows = table;
    if (state.rows === 'nowhere') {
      rows = rows.filter((row) => row.cells.every((held) => held !== 0));
    } else if (state.rows === 'keyed') {
      rows = rows.filter((row) => row.cells.some(
        (held, place) => held === 0 && data.groups[place].locked));
    }
    let columns = data.columns[state.view];
    if (state.only) {
      const only = new Set(hostsOf(state.only));
      columns = columns.filter((column) =>
        hostsOf(column).some((host) => only.has(host)));
    }
    // A word may be that of a row, of a column, or of both.
    const by = { rows, columns };
    for (const word of state.words) {
      const has = ({ text }) => text.includes(word);
      const [inRows, inColumns] = [rows.some(has), columns.some(has)];
      if (inRows || !inColumns) by.rows = by.rows.filter(has);
      if (inColumns || !inRows) by.columns = by.columns.filter(has);
    }
    return {
      row: sorted(by.rows, ORDERS[state.order], (row) => row.size),
      column: sorted(by.columns, ...(ORDERS[state.order]
        ? [ORDERS[state.order], (column) => hostsOf(column).length]
        : [ORDERS.fewest, remoteness])),
    };
  };

  // What the chosen request may use comes first, then what others may use.
  const remoteness = ({ groups }) => {
    const row = table[chosen('flavor')];
    if (groups.some((place) => row?.cells[place] === 0)) return 0;
    return groups.some((place) => usable.has(place)) ? 1 : 2;
  };

  const collator = new Intl.Collator('en', { numeric: true });
  const ORDERS = {
    name: (a, b) => collator.compare(a.one.name, b.one.name),
    most: (a, b) => b.size - a.size,
    fewest: (a, b) => a.size - b.size,
  };
  // Those that are alike in this stay in the order in which they came.
  const sorted = (things, order, size) => (order
    ? things.map((one) => ({ one, size: size(one) })).sort(order)
      .map(({ one }) => one)
    : things);

  // The locks of a column; of a lock it is the name.
  const lockOf = (column) => {
    if (state.view === 'lock' || !column.groups.length) return '';
    const locked = column.groups.filter((place) => data.groups[place].locked);
    const some = locked.length ? locked : column.groups;
    const names = [...new Set(some.map((place) => locks[place]))];
    const name = names.slice(0, MOST_LOCKS).join(', ') +
      (names.length > MOST_LOCKS
        ? ` and ${number(names.length - MOST_LOCKS)} more` : '');
    return some.length < column.groups.length ? `${name} on some` : name;
  };

  // A long name may be broken after what separates its parts.
  const breakable = (element) => {
    element.replaceChildren(...element.textContent.split(/(?<=[_:.=-])/)
      .flatMap((part) => [part, make('wbr')]));
    return element;
  };

  const head = (text, scope, lock = '') => {
    const cell = make('th', undefined, { tabindex: -1, scope });
    const names = make('div');
    if (lock && !text.startsWith(lock)) {
      names.append(breakable(
        make('span', brief(lock), { class: 'lock', title: lock })), ' ');
    }
    names.append(breakable(make(
      'span', state.view === 'lock' ? brief(text) : text, { class: 'name' })));
    cell.append(names);
    cell.title = text;
    return cell;
  };

  const patterns = Object.fromEntries(Object.entries(SIGNS).map(
    ([word, sign]) => [word, make('td', sign,
      { class: word, tabindex: -1, 'aria-selected': false })]));

  const draw = () => {
    shown = choose();
    const style = getComputedStyle(grid);
    const length = (name) => parseFloat(style.getPropertyValue(name)) *
      parseFloat(getComputedStyle(root).fontSize);
    most.column = Math.max(2, Math.floor(
      ($('table').clientWidth - length('--head')) / length('--column')));
    state.first.row = page(state.first.row, shown.row.length, most.row);
    state.first.column = page(
      state.first.column, shown.column.length, most.column);
    const rows = shown.row.slice(state.first.row, state.first.row + most.row);
    const columns = shown.column.slice(
      state.first.column, state.first.column + most.column);
    const top = make('tr');
    top.append(make('th', 'Flavor', { scope: 'col' }));
    top.append(...columns.map((column) => head(column.name, 'col', lockOf(column))));
    const body = make('tbody');
    for (const row of rows) {
      const line = make('tr');
      const name = head(row.flavor, 'row');
      if (row === table[chosen('flavor')]) name.ariaCurrent = true;
      const note = elsewhere(row, columns);
      if (note) name.append(make('span', note, { class: 'elsewhere' }));
      line.append(name, ...columns.map((column) => {
        const word = verdict(row, column);
        const room = roomOn(row, hostsOf(column));
        const cell = patterns[word].cloneNode(true);
        cell.className = look(word, room);
        if (room === '0') {
          cell.textContent = word === 'some' ? `${SIGNS.some} ${FULL}` : FULL;
        } else if (room) {
          cell.append(make('b', room));
        }
        cell.ariaLabel = room === '0' ? `${word}, ${FULL}`
          : withRoom(word, room);
        return cell;
      }));
      body.append(line);
    }
    const header = make('thead');
    header.append(top);
    grid.replaceChildren(header, body);
    const empty = !rows.length || !columns.length;
    grid.hidden = empty;
    $('none').hidden = !empty;
    $('none').textContent = !table.length ? 'There are no flavors.'
      : !data.groups.length ? 'There are no hosts.'
        : 'No row or column matches.';
    state.row = Math.min(state.row, rows.length - 1);
    state.column = Math.min(state.column, columns.length - 1);
    lead(at(state.row, state.column) || at(0, 0));
    pagers('row', state.first.row, rows.length, shown.row.length);
    pagers('column', state.first.column, columns.length, shown.column.length);
    tell();
  };

  // What a row may use, if none of the columns on the screen shows it.
  const elsewhere = (row, columns) => {
    const may = (column) => verdict(row, column) !== 'no';
    if (!row.size || columns.some(may)) return '';
    const places = [...shown.column.keys()]
      .filter((place) => may(shown.column[place]));
    if (!places.length) return '';
    const text = `may use ${places.length === 1
      ? shown.column[places[0]].name : count(places.length, 'column', 'columns')}`;
    return [
      places[0] < state.first.column && '←', text,
      places.at(-1) >= state.first.column && '→',
    ].filter(Boolean).join(' ');
  };

  const page = (first, total, most) =>
    Math.max(0, Math.min(first, Math.floor((total - 1) / most) * most));

  const pagers = (what, first, some, total) => {
    $(`${what}-pages`).hidden = some === total;
    $(`${what}s-shown`).textContent =
      `${what}s ${number(first + 1)} to ${number(first + some)} ` +
      `of ${number(total)}`;
    $(`${what}s-back`).disabled = first === 0;
    $(`${what}s-on`).disabled = first + some >= total;
  };

  const tell = () => {
    const matching = (kind) => total(items[kind].filter((one) => one.shown));
    $('found').textContent = [
      count(shown.row.length, 'row', 'rows'),
      count(shown.column.length, 'column', 'columns'),
      count(matching('lock'), 'lock', 'locks'),
      count(matching('finding'), 'finding', 'findings'),
    ].join(', ');
  };

  // The grid by keyboard: one stop of the tabulator key, arrows within.

  // In the corner there is nothing to say.
  const at = (row, column) => (row < 0 && column < 0 ? undefined
    : grid.rows[row + 1]?.cells[column + 1]);

  const lead = (cell) => {
    grid.querySelectorAll('[tabindex="0"]').forEach((other) => {
      other.tabIndex = -1;
    });
    if (!cell) return;
    cell.tabIndex = 0;
    state.row = cell.parentNode.rowIndex - 1;
    state.column = cell.cellIndex - 1;
  };

  const go = (row, column) => {
    const cell = at(row, column);
    if (!cell) return;
    lead(cell);
    cell.focus();
  };

  const turn = (what, by) => {
    state.first[what] += by * most[what];
    draw();
  };
  const last = (what) =>
    Math.min(most[what], shown[what].length - state.first[what]) - 1;

  // Step over the edge of what is shown, if there is more behind it.
  const step = (what, by) => {
    const to = { row: state.row, column: state.column };
    to[what] += by;
    if (to[what] > last(what) &&
        state.first[what] + last(what) + 1 < shown[what].length) {
      turn(what, 1);
      to[what] = 0;
    } else if (to[what] < -1 && state.first[what] > 0) {
      turn(what, -1);
      to[what] = last(what);
    }
    go(to.row, to.column);
  };

  const keys = {
    ArrowUp: () => step('row', -1),
    ArrowDown: () => step('row', 1),
    ArrowLeft: () => step('column', -1),
    ArrowRight: () => step('column', 1),
    Home: () => go(state.row, state.row < 0 ? 0 : -1),
    End: () => go(state.row, last('column')),
    PageUp: () => go(-1, Math.max(state.column, 0)),
    PageDown: () => go(last('row'), state.column),
    Enter: () => activate(),
    ' ': () => activate(),
  };

  grid.addEventListener('keydown', (event) => {
    const plain = !event.ctrlKey && !event.altKey && !event.metaKey;
    if (!plain || !(event.key in keys)) return;
    event.preventDefault();
    keys[event.key]();
    // On a small screen the panel lies over the matrix, and is asked for.
    if (!isSmall() || panel.className === 'sheet') explain();
  });
  grid.addEventListener('click', (event) => {
    const cell = event.target.closest('[tabindex]');
    if (!cell) return;
    go(cell.parentNode.rowIndex - 1, cell.cellIndex - 1);
    activate();
  });
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape' && open) close();
  });

  // A flavor that is pressed is chosen, which brings its columns to the front.
  const activate = () => {
    if (state.column < 0 && state.row >= 0 && $('try')) {
      const row = shown.row[state.first.row + state.row];
      $('try-flavor').selectedIndex = table.indexOf(row);
      state.first.column = 0;
      draw();
      answer();
      go(state.row, -1);
    }
    explain();
  };

  // The reason of a cell, or what a row or a column is.

  const explain = () => {
    show();
    uncover(open);
  };

  const show = () => {
    const row = shown.row[state.first.row + state.row];
    const column = shown.column[state.first.column + state.column];
    mark(at(state.row, state.column));
    let parts;
    if (state.row < 0) {
      parts = [
        make('h3', column.name),
        make('h4', count(hostsOf(column).length, 'host', 'hosts')),
        ...listed(hostsOf(column)), ...aboutHosts(column),
      ];
    } else if (state.column < 0) {
      parts = [
        make('h3', row.flavor), ...answers(row, names, allGroups),
        ...aboutRow(row),
      ];
    } else {
      parts = aboutCell(row, column);
    }
    present(parts);
  };

  const present = (parts) => {
    const button = make('button', 'Close', { type: 'button', class: 'close' });
    button.addEventListener('click', close);
    panel.replaceChildren(...parts, button);
    panel.hidden = false;
    panel.className = 'sheet';
  };

  const isSmall = () => matchMedia('(max-width: 60rem)').matches;
  // On a small screen the panel lies over the lower half.
  const uncover = (cell) => {
    cell.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    const below = cell.getBoundingClientRect().bottom -
      panel.getBoundingClientRect().top;
    if (isSmall() && below > 0) scrollBy(0, below + 24);
  };

  const mark = (cell) => {
    open?.setAttribute('aria-selected', false);
    open = cell;
    open?.setAttribute('aria-selected', true);
  };

  const close = () => {
    mark(null);
    attempt();
    go(state.row, state.column);
  };

  // The hosts that may be used, with room or not, and those that may not, by
  // cause.
  const answers = (row, all, groups) => {
    const causes = new Map();
    const fits = data.room?.lines[row.room];
    const isFull = (host) => fits?.[hosts.get(host).kind] === 0;
    const put = (word, some, filter, cause, aggregates = []) => {
      if (!some.length) return;
      const key = JSON.stringify([word, filter, cause]);
      if (!causes.has(key)) {
        causes.set(
          key, { word, filter, cause, aggregates: new Set(), some: [] });
      }
      const one = causes.get(key);
      for (const name of aggregates) one.aggregates.add(name);
      one.some.push(...some);
    };
    for (const place of groups) {
      const some = all.filter((host) => hosts.get(host).place === place);
      const those = aggregatesOf(some);
      if (row.cells[place] === 0) {
        put('yes', some.filter((host) => !isFull(host)));
        put('yes full', some.filter(isFull));
      }
      for (const reason of row.cells[place] || []) {
        put('no', some, data.reasons[reason].filter, causeOf(reason, row),
          namesIn(reason, those));
      }
    }
    const order = Object.keys(TITLES);
    const entries = [...causes.values()].sort((a, b) =>
      order.indexOf(a.word) - order.indexOf(b.word) ||
      b.some.length - a.some.length);
    const lines = entries.map(({ word, filter, cause, aggregates, some }) => {
      const item = make('li', undefined, { class: word });
      const [sign, text] = TITLES[word];
      item.append(
        `${sign} ${count(some.length, 'host', 'hosts')}: `,
        text ?? wording(cause, [...aggregates].sort()));
      if (filter) item.append(make('div', `filter ${filter}`, { class: 'by' }));
      item.append(...listed(some.sort()));
      return item;
    });
    const list = (some) => {
      const element = make('ul', undefined, { class: 'answers' });
      element.append(...some);
      return element;
    };
    const parts = [list(lines.slice(0, MOST_NAMES))];
    if (lines.length > MOST_NAMES) {
      const more = make('details');
      more.append(
        make('summary', `${number(lines.length - MOST_NAMES)} more reasons`),
        list(lines.slice(MOST_NAMES)));
      parts.push(more);
    }
    return lines.length ? parts : [];
  };

  const listed = (some) => {
    const parts = [make('p', few(some) || 'none', { class: 'names' })];
    if (some.length > MOST_NAMES) {
      const all = make('details', undefined, { class: 'names unprinted' });
      all.append(make('summary', 'All of them'), make('p', some.join(', ')));
      parts.push(all);
    }
    return parts;
  };

  const aboutCell = (row, column) => {
    const all = hostsOf(column);
    const word = verdict(row, column);
    const room = roomOn(row, all);
    const text = (all.length > 1 ? WORDS : WORDS_OF_ONE)[word];
    const parts = [
      make('h3', `${row.flavor} on ${column.name}`),
      make('p', withRoom(
        room === '0' ? `${FULL}: ${text}` : `${SIGNS[word]} ${text}`, room),
        { class: `verdict ${look(word, room)}` }),
      ...answers(row, all, column.groups),
    ];
    if (!column.groups.length) parts.push(make('p', 'It has no hosts.'));
    const link = make('p');
    link.append(make('a', 'Link to this cell', { href: address(row, column) }));
    return [...parts, ...aboutHosts(column), ...aboutRow(row), link];
  };

  // A cell has an address: its request, and what its column is of in this
  // view. Similar hosts have the name of the first of them.

  const address = (row, column) => {
    const parts = new URLSearchParams({ flavor: row.flavor });
    if (row.image !== null) parts.set('image', row.image);
    if (chosen('project')) parts.set('project', labelOf('project'));
    parts.set(
      state.view, state.view === 'alike' ? hostsOf(column)[0] : column.name);
    return `#${parts}`;
  };

  // The places of a request in the lists to choose from; -1 is not there.
  const placesOf = (parts) => {
    const flavors = data.rows.filter((_, place) => place % data.images === 0)
      .map(({ flavor }) => flavor);
    const images = data.rows.slice(0, data.images).map(({ image }) => image);
    const projects = [...$('try-project').options]
      .map(({ textContent }) => textContent);
    return {
      flavor: flavors.indexOf(parts.get('flavor')),
      image: parts.has('image') ? images.indexOf(parts.get('image'))
        : Math.max(images.indexOf(null), 0),
      project: parts.has('project') ? projects.indexOf(parts.get('project')) : 0,
    };
  };

  // Show everything, whatever was searched for.
  const reset = () => {
    state.rows = 'all';
    $('rows').value = state.rows;
    $('search').value = '';
    $('search').dispatchEvent(new Event('input'));
    state.only = null;
    $('only').hidden = true;
  };

  const follow = () => {
    const parts = new URLSearchParams(location.hash.slice(1));
    const name = Object.keys(data.columns).find((one) => parts.has(one));
    if (!parts.has('flavor') || !name) return;
    reset();
    const places = Object.entries($('try') ? placesOf(parts) : { flavor: -1 });
    const isKnown = places.every(([, place]) => place >= 0);
    for (const [what, place] of isKnown ? places : []) {
      $(`try-${what}`).selectedIndex = place;
    }
    tabulate();
    answer();
    view(name);
    const row = isKnown ? shown.row.indexOf(table[chosen('flavor')]) : -1;
    const column = shown.column.findIndex((one) => (name === 'alike'
      ? hostsOf(one).includes(parts.get(name))
      : one.name === parts.get(name)));
    if (row < 0 || column < 0) {
      mark(null);
      present([
        make('h3', 'This cell is not in the report'),
        make('p', [...parts].map((part) => part.join(' ')).join(', ')),
      ]);
      $('matrix').scrollIntoView();
      return;
    }
    state.first.row = row - row % most.row;
    state.first.column = column - column % most.column;
    draw();
    go(row - state.first.row, column - state.first.column);
    explain();
  };
  addEventListener('hashchange', follow);

  const few = (names) => names.length <= MOST_NAMES ? names.join(', ')
    : `${names.slice(0, MOST_NAMES).join(', ')} and ` +
      `${number(names.length - MOST_NAMES)} more`;

  const aboutHosts = (column) => {
    const some = hostsOf(column);
    const aggregates = [...aggregatesOf(some)].sort();
    const parts = [];
    if (aggregates.length) {
      parts.push(
        make('h4', count(aggregates.length, 'aggregate', 'aggregates')),
        make('p', aggregates.join(', '), { class: 'names' }));
    }
    if (state.view !== 'host' && some.length > 1) {
      const button = make('button', 'Show each of these hosts',
        { type: 'button' });
      button.addEventListener('click', () => {
        state.only = column;
        $('only-name').textContent = column.name;
        $('only').hidden = false;
        view('host');
        close();
      });
      parts.push(button);
    }
    return parts;
  };

  const aboutRow = (row) => {
    const parts = [
      make('h4', 'Request'),
      make('p', [row.image ?? 'No image', labelOf('project')].join(', '),
        { class: 'names' }),
      make('p', `May use ${count(row.size, 'host', 'hosts')} in all.`,
        { class: 'names' }),
    ];
    for (const [whose, text] of row.keys) {
      const line = make('p', `${whose}: `, { class: 'names' });
      line.append(make('code', text));
      parts.push(line);
    }
    return parts;
  };

  // The chosen request, on all hosts.

  const labelOf = (what) =>
    $(`try-${what}`).selectedOptions[0].textContent;
  const titleOf = () => ['flavor', 'image', 'project'].map(labelOf).join(', ');
  const allGroups = [...data.groups.keys()];
  const answer = () => {
    if (!$('try')) return;
    const row = table[chosen('flavor')];
    const room = roomOn(row, names);
    $('answer').textContent = `${withRoom(
      `${titleOf()}: may use ${number(row.size)} of ` +
      count(names.length, 'host', 'hosts'), room)}.`;
    $('answer').className = look('', room);
  };
  const attempt = () => {
    panel.hidden = !$('try');
    panel.className = '';
    if (panel.hidden) return;
    answer();
    panel.replaceChildren(make('h3', titleOf()),
      ...answers(table[chosen('flavor')], names, allGroups));
  };
  // Begin with a request that some hosts allow and others do not, if there is
  // one, and with an image, as most servers have.
  const prefill = () => {
    const usefulness = ({ cells: line, image }) => {
      const cells = lines[line];
      const may = cells.includes(0);
      return 4 * may + 2 * (may && cells.some((held) => held !== 0)) +
        (image !== null);
    };
    const best = Math.max(...data.rows.map(usefulness));
    const place = data.rows.findIndex((row) => usefulness(row) === best);
    $('try-flavor').selectedIndex = Math.floor(place / data.images);
    $('try-image').selectedIndex = place % data.images;
  };
  for (const select of document.querySelectorAll('#try select')) {
    select.addEventListener('change', () => {
      mark(null);
      tabulate();
      state.first.column = 0;
      draw();
      attempt();
    });
  }

  // Search box, filters, and the rest of what can be pressed.

  const view = (name) => {
    state.view = name;
    state.first.column = 0;
    state.column = 0;
    document.querySelector(`input[value="${name}"]`).checked = true;
    draw();
  };

  // The locks and the findings, in the order that was chosen.
  const items = Object.fromEntries(['lock', 'finding'].map((kind) => [
    kind,
    [...document.querySelectorAll(`.item[data-kind="${kind}"]`)].map(
      (element, given) => ({
        element, given, shown: true,
        name: breakable(element.querySelector('h3 bdi')).textContent,
        // A sentence names only some of many hosts.
        text: fold(`${element.textContent} ${element.dataset.names ?? ''}`),
      })),
  ]));

  const first = { lock: 0, finding: 0 };
  let isBrief = true;
  const arrange = (kind, most = MOST_ITEMS) => {
    if (!items[kind].length) return;
    const those = items[kind].filter((one) => one.shown);
    const isCut = kind === 'finding' && most === MOST_ITEMS && cuts(those);
    const from = isCut ? 0 : page(first[kind], those.length, most);
    const some = those.slice(from, from + (isCut ? FIRST_FINDINGS : most));
    for (const one of items[kind]) one.element.hidden = true;
    for (const { element } of some) {
      element.hidden = false;
      element.querySelectorAll('.repair code bdi').forEach(keepWords);
    }
    $(`${kind}-none`).hidden = Boolean(those.length);
    pagers(kind, from, some.length, those.length);
    if (isCut) $('finding-pages').hidden = true;
  };

  const keepWords = (element) => {
    element.replaceChildren(...element.textContent.split(/( )/)
      .map((part) => (part === ' ' ? part : make('span', part))));
  };

  // Whether only the first findings are shown, and a button for the others.
  const cuts = (those) => {
    const button = $('findings-all');
    button.hidden = those.length <= FIRST_FINDINGS ||
      Boolean($('severity').value);
    button.textContent = isBrief
      ? `Show all ${number(total(those))} findings` : 'Show fewer findings';
    button.ariaExpanded = !isBrief;
    return isBrief && !button.hidden;
  };
  const total = (those) => those.reduce(
    (sum, { element }) => sum + Number(element.dataset.count ?? 1), 0);

  const isAnyOpen = () => items.lock.some((one) => one.element.open);
  const labelFold = () => {
    $('fold').textContent = isAnyOpen() ? 'Fold all' : 'Unfold all';
  };
  if (items.lock.length) {
    labelFold();
    $('fold').addEventListener('click', () => {
      const unfold = !isAnyOpen();
      for (const one of items.lock) one.element.open = unfold;
    });
    for (const one of items.lock) {
      one.element.addEventListener('toggle', labelFold);
    }
  }

  const order = (kind) => {
    if (!items[kind].length) return;
    const by = { most: 'hosts', fewest: 'hosts' }[state.order] || state.order;
    items[kind] = sorted(
      [...items[kind]].sort((a, b) => a.given - b.given),
      by === 'name' ? ORDERS.name
        : state.order === 'fewest' ? ORDERS.fewest : ORDERS.most,
      ({ element }) => Number(element.dataset[by] ?? 0));
    items[kind][0].element.parentNode.append(
      ...items[kind].map((one) => one.element));
    first[kind] = 0;
    arrange(kind);
  };

  const filter = () => {
    const severity = $('severity') ? $('severity').value : '';
    for (const [kind, those] of Object.entries(items)) {
      for (const one of those) {
        const other = severity && kind === 'finding' &&
          !one.element.dataset.severity.includes(severity);
        one.shown = !other && holds(one.text);
      }
      first[kind] = 0;
      arrange(kind);
    }
    state.first.row = state.first.column = 0;
    draw();
  };

  document.querySelectorAll('input[name="view"]').forEach((input) => {
    input.addEventListener('change', () => view(input.value));
  });
  $('rows').addEventListener('change', () => {
    state.rows = $('rows').value;
    filter();
  });
  $('search').addEventListener('input', () => {
    state.words = fold($('search').value).split(/\s+/).filter(Boolean);
    filter();
    // What was searched for is one cell. The page stays where it is.
    if (state.words.length && shown.row.length === 1 &&
        shown.column.length === 1) show();
  });
  if ($('severity')) {
    $('severity').addEventListener('change', filter);
    $('findings-all').addEventListener('click', () => {
      isBrief = !isBrief;
      arrange('finding');
    });
  }
  // The flavors without hosts are counted with the first image and project.
  const chooseFirst = () => {
    for (const what of ['image', 'project']) {
      if ($('try')) $(`try-${what}`).selectedIndex = 0;
    }
    tabulate();
    attempt();
  };
  // A counter shows what it counts, in the section that it leads to.
  for (const counter of document.querySelectorAll('[data-choice]')) {
    counter.addEventListener('click', () => {
      const [what, value] = counter.dataset.choice.split('=');
      reset();
      if (what === 'view') view(value);
      if (!$(what)) return;
      if (what === 'rows') chooseFirst();
      $(what).value = value;
      $(what).dispatchEvent(new Event('change'));
    });
  }
  $('order').addEventListener('change', () => {
    state.order = $('order').value;
    state.first.row = state.first.column = 0;
    for (const kind of Object.keys(items)) order(kind);
    draw();
  });
  for (const kind of ['lock', 'finding']) {
    if (!items[kind].length) continue;
    arrange(kind);
    for (const [where, by] of [['back', -MOST_ITEMS], ['on', MOST_ITEMS]]) {
      $(`${kind}s-${where}`).addEventListener('click', () => {
        first[kind] += by;
        arrange(kind);
      });
    }
  }
  $('only-off').addEventListener('click', () => {
    state.only = null;
    $('only').hidden = true;
    view('alike');
    document.querySelector('input[name="view"]:checked').focus();
  });
  for (const what of ['row', 'column']) {
    $(`${what}s-back`).addEventListener('click', () => turn(what, -1));
    $(`${what}s-on`).addEventListener('click', () => turn(what, 1));
  }

  // Without HTTPS there is no clipboard but that of the selection.
  const copy = async (code) => {
    try {
      await navigator.clipboard.writeText(code.textContent);
      return true;
    } catch {
      getSelection().selectAllChildren(code);
      return document.execCommand('copy');
    }
  };
  document.addEventListener('click', async ({ target }) => {
    const button = target.closest?.('.copy');
    if (!button) return;
    const code = button.previousElementSibling;
    const isCopied = await copy(code);
    $('copied').textContent = isCopied ? `Copied: ${code.textContent}`
      : 'Not copied. The command is selected; press Ctrl+C.';
    button.textContent = isCopied ? 'Copied' : 'Press Ctrl+C';
    setTimeout(() => { button.textContent = 'Copy'; }, 2000);
  });

  const dark = () => (root.dataset.theme
    ? root.dataset.theme === 'dark'
    : matchMedia('(prefers-color-scheme: dark)').matches);
  const label = () => {
    $('theme').textContent = dark() ? 'Light' : 'Dark';
    $('theme').setAttribute(
      'aria-label', dark() ? 'Light colours' : 'Dark colours');
  };
  $('theme').addEventListener('click', () => {
    root.dataset.theme = dark() ? 'light' : 'dark';
    label();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', label);
  // A printed page shows everything unfolded, and names what was selected.
  let folded = [];
  addEventListener('beforeprint', () => {
    folded = [...document.querySelectorAll('details:not([open])')];
    for (const one of folded) one.open = true;
    for (const kind of Object.keys(items)) arrange(kind, items[kind].length);
    $('printed').textContent = [
      state.words.length && `Search: ${$('search').value.trim()}`,
      ...[...document.querySelectorAll('.choice')].map((choice) => {
        const select = choice.querySelector('select');
        return select.selectedIndex &&
          `${choice.firstChild.data.trim()}: ${select.selectedOptions[0].text}`;
      }),
    ].filter(Boolean).join('. ');
  });
  addEventListener('afterprint', () => {
    for (const one of folded) one.open = false;
    for (const kind of Object.keys(items)) arrange(kind);
  });
  $('print').addEventListener('click', () => print());

  root.classList.add('js');
  label();
  if ($('try')) prefill();
  tabulate();
  attempt();
  draw();
  follow();
  addEventListener('resize', draw);
})();
