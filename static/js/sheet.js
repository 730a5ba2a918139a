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

// A refusal or a fault of the server comes as a whole page: show it as one, not inside the sheet.
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  if (detail.target === sheet && detail.xhr.status === 422) {
    detail.shouldSwap = true;
    detail.isError = false;
  }
});
