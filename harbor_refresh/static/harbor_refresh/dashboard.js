// What the dashboard shows beside the pieces that executions/live.js replaces: its numbers, and its charts, which are
// asked for every ten seconds, or every minute for those of the day.
"use strict";

(() => {
    const { page, setText } = live;
    const CHARTS_MS = { hour: 10000, day: 60000 };
    let charts = page.dataset.charts;
    let chartsAt = Date.now();

    const showNumbers = (news) => {
        for (const card of news.cards) {
            const element = page.querySelector(`[data-card="${card.id}"]`);
            if (!element) {
                continue;  // the first limit has come since the page was loaded
            }
            element.dataset.level = card.level;
            setText(element.querySelector("[data-value]"), card.value);
            setText(element.querySelector("[data-note]"), card.note);
        }
    };

    const chartIn = (element) => Chart.getChart(element.querySelector("canvas"));

    // From zero, so that a small change does not look like a large one; and with labels that can be read.
    const polishCharts = () => {
        const isDark = document.documentElement.classList.contains("dark");
        page.querySelectorAll("[data-chart]").forEach((element) => {
            const chart = chartIn(element);
            chart.options.scales.y.beginAtZero = true;
            for (const axis of ["x", "y"]) {
                chart.options.scales[axis].ticks.color = isDark ? "#9ca3af" : "#4b5563";
            }
            chart.update("none");
        });
    };

    const showCharts = (series) => {
        for (const [id, { data, told }] of Object.entries(series)) {
            const element = page.querySelector(`[data-chart="${id}"]`);
            const chart = chartIn(element);
            element.setAttribute("aria-label", told);
            chart.data.labels = data.labels;
            data.datasets.forEach((dataset, number) => {
                chart.data.datasets[number].data = dataset.data;
            });
            chart.update("none");
        }
    };

    const spanOf = (address) => address.split("/").pop();

    const askForCharts = async () => {
        chartsAt = Date.now();
        showCharts(await live.ask(charts));
    };

    live.onNews(showNumbers);
    live.onRound(async () => {
        if (Date.now() - chartsAt >= CHARTS_MS[spanOf(charts)]) {
            await askForCharts();
        }
    });

    page.querySelectorAll("[data-span]").forEach((button) => {
        button.addEventListener("click", async () => {
            page.querySelectorAll("[data-span]").forEach((other) => {
                other.setAttribute("aria-pressed", String(other === button));
            });
            charts = button.dataset.span;
            try {
                await askForCharts();
            } catch (error) {
                live.showTrouble(error);
            }
        });
    });

    window.addEventListener("load", polishCharts);
    new MutationObserver(polishCharts).observe(document.documentElement, { attributeFilter: ["class"] });
})();
