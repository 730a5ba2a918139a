// Live parts ask for themselves again while somebody looks. The server answers 204 where nothing
// changed; where it does not answer at all, the page says since when.
const EVERY_MS = 5000, STEPS_MS = 1000;

function ask(selector) {
  if (document.hidden) return;
  for (const part of document.querySelectorAll(selector)) {
    if (!part.hasAttribute("data-still")) htmx.trigger(part, "refresh");
  }
}

document.addEventListener("htmx:configRequest", ({ detail }) => {
  const hash = detail.elt.dataset?.hash;
  if (hash && detail.elt.hasAttribute("data-live")) detail.headers["If-None-Match"] = hash;
});

let lost = null;
function setLost(isLost) {
  const note = document.getElementById("lost");
  if (!note) return;
  if (isLost && !lost) lost = new Date();
  if (!isLost) lost = null;
  note.hidden = !lost;
  if (lost) note.querySelector("time").textContent = lost.toLocaleTimeString([], { hour12: false });
}

const isLive = (event) => event.detail.elt?.hasAttribute?.("data-live");
for (const name of ["htmx:sendError", "htmx:timeout", "htmx:responseError"]) {
  document.addEventListener(name, (event) => { if (isLive(event)) setLost(true); });
}
document.addEventListener("htmx:afterRequest", (event) => {
  if (isLive(event) && event.detail.successful) setLost(false);
});

setInterval(() => ask("[data-live=page]"), EVERY_MS);
setInterval(() => ask("[data-live=steps]"), STEPS_MS);
document.addEventListener("visibilitychange", () => ask("[data-live]"));
