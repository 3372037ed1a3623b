// Keeps an open page up to date. Each element with `data-live` names the address that is asked every `data-every`
// milliseconds, and with `data-at-once` when the page is loaded; in it, `data-part` are the pieces that the answer
// replaces, `data-at` is the time of the last answer, and `data-trouble` says why there is no newer one.
// A hidden page asks nothing.
//
// A page that shows more than pieces, as the dashboard does, adds functions: `live.onNews` is called with each answer,
// `live.onRound` after each round.
"use strict";

const follow = (page) => {
    const LONGEST_MS = 30000;
    const newsListeners = [];
    const roundListeners = [];
    let every = 0;
    let delay = 0;
    let troubleSince = null;
    let timer = null;

    const setText = (element, text) => {
        if (element && element.textContent !== text) {
            element.textContent = text;
        }
    };

    // Return what the address answers. Throws if it does not answer.
    const ask = async (address) => {
        const answer = await fetch(address, { cache: "no-store", signal: AbortSignal.timeout(10000) });
        if (answer.redirected || answer.status === 403) {
            throw new Error("refused", { cause: "you are signed out: reload the page" });
        }
        if (!answer.ok) {
            throw new Error(String(answer.status), { cause: answer.headers.get("X-Trouble") });
        }
        const at = new Date(answer.headers.get("Date") ?? Date.now());
        setText(page.querySelector("[data-at]"), at.toISOString().slice(11, 19));
        return answer.json();
    };

    const scrollable = (part) => [...part.querySelectorAll(".harbor-table")];

    // A part that holds the focus waits until the focus has left it. Tables keep their place.
    const setPart = (name, html) => {
        const part = page.querySelector(`[data-part="${name}"]`);
        if (!part || part.dataset.shown === html || part.contains(document.activeElement)) {
            return;
        }
        const places = scrollable(part).map((one) => one.scrollTop);
        part.innerHTML = html;
        part.dataset.shown = html;
        if (places.some((place) => place > 0)) {
            requestAnimationFrame(() => {
                scrollable(part).forEach((one, number) => {
                    one.scrollTop = places[number] ?? 0;
                });
            });
        }
    };

    const showTrouble = (error) => {
        troubleSince = troubleSince || Date.now();
        const seconds = Math.round((Date.now() - troubleSince) / 1000);
        const said = error.cause ?? `the service has not answered for ${seconds} s`;
        setText(page.querySelector("[data-trouble]"), ` · ${said}`);
        delay = Math.min(delay * 1.5, LONGEST_MS);
    };

    const update = async () => {
        if (document.hidden) {
            timer = null;
            return;
        }
        try {
            const news = await ask(page.dataset.live);
            Object.entries(news.parts).forEach(([name, html]) => setPart(name, html));
            newsListeners.forEach((listener) => listener(news));
            for (const listener of roundListeners) {
                await listener();
            }
            troubleSince = null;
            delay = every = news.every ?? every;
            setText(page.querySelector("[data-trouble]"), "");
        } catch (error) {
            showTrouble(error);
        }
        timer = setTimeout(update, delay);
    };

    every = delay = Number(page.dataset.every);
    page.querySelectorAll("[data-part]").forEach((part) => {
        part.dataset.shown = "";
    });
    document.addEventListener("visibilitychange", () => {
        if (!document.hidden && timer === null) {
            timer = setTimeout(update, 0);
        }
    });
    timer = setTimeout(update, "atOnce" in page.dataset ? 0 : every);

    return {
        page,
        ask,
        setText,
        showTrouble,
        onNews: (listener) => newsListeners.push(listener),
        onRound: (listener) => roundListeners.push(listener),
    };
};

const [live] = [...document.querySelectorAll("[data-live]")].map(follow);
