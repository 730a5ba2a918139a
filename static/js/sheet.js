// The side sheet is a native modal dialog: the page behind is inert, and focus goes back to the
// opener when it closes. Esc closes a plan; during a run only the button does, and never stops it.
const sheet = document.getElementById("sheet");
let opener = null;

document.addEventListener("htmx:beforeRequest", ({ detail }) => {
  if (detail.target === sheet && !sheet.open) opener = document.activeElement;
});
document.addEventListener("htmx:afterSwap", ({ detail }) => {
  if (detail.target !== sheet) return;
  if (!sheet.open) sheet.showModal();
  sheet.querySelector("[autofocus], h1")?.focus();
  sheet.querySelector(".scroll")?.scrollTo(0, 0);
});
document.addEventListener("click", (event) => {
  if (event.target.closest("[data-close]") && sheet.open) {
    event.preventDefault();
    sheet.close();
  } else if (event.target === sheet && !sheet.querySelector("[data-running]")) {
    sheet.close(); // the backdrop
  }
});
sheet.addEventListener("cancel", (event) => {
  if (sheet.querySelector("[data-running]")) event.preventDefault();
});
sheet.addEventListener("close", () => {
  sheet.replaceChildren();
  opener?.focus();
  htmx.trigger("#live", "refresh");
});

// 409 and 422 come with the sheet itself, which says what is against it. Any other refusal or fault
// is a page of its own, or nothing at all: its sentence is put above what was typed, which stays.
const SHEETS = [409, 422];
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  if (detail.target !== sheet || !SHEETS.includes(detail.xhr.status)) return;
  detail.shouldSwap = true;
  detail.isError = false;
});

function show(head, text) {
  if (!sheet.open) {
    sheet.replaceChildren(document.getElementById("sheet-bare").content.cloneNode(true));
    sheet.showModal();
  }
  const scroll = sheet.querySelector(".scroll");
  const note = document.getElementById("sheet-fault").content.firstElementChild.cloneNode(true);
  note.querySelector("b").textContent = head;
  note.querySelector("span").textContent = text;
  scroll.querySelector("[data-fault]")?.remove();
  scroll.prepend(note);
  scroll.scrollTo(0, 0);
}

const KEPT = "Nothing that you typed is lost. Sending it again is safe: one click is one change.";
const ofSheet = ({ target }) => target === sheet || sheet.contains(target);
document.addEventListener("htmx:responseError", ({ detail }) => {
  if (!ofSheet(detail)) return;
  const page = new DOMParser().parseFromString(detail.xhr.responseText, "text/html");
  const said = (tag) => page.querySelector(`main ${tag}`)?.textContent.trim();
  show(`${said("h1") ?? `gpuadmin answered with an error (${detail.xhr.status})`}.`, said("p") ?? KEPT);
});
for (const name of ["htmx:sendError", "htmx:timeout"]) {
  document.addEventListener(name, ({ detail }) => {
    if (ofSheet(detail)) show("gpuadmin does not answer.", KEPT);
  });
}
