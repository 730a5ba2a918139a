// Ticked rows fill the bulk bar: how many nodes, cards and held cards, and where the link leads.
const chosen = () => [...document.querySelectorAll("[data-pick]:checked")];

function show() {
  const bar = document.getElementById("bulk");
  if (!bar) return;
  const boxes = chosen();
  const all = document.querySelectorAll("[data-pick]");
  bar.hidden = boxes.length === 0;
  // A node that cannot tell has "" there; a sum with it is unknown as well.
  const sum = (name) => boxes.some((box) => box.dataset[name] === "") ? "–"
    : boxes.reduce((total, box) => total + Number(box.dataset[name]), 0);
  bar.querySelector("[data-count]").textContent = `${boxes.length} ${boxes.length === 1 ? "node" : "nodes"}`;
  bar.querySelector("[data-sums]").textContent = ` · ${sum("cards")} cards · ${sum("held")} held`;
  const query = new URLSearchParams(boxes.map((box) => ["node", box.value]));
  for (const link of bar.querySelectorAll("[data-href]")) {
    link.href = `${link.dataset.href}${link.dataset.href.includes("?") ? "&" : "?"}${query}`;
    link.setAttribute("hx-get", link.href);
    htmx.process(link);
  }
  const master = document.querySelector("[data-pick-all]");
  master.checked = boxes.length === all.length && all.length > 0;
  master.indeterminate = boxes.length > 0 && boxes.length < all.length;
}

document.addEventListener("change", ({ target }) => {
  if (target.matches("[data-pick-all]")) {
    document.querySelectorAll("[data-pick]").forEach((box) => { box.checked = target.checked; });
  }
  if (target.matches("[data-pick], [data-pick-all]")) show();
});
document.addEventListener("click", ({ target }) => {
  if (!target.closest("[data-pick-none]")) return;
  chosen().forEach((box) => { box.checked = false; });
  show();
});
document.addEventListener("gpuadmin:patched", show);
show();

