// Loaded before anything is drawn, so that nobody is dazzled: the reader's choice, or what the system prefers.
"use strict";
(() => {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => {
    try {
      return localStorage.getItem("streamlearn-theme");
    } catch {
      return null; // storage may be forbidden
    }
  };
  const apply = () => {
    document.documentElement.dataset.theme = chosen() ?? (dark.matches ? "dark" : "light");
  };
  apply();
  dark.addEventListener("change", apply);
  addEventListener("DOMContentLoaded", () => {
    document.getElementById("theme").addEventListener("click", () => {
      const other = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
      try {
        localStorage.setItem("streamlearn-theme", other);
      } catch {
        // then only until the page is left
      }
      document.documentElement.dataset.theme = other;
    });
  });
})();
