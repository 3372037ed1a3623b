// Mends two things of Unfold's pages, once Alpine has made them.
window.addEventListener("load", () => {
  setTimeout(() => {
    // Django's box of two lists names its hints with aria-label, which only an element with a role may have.
    document.querySelectorAll("span.help-tooltip[aria-label]").forEach((hint) => hint.setAttribute("role", "img"));

    // A page is hidden until Alpine has begun. A browser that draws before that passes over what should have the focus.
    if (document.activeElement === document.body) {
      document.querySelector("[autofocus]")?.focus();
    }
  });
});
