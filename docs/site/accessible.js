// What the theme's script makes around code and tables, for keyboards and screen readers: the buttons
// of each code block are a region with a name of its own, and wide tables can be scrolled with keys.
function complete() {
  document.querySelectorAll(".md-code__nav:not([aria-label])").forEach((nav) => {
    const number = [...document.querySelectorAll(".md-code__nav")].indexOf(nav) + 1;
    nav.setAttribute("aria-label", `Code block ${number}`);
  });
  document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])").forEach((wrap) => {
    wrap.tabIndex = 0;
  });
}
new MutationObserver(complete).observe(document.documentElement, { childList: true, subtree: true });
complete();
