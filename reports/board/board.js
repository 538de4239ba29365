"use strict";
// Filters rows, moves between cells and shows their details. Every page works without it.
// The URL contains the filter (?outcome=finding&text=cache) and the cell (#REQUIREMENT/implementation).
(() => {
  const form = document.getElementById("filter");
  const table = document.getElementById("matrix");
  const shown = document.getElementById("shown");
  const nothing = document.getElementById("nothing");
  const heads = table ? [...[...table.tHead.rows].at(-1).cells].slice(1) : [];
  const columns = heads.map((cell) => cell.dataset.i);
  const allRows = () =>
    table ? [...table.querySelectorAll("tbody tr:not(.area)")] : [...document.querySelectorAll(".card")];
  let rows = allRows();
  const bodies = table ? [...table.tBodies] : [];
  const places = new Map([...rows, ...bodies].map((one, at) => [one, at])); // their order on the page
  const texts = new Map(rows.map((row) => [row, (table ? row.cells[0] : row).textContent.toLowerCase()]));
  const cellsOf = (row) => [...row.cells].slice(1);
  const linkOf = (cell) => cell.querySelector("a") || cell;
  const panel = document.getElementById("details");
  const UNTESTED = "untested: not covered by any case in the run";
  let reached = null;

  // With the script, every cell is a link on this page, even without details. Only one of them is in
  // the tab order.
  const openHere = (cell) => {
    let link = cell.querySelector("a");
    if (!link) {
      link = document.createElement("a");
      link.title = UNTESTED;
      link.append(...cell.childNodes);
      cell.append(link);
    }
    link.href = `#${encodeURI(cell.id)}`;
  };

  if (table)
    for (const row of rows) {
      // The panel and the requirement's page have the same links.
      for (const link of row.cells[0].querySelectorAll("a")) link.tabIndex = -1;
      for (const cell of cellsOf(row)) {
        if (panel) openHere(cell);
        linkOf(cell).tabIndex = -1;
      }
    }

  // Filtering

  const read = (field) => (field.type === "checkbox" && !field.checked ? "" : field.value);
  const value = (name) => (form.elements[name] ? read(form.elements[name]) : "");
  const isAsked = (cell) => !cell.classList.contains("s7") && !cell.classList.contains("s8");

  const fitsCard = (card) =>
    (!value("kind") || card.dataset.kind === value("kind")) &&
    (!value("implementation") || card.dataset.i === value("implementation"));

  const fitsRow = (row) => {
    const group = row.parentElement.dataset.area;
    if (value("area") && group !== value("area")) return false;
    if (value("document") && row.dataset.document !== value("document")) return false;
    const outcome = value("outcome") && form.elements.outcome.selectedOptions[0].dataset.state;
    const asked = value("asked");
    let any = !outcome && !asked;
    cellsOf(row).forEach((cell) => {
      const fits = !outcome || cell.classList.contains(outcome);
      cell.classList.toggle("dim", !fits);
      any ||= fits && !cell.hidden && (!asked || isAsked(cell));
    });
    return any;
  };

  const showColumns = (fits) => {
    const hidden = heads.map((head, at) => !fits(head, at));
    const groups = [...table.tHead.querySelectorAll(".kinds th")];
    for (const row of table.rows)
      if (!row.classList.contains("kinds")) cellsOf(row).forEach((cell, at) => (cell.hidden = hidden[at]));
    for (const group of groups) {
      const shownHeads = heads.filter((head) => head.dataset.kind === group.dataset.kind && !head.hidden);
      group.hidden = !shownHeads.length;
      group.colSpan = shownHeads.length || 1;
    }
  };

  const isChosen = (head) =>
    (!value("implementation") || head.dataset.i === value("implementation")) &&
    (!value("columns") || head.dataset.kind === value("columns"));

  // Columns without a tested requirement among the shown rows.
  const hideUnasked = () => {
    const visible = rows.filter((row) => !row.hidden).map(cellsOf);
    showColumns((head, at) => isChosen(head) && visible.some((cells) => isAsked(cells[at])));
  };

  const brokenCount = (row) =>
    cellsOf(row).filter((cell) => !cell.hidden && isAsked(cell) && !cell.classList.contains("s6")).length;

  let isOrdered = false;
  const orderRows = () => {
    if (!value("order") && !isOrdered) return;
    isOrdered = Boolean(value("order"));
    const counts = new Map(rows.map((row) => [row, isOrdered && !row.hidden ? brokenCount(row) : 0]));
    for (const body of bodies) {
      const inside = [...body.rows].filter((row) => counts.has(row));
      counts.set(body, Math.max(0, ...inside.map((row) => counts.get(row))));
      inside.sort((a, b) => counts.get(b) - counts.get(a) || places.get(a) - places.get(b));
      body.append(...inside);
    }
    const ordered = [...bodies].sort((a, b) => counts.get(b) - counts.get(a) || places.get(a) - places.get(b));
    table.append(...ordered);
    rows = allRows();
  };

  const apply = () => {
    const words = value("text").toLowerCase().split(/\s+/).filter(Boolean);
    if (table) showColumns(isChosen);
    let count = 0;
    for (const row of rows) {
      const fits = (table ? fitsRow(row) : fitsCard(row)) && words.every((word) => texts.get(row).includes(word));
      row.hidden = !fits;
      count += fits;
    }
    if (table) {
      for (const body of bodies) body.hidden = ![...body.rows].some((row) => !row.hidden && places.has(row));
      if (value("asked")) hideUnasked();
      if (form.elements.order) orderRows();
      keepReachable();
    }
    // Like the overview, only what a document states.
    const counted = table ? rows.filter((row) => row.dataset.document) : rows;
    const visible = counted.filter((row) => !row.hidden).length;
    const all = counted.length.toLocaleString("en");
    shown.textContent = visible === counted.length ? `all ${all} shown` : `${visible.toLocaleString("en")} of ${all} shown`;
    nothing.hidden = count > 0;
  };

  // The filter in the URL

  const FIELDS = ["text", "area", "document", "outcome", "kind", "implementation", "columns", "order", "asked"];
  const MOST = 200; // maximum length of a text in the URL
  const fields = form ? FIELDS.map((name) => form.elements.namedItem(name)).filter(Boolean) : [];
  let kept = true;

  const takes = (field, said) => !field.options || [...field.options].some((option) => option.value === said);

  const readAddress = () => {
    const asked = new URLSearchParams(location.search);
    for (const field of fields) {
      const said = (asked.get(field.name) || "").slice(0, MOST);
      if (field.type === "checkbox") field.checked = said === field.value;
      else field.value = takes(field, said) ? said : "";
    }
    // A displayed name also selects an implementation, and `?my-driver` selects a column.
    const choice = form.elements.namedItem("implementation");
    if (choice && !choice.value) {
      const named = [...choice.options].find((option) => option.value && option.text === asked.get(choice.name));
      if (named) choice.value = named.value;
    }
    if (choice && !choice.value)
      for (const [name, said] of asked) if (!said && takes(choice, name)) choice.value = name;
  };

  const replaceAddress = (part, said) => {
    const address = new URL(location.href);
    address[part] = said;
    try {
      history.replaceState(null, "", address);
    } catch {
      kept = false; // browsers may refuse it for local files, or limit the rate
    }
  };

  const writeAddress = () => {
    const said = fields.filter(read).map((field) => [field.name, field.value]);
    replaceAddress("search", String(new URLSearchParams(said)));
  };

  const applyAndWrite = () => {
    apply();
    writeAddress();
  };

  if (form) {
    form.hidden = false;
    readAddress();
    form.addEventListener("input", applyAndWrite);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => setTimeout(applyAndWrite));
    window.addEventListener("popstate", () => {
      if (!kept) return;
      readAddress();
      apply();
    });
    apply();
  }

  // The cell in the fragment, and its details

  const { findings, versions } = panel ? JSON.parse(document.getElementById("cells").textContent) : {};
  const FEW = 4; // machines listed without a click
  let current = null;

  const made = (name, text, parent) => {
    const element = document.createElement(name);
    element.textContent = text;
    if (parent) parent.append(element);
    return element;
  };

  const finding = (one, requirement) => {
    const section = made("section", "");
    const head = made("p", "", section);
    made("b", one.kind, head);
    head.append(`: ${one.head}`);
    for (const name of one.signatures) if (name !== one.head) made("code", name, made("p", "", section));
    const list = made("ul", "", section);
    list.className = "where";
    for (const [name, outcome, machines, requirements] of one.cases) {
      if (!requirements.includes(requirement)) continue;
      const item = made("li", "", list);
      made("code", name, item);
      item.append(` ${outcome} on `);
      const names = machines.join(", ");
      if (machines.length <= FEW) {
        item.append(names);
        continue;
      }
      const more = made("details", "", item);
      made("summary", `${machines.length} machines`, more);
      more.append(names);
    }
    const isDefect = one.kind === "expected";
    const link = made("a", isDefect ? "The named defect" : "The finding, with its smallest case", made("p", "", section));
    link.href = isDefect ? `defects.html#${one.defect}` : `findings.html#${one.id}`;
    return section;
  };

  // The states of a requirement in all versions, oldest first; nothing for a single version.
  const versionList = (slug, requirement) => {
    const states = versions[slug]?.states[requirement];
    if (!states) return [];
    const head = made("h3", "Versions");
    const list = made("ol", "");
    list.className = "versions";
    versions[slug].names.forEach(([name, date], at) => {
      const { sign, state } = legend[states[at]];
      const item = made("span", `${sign} ${name}`, made("li", "", list));
      item.className = `state s${states[at]}`;
      item.title = `${state}; ${date ? `run on ${date}` : "date unknown"}`;
      made("span", ` ${state}`, item).className = "sr";
    });
    return [head, list];
  };

  const legend = [...document.querySelectorAll(".signs .state")].map((one) => {
    const [sign, state] = [one.firstChild.textContent, one.lastChild.textContent.trim()];
    return { sign, state };
  });

  const show = (cell) => {
    const row = cell.parentElement;
    const at = cell.cellIndex - 1;
    const slug = columns[at];
    const name = heads[at].textContent.trim();
    panel.replaceChildren();
    const close = made("button", "Close", panel);
    close.type = "button";
    close.className = "close";
    close.addEventListener("click", leave);
    const title = made("h2", "", panel);
    title.id = "details-title";
    made("code", row.id, title);
    title.append(` · ${name}`);
    made("p", row.querySelector(".sentence").textContent, panel);
    const source = row.querySelector(".source").cloneNode(true);
    for (const link of source.querySelectorAll("a")) link.removeAttribute("tabindex");
    made("p", "", panel).append(source);
    const [state, ...outcomes] = linkOf(cell).title.split(": ");
    const said = made("p", "", panel);
    made("span", `${cell.textContent} ${state}`, said).className = `state ${cell.classList[0]}`;
    said.append(` ${outcomes.join(": ")}`);
    panel.append(...versionList(slug, row.id));
    for (const one of findings)
      if (one.implementation === slug && one.cases.some((found) => found[3].includes(row.id)))
        panel.append(finding(one, row.id));
    const more = made("p", "", panel);
    made("a", "Who meets it, since which version", more).href = `${row.querySelector("th > a").getAttribute("href")}#history`;
    more.append(" · ");
    made("a", `All about ${name}`, more).href = `implementations/${slug}.html#${row.id}`;
    panel.hidden = false;
  };

  // In a wide window, the details don't cover the cell.
  const putBeside = (cell) => {
    const { left, right } = cell.getBoundingClientRect();
    panel.classList.toggle("left", (left + right) / 2 > window.innerWidth / 2);
  };

  const reset = () => {
    form.reset();
    applyAndWrite();
  };

  const unmark = () => {
    mark(null);
    if (panel) panel.hidden = true;
  };

  const mark = (cell) => {
    if (current) current.classList.remove("here");
    current = cell;
    if (cell) cell.classList.add("here");
  };

  const go = () => {
    let id;
    try {
      id = decodeURIComponent(location.hash.slice(1));
    } catch {
      return;
    }
    const target = id && document.getElementById(id);
    if (!target) {
      unmark();
      return;
    }
    for (let around = target; around; around = around.parentElement) if (around.tagName === "DETAILS") around.open = true;
    const row = target.closest("tr, .card");
    if (form && row && (row.hidden || target.hidden)) reset();
    if (table && table.contains(target) && target.tagName === "TD") {
      mark(target);
      if (panel) show(target);
      put(target);
      target.scrollIntoView({ block: "start", inline: "nearest" });
      if (panel) putBeside(target);
    } else {
      unmark();
      target.scrollIntoView({ block: "start" });
    }
  };

  function leave() {
    const cell = current;
    unmark();
    replaceAddress("hash", "");
    if (cell) linkOf(cell).focus();
  }

  // Moving between cells

  function reach(cell) {
    if (reached) linkOf(reached).tabIndex = -1;
    reached = cell;
    if (cell) linkOf(cell).tabIndex = 0;
  }

  const put = (cell) => {
    reach(cell);
    linkOf(cell).focus({ preventScroll: true });
  };

  // A filter may hide the current cell.
  function keepReachable() {
    if (reached && !reached.closest("[hidden]")) return;
    const row = rows.find((one) => !one.hidden);
    reach((row && cellsOf(row).find((cell) => !cell.hidden)) || null);
  }

  const move = (cell, down, right) => {
    const visible = rows.filter((row) => !row.hidden);
    const row = visible[visible.indexOf(cell.parentElement) + down];
    if (!row) return;
    const cells = cellsOf(row).filter((one) => !one.hidden);
    const here = cellsOf(cell.parentElement).filter((one) => !one.hidden).indexOf(cell);
    const next = cells[here + right];
    if (!next) return;
    put(next);
    next.scrollIntoView({ block: "nearest", inline: "nearest" });
  };

  const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

  if (table) {
    for (const hint of document.querySelectorAll(".keys")) hint.hidden = false;
    table.addEventListener("click", (event) => {
      const cell = event.target.closest("tbody td[id]");
      if (cell && panel && location.hash === `#${encodeURI(cell.id)}`) go();
    });
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const writing = event.target.closest("input, select, textarea");
    if (event.key === "/" && !writing && form) {
      event.preventDefault();
      form.elements.text.focus();
    } else if (event.key === "Escape") {
      if (panel && !panel.hidden) leave();
      else if (writing) {
        event.preventDefault(); // would clear the field
        writing.blur();
        if (reached) put(reached);
      }
    } else if (STEPS[event.key] && table && !writing) {
      const cell = event.target.closest("tbody td");
      if (!cell || !cell.id) return;
      event.preventDefault();
      move(cell, ...STEPS[event.key]);
    }
  });

  window.addEventListener("hashchange", go);
  go();
})();
