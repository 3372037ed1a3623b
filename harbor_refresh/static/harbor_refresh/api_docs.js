// The page of the API: Swagger UI has dark colours, and leaves it to the page when they apply.
"use strict";

const dark = window.matchMedia("(prefers-color-scheme: dark)");

function follow() {
    document.documentElement.classList.toggle("dark-mode", dark.matches);
}

dark.addEventListener("change", follow);
follow();
