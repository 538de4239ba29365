"use strict";
// Filters failures and cases. The page works without it.
(() => {
  const form = document.getElementById("filter");
  const fields = form.elements;
  const rows = [...document.querySelectorAll("[data-row]")].map((element) => ({
    element,
    text: element.textContent.toLowerCase(),
    runs: [...element.querySelectorAll("[data-m]")],
  }));
  const shown = document.getElementById("shown");

  const fits = (element, outcome, machine) =>
    (!outcome || element.classList.contains("o" + outcome)) &&
    (!machine || element.dataset.m === machine);

  const apply = () => {
    const outcome = fields.outcome.value;
    const area = fields.area.value;
    const machine = fields.machine.value;
    const words = fields.text.value.toLowerCase().split(/\s+/).filter(Boolean);
    const active = Boolean(outcome || area || machine || words.length);
    let count = 0;
    for (const row of rows) {
      // A failure is a run and lists similar runs; a case only lists runs.
      const failure = "m" in row.element.dataset;
      const own = failure ? [row.element, ...row.runs] : row.runs;
      const hits = own.filter((run) => fits(run, outcome, machine));
      const visible =
        hits.length > 0 &&
        (!area || row.element.dataset.a === area) &&
        words.every((word) => row.text.includes(word));
      row.element.hidden = !visible;
      if (visible && row.runs.length) {
        const kept = new Set(hits);
        row.runs.forEach((run) => run.classList.toggle("dim", !kept.has(run)));
        if (!failure) count += hits.length;
      }
    }
    shown.textContent = active ? `${count.toLocaleString("en")} case runs shown` : "";
  };

  form.hidden = false;
  form.addEventListener("input", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(apply));
  document.querySelectorAll("td[data-area]").forEach((cell) => {
    cell.classList.add("pick");
    cell.addEventListener("click", () => {
      fields.area.value = cell.dataset.area;
      fields.machine.value = cell.dataset.machine;
      apply();
      form.scrollIntoView({ behavior: "smooth" });
    });
  });
})();
