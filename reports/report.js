"use strict";
// Filters failures, changes and cases, and follows links into folded parts. The page can be read without it.
(() => {
  const form = document.getElementById("filter");
  const shown = document.getElementById("shown");
  const NAMES = ["text", "outcome", "area", "machine"].filter((name) => form.elements[name]);
  const notice = document.createElement("p");
  document.querySelector("main").prepend(notice);
  notice.className = "warning";
  notice.setAttribute("role", "status");
  notice.hidden = true;
  let cards, runs, cases; // found at the first search, because large pages have many
  const searchable = (element, more = "") => ({
    element,
    text: `${element.textContent} ${more}`.toLowerCase(),
  });

  const index = () => {
    const names = [...form.elements.machine.options].slice(1).map((option) => option.value);
    cards = [...document.querySelectorAll(".card")];
    runs = [...document.querySelectorAll("[data-m]")].map((element) => {
      const { c, m, r } = element.dataset;
      const machines = m.split(" ").filter(Boolean);
      const about = document.getElementById(c)?.textContent ?? "";
      const on = machines.map((one) => names[one]).join(" ");
      return { ...searchable(element, `${about} ${r} ${on}`), machines };
    });
    cases = [...document.querySelectorAll(".cases tbody tr")].map((row) => searchable(row));
  };

  const size = (row) => Math.max(row.machines.length, 1);

  const plural = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;

  const of = (count, total, noun) => `${count.toLocaleString("en")} of ${plural(total, noun)}`;

  const number = (name) => form.elements[name]?.selectedOptions[0]?.dataset.n ?? "";

  const fitsCase = (data, outcome, machine) =>
    Object.entries(data).some(
      ([name, machines]) =>
        /^o\d+$/.test(name) &&
        (!outcome || name === "o" + outcome) &&
        (!machine || machines.split(" ").includes(machine)),
    );

  const apply = () => {
    const [outcome, area, machine] = ["outcome", "area", "machine"].map(number);
    const text = form.elements.text.value.toLowerCase().slice(0, 200);
    const words = text.split(/\s+/).filter(Boolean);
    const active = Boolean(outcome || area || machine || words.length);
    if (!active && !runs) return;
    if (!runs) index();
    const fits = (row) =>
      (!area || row.element.dataset.a === area) && words.every((word) => row.text.includes(word));
    let failures = 0;
    for (const row of runs) {
      const visible =
        fits(row) &&
        (!outcome || row.element.dataset.o === outcome) &&
        (!machine || row.machines.includes(machine));
      row.element.classList.toggle("out", !visible);
      if (visible) failures += machine ? 1 : size(row);
    }
    for (const card of cards) {
      card.hidden = active && !card.querySelector("[data-m]:not(.out)");
    }
    let count = 0;
    for (const row of cases) {
      row.element.hidden = !(fits(row) && fitsCase(row.element.dataset, outcome, machine));
      count += !row.element.hidden;
    }
    document.body.classList.toggle("filtered", active);
    document.querySelectorAll(".fold").forEach((fold) => {
      fold.open = active && Boolean(fold.querySelector("[data-m]:not(.out), tr[data-a]:not([hidden])"));
    });
    shown.textContent = !active ? "" : failures + count === 0
      ? "Nothing found."
      : of(failures, runs.reduce((sum, row) => sum + size(row), 0), shown.dataset.noun) +
        (cases.length ? `, ${of(count, cases.length, "case")}` : "");
  };

  const keepAddress = () => {
    const query = new URLSearchParams();
    for (const name of NAMES) {
      const value = form.elements[name].value;
      if (value) query.set(name, value);
    }
    history.replaceState(null, "", (query.size ? "?" + query : location.pathname) + location.hash);
  };

  const readAddress = (query) => {
    for (const name of NAMES) {
      const field = form.elements[name];
      field.value = (query.get(name) ?? "").slice(0, 200);
      if (field.selectedIndex < 0) field.value = "";
    }
    apply();
  };

  // A failure on a machine that shares the line of others.
  const lineOf = (id) => {
    const [kind, name, machine] = id.split("/");
    if (kind !== "failure") return undefined;
    if (!runs) index();
    const mine = runs.filter(({ element }) => element.dataset.c === `case/${name}`);
    const number = [...form.elements.machine.options].find((one) => one.value === machine)?.dataset.n;
    return mine.find(({ machines }) => machines.includes(number))?.element;
  };

  const tellMissing = (id) => {
    const [kind, name, machine] = id.split("/");
    const failing = kind === "failure" && cases.length > 0;
    notice.textContent = failing
      ? `${name} on ${machine} does not fail in this run. `
      : `This page has no ${id}.`;
    if (failing && document.getElementById(`case/${name}`)) {
      const link = notice.appendChild(document.createElement("a"));
      link.href = `#case/${name}`;
      link.textContent = "Its case";
    }
    notice.scrollIntoView({ block: "center" });
  };

  const reveal = () => {
    let id = location.hash.slice(1);
    try {
      id = decodeURIComponent(id);
    } catch {
      return;
    }
    const target = document.getElementById(id) ?? lineOf(id);
    notice.hidden = Boolean(target) || !id;
    if (!notice.hidden) tellMissing(id);
    if (!target || target === form) return;
    if (target.closest("[hidden], .out")) {
      form.reset();
    }
    for (let at = target; at; at = at.parentElement) {
      if (at.tagName === "DETAILS") at.open = true;
    }
    const inside = target.querySelector(":scope > details");
    if (inside) inside.open = true;
    target.scrollIntoView();
  };

  const openFirstHit = () => {
    if (!document.body.matches(".filtered")) return;
    const hit = document.querySelector("[data-m]:not(.out), .cases tr[data-a]:not([hidden])");
    if (!hit) return;
    if (location.hash === `#${hit.id}`) reveal();
    else location.hash = hit.id;
  };

  form.addEventListener("input", () => {
    apply();
    keepAddress();
    scrollTo(0, 0);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    openFirstHit();
  });
  form.addEventListener("reset", () => {
    // The fields change after this event.
    queueMicrotask(() => {
      readAddress(new URLSearchParams());
      keepAddress();
    });
  });

  document.addEventListener("click", (event) => {
    const anchor = event.target.closest("a[href]");
    const href = anchor?.getAttribute("href") ?? "";
    if (href.startsWith("?")) {
      event.preventDefault();
      readAddress(new URL(href, location).searchParams);
      keepAddress();
      form.scrollIntoView();
    } else if (href === location.hash) {
      reveal();
    }
  });

  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, select, textarea")) return;
    event.preventDefault();
    form.elements.text.focus();
    form.elements.text.select();
  });

  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll(".card:not([open])")];
    opened.forEach((card) => (card.open = true));
  });
  addEventListener("afterprint", () => opened.forEach((card) => (card.open = false)));

  addEventListener("hashchange", reveal);
  addEventListener("popstate", () => readAddress(new URLSearchParams(location.search)));
  readAddress(new URLSearchParams(location.search));
  reveal();
})();
