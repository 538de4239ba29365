"use strict";
// Copies the text of the element that a button names (data-copy="ID"), or a link to a part of the page
// (data-copy="#ID", or a link of class "link").
(() => {
  const copy = async (button, text) => {
    let done = true;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = document.body.appendChild(document.createElement("textarea"));
      area.value = text;
      area.select();
      done = document.execCommand("copy");
      area.remove();
    }
    button.dataset.copied = done ? "Copied" : "Not copied";
    setTimeout(() => delete button.dataset.copied, 1500);
  };

  const link = (hash) => new URL(location.pathname + hash, location).href;

  document.addEventListener("click", (event) => {
    const one = event.target.closest("[data-copy], a.link");
    if (!one) return;
    const what = one.dataset.copy ?? one.getAttribute("href");
    copy(one, what.startsWith("#") ? link(what) : document.getElementById(what).textContent.trimEnd());
  });
})();
