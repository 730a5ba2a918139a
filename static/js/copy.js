// A button with data-copy puts the text of the element that it names on the clipboard, and says so.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const source = document.getElementById(button.dataset.copy);
  const label = button.querySelector("span");
  const was = label.textContent;
  try {
    await navigator.clipboard.writeText(source.textContent);
    label.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(source); // no clipboard over plain HTTP: Ctrl+C does the rest
    label.textContent = "Selected";
  }
  setTimeout(() => { label.textContent = was; }, 2000);
});
