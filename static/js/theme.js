// Light or dark: the button keeps its choice in a cookie, from which the server writes <html data-theme>.
document.addEventListener("click", (event) => {
  if (!event.target.closest("[data-theme-toggle]")) return;
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  const theme = (root.dataset.theme || system) === "dark" ? "light" : "dark";
  root.dataset.theme = theme;
  document.cookie = `theme=${theme}; path=/; max-age=31536000; samesite=lax`;
});
