// Django's box of two lists names its hints with aria-label, which only an element with a role may have.
window.addEventListener("load", () => {
  setTimeout(() => {
    document.querySelectorAll("span.help-tooltip[aria-label]").forEach((hint) => hint.setAttribute("role", "img"));
  });
});
