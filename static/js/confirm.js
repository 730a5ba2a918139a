// The last button of a plan stays disabled until a reason is given and, where pods end, the name is
// typed. Without script the server asks for the same.
function check(form) {
  const typed = form.querySelector("[data-type]");
  const reason = form.querySelector("[name=reason]");
  const ready = (!typed || typed.value.trim() === typed.dataset.type) && reason.value.trim() !== "";
  form.querySelector("[data-run]").disabled = !ready;
}

function checkAll() {
  document.querySelectorAll("form[data-confirm]").forEach(check);
}

document.addEventListener("input", ({ target }) => {
  const form = target.closest("form[data-confirm]");
  if (form) check(form);
});
document.addEventListener("htmx:afterSettle", checkAll);
checkAll();
