// A table that scrolls can be reached with the keyboard, and the search has a name. Material wraps tables before `load`.
addEventListener("load", () => {
  for (const one of document.querySelectorAll(".md-typeset__scrollwrap")) {
    one.tabIndex = 0;
  }
  document.querySelector(".md-search").ariaLabel = "Search";
});
