"use strict";
// Sorts lists by a column when its head is clicked. Every page works without it.
// The URL contains the column (?sort=Score, or ?sort=-Score for descending order).
(() => {
  const tables = [...document.querySelectorAll("table.sortable")];
  if (!tables.length) return;

  const readValue = (row, at, kind) => {
    const cell = row.cells[at];
    const value = cell.dataset.value || cell.textContent.trim();
    return kind === "number" ? Number(value) : value;
  };

  const compare = (kind, a, b) =>
    kind === "number" ? a - b : a.localeCompare(b, "en", { numeric: true, sensitivity: "base" });

  // Equal rows keep their order.
  const sort = (table, name, descending) => {
    for (const head of table.tHead.rows[0].cells) {
      const chosen = head.dataset.name === name;
      head.ariaSort = chosen ? (descending ? "descending" : "ascending") : null;
      if (!chosen) continue;
      const body = table.tBodies[0];
      const kind = head.dataset.sort;
      const values = new Map([...body.rows].map((row) => [row, readValue(row, head.cellIndex, kind)]));
      const direction = descending ? -1 : 1;
      body.append(...[...body.rows].sort((a, b) => direction * compare(kind, values.get(a), values.get(b))));
    }
  };

  const sortAll = (said) => {
    const descending = said.startsWith("-");
    for (const table of tables) sort(table, descending ? said.slice(1) : said, descending);
  };

  const writeAddress = (said) => {
    const address = new URL(location.href);
    address.searchParams.set("sort", said);
    try {
      history.replaceState(null, "", address);
    } catch {
      // browsers may refuse it for local files, or limit the rate
    }
  };

  // The first click on a number shows the highest first.
  const choose = (head) => {
    const before = head.ariaSort;
    const descending = before ? before === "ascending" : head.dataset.sort === "number";
    const said = (descending ? "-" : "") + head.dataset.name;
    sortAll(said);
    writeAddress(said);
  };

  for (const table of tables)
    for (const head of table.tHead.querySelectorAll("[data-sort]")) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.dataset.name = button.textContent;
      head.append(button);
      button.addEventListener("click", () => choose(head));
    }

  const said = new URLSearchParams(location.search).get("sort");
  if (said) sortAll(said);
})();
