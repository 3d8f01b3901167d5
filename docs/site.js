"use strict";
// Tables that scroll are made by the theme after the page is there; the keyboard must reach them.
new MutationObserver(() => {
  for (const frame of document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])")) frame.tabIndex = 0;
}).observe(document.body, { childList: true, subtree: true });
