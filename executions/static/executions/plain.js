// Keeps the parts of a page of Django's own admin up to date that name their address: `hx-get` is the address,
// `hx-trigger` says when it is asked (`load`, `every 2s`), and `hx-swap` whether the answer takes the place of the
// element or of its content. These are the names of htmx, which unfold's pages have. An answer with an error, and 204,
// leave the part as it is. A hidden page asks nothing.
"use strict";

(() => {
    const seconds = (trigger) => Number(/every (\d+)s/.exec(trigger)?.[1] ?? 0);

    const ask = async (element) => {
        const answer = await fetch(element.getAttribute("hx-get"), { cache: "no-store" });
        if (!answer.ok || answer.status === 204 || answer.redirected) {
            return element;
        }
        const html = await answer.text();
        if (element.getAttribute("hx-swap") === "innerHTML") {
            element.innerHTML = html;
            return element;
        }
        const box = document.createElement("div");
        box.innerHTML = html;
        const found = box.querySelector("[hx-get]");
        if (!found) {
            return element;
        }
        element.replaceWith(found);
        return found;
    };

    const follow = (element) => {
        const again = seconds(element.getAttribute("hx-trigger"));
        if (again) {
            setTimeout(() => look(element), again * 1000);
        }
    };

    const look = async (element) => {
        let shown = element;
        if (!document.hidden && document.contains(element)) {
            try {
                shown = await ask(element);
            } catch {
                // the server is away: the next look asks again
            }
        }
        follow(shown);
    };

    document.querySelectorAll("[hx-get]").forEach((element) => {
        if (element.getAttribute("hx-trigger").startsWith("load")) {
            look(element);
        } else {
            follow(element);
        }
    });
})();
