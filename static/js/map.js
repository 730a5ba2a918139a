// Draws the heat map from its compact text (gpuadmin/web/pictures/heatmap.py says what stands where).
// One tab stop: the arrows move among cards and names, Home and End along a row, Enter opens.
import { patch } from "./patch.js";

const COLDEST = 30, PER_STEP = 5; // °C of the first colour, and of each step
const WORDS = { isidle: "held but idle", nm: "held, not measurable", free: "free", off: "not schedulable", dead: "failed", nodata: "unknown", mig: "cut by MIG" };
const step = (value) => Math.min(9, Math.max(0, Math.floor(value)));
const bucket = (ramp, value) => (value == null ? "" : `${ramp}${step(value / 10)}`);
const heat = (value) => (value == null ? "" : `ht${step((value - COLDEST) / PER_STEP)}`);
const shown = (value) => (value == null ? "–" : String(value));
const holder = (tone) => (tone == null ? "" : `ha${tone}`);

function make(tag, classes, text) {
  const element = document.createElement(tag);
  element.className = classes.filter(Boolean).join(" ");
  if (text !== undefined) element.textContent = text;
  return element;
}

function sign(id, classes) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", classes);
  svg.setAttribute("viewBox", classes.startsWith("i") ? "0 0 16 16" : "0 0 12 12");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(svg.namespaceURI, "use");
  use.setAttribute("href", `#${id}`);
  svg.append(use);
  return svg;
}

function segment([size, kind, memory, tone, letters]) {
  const look = ["gap", "free", "nm"][kind];
  const one = make("i", [`w${size}`, look, bucket("hm", memory), kind === 2 ? holder(tone) : ""]);
  if (letters) one.append(make("span", ["vm"], shown(memory)), make("span", ["va"], letters));
  return one;
}

function face([look, busy, memory, celsius, , letters, slots, segments]) {
  const inside = make("span", ["face"]);
  inside.setAttribute("aria-hidden", "true");
  if (look === "dead") inside.append(sign("i-x", "i sm"));
  else if (look === "nodata") inside.append(make("b", [], "?"));
  else if (segments) inside.append(...segments.map(segment), make("b", ["vt", "over"], shown(celsius)));
  else {
    const used = letters ? shown(busy) : "";
    for (const [name, text] of [["vu", used], ["vm", shown(memory)], ["va", letters], ["vt", shown(celsius)]]) {
      inside.append(make("span", [name], text));
    }
  }
  if (slots) {
    const pips = make("span", ["pips"]);
    pips.append(...[...slots].map((held) => make("i", [held === "1" ? "on" : ""])));
    inside.append(pips);
  }
  return inside;
}

function classes([look, busy, memory, celsius, tone, , slots]) {
  const held = look !== "free" && look !== "off";
  return ["cell", look, slots ? "ts" : "", held ? bucket("hu", busy) : "", held ? bucket("hm", memory) : "", heat(celsius), held ? holder(tone) : ""];
}

function sentence(node, index, [look, busy, memory, celsius]) {
  const parts = [WORDS[look] ?? `${busy} % busy`];
  if (memory != null) parts.push(`memory ${memory} %`);
  if (celsius != null) parts.push(`${celsius} °C`);
  return `${node} GPU ${index}: ${parts.join("; ")}`;
}

function card(node, href, index, values, said) {
  const box = make("span", []);
  box.setAttribute("role", "gridcell");
  const link = make("a", classes(values));
  link.setAttribute("href", `${href}#gpu-${index}`);
  link.title = said ?? sentence(node, index, values);
  link.setAttribute("aria-label", link.title);
  link.tabIndex = -1;
  link.append(face(values));
  box.append(link);
  return box;
}

function row(base, [name, mark, cordoned, cards, said]) {
  const line = make("div", ["nrow", cordoned ? "cordoned" : ""]);
  line.dataset.key = name;
  line.setAttribute("role", "row");
  const head = make("span", ["rowhead"]);
  head.setAttribute("role", "rowheader");
  const link = make("a", ["name"]);
  const href = base + encodeURIComponent(name);
  link.setAttribute("href", href);
  link.title = mark ? `${name}: ${mark[2]}` : name;
  link.tabIndex = -1;
  link.append(make("span", ["cut"], name));
  if (mark) link.append(sign(`g-${mark[0]}`, `g ${mark[1]}`), make("span", ["sr"], mark[2]));
  head.append(link);
  const cells = make("span", ["cells", `c${cards.length}`]);
  cells.setAttribute("role", "presentation");
  cells.append(...cards.map((values, index) => card(name, href, index, values, said?.[index])));
  line.append(head, cells);
  return line;
}

function draw(box) {
  if (box.drawn === box.dataset.map) return;
  box.drawn = box.dataset.map;
  box.removeAttribute("data-drawn");
  const fresh = box.cloneNode(false);
  fresh.append(...JSON.parse(box.drawn).map((each) => row(box.dataset.at, each)));
  const stop = box.querySelector("a[tabindex='0']");
  if (stop) fresh.querySelector(`a[href="${CSS.escape(stop.getAttribute("href"))}"]`)?.setAttribute("tabindex", "0");
  patch(box, fresh);
  box.setAttribute("data-drawn", "");
}

function drawAll() {
  document.querySelectorAll("[data-map]").forEach(draw);
  if (!document.querySelector(".map a[tabindex='0']")) {
    document.querySelector(".map a.cell")?.setAttribute("tabindex", "0");
  }
}

function target(link, key) {
  const rows = [...document.querySelectorAll(".map .nrow")];
  const line = link.closest(".nrow");
  const links = [...line.querySelectorAll("a")];
  const place = links.indexOf(link);
  const sideways = { ArrowLeft: place - 1, ArrowRight: place + 1, Home: 0, End: links.length - 1 };
  if (key in sideways) return links[sideways[key]];
  const next = rows[rows.indexOf(line) + (key === "ArrowDown" ? 1 : -1)]?.querySelectorAll("a");
  return next?.[Math.min(place, next.length - 1)];
}

const KEYS = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"];
document.addEventListener("keydown", (event) => {
  const link = event.target.closest?.(".map a");
  if (!link || !KEYS.includes(event.key) || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  target(link, event.key)?.focus();
});
document.addEventListener("focusin", ({ target: link }) => {
  if (!link.closest(".map .nrow")) return;
  document.querySelector(".map a[tabindex='0']")?.setAttribute("tabindex", "-1");
  link.setAttribute("tabindex", "0");
});
document.addEventListener("gpuadmin:patched", drawAll);
drawAll();
