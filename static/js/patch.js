// Brings one tree of nodes to the state of another and touches only what differs, so that focus,
// scroll, open menus and ticked boxes stay. htmx uses it as hx-swap="patch".
const KEEP = { INPUT: ["checked", "value"], DETAILS: ["open"], DIALOG: ["open"] };

export function patch(from, to) {
  if (from.nodeType !== to.nodeType || from.nodeName !== to.nodeName) {
    from.replaceWith(to);
    return;
  }
  if (from.nodeType !== Node.ELEMENT_NODE) {
    if (from.data !== to.data) from.data = to.data;
    return;
  }
  patchAttributes(from, to);
  if (!from.hasAttribute("data-drawn")) patchChildren(from, to); // else a script drew what is inside
}

function patchAttributes(from, to) {
  const kept = KEEP[from.nodeName] ?? [];
  for (const { name, value } of [...to.attributes]) {
    if (!kept.includes(name) && from.getAttribute(name) !== value) from.setAttribute(name, value);
  }
  for (const { name } of [...from.attributes]) {
    if (!to.hasAttribute(name) && name !== "data-drawn" && !kept.includes(name)) from.removeAttribute(name);
  }
}

function patchChildren(from, to) {
  const keyed = new Map();
  for (const child of from.children) if (keyOf(child)) keyed.set(keyOf(child), child);
  let place = from.firstChild;
  for (const wanted of [...to.childNodes]) {
    const match = keyOf(wanted) ? keyed.get(keyOf(wanted)) : keyOf(place) ? null : place;
    if (!match) {
      from.insertBefore(wanted, place);
      continue;
    }
    if (match === place) place = place.nextSibling;
    else from.insertBefore(match, place);
    patch(match, wanted);
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

function keyOf(node) {
  return node?.nodeType === Node.ELEMENT_NODE ? node.id || node.dataset.key : undefined;
}

htmx.defineExtension("patch", {
  isInlineSwap: (style) => style === "patch",
  handleSwap(style, target, fragment) {
    if (style !== "patch") return false;
    const fresh = fragment.querySelector(`#${CSS.escape(target.id)}`) ?? fragment.firstElementChild;
    patch(target, fresh);
    document.dispatchEvent(new CustomEvent("gpuadmin:patched"));
    return [target];
  },
});
