// Keys for lists and pages, and the filters of a page that stands alone. It makes no markup.
"use strict";

const rows = () =>
  [...document.querySelectorAll("table.rows tbody tr, details.row")].filter((row) => !row.hidden);
const opener = (row) => row.querySelector("summary, a");
let chosen = -1;

function choose(step) {
  const all = rows();
  if (!all.length) return;
  document.querySelector(".chosen")?.classList.remove("chosen");
  chosen = Math.min(Math.max(chosen + step, 0), all.length - 1);
  all[chosen].classList.add("chosen");
  opener(all[chosen]).focus({ preventScroll: true });
  all[chosen].scrollIntoView({ block: "nearest" });
}

const follow = (rel) => document.querySelector(`a[rel=${rel}]`)?.click();
const KEYS = {
  j: () => choose(1),
  k: () => choose(-1),
  ArrowLeft: () => follow("prev"),
  ArrowRight: () => follow("next"),
  u: () => follow("up"),
  "/": () => document.querySelector("input[type=search]")?.focus(),
};

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest?.("input, select, textarea");
  if (typing && event.key === "Escape") typing.blur();
  if (typing || event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
  event.preventDefault();
  KEYS[event.key]();
});

// A line of a list opens where it is clicked, unless words of it are being selected.
document.addEventListener("click", (event) => {
  const row = event.target.closest("table.rows tbody tr");
  if (row && !event.target.closest("a") && getSelection().isCollapsed) opener(row).click();
});

const values = document.getElementById("values");
if (values) filterHere(JSON.parse(values.textContent));

function filterHere(facets) {
  const form = document.querySelector("form.filters");
  const all = [...document.querySelectorAll("details.row")];
  const count = document.getElementById("count");
  const every = count.textContent;
  const texts = [];
  const text = (i) => (texts[i] ??= all[i].textContent.toLowerCase());
  const within = (value, from, to) =>
    (from === "" || (value !== null && value >= Number(from))) &&
    (to === "" || (value !== null && value <= Number(to)));

  function filter() {
    const given = (name) => form.elements[name]?.value ?? "";
    const words = given("text").toLowerCase();
    let shown = 0;
    all.forEach((row, i) => {
      const facet = facets[i];
      const wanted =
        (!given("status") || facet.status === given("status")) &&
        (!given("level") || facet.level === given("level")) &&
        within(facet.rate, given("rate_from"), given("rate_to")) &&
        within(facet.length, given("length_from"), given("length_to")) &&
        (!words || text(i).includes(words));
      row.hidden = !wanted;
      shown += wanted;
    });
    chosen = -1;
    count.textContent = shown === all.length ? every : `${shown} shown; ${every}`;
  }

  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", filter);
  form.addEventListener("reset", () => setTimeout(filter));
  filter(); // a browser may have kept what was typed
}
