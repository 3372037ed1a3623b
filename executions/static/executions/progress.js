// Keeps each {% execution_progress %} with an address of events true, by server-sent events. A module runs once, however
// often a page names it.
for (const box of document.querySelectorAll("[data-execution-events]")) {
  const events = new EventSource(box.dataset.executionEvents);
  const show = (event) => {
    const now = JSON.parse(event.data);
    const write = (part, text) => { box.querySelector(`[data-part="${part}"]`).textContent = text; };
    box.dataset.status = now.status;
    box.querySelector("progress").value = now.progress;
    write("status", now.status);
    write("done", now.done);
    write("tasks", now.tasks);
    write("left", now.seconds_left ? `, ${time(now.seconds_left)} left` : "");
  };
  events.addEventListener("progress", show);
  events.addEventListener("end", (event) => { show(event); events.close(); });
}

function time(seconds) {
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.round(seconds / 60)} min`;
  return `${Math.round(seconds / 3600)} h`;
}
