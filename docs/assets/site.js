// A table that scrolls can be reached with the keyboard.
for (const one of document.querySelectorAll(".md-typeset__scrollwrap")) {
  one.tabIndex = 0;
}
