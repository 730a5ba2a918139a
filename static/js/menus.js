// One open menu at a time; a click elsewhere or Esc closes it and gives focus back.
function closeMenus(but, refocus = false) {
  document.querySelectorAll("details[data-menu][open]").forEach((menu) => {
    if (menu === but) return;
    menu.open = false;
    if (refocus) menu.querySelector("summary").focus();
  });
}

document.addEventListener("click", ({ target }) => closeMenus(target.closest("details[data-menu]")));
document.addEventListener("keydown", ({ key }) => { if (key === "Escape") closeMenus(null, true); });
