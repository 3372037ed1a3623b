// What unfold's dialogs lack for the keyboard and for screen readers: a role, a name, and the focus, which stays inside
// while the dialog is open and goes back to the button that opened it.
(() => {
  // the settings of the site and the page itself may both name this file
  if (window.harborDialogs) return;
  window.harborDialogs = true;
  let opener = null;

  const focusable = (box) => [...box.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea")];

  document.addEventListener("htmx:beforeRequest", (event) => {
    if (event.detail.target?.id === "modal-content") opener = event.detail.elt;
  });

  document.addEventListener("htmx:afterSwap", (event) => {
    const box = event.target;
    if (box.id !== "modal-content" && !box.closest?.("#modal-content")) return;
    const dialog = document.getElementById("modal-content");
    const title = dialog.querySelector("h1");
    dialog.setAttribute("role", "dialog");
    dialog.setAttribute("aria-modal", "true");
    dialog.tabIndex = -1;
    if (title) {
      title.id = "modal-title";
      dialog.setAttribute("aria-labelledby", "modal-title");
    }
    const close = dialog.querySelector("#dialog > .text-icon-action");
    if (close) {
      close.setAttribute("role", "button");
      close.setAttribute("aria-label", "Close");
      close.tabIndex = 0;
    }
    // alpine shows the dialog in its next turn
    setTimeout(() => (focusable(dialog)[0] ?? dialog).focus(), 60);
  });

  document.addEventListener("keydown", (event) => {
    const dialog = document.getElementById("modal-content");
    if (!dialog || !dialog.offsetParent) return;
    if (event.key === "Escape") {
      opener?.focus();
    } else if (event.key === "Enter" && event.target.matches("[role=button]")) {
      event.target.click();
    } else if (event.key === "Tab") {
      const places = [...focusable(dialog), ...dialog.querySelectorAll("[role=button]")];
      const first = places[0];
      const last = places[places.length - 1];
      if (event.shiftKey ? document.activeElement === first : document.activeElement === last) {
        event.preventDefault();
        (event.shiftKey ? last : first)?.focus();
      }
    }
  });
})();

// Django's box of two lists names its hints with aria-label, which only an element with a role may have.
window.addEventListener("load", () => {
  setTimeout(() => {
    document.querySelectorAll("span.help-tooltip[aria-label]").forEach((hint) => hint.setAttribute("role", "img"));
  });
});
