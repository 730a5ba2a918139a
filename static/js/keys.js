// Keys: / searches, j and k walk through the rows of a table, Enter opens, x ticks, ? tells them.
const box = () => document.getElementById("find");
const found = () => document.getElementById("found");
const typing = (element) => element.closest?.("input:not([type=checkbox]), textarea, select, [contenteditable]");
const rows = () => [...document.querySelectorAll("[data-keys] tbody tr, ul[data-keys] > li")];
const first = (row) => row.querySelector("a.b, .lead a, a");

function walk(by) {
  const all = rows();
  const here = all.findIndex((row) => row.contains(document.activeElement));
  const next = all[Math.min(all.length - 1, Math.max(0, here < 0 && by < 0 ? 0 : here + by))];
  if (!next) return;
  first(next)?.focus();
  next.scrollIntoView({ block: "nearest" });
}

function tick() {
  document.activeElement.closest("tr")?.querySelector("[data-pick]")?.click();
}

const KEYS = {
  "/": () => box()?.focus(),
  "?": () => document.getElementById("keys").showModal(),
  j: () => walk(1),
  k: () => walk(-1),
  x: tick,
};

document.addEventListener("keydown", (event) => {
  const act = KEYS[event.key];
  if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
  if (typing(event.target) || document.querySelector("dialog[open]")) return;
  event.preventDefault();
  act();
});

// What was found: the arrows go from the box into the list and through it, Esc clears it.
document.addEventListener("keydown", (event) => {
  const inside = event.target.closest?.(".find");
  if (!inside) return;
  if (event.key === "Escape") {
    found().replaceChildren();
    box().value = "";
    box().focus();
  }
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  const links = [...found().querySelectorAll("a")];
  const next = links.indexOf(document.activeElement) + (event.key === "ArrowDown" ? 1 : -1);
  event.preventDefault();
  (links[next] ?? box()).focus();
});
document.addEventListener("click", ({ target }) => {
  if (target.closest("[data-keys-help]")) document.getElementById("keys").showModal();
  if (!target.closest(".find")) found()?.replaceChildren();
});
document.addEventListener("input", ({ target }) => {
  if (target === box() && !target.value) found().replaceChildren();
});
